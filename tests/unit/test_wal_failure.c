// SPDX-License-Identifier: BSD-2-Clause
//
// Writers of record files when writes, syncs and allocations fail, and among threads.
#include "wal_support.h"

#include "base/sync.h"

// ---- Appends -----------------------------------------------------------------------------------

// Appends with call number fail_at of the file system failing; what was said to be there must be
// there, and nothing else.
static void append_with_failure(uint64_t fail_at, int error, bool sticky, bool *reached)
{
    const size_t lengths[] = {10, 200, 3 * MIB, 5, 70000, MIB + 10, 0, 900};
    uint64_t good[TM_COUNT(lengths)];
    size_t n_good = 0, n_failed = 0;
    tm_wal_writer *w = new_log(50000);
    uint64_t first = tamis_vfs_memory_calls(vfs);
    tamis_vfs_memory_fail(vfs, first + fail_at, error, sticky);
    for (uint64_t i = 0; i < TM_COUNT(lengths); i++) {
        if (i == 3) tm_wal_writer_set_manifest(w, 8, 9);
        uint64_t end = tm_wal_writer_end(w);
        tamis_error e = {0};
        int st = append_payload(w, lengths[i], i, &e);
        if (st == TAMIS_OK) {
            good[n_good++] = i;
            continue;
        }
        n_failed++;
        ck_assert_int_eq(st, error == ENOSPC ? TAMIS_NOSPACE : TAMIS_IO);
        ck_assert_int_eq(e.code, st);
        ck_assert_uint_eq(tm_wal_writer_end(w), end);
        ck_assert(!tm_wal_writer_broken(w));
        if (sticky) tamis_vfs_memory_fail(vfs, 0, 0, 0);
    }
    *reached = tamis_vfs_memory_calls(vfs) >= first + fail_at;
    tamis_vfs_memory_fail(vfs, 0, 0, 0);
    ck_assert_uint_le(n_failed, 1);
    close_log(w);
    scan_ok();
    ck_assert_uint_eq(got.n, n_good);
    ck_assert(got.end.whole);
    ck_assert_uint_eq(got.end.manifest, 8);
    for (size_t i = 0; i < n_good; i++) ck_record(i, lengths[good[i]], good[i]);
    CK_OK(tm_dir_unlink(dir, LOG_NAME, err));
}

START_TEST(a_failed_append_leaves_nothing)
{
    const int errors[] = {EIO, ENOSPC, EINTR, 0};
    for (size_t e = 0; e < TM_COUNT(errors); e++) {
        for (int sticky = 0; sticky < 2; sticky++) {
            if (sticky && errors[e] == EINTR) continue; // it is repeated until it ends
            bool reached = true;
            uint64_t n = 1;
            for (; reached; n++) append_with_failure(n, errors[e], sticky != 0, &reached);
            ck_assert_uint_gt(n, 15);
        }
    }
}
END_TEST

// The disk fills in the middle of a record or between two pieces.
START_TEST(a_full_disk_is_only_a_pause)
{
    const size_t lengths[] = {10000, 5 * MIB / 2, 100};
    for (uint64_t room = 8192; room < 3 * MIB; room += 99 * 4096) {
        tm_wal_writer *w = new_log(room % 3 == 0 ? 65536 : 0);
        size_t n = 0;
        tamis_vfs_memory_limit(vfs, room);
        for (uint64_t i = 0; i < 20; i++) {
            tamis_error e;
            uint64_t end = tm_wal_writer_end(w);
            int st = append_payload(w, lengths[i % 3], i, &e);
            if (st != TAMIS_OK) {
                ck_assert_int_eq(st, TAMIS_NOSPACE);
                ck_assert_uint_eq(e.retryable, 1);
                ck_assert_uint_eq(tm_wal_writer_end(w), end);
            }
            if (i > 9) tamis_vfs_memory_limit(vfs, 0);
            n += st == TAMIS_OK;
            if (i > 10) ck_assert_int_eq(st, TAMIS_OK);
        }
        ck_assert_uint_lt(n, 20);
        close_log(w);
        scan_ok();
        ck_assert_uint_eq(got.n, n);
        ck_assert(got.end.whole);
        uint64_t last = 0;
        for (size_t i = 0; i < got.n; i++) {
            ck_assert_uint_gt(got.records[i].seq, last);
            last = got.records[i].seq;
            ck_record(i, lengths[(last - 1000) % 3], last - 1000);
        }
        CK_OK(tm_dir_unlink(dir, LOG_NAME, err));
    }
}
END_TEST

