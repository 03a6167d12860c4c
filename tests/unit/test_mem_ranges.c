// SPDX-License-Identifier: BSD-2-Clause
#include "memtable_kit.h"

typedef struct range {
    char start[4], limit[4];
    uint64_t seq;
} range;

static uint64_t expected_cover(const range *ranges, size_t n, const char *key, uint64_t seq)
{
    uint64_t cover = 0;
    for (size_t i = 0; i < n; i++) {
        bool in = strcmp(ranges[i].start, key) <= 0 &&
                  (ranges[i].limit[0] == 0 || strcmp(key, ranges[i].limit) < 0);
        if (in && ranges[i].seq <= seq && ranges[i].seq > cover) cover = ranges[i].seq;
    }
    return cover;
}

static range random_range(tm_random *r, uint64_t seq)
{
    range g = {.seq = seq};
    snprintf(g.start, sizeof(g.start), "%03u", (unsigned)tm_random_below(r, 300));
    snprintf(g.limit, sizeof(g.limit), "%03u", (unsigned)tm_random_below(r, 300));
    if (tm_random_below(r, 50) == 0) g.limit[0] = 0; // to the end
    return g;
}

START_TEST(range_deletes_cover_as_they_should)
{
    enum { N = 1200 };
    static range ranges[N];
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, BUFFER);
    tm_random r = tm_random_seed(4);
    for (size_t n = 0; n < N;) {
        ranges[n] = random_range(&r, n + 1);
        ck_assert_int_eq(tm_memtable_add_range(t, tm_slice_str(ranges[n].start),
                                               tm_slice_str(ranges[n].limit), n + 1, NULL),
                         0);
        n++;
        if (tm_random_below(&r, 4) == 0) continue;
        for (int i = 0; i < 3; i++) {
            char key[8];
            uint64_t seq = tm_random_below(&r, n + 2), cover = 99999;
            snprintf(key, sizeof(key), "%03u%s", (unsigned)tm_random_below(&r, 301), i ? "" : "x");
            ck_assert_int_eq(tm_memtable_range_cover(t, tm_slice_str(key), seq, &cover, NULL), 0);
            ck_assert_uint_eq(cover, expected_cover(ranges, n, key, seq));
        }
        if (n % 10 == 0) { // sets together say the same, and live on
            tm_buf sets = {0};
            ck_assert_int_eq(tm_memtable_range_sets(t, &sets, NULL), TAMIS_OK);
            const tm_range_set **set = (const tm_range_set **)(void *)sets.data;
            size_t count = sets.len / sizeof(*set);
            ck_assert_uint_ge(count, 1);
            ck_assert_uint_le(count, 30);
            uint64_t cover = 0;
            for (size_t i = 0; i < count; i++) {
                cover = TM_MAX(cover, tm_range_set_cover(set[i], &o, tm_slice_str("150"), n));
            }
            ck_assert_uint_eq(cover, expected_cover(ranges, n, "150", n));
            tm_buf_deinit(&sets);
        }
        if (n % 100 == 0) {
            const tm_range_set *all, *again;
            ck_assert_int_eq(tm_memtable_ranges(t, &all, NULL), TAMIS_OK);
            ck_assert_int_eq(tm_memtable_ranges(t, &again, NULL), TAMIS_OK);
            ck_assert_ptr_eq(all, again);
            for (unsigned i = 0; i < 300; i++) {
                char key[8];
                snprintf(key, sizeof(key), "%03u", i);
                ck_assert_uint_eq(tm_range_set_cover(all, &o, tm_slice_str(key), n / 2),
                                  expected_cover(ranges, n, key, n / 2));
            }
        }
    }
    ck_assert_uint_eq(tm_memtable_entries(t), N);
    tm_memtable_unref(t);
}
END_TEST

// What covers nothing gives no set.
START_TEST(an_empty_range_gives_no_set)
{
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, BUFFER);
    const tm_range_set *set = (const tm_range_set *)&o;
    tm_buf sets = {0};
    ck_assert_int_eq(tm_memtable_add_range(t, tm_slice_str("b"), tm_slice_str("a"), 1, NULL), 0);
    ck_assert_int_eq(tm_memtable_ranges(t, &set, NULL), TAMIS_OK);
    ck_assert_ptr_null(set);
    ck_assert_int_eq(tm_memtable_range_sets(t, &sets, NULL), TAMIS_OK);
    ck_assert_uint_eq(sets.len, 0);
    tm_memtable_unref(t);
}
END_TEST

START_TEST(range_sets_without_memory)
{
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, BUFFER);
    static range ranges[60];
    tm_random r = tm_random_seed(8);
    for (size_t n = 0; n < 60; n++) {
        ranges[n] = random_range(&r, n + 1);
        ck_assert_int_eq(tm_memtable_add_range(t, tm_slice_str(ranges[n].start),
                                               tm_slice_str(ranges[n].limit), n + 1, NULL),
                         0);
        bool one = n % 2;
        for (long fail = 0;; fail++) {
            gate g = {.left = fail, .sticky = true};
            const tm_range_set *set = NULL;
            tm_buf sets = {0};
            uint64_t cover = 0;
            tamis_error err = {0};
            tm_mem_set_hook(pass, &g);
            int st =
                one ? tm_memtable_ranges(t, &set, &err) : tm_memtable_range_sets(t, &sets, &err);
            tm_mem_set_hook(NULL, NULL);
            size_t held = sets.len;
            tm_buf_deinit(&sets);
            gate closed = {.sticky = true}; // a lookup needs no memory
            tm_mem_set_hook(pass, &closed);
            ck_assert_int_eq(tm_memtable_range_cover(t, tm_slice_str("150"), 99, &cover, NULL), 0);
            tm_mem_set_hook(NULL, NULL);
            ck_assert_uint_eq(cover, expected_cover(ranges, n + 1, "150", 99));
            if (!g.hit) {
                ck_assert_int_eq(st, TAMIS_OK);
                break;
            }
            ck_assert_int_lt(fail, 100);
            if (st != TAMIS_OK) { // else a buffer could do with less
                ck_assert_int_eq(st, TAMIS_NOMEM);
                ck_assert_int_eq(err.code, TAMIS_NOMEM);
                ck_assert_uint_eq(held, 0);
            }
        }
    }
    tm_memtable_unref(t);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("mem_ranges");
    TCase *c = tcase_create("mem_ranges");
    tcase_set_timeout(c, 30);
    tcase_add_test(c, range_deletes_cover_as_they_should);
    tcase_add_test(c, an_empty_range_gives_no_set);
    tcase_add_test(c, range_sets_without_memory);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    SRunner *r = srunner_create(suite());
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
