// SPDX-License-Identifier: BSD-2-Clause
//
// Column families through the public calls: the list of them, what is kept, what is refused, what
// idle and quiet ones cost.
#include "tests/unit/store_kit.h"

static tamis_cf *open_family(tamis_db *db, const char *name, const tamis_cf_options *o)
{
    tamis_cf *cf = NULL;
    kit_ok(tamis_cf_open(db, name, o, 1, &cf, &kit_error));
    return cf;
}

static int add_name(void *ctx, const char *name, uint32_t id)
{
    char *all = ctx;
    sprintf(all + strlen(all), "%s%u:%s", *all ? " " : "", (unsigned)id, name);
    return 0;
}

static int stop(void *ctx, const char *name, uint32_t id)
{
    (void)ctx;
    (void)name;
    (void)id;
    return 1;
}

static const char *names(tamis_db *db)
{
    static char all[1000];
    all[0] = '\0';
    kit_ok(tamis_cf_list(db, add_name, all, &kit_error));
    return all;
}

// ---- The list ----------------------------------------------------------------------------------

START_TEST(families_come_and_go)
{
    tamis_db *db = kit_open(NULL);
    ck_assert_str_eq(names(db), "0:default");
    tamis_cf *a = open_family(db, "a", NULL), *b = open_family(db, "b", NULL);
    tamis_cf *again = open_family(db, "a", NULL), *standard = open_family(db, "default", NULL);
    ck_assert_str_eq(names(db), "0:default 1:a 2:b");
    kit_put(db, a, "key", "of a");
    kit_put(db, b, "key", "of b");
    kit_put(db, NULL, "key", "of default");
    ck_assert_str_eq(kit_get(db, again, NULL, "key"), "of a");
    ck_assert_str_eq(kit_get(db, b, NULL, "key"), "of b");
    ck_assert_str_eq(kit_get(db, standard, NULL, "key"), "of default");
    kit_ok(tamis_cf_rename(db, "b", "c", &kit_error));
    ck_assert_str_eq(kit_get(db, b, NULL, "key"), "of b"); // the handle stays good
    kit_ok(tamis_cf_drop(db, "a", &kit_error));
    ck_assert_str_eq(names(db), "0:default 2:c");
    tamis_cf_close(again);
    tamis_cf_close(standard);
    tamis_cf_close(b);
    kit_close(db);

    db = kit_open(NULL);
    ck_assert_str_eq(names(db), "0:default 2:c");
    b = open_family(db, "c", NULL);
    ck_assert_str_eq(kit_get(db, b, NULL, "key"), "of b");
    tamis_cf *fresh = open_family(db, "a", NULL); // ids are never given out again
    ck_assert_str_eq(names(db), "0:default 2:c 3:a");
    ck_assert_str_eq(kit_get(db, fresh, NULL, "key"), "(none)");
    tamis_cf_close(fresh);
    tamis_cf_close(b);
    kit_close(db);
    tamis_cf_close(a); // after its store was closed
    tamis_cf_close(NULL);
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
    tamis_db *db = kit_open(NULL);
    tamis_cf *cf = NULL, *a = open_family(db, "a", NULL);
    char long_name[300];
    memset(long_name, 'n', sizeof long_name);
    long_name[256] = '\0';
    kit_fails(tamis_cf_open(db, NULL, NULL, 1, &cf, &kit_error), TAMIS_INVALID, "name");
    kit_fails(tamis_cf_open(db, "", NULL, 1, &cf, &kit_error), TAMIS_INVALID, "name");
    kit_fails(tamis_cf_open(db, long_name, NULL, 1, &cf, &kit_error), TAMIS_INVALID, "255");
    kit_fails(tamis_cf_open(db, "a", NULL, 1, NULL, &kit_error), TAMIS_INVALID, "out");
    kit_fails(tamis_cf_open(db, "b", NULL, 0, &cf, &kit_error), TAMIS_NOTFOUND, "\"b\"");
    kit_fails(tamis_cf_drop(db, "default", &kit_error), TAMIS_INVALID, "default");
    kit_fails(tamis_cf_rename(db, "default", "x", &kit_error), TAMIS_INVALID, "default");
    kit_fails(tamis_cf_drop(db, "b", &kit_error), TAMIS_NOTFOUND, "\"b\"");
    kit_fails(tamis_cf_rename(db, "b", "c", &kit_error), TAMIS_NOTFOUND, "\"b\"");
    kit_fails(tamis_cf_rename(db, "a", "default", &kit_error), TAMIS_EXISTS, "default");
    kit_fails(tamis_cf_list(db, NULL, NULL, &kit_error), TAMIS_INVALID, "each");
    kit_fails(tamis_cf_list(db, stop, NULL, &kit_error), TAMIS_ABORTED, "");
    tamis_cf_options o = {.size = sizeof o, .extra = "rate_limit=1MiB"};
    kit_fails(tamis_cf_open(db, "b", &o, 1, &cf, &kit_error), TAMIS_INVALID, "rate_limit");
    o.extra = "filter_bit=9";
    kit_fails(tamis_cf_open(db, "b", &o, 1, &cf, &kit_error), TAMIS_INVALID, "filter_bits");
    tamis_merger nameless = {.size = sizeof nameless};
    o = (tamis_cf_options){.size = sizeof o, .merger = &nameless};
    kit_fails(tamis_cf_open(db, "b", &o, 1, &cf, &kit_error), TAMIS_INVALID, "merger");
    ck_assert_str_eq(names(db), "0:default 1:a"); // nothing was made
    ck_assert_ptr_null(cf);
    kit_ok(tamis_cf_drop(db, "a", &kit_error));
    kit_fails(tamis_put(db, a, NULL, "k", 1, "v", 1, &kit_error), TAMIS_NOTFOUND, "dropped");
    kit_fails(tamis_flush(db, a, &kit_error), TAMIS_NOTFOUND, "dropped");
    tamis_cf_close(a);
    kit_close(db);
    tamis_options ro = kit_options();
    ro.flags |= TAMIS_OPEN_READONLY;
    db = kit_open(&ro);
    kit_fails(tamis_cf_open(db, "b", NULL, 1, &cf, &kit_error), TAMIS_READONLY, "");
    kit_fails(tamis_cf_drop(db, "b", &kit_error), TAMIS_READONLY, "");
    kit_close(db);
}
END_TEST