START_TEST(what_cannot_be_undone_breaks_the_log)
{
    tm_wal_writer *w = new_log(0);
    append_ok(w, 100, 0);
    uint64_t end = tm_wal_writer_end(w);
    tamis_vfs_memory_limit(vfs, 8192); // part of the next goes in
    tamis_vfs_memory_fail(vfs, tamis_vfs_memory_calls(vfs) + 3, EIO, 0);
    ck_assert_int_eq(append_payload(w, 100000, 1, NULL), TAMIS_NOSPACE);
    ck_assert(tm_wal_writer_broken(w) && !tm_wal_writer_poisoned(w));
    tamis_vfs_memory_limit(vfs, 0);
    tamis_vfs_memory_fail(vfs, 0, 0, 0);
    tamis_error e = {0};
    ck_assert_int_eq(append_payload(w, 1, 2, &e), TAMIS_IO);
    ck_assert_uint_eq(e.file_number, LOG_NUMBER);
    ck_assert_int_eq(tm_wal_writer_seal(w, NULL), TAMIS_IO);
    ck_assert_uint_eq(tm_wal_writer_end(w), end);
    CK_OK(tm_wal_writer_sync(w, err)); // what is good can still be made durable
    ck_assert_uint_eq(tm_wal_writer_synced(w), end);
    close_log(w);
    scan_ok();
    ck_assert_uint_eq(got.n, 1);
    ck_assert(!got.end.whole);
    ck_assert_uint_gt(got.end.cut_bytes, 0);
    ck_assert_int_eq(scan_log(end, end), TAMIS_OK); // as the next log will have it
    ck_assert(got.end.whole);
}
END_TEST

START_TEST(room_is_reserved_again)
{
    tm_wal_writer *w = new_log(1 << 20);
    tamis_vfs_memory_fail(vfs, tamis_vfs_memory_calls(vfs) + 1, EIO, 0);
    ck_assert_int_eq(append_payload(w, 100, 0, NULL), TAMIS_IO);
    uint64_t before = tamis_vfs_memory_calls(vfs);
    append_ok(w, 100, 1); // the truncation gave the room away
    ck_assert_uint_eq(tamis_vfs_memory_calls(vfs) - before, 2);
    append_ok(w, 100, 2);
    ck_assert_uint_eq(tamis_vfs_memory_calls(vfs) - before, 3);
    close_log(w);
}
END_TEST

static void ck_poisoned(tm_wal_writer *w)
{
    tamis_error e = {0};
    ck_assert(tm_wal_writer_poisoned(w));
    ck_assert_int_eq(append_payload(w, 1, 99, &e), TAMIS_POISONED);
    ck_assert_int_eq(e.code, TAMIS_POISONED);
    uint64_t before = tamis_vfs_memory_calls(vfs);
    ck_assert_int_eq(tm_wal_writer_sync(w, &e), TAMIS_POISONED);
    ck_assert_int_eq(tm_wal_writer_seal(w, NULL), TAMIS_POISONED);
    ck_assert_uint_eq(tamis_vfs_memory_calls(vfs), before); // never tried again
}

static tm_wal_writer *busy_writer;
static int (*real_sync)(tamis_file *file);

static int append_behind_sync(tamis_file *file)
{
    int rc = real_sync(file);
    append_ok(busy_writer, 50, 7);
    return rc;
}

// A record that comes when the disk is done already is not durable by that sync.
START_TEST(a_sync_covers_what_was_there_before)
{
    busy_writer = new_log(0);
    real_sync = vfs->data_sync;
    append_ok(busy_writer, 50, 0);
    uint64_t end = tm_wal_writer_end(busy_writer);
    vfs->data_sync = append_behind_sync;
    CK_OK(tm_wal_writer_sync(busy_writer, err));
    vfs->data_sync = real_sync;
    ck_assert_uint_gt(tm_wal_writer_end(busy_writer), end);
    ck_assert_uint_eq(tm_wal_writer_synced(busy_writer), end);
    close_log(busy_writer);
}
END_TEST

