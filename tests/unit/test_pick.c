// SPDX-License-Identifier: BSD-2-Clause
//
// Versions and what to compact next: tables are records only, nothing is read.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "lsm/pick.h"

static tamis_vfs *vfs;
static tamis_dir *dir;
static tm_cache *cache;
static tm_table_cache *files;
static tm_table_env env;
static tm_order order;
static tm_config config;
static tm_dead_files dead;
static tm_version *version;

static void no_wake(void *ctx)
{
    (void)ctx;
}

static void setup(void)
{
    tamis_options o = tamis_options_init();
    o.extra = "level0_compact=4; level_base=1000KiB; level_ratio=10; table_size=100KiB";
    ck_assert_int_eq(tm_config_init(&config, &o, NULL), TAMIS_OK);
    ck_assert_int_eq(tamis_vfs_memory(&vfs, NULL), TAMIS_OK);
    ck_assert_int_eq(vfs->dir_open(vfs, "d", TAMIS_DIR_CREATE, &dir, NULL), 0);
    ck_assert_int_eq(tm_cache_create(1 << 20, &cache, NULL), TAMIS_OK);
    ck_assert_int_eq(tm_table_cache_create(dir, 10, &files, NULL), TAMIS_OK);
    env = (tm_table_env){vfs, cache, files, false};
    order = tm_order_bytewise();
    dead.wake = no_wake;
    ck_assert_int_eq(tm_version_create(&order, &version, NULL), TAMIS_OK);
}

static void teardown(void)
{
    tm_version_unref(version);
    for (tm_file_ref *f = atomic_exchange(&dead.head, NULL); f != NULL;) {
        tm_file_ref *next = f->next_dead;
        tm_table_close(f->table);
        tm_free(f);
        f = next;
    }
    tm_epoch_synchronize();
    tm_table_cache_destroy(files);
    tm_cache_destroy(cache);
    vfs->dir_close(dir);
    tamis_vfs_free(vfs);
}

static int try_add(uint32_t level, uint64_t number, const char *smallest, const char *largest,
                   uint64_t bytes, uint32_t flags)
{
    tm_table_meta m;
    tm_table *t = NULL;
    tm_version_add add = {level, NULL};
    tm_version *next = NULL;
    tm_table_meta_init(&m);
    m.number = number;
    m.file_bytes = bytes;
    m.entries = 2000;
    m.flags = flags;
    m.max_seq = number;
    ck_assert_int_eq(tm_buf_set(&m.smallest, tm_slice_str(smallest)), 0);
    ck_assert_int_eq(tm_buf_set(&m.largest, tm_slice_str(largest)), 0);
    ck_assert_int_eq(tm_table_open(&env, &m, &order, false, &t, NULL), TAMIS_OK);
    tm_table_meta_deinit(&m);
    ck_assert_int_eq(tm_file_ref_create(t, &dead, &add.file, NULL), TAMIS_OK);
    int st = tm_version_apply(version, NULL, 0, &add, 1, &next, NULL);
    tm_file_ref_put(add.file);
    if (st == TAMIS_OK) {
        tm_version_unref(version);
        version = next;
    }
    return st;
}

static void add(uint32_t level, uint64_t number, const char *smallest, const char *largest,
                uint64_t kib)
{
    ck_assert_int_eq(try_add(level, number, smallest, largest, kib << 10, 0), TAMIS_OK);
}

// The picked tables as text: "level:numbers+numbers>output", "none", "busy".
static const char *picked(int st, tm_pick *p)
{
    static char text[200];
    if (st != TAMIS_OK) {
        tm_pick_deinit(p);
        return st == TAMIS_NOTFOUND ? "none" : st == TAMIS_BUSY ? "busy" : "?";
    }
    int n = snprintf(text, sizeof text, "%u:", p->level);
    for (int w = 0; w < 2; w++) {
        for (uint32_t i = 0; i < p->count[w]; i++) {
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%llu",
                          i   ? ","
                          : w ? "+"
                              : "",
                          (unsigned long long)p->inputs[w][i]->meta->number);
        }
    }
    snprintf(text + n, sizeof text - (size_t)n, ">%u%s", p->output_level, p->move ? " move" : "");
    tm_pick_deinit(p);
    return text;
}

