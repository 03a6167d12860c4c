// SPDX-License-Identifier: BSD-2-Clause
//
// The formulas against published figures, against each other, and against cases small enough to
// count by hand.
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "filter/bloom.h"
#include "filter/filter.h"
#include "filter/filter_math.h"

static void assert_near(double got, double want, double relative)
{
    ck_assert_msg(fabs(got - want) <= relative * fabs(want), "got %.9g, want %.9g within %g", got,
                  want, relative);
}

START_TEST(sizes_for_a_rate)
{
    ck_assert_uint_eq(tm_filter_bits_standard(1000000, 0.01), 9585059);
    ck_assert_uint_eq(tm_filter_bits_standard(10000000, 0.01), 95850584);
    ck_assert_uint_eq(tm_filter_bits_standard(10000000, 0.001), 143775876);
    assert_near((double)tm_filter_bits_standard(50000000, 0.001), 718.9e6, 1e-4);
    ck_assert_uint_eq(tm_filter_bits_standard(0, 0.01), 1);
    ck_assert_uint_eq(tm_filter_bits_standard(100, 1), 1);
    ck_assert_uint_eq(tm_filter_bits_standard(UINT64_MAX, 1e-9), UINT64_MAX);
    static const double table[][2] = {
        {0.1, 4.793}, {0.01, 9.585}, {0.001, 14.378}, {0.0001, 19.170}, {0.00001, 23.963}};
    for (size_t i = 0; i < TM_COUNT(table); i++) {
        assert_near(tm_filter_bits_per_key_standard(table[i][0]), table[i][1], 1.2e-4);
        // 1.4427 goes with the logarithm to base 2.
        assert_near(tm_filter_bits_per_key_standard(table[i][0]), -1.442695 * log2(table[i][0]),
                    1e-6);
    }
}
END_TEST

START_TEST(best_probes_are_rounded_not_cut)
{
    ck_assert_uint_eq(tm_filter_probes_standard(9.585), 7);
    ck_assert_uint_eq(tm_filter_probes_standard(14.378), 10);
    ck_assert_uint_eq(tm_filter_probes_standard(10000.0 / 200), 35);
    ck_assert_uint_eq(tm_filter_probes_standard(6), 4);
    ck_assert_uint_eq(tm_filter_probes_standard(10), 7);
    ck_assert_uint_eq(tm_filter_probes_standard(16), 11);
    ck_assert_uint_eq(tm_filter_probes_standard(0.3), 1);
    ck_assert_uint_eq(tm_filter_probes_standard(0), 1);
    ck_assert_uint_eq(tm_filter_probes_standard((double)NAN), 1);
    for (double b = 0.5; b < 60; b += 0.137) { // no whole number is better
        double best = tm_filter_rate_standard(1, b, tm_filter_probes_standard(b));
        for (double k = 1; k < 50; k++) {
            ck_assert_double_le(best, tm_filter_rate_standard(1, b, k) * (1 + 1e-12));
        }
    }
    ck_assert_uint_eq(tm_bloom_best_probes(200, 10000), TM_BLOOM_MAX_PROBES); // of 35
    ck_assert_uint_eq(tm_bloom_best_probes(0, 512), TM_BLOOM_MAX_PROBES);
}
END_TEST

START_TEST(standard_rates)
{
    assert_near(tm_filter_rate_standard(1e6, 9585059, 7), 0.010039, 1e-4);
    assert_near(tm_filter_rate_standard(1e6, 9585059, 6), 0.010143, 1e-4);
    assert_near(tm_filter_rate_standard(100, 1000, 7), 0.0081937, 1e-5);
    assert_near(tm_filter_rate_bound(100, 1000, 7), 0.0084341, 1e-5);
    assert_near(tm_filter_rate_distinct(100, 1000, 7), 0.0083338, 1e-5);
    assert_near(tm_filter_rate_standard(200, 10000, 5), 7.804e-6, 2e-4);
    assert_near(tm_filter_rate_standard(500, 10000, 5), 5.296e-4, 2e-4);
    assert_near(tm_filter_rate_standard(1, 10, 7), 0.0082, 2e-3);
    assert_near(tm_filter_rate_standard(1, 16, 11), 0.00046, 5e-3);
    assert_near(tm_filter_rate_standard(1, 6, 4), 0.056, 2e-3);
    // Filled to a multiple of its plan of 1 %.
    assert_near(tm_filter_rate_standard(3, 9.585, 7), 0.436, 2e-3);
    assert_near(tm_filter_rate_standard(5, 9.585, 7), 0.832, 2e-3);
    assert_near(tm_filter_rate_standard(5, 9.585, 6), 0.765, 2e-3);
}
END_TEST

