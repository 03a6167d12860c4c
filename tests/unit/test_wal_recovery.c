// SPDX-License-Identifier: BSD-2-Clause
//
// Record files after crashes, with failing reads, without a header; and what salvage gets out of
// damaged ones.
#include "wal_support.h"

// ---- Salvage, and headers of files -------------------------------------------------------------

START_TEST(salvage_loses_only_what_is_unreadable)
{
    for (size_t bad = 0; bad < SMALL; bad++) {
        for (size_t other = bad; other < SMALL; other++) {
            for (int in_header = 0; in_header < 2; in_header++) {
                const size_t damaged[2] = {bad, other};
                small_log(0, true);
                for (int i = 0; i < 2; i++) {
                    uint64_t at = in_header ? small_starts[damaged[i]] + 2
                                            : small_starts[damaged[i] + 1] - 1;
                    poke(LOG_NAME, at, "\372", 1);
                }
                ck_assert_int_eq(salvage_log(bad == 1), TAMIS_OK);
                size_t at = 0, lost = bad == other ? 1 : 2;
                ck_assert_uint_eq(got.n, SMALL + 1 - lost);
                for (size_t i = 0; i < SMALL; i++) {
                    if (i != bad && i != other) ck_record(at++, small_sizes[i], i);
                }
                ck_assert(got.records[at].seal);
                ck_assert_uint_eq(got.n_lost, lost == 2 && other == bad + 1 ? 1 : lost);
                ck_assert_uint_eq(got.lost[0].from, small_starts[bad]);
                ck_assert_uint_eq(got.lost[got.n_lost - 1].to, small_starts[other + 1]);
            }
        }
    }
}
END_TEST

START_TEST(salvage_without_a_header)
{
    small_log(0, true);
    uint8_t noise[TM_WAL_HEADER_BYTES];
    memset(noise, 0xa5, sizeof noise);
    poke(LOG_NAME, 0, noise, sizeof noise);
    ck_assert_int_eq(scan_log(0, UINT64_MAX), TAMIS_CORRUPT);
    ck_assert_int_eq(salvage_log(true), TAMIS_OK);
    ck_assert_uint_eq(got.n, SMALL + 1);
    for (size_t i = 0; i < SMALL; i++) ck_record(i, small_sizes[i], i);
    ck_assert(got.records[SMALL].seal);
}
END_TEST

static bool was_begun(void)
{
    bool begun;
    CK_OK(tm_wal_was_begun(dir, LOG_NAME, LOG_NUMBER, log_header.store_id, &begun, err));
    return begun;
}

START_TEST(a_file_shows_whether_it_was_begun)
{
    bool begun;
    ck_assert_int_eq(tm_wal_was_begun(dir, LOG_NAME, LOG_NUMBER, log_header.store_id, &begun, NULL),
                     TAMIS_NOTFOUND);
    small_log(0, false);
    tm_buf file = load_file(LOG_NAME);
    ck_assert(was_begun());
    for (size_t bit = 0; bit < 8 * TM_WAL_HEADER_BYTES; bit++) { // one wrong bit
        uint8_t byte = (uint8_t)(file.data[bit / 8] ^ 1u << bit % 8);
        poke(LOG_NAME, bit / 8, &byte, 1);
        ck_assert(was_begun());
        poke(LOG_NAME, bit / 8, &file.data[bit / 8], 1);
    }
    // A header that a crash lost: nothing behind it was durable.
    uint8_t zeros[TM_WAL_HEADER_BYTES] = {0};
    poke(LOG_NAME, 0, zeros, sizeof zeros);
    ck_assert(!was_begun());
    poke(LOG_NAME, 0, "tamisWAL", 8);
    ck_assert(!was_begun());
    for (uint64_t n = 0; n <= TM_WAL_HEADER_BYTES; n++) {
        store_file(LOG_NAME, file.data, n);
        ck_assert(was_begun() == (n == TM_WAL_HEADER_BYTES));
    }
    // One that was durable, as a later record says.
    small_log(2, false);
    poke(LOG_NAME, 0, zeros, sizeof zeros);
    ck_assert(was_begun());
    cut(LOG_NAME, small_starts[2]);
    ck_assert(!was_begun()); // nobody is left to say so
    tm_buf_deinit(&file);
}
END_TEST

START_TEST(every_bad_header_is_told)
{
    small_log(0, true);
    tm_buf file = load_file(LOG_NAME);
    for (size_t i = 0; i < TM_WAL_HEADER_BYTES; i++) {
        uint8_t byte = (uint8_t)~file.data[i];
        poke(LOG_NAME, i, &byte, 1);
        ck_assert_int_eq(scan_log(0, UINT64_MAX), TAMIS_CORRUPT);
        ck_assert_uint_eq(got.error.file_number, LOG_NUMBER);
        poke(LOG_NAME, i, &file.data[i], 1);
        store_file("cut.log", file.data, i);
        tm_wal_reader *r;
        tamis_error e;
        ck_assert_int_eq(tm_wal_reader_open(dir, "cut.log", 12, TM_WAL_LOG, NULL, &r, &e),
                         TAMIS_CORRUPT);
        ck_assert_uint_eq(e.offset, i);
    }
    tm_buf_deinit(&file);
}
END_TEST