static const char *next(void)
{
    tm_pick p;
    return picked(tm_pick_next(version, &config, &p), &p);
}

static tm_file_ref *file(uint64_t number)
{
    for (uint32_t l = 0; l < TM_LEVELS; l++) {
        for (uint32_t i = 0; i < version->levels[l].count; i++) {
            if (version->levels[l].files[i]->meta->number == number)
                return version->levels[l].files[i];
        }
    }
    return NULL;
}

// ---- Versions ----------------------------------------------------------------------------------

START_TEST(levels_are_kept_in_order_and_apart)
{
    add(0, 5, "a", "z", 1);
    add(0, 7, "a", "z", 1); // level 0 may overlap; newest first
    ck_assert_uint_eq(version->levels[0].files[0]->meta->number, 7);
    add(2, 1, "m", "p", 1);
    add(2, 2, "a", "c", 1);
    add(2, 3, "x", "z", 1);
    ck_assert_uint_eq(version->levels[2].files[0]->meta->number, 2);
    ck_assert_uint_eq(version->levels[2].files[2]->meta->number, 3);
    ck_assert_int_eq(try_add(2, 4, "b", "d", 1, 0), TAMIS_CORRUPT);
    ck_assert_int_eq(try_add(2, 4, "p", "q", 1, 0), TAMIS_CORRUPT);
    ck_assert_int_eq(try_add(2, 3, "q", "r", 1, 0), TAMIS_CORRUPT); // there already
    ck_assert_int_eq(try_add(2, 4, "q", "x", 1, TM_TABLE_LARGEST_EXCLUSIVE), TAMIS_OK);
    ck_assert_uint_eq(tm_version_tables(version), 6);
    ck_assert_int_eq(tm_version_find(version, 2, tm_slice_str("b")), 0);
    ck_assert_int_eq(tm_version_find(version, 2, tm_slice_str("d")), -1);
    ck_assert_int_eq(tm_version_find(version, 2, tm_slice_str("m")), 1);
    ck_assert_int_eq(tm_version_find(version, 2, tm_slice_str("p")), 1);
    ck_assert_int_eq(tm_version_find(version, 2, tm_slice_str("x")), 3); // not the exclusive end
    ck_assert_int_eq(tm_version_find(version, 2, tm_slice_str("zz")), -1);
    uint32_t first, last;
    tm_slice c = tm_slice_str("c"), n = tm_slice_str("n");
    tm_version_overlap(version, 2, &c, &n, &first, &last);
    ck_assert(first == 0 && last == 2);
    tm_version_overlap(version, 2, NULL, NULL, &first, &last);
    ck_assert(first == 0 && last == 4);
    tm_version_drop gone = {2, 9};
    tm_version *v = NULL;
    ck_assert_int_eq(tm_version_apply(version, &gone, 1, NULL, 0, &v, NULL), TAMIS_CORRUPT);
    ck_assert_ptr_null(v);
}
END_TEST

// ---- Picks -------------------------------------------------------------------------------------

START_TEST(nothing_is_due_in_a_small_store)
{
    ck_assert_str_eq(next(), "none");
    add(0, 1, "a", "z", 50);
    add(0, 2, "a", "z", 50);
    add(6, 3, "a", "z", 500);
    ck_assert_str_eq(next(), "none");
}
END_TEST

START_TEST(level_0_goes_by_count)
{
    for (uint64_t i = 1; i <= 4; i++) add(0, i, "a", "z", 50);
    add(6, 10, "b", "c", 100);
    add(6, 11, "d", "e", 100);
    const char *p = next();
    ck_assert_ptr_nonnull(strstr(p, "+10,11>6"));
    ck_assert_ptr_nonnull(strstr(p, "1"));
    file(11)->busy = true; // what is in work elsewhere is left alone
    ck_assert_str_eq(next(), "none");
    file(11)->busy = false;
}
END_TEST

