// SPDX-License-Identifier: BSD-2-Clause
//
// Range deletes, merges, expiring values, compaction filters and batches as bytes, through the
// public calls: edges, refusals, and what compactions do about them.
#include "tests/unit/store_kit.h"

static void delete_range(tamis_db *db, const char *start, const char *limit)
{
    kit_ok(
        tamis_delete_range(db, NULL, NULL, start, strlen(start), limit, strlen(limit), &kit_error));
}

static void merge(tamis_db *db, const char *key, const char *operand)
{
    kit_ok(tamis_merge(db, NULL, NULL, key, strlen(key), operand, strlen(operand), &kit_error));
}

static void compact(tamis_db *db)
{
    kit_ok(tamis_compact(db, NULL, NULL, &kit_error));
}

// ---- Range deletes -----------------------------------------------------------------------------

START_TEST(a_range_ends_before_its_limit_or_at_the_end)
{
    tamis_db *db = kit_open(NULL);
    kit_put(db, NULL, "", "empty");
    kit_put(db, NULL, "a", "1");
    kit_put(db, NULL, "b", "2");
    kit_put(db, NULL, "c", "3");
    kit_put(db, NULL, "\xff\xff", "last");
    delete_range(db, "a", "a"); // nothing
    ck_assert_int_eq(kit_count(db, NULL, NULL), 5);
    delete_range(db, "a", "b");
    ck_assert_str_eq(kit_get(db, NULL, NULL, "a"), "(none)");
    ck_assert_str_eq(kit_get(db, NULL, NULL, "b"), "2");
    delete_range(db, "c", "");
    ck_assert_str_eq(kit_get(db, NULL, NULL, "\xff\xff"), "(none)");
    ck_assert_int_eq(kit_count(db, NULL, NULL), 2);
    kit_put(db, NULL, "d", "after"); // what is written later is not covered
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(kit_count(db, NULL, NULL), 3);
        ck_assert_str_eq(kit_get(db, NULL, NULL, "d"), "after");
        compact(db);
    }
    delete_range(db, "", "");
    ck_assert_int_eq(kit_count(db, NULL, NULL), 0);
    compact(db);
    ck_assert_int_eq(kit_files(".sst"), 0);
    kit_fails(tamis_delete_range(db, NULL, NULL, "b", 1, "a", 1, &kit_error), TAMIS_INVALID,
              "behind");
    kit_fails(tamis_delete_range(db, NULL, NULL, NULL, 1, "a", 1, &kit_error), TAMIS_INVALID,
              "NULL");
    kit_fails(tamis_delete_range(db, NULL, NULL, "a", TAMIS_MAX_KEY + 1, "b", 1, &kit_error),
              TAMIS_TOOLARGE, "65535");
    kit_close(db);
}
END_TEST

START_TEST(tables_under_a_range_delete_go_unread)
{
    tamis_db *db = kit_open(NULL);
    kit_fill(db, NULL, "key", 20000, 100);
    compact(db);
    int tables = kit_files(".sst");
    ck_assert_int_ge(tables, 4);
    tamis_snapshot *s = NULL;
    kit_ok(tamis_snapshot_create(db, &s, &kit_error));
    delete_range(db, "key00010", "key19990");
    kit_ok(tamis_flush(db, NULL, &kit_error));
    kit_idle(db);
    ck_assert_uint_eq(kit_counter(db, "tables_trimmed"), 0); // the snapshot sees into them
    tamis_read_options ro = {.size = sizeof ro, .snapshot = s};
    ck_assert_int_eq(kit_count(db, NULL, &ro), 20000);
    tamis_snapshot_release(s);
    uint64_t read = kit_counter(db, "compact_bytes_read");
    kit_put(db, NULL, "z", "1"); // any next table makes it look again
    kit_ok(tamis_flush(db, NULL, &kit_error));
    kit_idle(db);
    ck_assert_uint_ge(kit_counter(db, "tables_trimmed"), (uint64_t)tables - 2);
    ck_assert_uint_eq(kit_counter(db, "compact_bytes_read"), read);
    ck_assert_int_le(kit_files(".sst"), 4);
    ck_assert_int_eq(kit_count(db, NULL, NULL), 21);
    kit_close(db);
    db = kit_open(NULL);
    ck_assert_int_eq(kit_count(db, NULL, NULL), 21);
    kit_close(db);
}
END_TEST