START_TEST(a_handle_of_another_store_is_refused)
{
    tamis_options o = kit_options();
    tamis_db *db = kit_open(NULL), *other = NULL;
    kit_ok(tamis_open("other", &o, &other, &kit_error));
    tamis_cf *cf = open_family(other, "a", NULL);
    size_t len;
    kit_fails(tamis_put(db, cf, NULL, "k", 1, "v", 1, &kit_error), TAMIS_INVALID, "another store");
    kit_fails(tamis_get_into(db, cf, NULL, "k", 1, NULL, 0, &len, &kit_error), TAMIS_INVALID,
              "another store");
    tamis_batch *b = tamis_batch_create(other, 0);
    kit_fails(tamis_commit(db, NULL, b, NULL, &kit_error), TAMIS_INVALID, "another store");
    tamis_batch_free(b);
    tamis_cf_close(cf);
    kit_close(other);
    kit_close(db);
}
END_TEST

// ---- What is kept ------------------------------------------------------------------------------

static const char *option(tamis_db *db, tamis_cf *cf, const char *name)
{
    static char buf[64];
    size_t len;
    kit_ok(tamis_get_option(db, cf, name, buf, sizeof buf, &len, &kit_error));
    return buf;
}

START_TEST(options_of_a_family_are_kept_until_others_are_given)
{
    tamis_cf_options o = {.size = sizeof o, .extra = "ttl=2h; filter_bits=12.5"};
    tamis_db *db = kit_open(NULL);
    tamis_cf *cf = open_family(db, "a", &o);
    ck_assert_str_eq(option(db, cf, "ttl"), "7200000ms");
    ck_assert_str_eq(option(db, NULL, "ttl"), "0ms");
    tamis_cf_close(cf);
    kit_close(db);
    db = kit_open(NULL);
    cf = open_family(db, "a", NULL);
    ck_assert_str_eq(option(db, cf, "ttl"), "7200000ms");
    ck_assert_str_eq(option(db, cf, "filter_bits"), "12.500");
    tamis_cf_close(cf);
    o.extra = "ttl=3s";
    cf = open_family(db, "a", &o);
    ck_assert_str_eq(option(db, cf, "ttl"), "3000ms");
    ck_assert_str_eq(option(db, cf, "filter_bits"), "10");
    tamis_cf_close(cf);
    kit_close(db);
    const tamis_family given[] = {{"a", {.size = sizeof o, .extra = "block_size=8KiB"}},
                                  {"nobody", {.size = sizeof o, .extra = "block_size=8KiB"}}};
    tamis_options open_options = kit_options();
    open_options.families = given;
    open_options.family_count = 2;
    db = kit_open(&open_options);
    cf = open_family(db, "a", NULL);
    ck_assert_str_eq(option(db, cf, "block_size"), "8192");
    ck_assert_str_eq(option(db, cf, "ttl"), "0ms");
    ck_assert_str_eq(names(db), "0:default 1:a");
    tamis_cf_close(cf);
    kit_close(db);
}
END_TEST

