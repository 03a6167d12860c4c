// SPDX-License-Identifier: BSD-2-Clause
//
// wal_support.h - what the tests of record files share: a file system in memory, a log in it, what
// a reader delivered, and the bytes of the file for tests that change them.
#ifndef WAL_SUPPORT_H
#define WAL_SUPPORT_H

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/coding.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/random.h"
#include "wal/wal_reader.h"
#include "wal/wal_writer.h"

#define LOG_NAME   "000012.log"
#define LOG_NUMBER 12
#define MIB        ((size_t)1 << 20)

static tamis_vfs *vfs;
static tamis_dir *dir;

static const tm_wal_header log_header = {
    .kind = TM_WAL_LOG,
    .required = 1,
    .optional = 0x80,
    .number = LOG_NUMBER,
    .store_id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
    .base = 1000,
    .previous = 9,
    .previous_end = 4000,
    .previous_synced = 3000,
    .manifest = 7,
    .manifest_synced = 500,
};

static inline void ck_ok_at(int status, const tamis_error *err, int line)
{
    if (status == TAMIS_OK) return;
    ck_abort_msg("line %d: %s: %s", line, tamis_status_name(status), err->message);
}
// x uses err.
#define CK_OK(x)                                                                                   \
    do {                                                                                           \
        tamis_error ck_err_ = {0}, *err = &ck_err_;                                                \
        ck_ok_at((x), err, __LINE__);                                                              \
    } while (0)

static inline void setup(void)
{
    CK_OK(tamis_vfs_memory(&vfs, err));
    CK_OK(tm_dir_open(vfs, "store", TAMIS_DIR_CREATE, &dir, NULL, err));
}

static inline void teardown(void)
{
    tm_dir_close(dir);
    tamis_vfs_free(vfs);
}

// After a crash the handles of before are dead.
static inline void open_dir_again(void)
{
    tm_dir_close(dir);
    CK_OK(tm_dir_open(vfs, "store", TAMIS_DIR_EXISTING, &dir, NULL, err));
}

static inline void make_durable_name(void)
{
    tamis_dir *parent;
    CK_OK(tm_dir_sync(dir, err));
    CK_OK(tm_dir_open(vfs, ".", TAMIS_DIR_EXISTING, &parent, NULL, err));
    CK_OK(tm_dir_sync(parent, err));
    tm_dir_close(parent);
}

// ---- Writing -----------------------------------------------------------------------------------

static inline tm_wal_writer *new_log(uint64_t reserve_bytes)
{
    tm_wal_writer *w = NULL;
    CK_OK(tm_wal_writer_create(dir, LOG_NAME, &log_header, reserve_bytes, &w, err));
    return w;
}

// The content of payload number i: told by its length and number, never mostly zeros.
static inline void fill_payload(uint8_t *p, size_t n, uint64_t i)
{
    tm_random r = tm_random_seed(i * 1000003 + n);
    size_t at = 0;
    for (; at + 8 <= n; at += 8) tm_put64(p + at, tm_random_next(&r));
    for (; at < n; at++) p[at] = (uint8_t)(tm_random_next(&r) | 1);
}

static inline int append_payload(tm_wal_writer *w, size_t n, uint64_t i, tamis_error *err)
{
    uint8_t *p = malloc(n + 1);
    ck_assert_ptr_nonnull(p);
    fill_payload(p, n, i);
    tm_slice part = tm_slice_of(p, n);
    int st = tm_wal_writer_append(w, &part, 1, 1000 + i, 1, err);
    free(p);
    return st;
}

// Record i has seq 1000 + i, count 1 and n bytes.
static inline void append_ok(tm_wal_writer *w, size_t n, uint64_t i)
{
    CK_OK(append_payload(w, n, i, err));
}

static inline void close_log(tm_wal_writer *w)
{
    CK_OK(tm_wal_writer_close(w, err));
}

// ---- The file's bytes --------------------------------------------------------------------------

static inline tm_buf load_file(const char *name)
{
    tm_buf b = {0};
    CK_OK(tm_file_load(dir, name, SIZE_MAX / 2, &b, err));
    return b;
}