START_TEST(a_scan_over_a_hole_does_not_walk_it)
{
    tamis_db *db = kit_open(NULL);
    kit_fill(db, NULL, "key", 20000, 10);
    delete_range(db, "key00001", "key19999");
    uint64_t before = kit_counter(db, "hidden");
    ck_assert_int_eq(kit_count(db, NULL, NULL), 2);
    ck_assert_uint_le(kit_counter(db, "hidden") - before, 1000); // of 19,998
    kit_close(db);
}
END_TEST

// ---- Merges ------------------------------------------------------------------------------------

static int picky(void *ctx, const void *key, size_t klen, const tamis_slice *base,
                 const tamis_slice *operands, size_t n,
                 int (*emit)(void *sink, const void *v, size_t vlen), void *sink)
{
    (void)key;
    (void)klen;
    for (size_t i = 0; i < n; i++) {
        if (operands[i].len == 1 && *(const char *)operands[i].data == '!') return *(int *)ctx;
    }
    char out[64] = "";
    if (base != NULL) strncat(out, base->data, base->len);
    for (size_t i = 0; i < n; i++) strncat(out, operands[i].data, operands[i].len);
    return emit(sink, out, strlen(out));
}

START_TEST(a_merger_that_fails_fails_for_that_key_alone)
{
    static int answer;
    static const int answers[] = {TAMIS_INVALID, TAMIS_NOTFOUND, TAMIS_OK, 5, -1000};
    answer = answers[_i];
    tamis_merger m = {sizeof m, "test.picky", &answer, 0, picky};
    tamis_options o = kit_options();
    o.merger = &m;
    tamis_db *db = kit_open(&o);
    int expected = answer == TAMIS_INVALID ? TAMIS_INVALID : TAMIS_ABORTED;
    size_t len;
    char buf[64];
    kit_put(db, NULL, "bad", "base");
    merge(db, "good", "a");
    merge(db, "bad", "!");
    merge(db, "good", "b");
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(kit_get(db, NULL, NULL, "good"), "ab");
        kit_fails(tamis_get_into(db, NULL, NULL, "bad", 3, buf, sizeof buf, &len, &kit_error),
                  expected, "test.picky");
        tamis_iter *it = NULL;
        kit_ok(tamis_iter_create(db, NULL, NULL, &it, &kit_error));
        tamis_iter_first(it);
        ck_assert_int_eq(tamis_iter_valid(it), 0);
        ck_assert_int_eq(tamis_iter_status(it, &kit_error), expected);
        tamis_iter_seek(it, "c", 1); // past it
        ck_assert_int_eq(tamis_iter_valid(it), 1);
        tamis_iter_free(it);
        if (i == 0) compact(db); // which keeps what it cannot merge
        if (i == 1) {
            kit_close(db);
            db = kit_open(&o);
        }
    }
    kit_ok(tamis_delete(db, NULL, NULL, "bad", 3, &kit_error));
    ck_assert_int_eq(kit_count(db, NULL, NULL), 1);
    kit_close(db);
}
END_TEST