static int reverse(void *ctx, const void *a, size_t alen, const void *b, size_t blen)
{
    (void)ctx;
    int c = memcmp(b, a, alen < blen ? alen : blen);
    return c ? c : (alen < blen) - (alen > blen);
}

START_TEST(another_comparator_is_refused_by_name)
{
    tamis_comparator order = {.size = sizeof order, .name = "test.reverse", .compare = reverse};
    tamis_cf_options o = {.size = sizeof o, .comparator = &order};
    tamis_options plain = kit_options();
    tamis_db *db = kit_open(NULL), *none = NULL;
    tamis_cf *cf = open_family(db, "back", &o);
    kit_put(db, cf, "a", "1");
    kit_put(db, cf, "b", "2");
    tamis_cf_close(cf);
    kit_close(db);
    kit_fails(tamis_open("store", &plain, &none, &kit_error), TAMIS_INVALID, "test.reverse");
    ck_assert_ptr_nonnull(strstr(kit_error.message, "back"));
    const tamis_family given = {"back", o};
    plain.families = &given;
    plain.family_count = 1;
    db = kit_open(&plain);
    cf = open_family(db, "back", NULL);
    tamis_iter *it = NULL;
    kit_ok(tamis_iter_create(db, cf, NULL, &it, &kit_error));
    tamis_iter_first(it);
    size_t len;
    ck_assert_int_eq(*(const char *)tamis_iter_key(it, &len), 'b');
    tamis_iter_free(it);
    tamis_comparator other = order;
    other.name = "test.other";
    o.comparator = &other;
    tamis_cf *refused = NULL;
    kit_fails(tamis_cf_open(db, "back", &o, 0, &refused, &kit_error), TAMIS_INVALID, "test.other");
    tamis_cf_close(cf);
    kit_close(db);
    // The command has no comparator: it verifies all but the order.
    plain.families = NULL;
    plain.family_count = 0;
    tamis_report report = {.size = sizeof report};
    kit_ok(tamis_verify_path("store", &plain, NULL, NULL, NULL, &report, &kit_error));
    ck_assert_uint_ge(report.entries, 2);
}
END_TEST

START_TEST(a_merger_is_known_by_its_name)
{
    tamis_cf_options o = {.size = sizeof o, .merger = tamis_merger_append()};
    tamis_db *db = kit_open(NULL);
    tamis_cf *cf = open_family(db, "a", NULL), *refused = NULL;
    kit_fails(tamis_merge(db, cf, NULL, "k", 1, "x", 1, &kit_error), TAMIS_INVALID, "merger");
    tamis_cf_close(cf);
    cf = open_family(db, "a", &o); // a first one is taken over
    kit_ok(tamis_merge(db, cf, NULL, "k", 1, "x", 1, &kit_error));
    tamis_cf_close(cf);
    kit_close(db);
    db = kit_open(NULL); // and known again
    cf = open_family(db, "a", NULL);
    kit_ok(tamis_merge(db, cf, NULL, "k", 1, "y", 1, &kit_error));
    ck_assert_str_eq(kit_get(db, cf, NULL, "k"), "xy");
    o.merger = tamis_merger_add();
    kit_fails(tamis_cf_open(db, "a", &o, 0, &refused, &kit_error), TAMIS_INVALID, "tamis.append");
    tamis_cf_close(cf);
    kit_close(db);
}
END_TEST