START_TEST(a_full_level_gives_the_table_that_overlaps_least)
{
    // The last level has 20,000 KiB: level 5 may have 2,000.
    add(6, 1, "a", "f", 10000);
    add(6, 2, "g", "m", 8000);
    add(6, 3, "n", "z", 2000);
    add(5, 10, "b", "c", 1000);
    add(5, 11, "h", "i", 1000);
    add(5, 12, "o", "p", 1000);
    ck_assert_str_eq(next(), "5:12+3>6");
    file(3)->busy = true;
    ck_assert_str_eq(next(), "5:11+2>6");
    file(2)->busy = true;
    ck_assert_str_eq(next(), "5:10+1>6");
    file(10)->busy = true;
    ck_assert_str_eq(next(), "none");
}
END_TEST

START_TEST(a_table_that_overlaps_nothing_moves)
{
    add(6, 1, "a", "f", 20000);
    add(5, 10, "h", "i", 2500);
    ck_assert_str_eq(next(), "5:10>6 move");
}
END_TEST

START_TEST(tables_full_of_tombstones_go_though_nothing_is_full)
{
    add(6, 1, "a", "f", 100);
    add(5, 10, "b", "c", 10);
    add(5, 11, "g", "h", 10);
    file(10)->marked = true;
    ck_assert_str_eq(next(), "5:10+1>6");
    file(10)->marked = false;
    file(1)->marked = true; // in the last level: where it is
    ck_assert_str_eq(next(), "6:1>6");
}
END_TEST

START_TEST(a_manual_range_takes_what_it_overlaps)
{
    tm_pick p;
    tm_slice b = tm_slice_str("b"), h = tm_slice_str("h");
    add(5, 10, "a", "c", 10);
    add(5, 11, "g", "i", 10);
    add(5, 12, "x", "z", 10);
    add(6, 1, "h", "j", 100);
    int st = tm_pick_manual(version, &config, 5, &b, &h, 100, &p);
    ck_assert_str_eq(picked(st, &p), "5:10,11+1>6");
    st = tm_pick_manual(version, &config, 6, &b, &h, 100, &p);
    ck_assert_str_eq(picked(st, &p), "6:1>6");
    st = tm_pick_manual(version, &config, 6, &b, &h, 1, &p); // new enough
    ck_assert_str_eq(picked(st, &p), "none");
    st = tm_pick_manual(version, &config, 3, NULL, NULL, 100, &p);
    ck_assert_str_eq(picked(st, &p), "none");
    file(11)->busy = true;
    st = tm_pick_manual(version, &config, 5, &b, &h, 100, &p);
    ck_assert_str_eq(picked(st, &p), "busy");
}
END_TEST

START_TEST(targets_follow_from_the_last_level)
{
    tm_targets t;
    add(6, 1, "a", "f", 1000 * 1000);
    tm_pick_targets(version, &config, &t);
    ck_assert_uint_eq(t.bytes[5], (uint64_t)1000 * 1000 * 1024 / 10);
    ck_assert_uint_eq(t.bytes[4], (uint64_t)1000 * 1000 * 1024 / 100);
    ck_assert_uint_eq(t.bytes[2], 0);
    ck_assert_uint_ge(t.base, 3); // no level below level_base
    ck_assert_uint_le(t.base, 4);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pick");
    TCase *t = tcase_create("pick");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, levels_are_kept_in_order_and_apart);
    tcase_add_test(t, nothing_is_due_in_a_small_store);
    tcase_add_test(t, level_0_goes_by_count);
    tcase_add_test(t, a_full_level_gives_the_table_that_overlaps_least);
    tcase_add_test(t, a_table_that_overlaps_nothing_moves);
    tcase_add_test(t, tables_full_of_tombstones_go_though_nothing_is_full);
    tcase_add_test(t, a_manual_range_takes_what_it_overlaps);
    tcase_add_test(t, targets_follow_from_the_last_level);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