START_TEST(counters_are_added_up_and_folded)
{
    tamis_options o = kit_options();
    o.merger = tamis_merger_add();
    tamis_db *db = kit_open(&o);
    uint8_t one[8] = {1}, buf[16];
    size_t len;
    for (int i = 0; i < 1000; i++) {
        kit_ok(tamis_merge(db, NULL, NULL, "n", 1, one, 8, &kit_error));
        if (i % 250 == 0) kit_ok(tamis_flush(db, NULL, &kit_error));
    }
    kit_ok(tamis_get_into(db, NULL, NULL, "n", 1, buf, sizeof buf, &len, &kit_error));
    ck_assert_uint_eq(len, 8);
    ck_assert_uint_eq(buf[0] + 256u * buf[1], 1000);
    compact(db);
    char text[4000];
    kit_ok(tamis_property(db, NULL, "levels", text, sizeof text, &len, &kit_error));
    ck_assert_ptr_nonnull(strstr(text, "\"entries\":1,")); // one value is left of them
    kit_fails(tamis_merge(db, NULL, NULL, "n", 1, one, TAMIS_MAX_VALUE + 1, &kit_error),
              TAMIS_TOOLARGE, "value");
    kit_ok(tamis_merge(db, NULL, NULL, "n", 1, one, 3, &kit_error)); // no integer: told when read
    kit_fails(tamis_get_into(db, NULL, NULL, "n", 1, buf, sizeof buf, &len, &kit_error),
              TAMIS_INVALID, "tamis.add");
    kit_close(db);
}
END_TEST

START_TEST(without_its_merger_a_key_says_what_is_missing)
{
    static int answer = TAMIS_OK;
    tamis_merger m = {sizeof m, "test.picky", &answer, 0, picky};
    tamis_options o = kit_options();
    o.merger = &m;
    tamis_db *db = kit_open(&o);
    merge(db, "k", "a");
    kit_put(db, NULL, "plain", "1");
    kit_close(db);
    db = kit_open(NULL);
    char buf[8];
    size_t len;
    kit_fails(tamis_get_into(db, NULL, NULL, "k", 1, buf, sizeof buf, &len, &kit_error),
              TAMIS_UNSUPPORTED, "merger");
    ck_assert_str_eq(kit_get(db, NULL, NULL, "plain"), "1");
    compact(db);
    kit_close(db);
    tamis_options other = kit_options();
    other.merger = tamis_merger_add();
    tamis_db *none = NULL;
    kit_fails(tamis_open("store", &other, &none, &kit_error), TAMIS_INVALID, "test.picky");
    db = kit_open(&o);
    ck_assert_str_eq(kit_get(db, NULL, NULL, "k"), "a");
    kit_close(db);
}
END_TEST

// ---- Expiry ------------------------------------------------------------------------------------

static void put_ttl(tamis_db *db, const char *key, const char *value, uint64_t ttl_ms)
{
    tamis_write_options wo = {.size = sizeof wo, .ttl_ms = ttl_ms};
    kit_ok(tamis_put(db, NULL, &wo, key, strlen(key), value, strlen(value), &kit_error));
}

START_TEST(an_older_value_never_comes_back)
{
    tamis_db *db = kit_open(NULL);
    kit_put(db, NULL, "k", "old");
    if (_i & 1) compact(db);
    put_ttl(db, "k", "new", 1000);
    if (_i & 2) kit_ok(tamis_flush(db, NULL, &kit_error));
    ck_assert_str_eq(kit_get(db, NULL, NULL, "k"), "new");
    tamis_vfs_memory_advance_ms(kit_vfs, 1001);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(kit_get(db, NULL, NULL, "k"), "(none)");
        ck_assert_int_eq(kit_count(db, NULL, NULL), 0);
        if (i == 0) kit_idle(db);
        if (i == 1) compact(db);
    }
    ck_assert_int_eq(kit_files(".sst"), 0);
    kit_close(db);
}
END_TEST