static inline void store_file(const char *name, const void *data, size_t n)
{
    tm_file f;
    TM_IGNORE(tm_dir_unlink(dir, name, NULL));
    CK_OK(tm_file_open(dir, name, 0, TAMIS_FILE_CREATE, &f, err));
    CK_OK(tm_file_write(&f, 0, data, n, err));
    CK_OK(tm_file_close(&f, err));
}

static inline void poke(const char *name, uint64_t offset, const void *data, size_t n)
{
    tm_file f;
    CK_OK(tm_file_open(dir, name, 0, TAMIS_FILE_WRITE, &f, err));
    CK_OK(tm_file_write(&f, offset, data, n, err));
    CK_OK(tm_file_close(&f, err));
}

static inline void cut(const char *name, uint64_t size)
{
    tm_file f;
    CK_OK(tm_file_open(dir, name, 0, TAMIS_FILE_WRITE, &f, err));
    CK_OK(tm_file_truncate(&f, size, err));
    CK_OK(tm_file_close(&f, err));
}

// A record of LOG_NAME with right sums, put together once more from docs/format.md. It says that
// its payload has n bytes; spare are bytes behind the header's last number.
static inline size_t spell_record(uint8_t *out, uint64_t offset, unsigned type, uint64_t n,
                                  const uint64_t *numbers, size_t n_numbers, tm_slice spare,
                                  tm_slice payload)
{
    uint8_t place[32], *sum = malloc(128 + payload.len);
    memcpy(place, log_header.store_id, 16);
    tm_put64(place + 16, LOG_NUMBER);
    tm_put64(place + 24, offset);
    uint64_t mask = tm_checksum(place, 32);
    uint8_t *v = tm_put_varint(out + 14, n);
    for (size_t i = 0; i < n_numbers; i++) v = tm_put_varint(v, numbers[i]);
    memcpy(v, spare.data, spare.len);
    size_t h = (size_t)(v - out) + spare.len;
    memcpy(out + h, payload.data, payload.len);
    out[0] = sum[0] = (uint8_t)h;
    out[1] = sum[1] = (uint8_t)type;
    memcpy(sum + 2, out + 14, h - 14 + payload.len);
    tm_put64(out + 6, tm_checksum(sum, 2 + h - 14 + payload.len) ^ mask);
    memcpy(sum + 2, out + 6, h - 6);
    tm_put32(out + 2, (uint32_t)(tm_checksum(sum, 2 + h - 6) ^ mask));
    free(sum);
    return h + payload.len;
}

// ---- Reading -----------------------------------------------------------------------------------

enum { MAX_RECORDS = 4096, MAX_LOST = 64 };

typedef struct delivered {
    uint64_t seq, count, offset, manifest, manifest_synced, hash;
    size_t len;
    bool seal;
} delivered;

typedef struct reading {
    delivered records[MAX_RECORDS];
    size_t n;
    size_t stop_after; // ABORTED after so many; 0: never
    struct {
        uint64_t from, to;
    } lost[MAX_LOST];
    size_t n_lost;
    tm_wal_end end;
    tamis_error error;
    int status;
} reading;

static reading got; // large

static inline int keep_record(void *ctx, const tm_wal_record *rec, tamis_error *err)
{
    reading *g = ctx;
    ck_assert_uint_lt(g->n, MAX_RECORDS);
    g->records[g->n++] = (delivered){.seq = rec->seq,
                                     .count = rec->count,
                                     .offset = rec->offset,
                                     .manifest = rec->manifest,
                                     .manifest_synced = rec->manifest_synced,
                                     .hash = tm_checksum(rec->payload.data, rec->payload.len),
                                     .len = rec->payload.len,
                                     .seal = rec->seal};
    if (g->n == g->stop_after) return tm_fail(err, TAMIS_ABORTED, "enough");
    return TAMIS_OK;
}

static inline void keep_lost(void *ctx, uint64_t from, uint64_t to)
{
    reading *g = ctx;
    ck_assert_uint_lt(g->n_lost, MAX_LOST);
    ck_assert_uint_lt(from, to);
    g->lost[g->n_lost].from = from;
    g->lost[g->n_lost++].to = to;
}