START_TEST(a_failed_sync_is_final)
{
    const int errors[] = {EIO, ENOSPC, EDQUOT, EINTR};
    for (size_t i = 0; i < TM_COUNT(errors); i++) {
        tm_wal_writer *w = new_log(0);
        append_ok(w, 100, 0);
        CK_OK(tm_wal_writer_sync(w, err));
        uint64_t synced = tm_wal_writer_synced(w);
        append_ok(w, 100, 1);
        tamis_vfs_memory_fail(vfs, tamis_vfs_memory_calls(vfs) + 1, errors[i], 0);
        tamis_error e = {0};
        ck_assert_int_eq(tm_wal_writer_sync(w, &e), TAMIS_IO);
        ck_assert_int_eq(e.code, TAMIS_IO);
        ck_assert_int_eq(e.sys, errors[i]);
        ck_assert_uint_eq(e.retryable, 0);
        ck_assert_uint_eq(tm_wal_writer_synced(w), synced);
        ck_poisoned(w);
        close_log(w);
        scan_ok();
        ck_assert_uint_eq(got.n, 2);
        CK_OK(tm_dir_unlink(dir, LOG_NAME, err));
    }
}
END_TEST

START_TEST(a_seal_may_fail_at_each_call)
{
    for (uint64_t n = 1;; n++) { // sync, write, sync
        tm_wal_writer *w = new_log(0);
        append_ok(w, 100, 0);
        tamis_vfs_memory_fail(vfs, tamis_vfs_memory_calls(vfs) + n, EIO, 0);
        int st = tm_wal_writer_seal(w, NULL);
        tamis_vfs_memory_fail(vfs, 0, 0, 0);
        if (st == TAMIS_OK) ck_assert_uint_eq(n, 4);
        else ck_assert_int_eq(st, TAMIS_IO);
        ck_assert(tm_wal_writer_poisoned(w) == (n == 1 || n == 3));
        if (tm_wal_writer_poisoned(w)) ck_poisoned(w);
        else CK_OK(tm_wal_writer_seal(w, err));
        close_log(w);
        scan_ok();
        ck_assert(got.end.sealed == (n != 1));
        CK_OK(tm_dir_unlink(dir, LOG_NAME, err));
        if (st == TAMIS_OK) break;
    }
}
END_TEST

START_TEST(create_fails_clean)
{
    tm_wal_writer *w = new_log(0);
    close_log(w);
    tamis_error e = {0};
    ck_assert_int_eq(tm_wal_writer_create(dir, LOG_NAME, &log_header, 0, &w, &e), TAMIS_EXISTS);
    ck_assert_ptr_null(w);
    CK_OK(tm_dir_unlink(dir, LOG_NAME, err));

    for (uint64_t n = 1; n < 5; n++) { // open, reserve, write
        tamis_vfs_memory_fail(vfs, tamis_vfs_memory_calls(vfs) + n, ENOSPC, 0);
        int st = tm_wal_writer_create(dir, LOG_NAME, &log_header, 4096, &w, &e);
        tamis_vfs_memory_fail(vfs, 0, 0, 0);
        if (n == 1 || n == 3) {
            ck_assert_int_eq(st, TAMIS_NOSPACE);
            ck_assert_ptr_null(w);
            ck_assert_int_eq(tm_dir_unlink(dir, LOG_NAME, NULL), TAMIS_NOTFOUND);
        } else {
            ck_assert_int_eq(st, TAMIS_OK); // a reservation is only asked for
            close_log(w);
            CK_OK(tm_dir_unlink(dir, LOG_NAME, err));
        }
    }
    denial d = {0, 1};
    tm_mem_set_hook(deny_one, &d);
    ck_assert_int_eq(tm_wal_writer_create(dir, LOG_NAME, &log_header, 0, &w, &e), TAMIS_NOMEM);
    tm_mem_set_hook(NULL, NULL);
    ck_assert_ptr_null(w);
    ck_assert_int_eq(tm_dir_unlink(dir, LOG_NAME, NULL), TAMIS_NOTFOUND);
}
END_TEST