START_TEST(the_familys_time_to_live_and_exceptions_to_it)
{
    tamis_options o = kit_options();
    o.extra = "ttl=1min";
    tamis_db *db = kit_open(&o);
    kit_put(db, NULL, "minute", "1");
    put_ttl(db, "second", "1", 1000);
    put_ttl(db, "for ever", "1", TAMIS_TTL_NEVER);
    put_ttl(db, "long", "1", UINT64_MAX - 1); // the sum does not wrap
    tamis_batch *b = tamis_batch_create(db, 0);
    ck_assert_int_eq(tamis_batch_put(b, NULL, "b minute", 8, "1", 1), TAMIS_OK);
    ck_assert_int_eq(tamis_batch_put_ttl(b, NULL, "b second", 8, "1", 1, 1000), TAMIS_OK);
    ck_assert_int_eq(tamis_batch_put_ttl(b, NULL, "b for ever", 10, "1", 1, 0), TAMIS_OK);
    kit_ok(tamis_commit(db, NULL, b, NULL, &kit_error));
    tamis_batch_free(b);
    ck_assert_int_eq(kit_count(db, NULL, NULL), 7);
    tamis_vfs_memory_advance_ms(kit_vfs, 2000);
    ck_assert_int_eq(kit_count(db, NULL, NULL), 5);
    tamis_vfs_memory_advance_ms(kit_vfs, 60000);
    ck_assert_int_eq(kit_count(db, NULL, NULL), 3);
    kit_close(db);
}
END_TEST

START_TEST(tables_past_their_time_go_unread)
{
    tamis_options o = kit_options();
    o.extra = "write_buffer=64KiB; table_size=32KiB; ttl=1h; seed=7";
    tamis_db *db = kit_open(&o);
    kit_fill(db, NULL, "key", 5000, 100);
    compact(db);
    ck_assert_int_ge(kit_files(".sst"), 1);
    uint64_t read = kit_counter(db, "compact_bytes_read");
    tamis_vfs_memory_advance_ms(kit_vfs, 3700000);
    kit_idle(db);
    ck_assert_int_eq(kit_files(".sst"), 0);
    ck_assert_uint_ge(kit_counter(db, "tables_trimmed"), 1);
    ck_assert_uint_eq(kit_counter(db, "compact_bytes_read"), read);
    kit_close(db);
}
END_TEST

// A table that has other values too is compacted when half of its entries have expired.
START_TEST(tables_that_are_half_expired_are_compacted)
{
    tamis_db *db = kit_open(NULL);
    kit_fill(db, NULL, "stays", 2000, 50);
    for (int i = 0; i < 3000; i++) {
        char key[32];
        snprintf(key, sizeof key, "goes%05d", i);
        put_ttl(db, key, "a value of some length, for a minute or so", 60000);
    }
    compact(db);
    tamis_vfs_memory_advance_ms(kit_vfs, 61000);
    kit_idle(db);
    tamis_vfs_memory_advance_ms(kit_vfs, 61000); // the time is known to a factor of two
    kit_idle(db);
    tamis_range all = {{"", 0}, {NULL, 0}};
    uint64_t entries = 0;
    kit_ok(tamis_approximate_size(db, NULL, &all, 1, NULL, &entries, &kit_error));
    ck_assert_uint_lt(entries, 4000); // less than half of what is left has expired
    ck_assert_int_eq(kit_count(db, NULL, NULL), 2000);
    uint64_t work = kit_counter(db, "compactions");
    tamis_vfs_memory_advance_ms(kit_vfs, 1000000);
    kit_idle(db);
    ck_assert_uint_eq(kit_counter(db, "compactions"), work); // once
    kit_close(db);
}
END_TEST

// ---- Compaction filters ------------------------------------------------------------------------