START_TEST(exact_rates_counted_by_hand)
{
    ck_assert_double_eq(tm_filter_rate_exact(1, 2, 1), 0.5);
    ck_assert_double_eq(tm_filter_rate_exact(1, 1, 5), 1);
    // Two probes in two bits: on one bit in half of the cases, where a query hits with 1/4.
    assert_near(tm_filter_rate_exact(1, 2, 2), 0.5 * 0.25 + 0.5 * 1, 1e-14);
    // Two keys of one probe in three bits: one bit set in 1/3 of the cases, else two.
    assert_near(tm_filter_rate_exact(2, 3, 1), (1.0 / 3) * (1.0 / 3) + (2.0 / 3) * (2.0 / 3),
                1e-14);
    assert_near(tm_filter_rate_blocked(1, 1000, 1), 1.0 / 1000 / 512, 1e-12);
    double one = 1.0 / 512, two = 1 - pow(511.0 / 512, 2);
    assert_near(tm_filter_rate_blocked(2, 2, 1), 0.5 * one + 0.25 * two, 1e-12);
    ck_assert_double_eq(tm_filter_rate_blocked(40, 1, 6), tm_filter_rate_exact(40, 512, 6));
}
END_TEST

// f(i) by the alternating sum over Stirling numbers, in long double: another way to it.
static double line_rate_by_stirling(unsigned i, unsigned k)
{
    long double stirling[16][16] = {{0}}, sum = 0, s = 512;
    stirling[0][0] = 1;
    for (unsigned n = 1; n <= k; n++) {
        for (unsigned d = 1; d <= n; d++) {
            stirling[n][d] = d * stirling[n - 1][d] + stirling[n - 1][d - 1];
        }
    }
    for (unsigned d = 1; d <= k; d++) {
        long double falling = 1, all_set = 0, choose = 1;
        for (unsigned j = 0; j < d; j++) falling *= (s - j);
        for (unsigned j = 0; j <= d; j++) {
            all_set += (j % 2 ? -1 : 1) * choose * powl(1 - j / s, (long double)k * i);
            choose = choose * (d - j) / (j + 1);
        }
        sum += stirling[k][d] * falling / powl(s, k) * all_set;
    }
    return (double)sum;
}

START_TEST(two_ways_to_the_rate_of_a_line)
{
    for (unsigned k = 1; k <= 14; k++) {
        for (unsigned i = 20; i <= 120; i += 10) {
            assert_near(tm_filter_rate_exact(i, 512, k), line_rate_by_stirling(i, k), 1e-9);
        }
    }
}
END_TEST

START_TEST(rates_stay_below_the_rigorous_bound)
{
    for (uint64_t m = 64; m <= 1 << 14; m = m * 3 / 2 + 1) {
        for (double b = 2; b <= 24; b += 1.7) {
            uint64_t n = (uint64_t)((double)m / b);
            if (n == 0) continue;
            uint32_t k = tm_bloom_best_probes(n, m);
            double bound = tm_filter_rate_bound((double)n, (double)m, k);
            double exact = tm_filter_rate_exact(n, m, k);
            ck_assert_double_le(exact, bound * (1 + 1e-9));
            ck_assert_double_le(tm_filter_rate_standard((double)n, (double)m, k), bound);
            // The usual formula is low, by less and less.
            ck_assert_double_ge(exact, tm_filter_rate_standard((double)n, (double)m, k));
            if (m > 10000)
                assert_near(tm_filter_rate_standard((double)n, (double)m, k), exact, 0.02);
        }
    }
}
END_TEST

