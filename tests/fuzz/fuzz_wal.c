// SPDX-License-Identifier: BSD-2-Clause
//
// Purpose: any bytes as a record file. The first byte says what is done to the others first:
//   bit 0   they get the header of a log, so that the records are met
//   bit 1   the sums of what looks like records are made right, so that what is behind is met
//   bit 2   they are no file but changes to one that was written properly: 3 bytes each, the offset
//           and the new byte
#include <stdlib.h>

#include "base/coding.h"
#include "base/file.h"
#include "base/hash.h"
#include "wal/wal_reader.h"
#include "wal/wal_writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const tm_wal_header header = {
    .kind = TM_WAL_LOG, .number = 7, .store_id = "fuzzed store ID", .previous_end = 1000};

static void require(bool x)
{
    if (!x) abort();
}

static uint64_t mask_at(uint64_t offset)
{
    uint8_t place[32];
    memcpy(place, header.store_id, 16);
    tm_put64(place + 16, header.number);
    tm_put64(place + 24, offset);
    return tm_checksum(place, 32);
}

// Makes the sums of the record at p right, as far as there is one. Returns its length, at least 1.
static size_t repair_record(uint8_t *p, size_t n, uint64_t offset)
{
    uint8_t bytes[64];
    size_t h = p[0];
    if (h < 18 || h > 64 || h > n) return 1;
    tm_cursor c = tm_cursor_of(tm_slice_of(p + 14, h - 14));
    uint64_t payload = tm_read_varint(&c), mask = mask_at(offset);
    if (payload > n - h) payload = 0;
    bytes[0] = p[0];
    bytes[1] = p[1];
    memcpy(bytes + 2, p + 14, h - 14);
    tm_put64(p + 6, tm_checksum2(bytes, h - 12, p + h, (size_t)payload) ^ mask);
    memcpy(bytes + 2, p + 6, h - 6);
    tm_put32(p + 2, (uint32_t)(tm_checksum(bytes, h - 4) ^ mask));
    return h + (size_t)payload;
}

static void repair_records(uint8_t *p, size_t n)
{
    for (size_t at = TM_WAL_HEADER_BYTES; at < n;) at += repair_record(p + at, n - at, at);
}

static void write_log(tamis_dir *dir, const char *name)
{
    static const uint8_t text[600] = "the quick brown fox jumps over the lazy dog";
    tm_wal_writer *w;
    require(tm_wal_writer_create(dir, name, &header, 0, &w, NULL) == TAMIS_OK);
    for (uint64_t i = 0; i < 8; i++) {
        tm_slice part = tm_slice_of(text, (size_t)(i * i * 11));
        require(tm_wal_writer_append(w, &part, 1, 1 + i, 1, NULL) == TAMIS_OK);
        if (i == 2) require(tm_wal_writer_sync(w, NULL) == TAMIS_OK);
        if (i == 4) tm_wal_writer_set_manifest(w, 3, 300);
        if (i == 5) require(tm_wal_writer_seal(w, NULL) == TAMIS_OK);
    }
    require(tm_wal_writer_close(w, NULL) == TAMIS_OK);
}

static void make_file(tamis_dir *dir, const char *name, const uint8_t *data, size_t size)
{
    uint8_t mode = data[0];
    tm_buf b = {0};
    data++;
    size--;
    if (mode & 4) {
        write_log(dir, name);
        require(tm_file_load(dir, name, 1 << 20, &b, NULL) == TAMIS_OK);
        require(tm_dir_unlink(dir, name, NULL) == TAMIS_OK);
        for (; size >= 3; data += 3, size -= 3) b.data[tm_get16(data) % b.len] = data[2];
    } else {
        if (mode & 1) {
            require(tm_buf_reserve(&b, TM_WAL_HEADER_BYTES) == TAMIS_OK);
            tm_wal_header_encode(&header, b.data);
            b.len = TM_WAL_HEADER_BYTES;
        }
        require(tm_buf_append(&b, data, size) == TAMIS_OK);
    }
    if (mode & 2) repair_records(b.data, b.len);
    tm_file f;
    require(tm_file_open(dir, name, 0, TAMIS_FILE_CREATE, &f, NULL) == TAMIS_OK);
    require(tm_file_write(&f, 0, b.data, b.len, NULL) == TAMIS_OK);
    require(tm_file_close(&f, NULL) == TAMIS_OK);
    tm_buf_deinit(&b);
}

typedef struct seen {
    uint64_t n, next, hash, prefix;
    uint64_t hash_of_prefix; // of the first prefix records
} seen;

static int each(void *ctx, const tm_wal_record *rec, tamis_error *err)
{
    seen *s = ctx;
    (void)err;
    require(rec->offset >= s->next && rec->count <= UINT64_MAX - rec->seq);
    require(!rec->seal || (rec->payload.len == 0 && rec->count == 0));
    s->next = rec->offset + TM_WAL_FRAME_MIN + rec->payload.len;
    s->hash = tm_mix64(s->hash ^ tm_checksum(rec->payload.data, rec->payload.len) ^ rec->offset);
    if (++s->n == s->prefix) s->hash_of_prefix = s->hash;
    return TAMIS_OK;
}

static void lost(void *ctx, uint64_t from, uint64_t to)
{
    seen *s = ctx;
    require(from < to && from >= s->next);
}

static void read_file(tamis_dir *dir, const char *name)
{
    tm_wal_reader *r;
    tamis_error e = {0};
    bool begun;
    int st = tm_wal_reader_open(dir, name, header.number, TM_WAL_LOG, NULL, &r, &e);
    require(st == TAMIS_OK || st == TAMIS_CORRUPT || st == TAMIS_UNSUPPORTED);
    require(tm_wal_was_begun(dir, name, header.number, header.store_id, &begun, &e) == TAMIS_OK);
    if (st != TAMIS_OK) {
        require(tm_wal_reader_open_blind(dir, name, header.number, TM_WAL_LOG, header.store_id, &r,
                                         &e) == TAMIS_OK);
    }
    seen scanned = {.next = 0}, again = {.next = 0}, salvaged = {.next = 0};
    tm_wal_end end, end_again;
    st = tm_wal_reader_scan(r, 0, UINT64_MAX, each, &scanned, &end, &e);
    require(st == TAMIS_OK || st == TAMIS_CORRUPT);
    require(end.logical_end <= end.file_bytes && end.cut_bytes <= end.file_bytes - end.logical_end);
    require(!end.whole || (st == TAMIS_OK && end.cut_bytes == 0));
    // What somebody else vouches for changes the judgement, not the records.
    int stricter = tm_wal_reader_scan(r, end.logical_end + 1, UINT64_MAX, each, &again, &end_again,
                                      &e);
    require(stricter == TAMIS_CORRUPT || end.cut_bytes > 0);
    require(again.hash == scanned.hash && end_again.logical_end == end.logical_end);
    salvaged.prefix = scanned.n;
    require(tm_wal_reader_salvage(r, each, lost, &salvaged, &e) == TAMIS_OK);
    require(salvaged.n >= scanned.n && salvaged.hash_of_prefix == scanned.hash);
    tm_wal_reader_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tamis_vfs *vfs;
    tamis_dir *dir;
    if (size == 0) return 0;
    require(tamis_vfs_memory(&vfs, NULL) == TAMIS_OK);
    require(tm_dir_open(vfs, "store", TAMIS_DIR_CREATE, &dir, NULL, NULL) == TAMIS_OK);
    make_file(dir, "000007.log", data, size);
    read_file(dir, "000007.log");
    tm_dir_close(dir);
    tamis_vfs_free(vfs);
    return 0;
}