static int asked, verdict_for_bad;
static int judge(void *ctx, int level, const void *key, size_t klen, const void *val, size_t vlen,
                 int (*replace)(void *sink, const void *v, size_t vlen), void *sink)
{
    (void)ctx;
    (void)level;
    (void)val;
    (void)vlen;
    asked++;
    if (klen == 4 && memcmp(key, "drop", 4) == 0) return TAMIS_DROP;
    if (klen == 3 && memcmp(key, "new", 3) == 0) {
        ck_assert_int_eq(replace(sink, "re", 2), TAMIS_OK);
        ck_assert_int_eq(replace(sink, "placed", 6), TAMIS_OK);
        return TAMIS_REPLACE;
    }
    return klen == 3 && memcmp(key, "bad", 3) == 0 ? verdict_for_bad : TAMIS_KEEP;
}

START_TEST(a_compaction_filter_keeps_drops_and_replaces)
{
    tamis_compaction_filter f = {sizeof f, "test.judge", NULL, judge};
    tamis_options o = kit_options();
    o.compaction_filter = &f;
    tamis_db *db = kit_open(&o);
    kit_put(db, NULL, "drop", "1");
    kit_put(db, NULL, "keep", "1");
    put_ttl(db, "new", "1", 1000);
    compact(db);
    ck_assert_str_eq(kit_get(db, NULL, NULL, "drop"), "(none)");
    ck_assert_str_eq(kit_get(db, NULL, NULL, "keep"), "1");
    ck_assert_str_eq(kit_get(db, NULL, NULL, "new"), "replaced");
    tamis_vfs_memory_advance_ms(kit_vfs, 1001);
    ck_assert_str_eq(kit_get(db, NULL, NULL, "new"), "(none)"); // it kept its end
    // What a snapshot sees it is not asked about.
    kit_put(db, NULL, "drop", "2");
    tamis_snapshot *s = NULL;
    kit_ok(tamis_snapshot_create(db, &s, &kit_error));
    asked = 0;
    compact(db);
    ck_assert_int_eq(asked, 0);
    ck_assert_str_eq(kit_get(db, NULL, NULL, "drop"), "2");
    tamis_snapshot_release(s);
    compact(db);
    ck_assert_str_eq(kit_get(db, NULL, NULL, "drop"), "(none)");
    // An unknown verdict fails the work and keeps everything.
    verdict_for_bad = 17;
    kit_put(db, NULL, "bad", "1");
    kit_fails(tamis_compact(db, NULL, NULL, &kit_error), TAMIS_INVALID, "test.judge");
    ck_assert_str_eq(kit_get(db, NULL, NULL, "bad"), "1");
    verdict_for_bad = TAMIS_KEEP;
    compact(db);
    ck_assert_int_eq(kit_count(db, NULL, NULL), 2);
    kit_close(db);
}
END_TEST

// ---- Batches -----------------------------------------------------------------------------------

START_TEST(damaged_batches_are_not_loaded)
{
    tamis_db *db = kit_open(NULL);
    tamis_batch *b = tamis_batch_create(db, 0), *copy = tamis_batch_create(db, 0);
    ck_assert_int_eq(tamis_batch_put(b, NULL, "key", 3, "value", 5), TAMIS_OK);
    ck_assert_int_eq(tamis_batch_delete(b, NULL, "other", 5), TAMIS_OK);
    tamis_slice packed;
    kit_ok(tamis_batch_data(b, &packed, &kit_error));
    ck_assert_int_eq(tamis_batch_put(copy, NULL, "mine", 4, "1", 1), TAMIS_OK);
    size_t bytes = tamis_batch_bytes(copy);
    for (size_t i = 0; i < packed.len; i++) {
        uint8_t *flipped = malloc(packed.len);
        memcpy(flipped, packed.data, packed.len);
        flipped[i] ^= 4;
        kit_fails(tamis_batch_load(copy, flipped, packed.len, &kit_error), TAMIS_CORRUPT, "batch");
        free(flipped);
        uint8_t *cut = malloc(i + 1);
        memcpy(cut, packed.data, i);
        kit_fails(tamis_batch_load(copy, cut, i, &kit_error), TAMIS_CORRUPT, "batch");
        free(cut);
        ck_assert_uint_eq(tamis_batch_count(copy), 1);
        ck_assert_uint_eq(tamis_batch_bytes(copy), bytes);
    }
    kit_ok(tamis_batch_load(copy, packed.data, packed.len, &kit_error));
    ck_assert_uint_eq(tamis_batch_count(copy), 3);
    kit_ok(tamis_commit(db, NULL, copy, NULL, &kit_error));
    ck_assert_int_eq(kit_count(db, NULL, NULL), 2);
    kit_fails(tamis_batch_load(copy, NULL, 0, &kit_error), TAMIS_INVALID, "data");
    ck_assert_int_eq(tamis_batch_rollback(copy), TAMIS_MISUSE);
    ck_assert_ptr_null(tamis_batch_create(db, 8));
    tamis_batch_free(b);
    tamis_batch_free(copy);
    kit_close(db);
}
END_TEST