START_TEST(blocked_rates)
{
    static const struct {
        double b;
        uint32_t k;
        double percent;
    } table[] = {{6, 4, 5.774},   {8, 5, 2.326},   {10, 6, 0.966},  {12, 8, 0.413},
                 {14, 9, 0.1835}, {16, 9, 0.0844}, {20, 11, 0.0198}};
    for (size_t i = 0; i < TM_COUNT(table); i++) {
        uint64_t lines = 1024, n = (uint64_t)((double)lines * 512 / table[i].b);
        assert_near(100 * tm_filter_rate_blocked(n, lines, table[i].k), table[i].percent, 2e-3);
        ck_assert_uint_eq(tm_filter_probes_blocked(n, lines), table[i].k);
    }
    assert_near(tm_filter_rate_blocked(52428, 1024, 7), 0.0096, 1e-2);
    assert_near(tm_filter_rate_split(52428, 2048, 8, 32), 0.0127, 1e-2);
    assert_near(tm_filter_rate_split(32768, 2048, 8, 32), 0.00132, 1e-2);
    assert_near(tm_filter_rate_split(52428, 1024, 8, 64), 0.010487, 2e-3);
}
END_TEST

// The sum over the loads of a line, written out with logarithms of factorials.
static void rates_by_factorials(uint64_t n, uint64_t lines, uint32_t k, double *binomial,
                                double *poisson)
{
    double mean = (double)n / (double)lines, m = (double)n, log_p = -log((double)lines);
    double log_q = log1p(-1.0 / (double)lines);
    *binomial = *poisson = 0;
    for (unsigned i = 1; i < 300 && i <= n; i++) {
        double rate = tm_filter_rate_exact(i, 512, k), log_ways = lgamma(m + 1) - lgamma(m - i + 1);
        *binomial += exp(log_ways - lgamma(i + 1.0) + i * log_p + (m - i) * log_q) * rate;
        *poisson += exp(i * log(mean) - mean - lgamma(i + 1.0)) * rate;
    }
}

START_TEST(few_lines_are_binomial)
{
    double binomial, poisson;
    rates_by_factorials(3276, 64, 6, &binomial, &poisson);
    assert_near(tm_filter_rate_blocked(3276, 64, 6), binomial, 1e-9);
    assert_near(poisson / binomial, 1.0018, 1e-4); // Poisson would be high
    rates_by_factorials(1638, 64, 11, &binomial, &poisson);
    assert_near(tm_filter_rate_blocked(1638, 64, 11), binomial, 1e-9);
    assert_near(poisson / binomial, 1.0121, 1e-4);
    rates_by_factorials(102, 2, 6, &binomial, &poisson);
    assert_near(tm_filter_rate_blocked(102, 2, 6), binomial, 1e-9);
    // With many lines the two meet.
    rates_by_factorials(3276, 64, 6, &binomial, &poisson);
    assert_near(tm_filter_rate_blocked(UINT64_C(3276) << 30, UINT64_C(64) << 30, 6), poisson, 1e-6);
}
END_TEST

START_TEST(probe_table_of_blocked_is_best)
{
    for (uint64_t lines = 1; lines <= 4096; lines *= 8) {
        for (double b = 0.5; b <= 40; b += 0.31) {
            uint64_t n = (uint64_t)((double)lines * 512 / b);
            if (n < 2) continue;
            uint64_t millibits = lines * 512 * 1000 / n;
            double best = tm_filter_rate_blocked(n, lines, tm_filter_probes_blocked(n, lines));
            double table = tm_filter_rate_blocked(n, lines, tm_blocked_best_probes(millibits));
            for (uint32_t k = 1; k <= 14; k++) {
                ck_assert_double_le(best, tm_filter_rate_blocked(n, lines, k) * (1 + 1e-12));
            }
            // One table for all sizes: off by little even where a filter is a single line.
            ck_assert_double_le(table, best * (lines >= 64 ? 1.001 : lines >= 8 ? 1.02 : 1.25));
        }
    }
    ck_assert_uint_eq(tm_blocked_best_probes(0), 1);
    ck_assert_uint_eq(tm_blocked_best_probes(2081), 1);
    ck_assert_uint_eq(tm_blocked_best_probes(2082), 2);
    ck_assert_uint_eq(tm_blocked_best_probes(UINT64_MAX), 14);
}
END_TEST