// Opens and scans LOG_NAME into got; the status is that of the first failure.
static inline int scan_log(uint64_t vouched, uint64_t stop_at)
{
    tm_wal_reader *r;
    got.n = got.n_lost = 0;
    got.error = (tamis_error){0};
    got.end = (tm_wal_end){0};
    got.status = tm_wal_reader_open(dir, LOG_NAME, LOG_NUMBER, TM_WAL_LOG, log_header.store_id, &r,
                                    &got.error);
    if (got.status != TAMIS_OK) {
        ck_assert_ptr_null(r);
        return got.status;
    }
    got.status = tm_wal_reader_scan(r, vouched, stop_at, keep_record, &got, &got.end, &got.error);
    tm_wal_reader_close(r);
    return got.status;
}

static inline void scan_ok(void)
{
    ck_ok_at(scan_log(0, UINT64_MAX), &got.error, __LINE__);
}

static inline int salvage_log(bool blind)
{
    tm_wal_reader *r;
    got.n = got.n_lost = 0;
    got.error = (tamis_error){0};
    if (blind) {
        CK_OK(tm_wal_reader_open_blind(dir, LOG_NAME, LOG_NUMBER, TM_WAL_LOG, log_header.store_id,
                                       &r, err));
    } else {
        CK_OK(tm_wal_reader_open(dir, LOG_NAME, LOG_NUMBER, TM_WAL_LOG, NULL, &r, err));
    }
    got.status = tm_wal_reader_salvage(r, keep_record, keep_lost, &got, &got.error);
    tm_wal_reader_close(r);
    return got.status;
}

// Record number at of got is payload i of n bytes.
static inline void ck_record(size_t at, size_t n, uint64_t i)
{
    ck_assert_uint_lt(at, got.n);
    const delivered *d = &got.records[at];
    uint8_t *p = malloc(n + 1);
    fill_payload(p, n, i);
    ck_assert(!d->seal);
    ck_assert_uint_eq(d->seq, 1000 + i);
    ck_assert_uint_eq(d->count, 1);
    ck_assert_uint_eq(d->len, n);
    ck_assert_uint_eq(d->hash, tm_checksum(p, n));
    free(p);
}

static inline void ck_corrupt_at(uint64_t offset)
{
    ck_assert_int_eq(got.status, TAMIS_CORRUPT);
    ck_assert_int_eq(got.error.code, TAMIS_CORRUPT);
    ck_assert_uint_eq(got.error.file_number, LOG_NUMBER);
    ck_assert_uint_eq(got.error.offset, offset);
}

// ---- A small log, for tests that change it byte by byte ----------------------------------------

enum { SMALL = 6 }; // records of the small log

static const size_t small_sizes[SMALL] = {30, 0, 200, 77, 1, 60};
static uint64_t small_starts[SMALL + 1]; // the last: end of the last record

// Six records. sync_after: these many were durable when the next was written; 0: none.
static inline void small_log(size_t sync_after, bool seal)
{
    TM_IGNORE(tm_dir_unlink(dir, LOG_NAME, NULL));
    tm_wal_writer *w = new_log(0);
    for (size_t i = 0; i < SMALL; i++) {
        small_starts[i] = tm_wal_writer_end(w);
        append_ok(w, small_sizes[i], i);
        if (i + 1 == sync_after) CK_OK(tm_wal_writer_sync(w, err));
    }
    small_starts[SMALL] = tm_wal_writer_end(w);
    if (seal) CK_OK(tm_wal_writer_seal(w, err));
    close_log(w);
}

static inline void ck_small_prefix(size_t n)
{
    ck_assert_uint_eq(got.n, n);
    for (size_t i = 0; i < n; i++) ck_record(i, small_sizes[i], i);
}

// ---- Failing allocations -----------------------------------------------------------------------

typedef struct denial {
    uint64_t seen, deny; // the one of this number is refused; 0: none
} denial;

static inline bool deny_one(void *ctx, size_t n)
{
    denial *d = ctx;
    (void)n;
    return ++d->seen != d->deny;
}

static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif // WAL_SUPPORT_H