START_TEST(a_failed_operation_goes_with_the_savepoint)
{
    tamis_db *db = kit_open(NULL);
    tamis_batch *b = tamis_batch_create(db, TAMIS_BATCH_INDEXED);
    ck_assert_int_eq(tamis_batch_put(b, NULL, "k", 1, "v", 1), TAMIS_OK);
    ck_assert_int_eq(tamis_batch_savepoint(b), TAMIS_OK);
    ck_assert_int_eq(tamis_batch_put(b, NULL, "k", TAMIS_MAX_KEY + 1, "v", 1), TAMIS_TOOLARGE);
    ck_assert_int_eq(tamis_batch_merge(b, NULL, "k", 1, "v", 1), TAMIS_TOOLARGE); // the first stays
    ck_assert_int_eq(tamis_batch_rollback(b), TAMIS_OK);
    ck_assert_int_eq(tamis_batch_delete_range(b, NULL, "b", 1, "a", 1), TAMIS_INVALID);
    kit_fails(tamis_commit(db, NULL, b, NULL, &kit_error), TAMIS_INVALID, "behind");
    tamis_batch_clear(b);
    ck_assert_int_eq(tamis_batch_put(b, NULL, "k", 1, "v", 1), TAMIS_OK);
    kit_ok(tamis_commit(db, NULL, b, NULL, &kit_error));
    tamis_batch *plain = tamis_batch_create(db, 0);
    tamis_read_options ro = {.size = sizeof ro, .overlay = plain};
    size_t len;
    char buf[8];
    kit_fails(tamis_get_into(db, NULL, &ro, "k", 1, buf, sizeof buf, &len, &kit_error),
              TAMIS_INVALID, "INDEXED");
    tamis_batch_free(plain);
    kit_close(db);
    tamis_batch_free(b); // after its store was closed
}
END_TEST

int main(void)
{
    Suite *s = suite_create("data_model");
    TCase *t = tcase_create("data_model");
    tcase_add_checked_fixture(t, kit_setup, kit_teardown);
    tcase_add_test(t, a_range_ends_before_its_limit_or_at_the_end);
    tcase_add_test(t, tables_under_a_range_delete_go_unread);
    tcase_add_test(t, a_scan_over_a_hole_does_not_walk_it);
    tcase_add_loop_test(t, a_merger_that_fails_fails_for_that_key_alone, 0, 5);
    tcase_add_test(t, counters_are_added_up_and_folded);
    tcase_add_test(t, without_its_merger_a_key_says_what_is_missing);
    tcase_add_loop_test(t, an_older_value_never_comes_back, 0, 4);
    tcase_add_test(t, the_familys_time_to_live_and_exceptions_to_it);
    tcase_add_test(t, tables_past_their_time_go_unread);
    tcase_add_test(t, tables_that_are_half_expired_are_compacted);
    tcase_add_test(t, a_compaction_filter_keeps_drops_and_replaces);
    tcase_add_test(t, damaged_batches_are_not_loaded);
    tcase_add_test(t, a_failed_operation_goes_with_the_savepoint);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