START_TEST(lines_for_a_rate_are_the_fewest)
{
    static const uint64_t sizes[] = {1, 2, 30, 1000, 13000, 1000000, UINT64_C(100000000000)};
    static const double rates[] = {0.5, 0.1, 0.01, 0.001, 1e-5};
    for (size_t s = 0; s < TM_COUNT(sizes); s++) {
        for (size_t r = 0; r < TM_COUNT(rates); r++) {
            uint64_t n = sizes[s], lines = tm_filter_lines_blocked(n, rates[r]);
            ck_assert_uint_gt(lines, 0);
            double rate = tm_filter_rate_blocked(n, lines, tm_filter_probes_blocked(n, lines));
            ck_assert_double_le(rate, rates[r]);
            if (lines == 1) continue;
            lines--;
            rate = tm_filter_rate_blocked(n, lines, tm_filter_probes_blocked(n, lines));
            ck_assert_double_gt(rate, rates[r]);
        }
    }
    ck_assert_uint_eq(tm_filter_lines_blocked(1000000, 1e-12), 0); // out of reach
    ck_assert_uint_eq(tm_filter_lines_blocked(0, 0.01), 1);
    ck_assert_uint_eq(tm_filter_lines_blocked(10, 1), 1);
}
END_TEST

START_TEST(millibits_for_a_rate)
{
    assert_near(tm_filter_millibits_for_rate(TM_FILTER_BLOOM, 0.01), 9586, 1e-6);
    assert_near(tm_filter_millibits_for_rate(TM_FILTER_BLOCKED, 0.01), 9920, 1e-3);
    assert_near(tm_filter_millibits_for_rate(TM_FILTER_BLOCKED, 0.001), 15550, 2e-3);
    ck_assert_uint_eq(tm_filter_millibits_for_rate(TM_FILTER_BLOCKED, 1e-14), 0);
    ck_assert_uint_eq(tm_filter_millibits_for_rate(TM_FILTER_BLOOM, 1e-30), 0);
    ck_assert_uint_eq(tm_filter_millibits_for_rate(TM_FILTER_BLOOM, 0.999),
                      TM_FILTER_MIN_MILLIBITS);
    ck_assert_uint_eq(tm_filter_millibits_for_rate(TM_FILTER_BLOCKED, 2), TM_FILTER_MIN_MILLIBITS);
    ck_assert_uint_eq(tm_filter_millibits_for_rate(77, 0.01), 0);
}
END_TEST

START_TEST(rates_move_the_right_way)
{
    double before = 2;
    for (uint64_t lines = 1; lines < 400; lines += 7) { // more lines, fewer errors
        double rate = tm_filter_rate_blocked(5000, lines, 6);
        ck_assert_double_le(rate, before);
        before = rate;
    }
    before = -1;
    for (uint64_t n = 0; n < 40000; n += 501) { // more keys, more errors
        double rate = tm_filter_rate_blocked(n, 64, 6);
        ck_assert_double_ge(rate, before);
        before = rate;
    }
    ck_assert_double_gt(before, 0.9);
}
END_TEST