// ---- Together ----------------------------------------------------------------------------------

START_TEST(a_batch_with_a_family_that_is_gone_changes_nothing)
{
    tamis_db *db = kit_open(NULL);
    tamis_cf *a = open_family(db, "a", NULL), *b = open_family(db, "b", NULL);
    tamis_batch *batch = tamis_batch_create(db, 0);
    ck_assert_int_eq(tamis_batch_put(batch, a, "k", 1, "v", 1), TAMIS_OK);
    ck_assert_int_eq(tamis_batch_put(batch, b, "k", 1, "v", 1), TAMIS_OK);
    kit_ok(tamis_cf_drop(db, "b", &kit_error));
    kit_fails(tamis_commit(db, NULL, batch, NULL, &kit_error), TAMIS_NOTFOUND, "dropped");
    ck_assert_str_eq(kit_get(db, a, NULL, "k"), "(none)");
    tamis_batch_free(batch);
    tamis_cf_close(a);
    tamis_cf_close(b);
    kit_close(db);
}
END_TEST

START_TEST(a_snapshot_sees_all_families_at_one_moment)
{
    tamis_db *db = kit_open(NULL);
    tamis_cf *a = open_family(db, "a", NULL);
    kit_put(db, a, "k", "1");
    kit_put(db, NULL, "k", "1");
    tamis_snapshot *s = NULL;
    kit_ok(tamis_snapshot_create(db, &s, &kit_error));
    kit_put(db, a, "k", "2");
    kit_put(db, NULL, "k", "2");
    kit_ok(tamis_compact(db, a, NULL, &kit_error));
    kit_ok(tamis_compact(db, NULL, NULL, &kit_error));
    tamis_read_options ro = {.size = sizeof ro, .snapshot = s};
    ck_assert_str_eq(kit_get(db, a, &ro, "k"), "1");
    ck_assert_str_eq(kit_get(db, NULL, &ro, "k"), "1");
    ck_assert_str_eq(kit_get(db, a, NULL, "k"), "2");
    tamis_snapshot_release(s);
    tamis_cf_close(a);
    kit_close(db);
}
END_TEST

START_TEST(dropping_frees_space_once_readers_are_gone)
{
    tamis_db *db = kit_open(NULL);
    tamis_cf *a = open_family(db, "a", NULL);
    kit_fill(db, a, "key", 2000, 100);
    kit_ok(tamis_compact(db, a, NULL, &kit_error));
    int tables = kit_files(".sst");
    ck_assert_int_ge(tables, 1);
    tamis_iter *it = NULL;
    kit_ok(tamis_iter_create(db, a, NULL, &it, &kit_error));
    tamis_iter_first(it);
    kit_ok(tamis_cf_drop(db, "a", &kit_error));
    ck_assert_int_eq(kit_files(".sst"), tables);
    int n = 0;
    for (; tamis_iter_valid(it); tamis_iter_next(it)) n++;
    ck_assert_int_eq(n, 2000);
    tamis_iter_free(it);
    for (uint32_t did = 1; did;) kit_ok(tamis_step(db, &did, &kit_error));
    ck_assert_int_eq(kit_files(".sst"), 0);
    ck_assert_uint_ge(kit_counter(db, "steps"), 1999); // counters only grow
    tamis_cf_close(a);
    kit_close(db);
}
END_TEST

// ---- Many --------------------------------------------------------------------------------------

