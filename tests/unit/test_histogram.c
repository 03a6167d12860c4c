// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "base/histogram.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/sync.h"

static tm_histogram h, g; // too large for small stacks

START_TEST(buckets_cover_all_numbers)
{
    ck_assert_uint_eq(tm_histogram_bucket(0), 0);
    ck_assert_uint_eq(tm_histogram_lower(0), 0);
    ck_assert_uint_eq(tm_histogram_bucket(UINT64_MAX), TM_HISTOGRAM_BUCKETS - 1);
    for (size_t b = 1; b < TM_HISTOGRAM_BUCKETS; b++) {
        uint64_t lower = tm_histogram_lower(b);
        ck_assert_uint_gt(lower, tm_histogram_lower(b - 1));
        ck_assert_uint_eq(tm_histogram_bucket(lower), b);         // its first
        ck_assert_uint_eq(tm_histogram_bucket(lower - 1), b - 1); // and the one before
    }
    ck_assert_uint_eq(tm_histogram_lower(TM_HISTOGRAM_BUCKETS), UINT64_MAX);
}
END_TEST

START_TEST(a_bucket_is_right_within_a_sixteenth)
{
    tm_random r = tm_random_seed(3);
    for (int i = 0; i < 100000; i++) {
        uint64_t v = tm_random_next(&r) >> tm_random_below(&r, 64);
        uint64_t lower = tm_histogram_lower(tm_histogram_bucket(v));
        ck_assert_uint_le(lower, v);
        ck_assert_uint_le(v - lower, lower / 16);
    }
}
END_TEST

START_TEST(an_empty_one_says_0)
{
    tm_histogram_init(&h);
    ck_assert_uint_eq(tm_histogram_at(&h, 0.5), 0);
    ck_assert_uint_eq(h.total + h.sum + h.max, 0);
}
END_TEST

START_TEST(shares_are_ranks)
{
    tm_histogram_init(&h);
    for (uint64_t v = 1; v <= 10; v++) tm_histogram_add(&h, v);
    ck_assert_uint_eq(h.total, 10);
    ck_assert_uint_eq(h.sum, 55);
    ck_assert_uint_eq(h.max, 10);
    ck_assert_uint_eq(tm_histogram_at(&h, 0.0), 1);
    ck_assert_uint_eq(tm_histogram_at(&h, 0.1), 1);
    ck_assert_uint_eq(tm_histogram_at(&h, 0.11), 2);
    ck_assert_uint_eq(tm_histogram_at(&h, 0.5), 5);
    ck_assert_uint_eq(tm_histogram_at(&h, 0.51), 6);
    ck_assert_uint_eq(tm_histogram_at(&h, 0.99), 10);
    ck_assert_uint_eq(tm_histogram_at(&h, 1.0), 10);
    ck_assert_uint_eq(tm_histogram_at(&h, 7.0), 10);
    ck_assert_uint_eq(tm_histogram_at(&h, -7.0), 1);
    ck_assert_uint_eq(tm_histogram_at(&h, (double)NAN), 1);
    ck_assert_uint_eq(tm_histogram_at(&h, (double)INFINITY), 10);
    tm_histogram_add(&h, UINT64_MAX);
    ck_assert_uint_eq(h.max, UINT64_MAX);
    ck_assert_uint_eq(tm_histogram_at(&h, 1.0), tm_histogram_lower(TM_HISTOGRAM_BUCKETS - 1));
}
END_TEST

static int by_value(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    return (x > y) - (x < y);
}

// Against the sorted values themselves.
START_TEST(percentiles_agree_with_sorting)
{
    enum { N = 10000 };
    uint64_t *v = tm_alloc(N * sizeof(*v));
    ck_assert_ptr_nonnull(v);
    tm_random r = tm_random_seed(9);
    tm_histogram_init(&h);
    for (size_t i = 0; i < N; i++) {
        v[i] = tm_random_next(&r) >> (20 + tm_random_below(&r, 40));
        tm_histogram_add(&h, v[i]);
    }
    qsort(v, N, sizeof(*v), by_value);
    for (int q = 1; q <= 1000; q++) {
        uint64_t exact = v[(size_t)q * (N / 1000) - 1];
        ck_assert_uint_eq(tm_histogram_at(&h, (double)q / 1000),
                          tm_histogram_lower(tm_histogram_bucket(exact)));
    }
    tm_free(v);
}
END_TEST

START_TEST(merging_adds)
{
    tm_histogram_init(&h);
    tm_histogram_init(&g);
    for (uint64_t v = 0; v < 100; v++) tm_histogram_add(v % 3 ? &h : &g, v * v);
    tm_histogram both;
    tm_histogram_init(&both);
    for (uint64_t v = 0; v < 100; v++) tm_histogram_add(&both, v * v);
    tm_histogram_merge(&h, &g);
    for (size_t b = 0; b < TM_HISTOGRAM_BUCKETS; b++) ck_assert_uint_eq(h.count[b], both.count[b]);
    ck_assert_uint_eq(h.total, 100);
    ck_assert_uint_eq(h.sum, both.sum);
    ck_assert_uint_eq(h.max, 99 * 99);
    tm_histogram_init(&h);
    tm_histogram_merge(&g, &h); // an empty one changes nothing
    ck_assert_uint_eq(g.max, 99 * 99);
}
END_TEST

enum { ADDERS = 4, EACH = 20000 };

static void *add_many(void *arg)
{
    for (uint64_t i = 0; i < EACH; i++) tm_histogram_add(&h, i * ADDERS + *(uint64_t *)arg);
    return NULL;
}

START_TEST(threads_lose_nothing)
{
    tm_histogram_init(&h);
    tm_thread t[ADDERS];
    tamis_error err;
    uint64_t first[ADDERS];
    for (size_t i = 0; i < ADDERS; i++) {
        first[i] = i;
        ck_assert_int_eq(tm_thread_start(&t[i], add_many, &first[i], "add", &err), TAMIS_OK);
    }
    for (size_t i = 0; i < ADDERS; i++) tm_thread_join(&t[i]);
    uint64_t n = ADDERS * EACH;
    ck_assert_uint_eq(h.total, n);
    ck_assert_uint_eq(h.sum, n * (n - 1) / 2);
    ck_assert_uint_eq(h.max, n - 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("histogram");
    TCase *t = tcase_create("histogram");
    tcase_add_test(t, buckets_cover_all_numbers);
    tcase_add_test(t, a_bucket_is_right_within_a_sixteenth);
    tcase_add_test(t, an_empty_one_says_0);
    tcase_add_test(t, shares_are_ranks);
    tcase_add_test(t, percentiles_agree_with_sorting);
    tcase_add_test(t, merging_adds);
    tcase_add_test(t, threads_lose_nothing);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