START_TEST(any_argument_gives_a_rate)
{
    static const double doubles[] = {0, -1, 1e-9, 1, 7, 1e18, (double)INFINITY, (double)NAN};
    for (size_t a = 0; a < TM_COUNT(doubles); a++) {
        for (size_t b = 0; b < TM_COUNT(doubles); b++) {
            for (size_t c = 0; c < TM_COUNT(doubles); c++) {
                double x = doubles[a], y = doubles[b], z = doubles[c];
                double rates[] = {tm_filter_rate_standard(x, y, z), tm_filter_rate_bound(x, y, z),
                                  tm_filter_rate_distinct(x, y, z)};
                for (size_t i = 0; i < TM_COUNT(rates); i++) {
                    ck_assert(rates[i] >= 0 && rates[i] <= 1);
                }
            }
        }
    }
    static const uint64_t counts[] = {0, 1, 2, 511, 65536, UINT64_C(1) << 40, UINT64_MAX};
    static const uint32_t probes[] = {0, 1, 14, 64, 65, UINT32_MAX};
    for (size_t a = 0; a < TM_COUNT(counts); a++) {
        for (size_t b = 0; b < TM_COUNT(counts); b++) {
            for (size_t c = 0; c < TM_COUNT(probes); c++) {
                double rate = tm_filter_rate_blocked(counts[a], counts[b], probes[c]);
                ck_assert(rate >= 0 && rate <= 1);
                rate = tm_filter_rate_split(counts[a], counts[b], 8, probes[c]);
                ck_assert(rate >= 0 && rate <= 1);
                double keys = tm_filter_keys_of_fill(counts[a], counts[b], probes[c]);
                ck_assert(keys >= 0 && isfinite(keys));
            }
        }
    }
    ck_assert_double_eq(tm_filter_rate_standard(0, 0, 0), 0);
    ck_assert_double_eq(tm_filter_rate_standard(1, 0, 1), 1);
    assert_near(tm_filter_rate_blocked(1000000000, 1, 6), 1, 1e-12);
}
END_TEST

START_TEST(fill_tells_keys_and_rate)
{
    ck_assert_double_eq(tm_filter_rate_of_fill(50, 100, 2), 0.25);
    ck_assert_double_eq(tm_filter_rate_of_fill(0, 0, 2), 1);
    ck_assert_double_eq(tm_filter_keys_of_fill(0, 100, 7), 0);
    // As many bits as n keys set on average give n back.
    double n = 3276, m = 32768, set = m * -expm1(-7 * n / m);
    assert_near(set / m, 0.5033, 1e-4);
    assert_near(tm_filter_keys_of_fill((uint64_t)(set + 0.5), 32768, 7), n, 1e-3);
    double full = tm_filter_keys_of_fill(512, 512, 6);
    ck_assert_double_gt(full, tm_filter_keys_of_fill(511, 512, 6));
}
END_TEST

START_TEST(wilson_intervals)
{
    double low, high;
    tm_filter_wilson(10, 100, 1.959964, &low, &high);
    assert_near(low, 0.05523, 1e-3);
    assert_near(high, 0.17437, 1e-3);
    tm_filter_wilson(0, 100, 1.959964, &low, &high);
    ck_assert_double_le(low, 1e-15);
    assert_near(high, 0.03699, 1e-3);
    tm_filter_wilson(100, 100, 1.959964, &low, &high);
    assert_near(low, 1 - 0.03699, 1e-3);
    ck_assert_double_ge(high, 1 - 1e-15);
    tm_filter_wilson(0, 0, 3, &low, &high);
    ck_assert_double_eq(low, 0);
    ck_assert_double_eq(high, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("filter_math");
    TCase *tc = tcase_create("formulas");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, sizes_for_a_rate);
    tcase_add_test(tc, best_probes_are_rounded_not_cut);
    tcase_add_test(tc, standard_rates);
    tcase_add_test(tc, exact_rates_counted_by_hand);
    tcase_add_test(tc, two_ways_to_the_rate_of_a_line);
    tcase_add_test(tc, rates_stay_below_the_rigorous_bound);
    tcase_add_test(tc, blocked_rates);
    tcase_add_test(tc, few_lines_are_binomial);
    tcase_add_test(tc, probe_table_of_blocked_is_best);
    tcase_add_test(tc, lines_for_a_rate_are_the_fewest);
    tcase_add_test(tc, millibits_for_a_rate);
    tcase_add_test(tc, rates_move_the_right_way);
    tcase_add_test(tc, any_argument_gives_a_rate);
    tcase_add_test(tc, fill_tells_keys_and_rate);
    tcase_add_test(tc, wilson_intervals);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