START_TEST(hundreds_of_families_fit_into_one_budget)
{
    enum { MANY = 300 };
    tamis_db *db = kit_open(NULL); // 4 MiB
    tamis_cf *cf[MANY];
    char name[32];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "family %d", i);
        cf[i] = open_family(db, name, NULL);
    }
    tamis_memory m = {.size = sizeof m};
    kit_ok(tamis_memory_usage(db, &m, &kit_error));
    ck_assert_uint_lt(m.memtables, 64 << 10); // idle ones have none
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < MANY; i++) {
            snprintf(name, sizeof name, "key %d", round);
            kit_put(db, cf[i], name, "a value of some length, as values are");
        }
        kit_ok(tamis_memory_usage(db, &m, &kit_error));
        ck_assert_uint_le(m.memtables, m.budget * 5 / 8);
    }
    for (int i = 0; i < MANY; i += 37) ck_assert_int_eq(kit_count(db, cf[i], NULL), 20);
    for (int i = 0; i < MANY; i++) tamis_cf_close(cf[i]);
    kit_close(db);
    db = kit_open(NULL);
    tamis_cf *one = open_family(db, "family 299", NULL);
    ck_assert_int_eq(kit_count(db, one, NULL), 20);
    tamis_cf_close(one);
    kit_close(db);
}
END_TEST

START_TEST(a_quiet_family_does_not_keep_old_logs)
{
    tamis_db *db = kit_open(NULL);
    tamis_cf *quiet = open_family(db, "quiet", NULL);
    kit_put(db, quiet, "key", "value");
    kit_fill(db, NULL, "key", 20000, 100); // thirty write buffers
    kit_idle(db);
    ck_assert_int_le(kit_files(".log"), 9);
    ck_assert_str_eq(kit_get(db, quiet, NULL, "key"), "value");
    tamis_cf_close(quiet);
    kit_close(db);
    db = kit_open(NULL);
    quiet = open_family(db, "quiet", NULL);
    ck_assert_str_eq(kit_get(db, quiet, NULL, "key"), "value");
    ck_assert_int_eq(kit_count(db, NULL, NULL), 20000);
    tamis_cf_close(quiet);
    kit_close(db);
}
END_TEST

// What one family flushed is not replayed for another's sake: an operand must not count twice.
START_TEST(a_log_kept_for_one_family_is_not_replayed_into_another)
{
    tamis_cf_options o = {.size = sizeof o, .merger = tamis_merger_append()};
    tamis_db *db = kit_open(NULL);
    tamis_cf *a = open_family(db, "a", &o), *b = open_family(db, "b", &o);
    kit_ok(tamis_merge(db, a, NULL, "k", 1, "a", 1, &kit_error));
    kit_ok(tamis_merge(db, b, NULL, "k", 1, "b", 1, &kit_error));
    kit_ok(tamis_flush(db, a, &kit_error)); // the log stays for b
    tamis_vfs_memory_crash(kit_vfs, TAMIS_CRASH_KEEP_ALL, 1);
    (void)tamis_close(db, TAMIS_CLOSE_DETACH, NULL);
    tamis_cf_close(a);
    tamis_cf_close(b);
    db = kit_open(NULL);
    a = open_family(db, "a", NULL);
    b = open_family(db, "b", NULL);
    ck_assert_str_eq(kit_get(db, a, NULL, "k"), "a");
    ck_assert_str_eq(kit_get(db, b, NULL, "k"), "b");
    tamis_cf_close(a);
    tamis_cf_close(b);
    kit_close(db);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("family");
    TCase *t = tcase_create("families");
    tcase_add_checked_fixture(t, kit_setup, kit_teardown);
    tcase_add_test(t, families_come_and_go);
    tcase_add_test(t, what_cannot_be_is_refused);
    tcase_add_test(t, a_handle_of_another_store_is_refused);
    tcase_add_test(t, options_of_a_family_are_kept_until_others_are_given);
    tcase_add_test(t, another_comparator_is_refused_by_name);
    tcase_add_test(t, a_merger_is_known_by_its_name);
    tcase_add_test(t, a_batch_with_a_family_that_is_gone_changes_nothing);
    tcase_add_test(t, a_snapshot_sees_all_families_at_one_moment);
    tcase_add_test(t, dropping_frees_space_once_readers_are_gone);
    tcase_add_test(t, hundreds_of_families_fit_into_one_budget);
    tcase_add_test(t, a_quiet_family_does_not_keep_old_logs);
    tcase_add_test(t, a_log_kept_for_one_family_is_not_replayed_into_another);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