// Every allocation of writing and reading fails once. The file system allocates too, so that a
// record may fail at any point of its way.
START_TEST(every_allocation_may_fail)
{
    const size_t lengths[] = {10, 5000, 100000, 2 * MIB + 1, 10};
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        tm_wal_writer *w = new_log(0);
        denial d = {0, n};
        size_t good = 0;
        tm_mem_set_hook(deny_one, &d);
        for (uint64_t i = 0; i < TM_COUNT(lengths); i++) {
            uint64_t end = tm_wal_writer_end(w);
            int st = append_payload(w, lengths[i], i, NULL);
            if (st != TAMIS_OK) ck_assert_int_eq(st, TAMIS_NOMEM);
            if (st != TAMIS_OK) ck_assert_uint_eq(tm_wal_writer_end(w), end);
            good += st == TAMIS_OK;
        }
        failed = d.seen >= n;
        tm_mem_set_hook(NULL, NULL);
        close_log(w);
        scan_ok();
        ck_assert_uint_eq(got.n, good);
        CK_OK(tm_dir_unlink(dir, LOG_NAME, err));
    }
    tm_wal_writer *w = new_log(0);
    for (uint64_t i = 0; i < TM_COUNT(lengths); i++) append_ok(w, lengths[i], i);
    close_log(w);
    failed = true;
    uint64_t n = 1;
    for (; failed; n++) {
        denial d = {0, n};
        tm_mem_set_hook(deny_one, &d);
        int st = scan_log(0, UINT64_MAX);
        failed = d.seen >= n;
        tm_mem_set_hook(NULL, NULL);
        if (st == TAMIS_OK) ck_assert_uint_eq(got.n, TM_COUNT(lengths)); // it made do with less
        else ck_assert_int_eq(st, TAMIS_NOMEM);
    }
    ck_assert_uint_gt(n, 6);
    ck_assert_uint_eq(got.n, TM_COUNT(lengths));
}
END_TEST

// ---- Threads -----------------------------------------------------------------------------------

typedef struct shared {
    tm_wal_writer *w;
    _Atomic bool stop;
    _Atomic uint64_t syncs;
} shared;

static void *sync_on(void *arg)
{
    shared *s = arg;
    while (!atomic_load_explicit(&s->stop, memory_order_acquire)) {
        uint64_t end = tm_wal_writer_end(s->w);
        if (tm_wal_writer_sync(s->w, NULL) != TAMIS_OK) return s;
        if (tm_wal_writer_synced(s->w) < end) return s;
        uint64_t n = atomic_fetch_add_explicit(&s->syncs, 1, memory_order_relaxed);
        tm_wal_writer_set_manifest(s->w, 7, 1000 + n);
    }
    return NULL;
}

START_TEST(syncs_run_beside_appends)
{
    shared s = {.w = new_log(0)};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, sync_on, &s), 0);
    for (uint64_t i = 0; i < 2000; i++) append_ok(s.w, i % 300, i);
    append_ok(s.w, 2 * MIB, 2000);
    while (atomic_load_explicit(&s.syncs, memory_order_relaxed) < 10) tm_thread_yield();
    atomic_store_explicit(&s.stop, true, memory_order_release);
    for (int i = 0; i < 2; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
    append_ok(s.w, 1, 2001);
    close_log(s.w);
    scan_ok();
    ck_assert_uint_eq(got.n, 2002);
    ck_assert_uint_ge(got.end.manifest_synced, 1000);
    ck_assert_uint_gt(got.end.vouched, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wal_failure");
    TCase *tc = tcase_create("failure");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, a_failed_append_leaves_nothing);
    tcase_add_test(tc, a_full_disk_is_only_a_pause);
    tcase_add_test(tc, what_cannot_be_undone_breaks_the_log);
    tcase_add_test(tc, room_is_reserved_again);
    tcase_add_test(tc, a_sync_covers_what_was_there_before);
    tcase_add_test(tc, a_failed_sync_is_final);
    tcase_add_test(tc, a_seal_may_fail_at_each_call);
    tcase_add_test(tc, create_fails_clean);
    tcase_add_test(tc, every_allocation_may_fail);
    tcase_add_test(tc, syncs_run_beside_appends);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