// A failing read says nothing about the file: never a tail, never damage.
START_TEST(a_failed_read_is_not_damage)
{
    static const uint8_t zeros[100];
    tm_wal_writer *w = new_log(0);
    for (uint64_t i = 0; i < 1200; i++) append_ok(w, 1000, i);
    append_ok(w, 2 * MIB, 1200);
    CK_OK(tm_wal_writer_sync(w, err));
    append_ok(w, 1, 1201);
    close_log(w);
    poke(LOG_NAME, 500000, zeros, sizeof zeros);
    const int errors[] = {EIO, EACCES, 0};
    for (size_t e = 0; e < TM_COUNT(errors); e++) {
        for (uint64_t n = 1;; n++) {
            uint64_t fail_at = tamis_vfs_memory_calls(vfs) + n;
            tamis_vfs_memory_fail(vfs, fail_at, errors[e], 0);
            int st = scan_log(0, UINT64_MAX);
            bool reached = tamis_vfs_memory_calls(vfs) >= fail_at;
            tamis_vfs_memory_fail(vfs, 0, 0, 0);
            ck_assert_int_eq(st, reached && errors[e] != 0 ? TAMIS_IO : TAMIS_CORRUPT);
            if (!reached) {
                ck_assert_uint_gt(n, 5);
                break;
            }
        }
    }
    bool begun;
    poke(LOG_NAME, 0, zeros, 8);
    for (uint64_t n = 1; n < 8; n++) {
        tamis_vfs_memory_fail(vfs, tamis_vfs_memory_calls(vfs) + n, EIO, 0);
        int st = tm_wal_was_begun(dir, LOG_NAME, LOG_NUMBER, log_header.store_id, &begun, NULL);
        tamis_vfs_memory_fail(vfs, 0, 0, 0);
        ck_assert_int_eq(st, TAMIS_IO);
    }
    ck_assert(was_begun());
}
END_TEST

// ---- Crashes -----------------------------------------------------------------------------------

// A writer's life of random appends, syncs and seals, with one call of the file system failing in
// between, then a crash. What is read must be a prefix of the good appends, with all that were
// synced, and never be taken for damage.
static void crash_once(tamis_crash kind, uint64_t seed)
{
    static uint64_t good[200];
    static size_t lengths[200];
    tm_random random = tm_random_seed(seed);
    size_t n = 0, synced = 0;
    setup();
    tm_wal_writer *w = new_log(tm_random_below(&random, 2) * 65536);
    make_durable_name();
    bool begun = false;
    uint64_t fail_after = 1 + tm_random_below(&random, 80);
    if (tm_random_below(&random, 2)) {
        tamis_vfs_memory_fail(vfs, tamis_vfs_memory_calls(vfs) + fail_after, ENOSPC, 0);
    }
    uint64_t steps = tm_random_below(&random, 100);
    for (uint64_t i = 0; i < steps; i++) {
        uint64_t what = tm_random_below(&random, 10);
        if (what < 8) {
            size_t length = tm_random_below(&random, 1u << tm_random_below(&random, 14));
            if (seed % 16 == 0 && what == 0) length += MIB;
            if (append_payload(w, length, i, NULL) != TAMIS_OK) continue;
            lengths[n] = length;
            good[n++] = i;
        } else {
            int st = what == 8 ? tm_wal_writer_sync(w, NULL) : tm_wal_writer_seal(w, NULL);
            if (st == TAMIS_OK) synced = n;
            begun = begun || st == TAMIS_OK;
        }
    }
    uint64_t vouched = tm_wal_writer_synced(w);
    tamis_vfs_memory_fail(vfs, 0, 0, 0);
    tamis_vfs_memory_crash(vfs, kind, seed);
    TM_IGNORE(tm_wal_writer_close(w, NULL));
    open_dir_again();

    int st = scan_log(vouched, UINT64_MAX);
    if (st == TAMIS_CORRUPT && !begun) { // the header was lost: then the file must not look begun
        ck_assert_uint_eq(got.n, 0);
        ck_assert(!was_begun());
    } else {
        if (st != TAMIS_OK) ck_abort_msg("crash %d seed %u: %s", (int)kind, (unsigned)seed,
                                         got.error.message);
        size_t at = 0;
        for (size_t i = 0; i < got.n; i++) {
            if (got.records[i].seal) continue;
            ck_assert_uint_lt(at, n);
            ck_assert_uint_eq(got.records[i].seq, 1000 + good[at]);
            ck_record(i, lengths[at], good[at]);
            at++;
        }
        ck_assert_uint_ge(at, synced);
        if (kind == TAMIS_CRASH_KEEP_ALL) ck_assert_uint_eq(at, n);
        if (kind == TAMIS_CRASH_LOSE_ALL) ck_assert_uint_eq(got.end.logical_end, vouched);
    }
    teardown();
}

START_TEST(crashes_leave_a_prefix)
{
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        for (int kind = TAMIS_CRASH_KEEP_ALL; kind <= TAMIS_CRASH_TORN; kind++) {
            bool once = kind == TAMIS_CRASH_KEEP_ALL || kind == TAMIS_CRASH_LOSE_ALL;
            if (!once || seed % 8 == 0) crash_once((tamis_crash)kind, seed);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wal_recovery");
    TCase *tc = tcase_create("recovery");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, salvage_loses_only_what_is_unreadable);
    tcase_add_test(tc, salvage_without_a_header);
    tcase_add_test(tc, a_file_shows_whether_it_was_begun);
    tcase_add_test(tc, every_bad_header_is_told);
    tcase_add_test(tc, a_failed_read_is_not_damage);
    suite_add_tcase(suite, tc);
    TCase *crashes = tcase_create("crashes"); // each makes its own file system
    tcase_set_timeout(crashes, 60);
    tcase_add_test(crashes, crashes_leave_a_prefix);
    suite_add_tcase(suite, crashes);
    return run_suite(suite);
}
