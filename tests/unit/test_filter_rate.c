// SPDX-License-Identifier: BSD-2-Clause
//
// False-positive rates against the exact formulas. All keys come from fixed seeds, so a test that
// passes once passes always.
//
// The load of a line differs from filter to filter, so the queries of one filter are no independent
// samples: the standard error is that of the mean over many filters.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/random.h"
#include "filter/bloom.h"
#include "filter/filter.h"
#include "filter/filter_math.h"

typedef struct sample {
    double sum, squares;
    unsigned filters;
} sample;

static void sample_add(sample *s, double rate)
{
    s->sum += rate;
    s->squares += rate * rate;
    s->filters++;
}

// Within 4 standard errors and 1 % of the expected rate.
static bool sample_fits(const sample *s, double expected, const char *what)
{
    double mean = s->sum / s->filters, variance = s->squares / s->filters - mean * mean;
    double se = sqrt(fmax(variance, 0) / s->filters);
    bool fits = fabs(mean - expected) <= 4 * se + 0.01 * expected;
    if (getenv("TM_SHOW_RATES") != NULL || !fits) {
        printf("  %-40s expected %.6f %% measured %.6f %% (%+.2f %%, z %+.1f)\n", what,
               100 * expected, 100 * mean, 100 * (mean / expected - 1), (mean - expected) / se);
    }
    return fits;
}

typedef uint64_t hash_fn(void *ctx, uint64_t i); // the hash of key i; keys differ, hashes may not

static uint64_t hash_number(void *ctx, uint64_t i)
{
    uint8_t key[8];
    tm_put64(key, i);
    return tm_hash64(key, sizeof(key), *(uint64_t *)ctx);
}

// Builds `filters` filters of n keys each and asks each of them for `queries` absent keys.
static double measure(tm_filter_kind kind, uint32_t millibits, size_t n, unsigned filters,
                      size_t queries, hash_fn *hash, sample *s)
{
    uint64_t seed = 1000 + millibits, at = 0;
    double expected = 0;
    for (unsigned f = 0; f < filters; f++) {
        tm_filter_builder b;
        tm_buf out = {0};
        tm_filter_contract c;
        tm_filter_view v;
        ck_assert_int_eq(tm_filter_builder_init(&b, kind, millibits, seed, NULL), 0);
        for (size_t i = 0; i < n; i++)
            ck_assert_int_eq(tm_filter_builder_add(&b, hash(&seed, at++)), 0);
        ck_assert_int_eq(tm_filter_builder_finish(&b, &out, &c, NULL), 0);
        ck_assert_int_eq(tm_filter_view_init(&v, tm_buf_slice(&out), NULL, NULL), 0);
        size_t hits = 0;
        for (size_t q = 0; q < queries; q++) hits += tm_filter_may_contain(&v, hash(&seed, at++));
        sample_add(s, (double)hits / (double)queries);
        expected = tm_filter_expected_rate(&c);
        tm_filter_builder_deinit(&b);
        tm_buf_deinit(&out);
    }
    return expected;
}

START_TEST(partitions_have_the_expected_rate)
{
    static const uint32_t millibits[] = {4000, 6000, 8000, 9585, 10000, 12000, 14000, 16000, 20000};
    static const size_t bytes[] = {4096, 16384};
    for (tm_filter_kind kind = TM_FILTER_BLOOM; kind <= TM_FILTER_BLOCKED; kind++) {
        for (size_t m = 0; m < TM_COUNT(millibits); m++) {
            for (size_t i = 0; i < TM_COUNT(bytes); i++) {
                size_t n = (bytes[i] - TM_FILTER_HEADER) * 8000 / millibits[m];
                sample s = {0};
                double expected = measure(kind, millibits[m], n, 24, 15000, hash_number, &s);
                char what[64];
                snprintf(what, sizeof(what), "%s, %zu bytes, %.3f bits a key",
                         tm_filter_kind_name(kind), bytes[i], millibits[m] / 1000.0);
                ck_assert(sample_fits(&s, expected, what));
            }
        }
    }
}
END_TEST

// The published figures, not our formulas.
START_TEST(rates_at_ten_bits)
{
    sample s = {0};
    measure(TM_FILTER_BLOCKED, 10000, 52378, 30, 40000, hash_number, &s);
    ck_assert(sample_fits(&s, 0.009663, "blocked, 64 KiB, 10 bits a key"));
    s = (sample){0};
    measure(TM_FILTER_BLOOM, 10000, 52378, 30, 40000, hash_number, &s);
    ck_assert(sample_fits(&s, 0.008193, "bloom, 64 KiB, 10 bits a key"));
}
END_TEST

// ---- The oracle itself -------------------------------------------------------------------------

static uint64_t hash_constant(void *ctx, uint64_t i)
{
    (void)ctx;
    (void)i;
    return UINT64_C(0x123456789abcdef0);
}

static uint64_t hash_of_14_bits(void *ctx, uint64_t i) // so many different ones
{
    return hash_number(ctx, i & 0x3fff);
}

static uint64_t hash_low_half(void *ctx, uint64_t i)
{
    return hash_number(ctx, i) & UINT32_MAX;
}

static uint64_t hash_of_12_bits(void *ctx, uint64_t i) // the highest of them
{
    return hash_number(ctx, i) >> 52 << 52;
}

// No false negative shows that a hash is broken; the rate does.
START_TEST(a_broken_hash_is_caught)
{
    static hash_fn *const broken[] = {hash_constant, hash_of_14_bits, hash_low_half,
                                      hash_of_12_bits};
    for (tm_filter_kind kind = TM_FILTER_BLOOM; kind <= TM_FILTER_BLOCKED; kind++) {
        for (size_t i = 0; i < TM_COUNT(broken); i++) {
            // Costs the standard filter only its first probe.
            if (kind == TM_FILTER_BLOOM && broken[i] == hash_low_half) continue;
            sample s = {0};
            double expected = tm_filter_rate_blocked(13056, 255, 6);
            if (kind == TM_FILTER_BLOOM) expected = tm_filter_rate_standard(1, 10, 7);
            measure(kind, 10000, 13056, 3, 20000, broken[i], &s);
            double mean = s.sum / s.filters;
            ck_assert_msg(fabs(mean - expected) > 0.05 * expected, "hash %zu: %f", i, mean);
        }
    }
}
END_TEST

// ---- Sizes -------------------------------------------------------------------------------------

START_TEST(blocked_rate_at_every_number_of_lines)
{
    static const uint64_t line_counts[] = {1,  2,  3,   4,   7,   8,   9,   15,  16,  17,   63,
                                           64, 65, 127, 128, 129, 255, 256, 257, 511, 4095, 4097};
    tm_random random = tm_random_seed(11);
    for (size_t l = 0; l < TM_COUNT(line_counts); l++) {
        for (uint32_t probes = 5; probes <= 10; probes += 5) {
            uint64_t lines = line_counts[l], n = lines * 512 / (probes == 5 ? 8 : 14);
            uint8_t *bits = malloc(lines * 64);
            ck_assert_ptr_nonnull(bits);
            unsigned filters = lines < 20 ? 1000 : lines < 1000 ? 100 : 10;
            size_t queries = lines < 20 ? 800 : lines < 1000 ? 4000 : 40000;
            sample s = {0};
            for (unsigned f = 0; f < filters; f++) {
                memset(bits, 0, lines * 64);
                for (uint64_t i = 0; i < n; i++) {
                    tm_blocked_add(bits, lines, probes, tm_random_next(&random));
                }
                size_t hits = 0;
                for (size_t q = 0; q < queries; q++) {
                    hits += tm_blocked_ask(bits, lines, probes, tm_random_next(&random));
                }
                sample_add(&s, (double)hits / (double)queries);
            }
            char what[64];
            snprintf(what, sizeof(what), "%llu lines, %u probes", (unsigned long long)lines,
                     probes);
            ck_assert(sample_fits(&s, tm_filter_rate_blocked(n, lines, probes), what));
            free(bits);
        }
    }
}
END_TEST

// Positions that are not evenly spread, or that repeat as a pattern, show at special sizes and at
// small ones, where the usual formula is too low and the exact one holds.
START_TEST(bloom_rate_at_every_size)
{
    static const struct {
        uint64_t m;
        uint64_t n;
        uint32_t k;
        unsigned filters;
        size_t queries;
    } table[] = {
        {64, 6, 7, 3000, 400},         {100, 10, 7, 3000, 400},       {127, 12, 7, 3000, 400},
        {200, 20, 7, 2000, 500},       {511, 51, 7, 2000, 800},       {512, 25, 14, 3000, 5000},
        {512, 51, 7, 2000, 800},       {513, 51, 7, 2000, 800},       {1000, 100, 7, 1000, 1600},
        {4088, 408, 7, 300, 4000},     {4096, 408, 7, 300, 4000},     {4104, 408, 7, 300, 4000},
        {32760, 3276, 7, 50, 20000},   {32768, 3276, 7, 50, 20000},   {32776, 3276, 7, 50, 20000},
        {524280, 52428, 7, 8, 100000}, {524288, 52428, 7, 8, 100000},
    };
    tm_random random = tm_random_seed(12);
    uint8_t *bits = malloc(524288 / 8);
    ck_assert_ptr_nonnull(bits);
    for (size_t t = 0; t < TM_COUNT(table); t++) {
        sample s = {0};
        for (unsigned f = 0; f < table[t].filters; f++) {
            memset(bits, 0, (table[t].m + 7) / 8);
            for (uint64_t i = 0; i < table[t].n; i++) {
                tm_bloom_add(bits, table[t].m, table[t].k, tm_random_next(&random));
            }
            size_t hits = 0;
            for (size_t q = 0; q < table[t].queries; q++) {
                hits += tm_bloom_test(bits, table[t].m, table[t].k, tm_random_next(&random));
            }
            sample_add(&s, (double)hits / (double)table[t].queries);
        }
        char what[64];
        snprintf(what, sizeof(what), "bloom, %llu bits, %u probes", (unsigned long long)table[t].m,
                 table[t].k);
        ck_assert(sample_fits(&s, tm_filter_rate_exact(table[t].n, table[t].m, table[t].k), what));
    }
    free(bits);
}
END_TEST

// ---- Spread ------------------------------------------------------------------------------------

static void check_even(const uint64_t *counts, size_t cells, uint64_t total, const char *what)
{
    double expected = (double)total / (double)cells, chi = 0, df = (double)cells - 1;
    for (size_t i = 0; i < cells; i++) {
        chi += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
    }
    ck_assert_msg(fabs(chi - df) <= 5 * sqrt(2 * df), "%s: chi^2 %.0f for %.0f", what, chi, df);
}

START_TEST(lines_and_bits_are_evenly_used)
{
    enum { LINES = 256, KEYS = 200000 };
    static uint64_t of_line[LINES], of_bit[14][512], of_both[14][LINES / 16 * 64];
    static uint8_t line[LINES * 64];
    for (uint64_t i = 0; i < KEYS; i++) {
        uint64_t seed = 5, hash = hash_number(&seed, i);
        size_t number = (size_t)(tm_blocked_line(line, LINES, hash) - line) / TM_BLOCKED_LINE_BYTES;
        of_line[number]++;
        for (uint32_t j = 0; j < 14; j++) { // the field, by what adding with j + 1 probes adds
            uint64_t g = hash * TM_BLOCKED_MUL_1;
            if (j >= 7) g = tm_blocked_second(g);
            size_t bit = g >> (55 - 9 * (j % 7)) & 511;
            of_bit[j][bit]++;
            of_both[j][number / 16 * 64 + bit / 8]++; // coarse, so that cells hold some 200
            memset(line + number * 64, 0, 64);
            tm_blocked_add(line, LINES, j + 1, hash);
            ck_assert(line[number * 64 + bit / 8] >> bit % 8 & 1);
        }
    }
    check_even(of_line, LINES, KEYS, "lines");
    for (uint32_t j = 0; j < 14; j++) {
        check_even(of_bit[j], 512, KEYS, "bits");
        check_even(of_both[j], TM_COUNT(of_both[j]), KEYS, "lines and bits");
    }
}
END_TEST

// The probes of one key against each other: all 91 pairs, by 16 x 16 cells.
START_TEST(probes_are_independent)
{
    enum { KEYS = 100000 };
    static uint64_t pairs[14][14][256];
    for (uint64_t i = 0; i < KEYS; i++) {
        uint64_t seed = 6, hash = hash_number(&seed, i);
        size_t cell[14];
        for (uint32_t j = 0; j < 14; j++) {
            uint64_t g = hash * TM_BLOCKED_MUL_1;
            if (j >= 7) g = tm_blocked_second(g);
            cell[j] = g >> (60 - 9 * (j % 7)) & 15;
        }
        for (size_t a = 0; a < 14; a++) {
            for (size_t b = 0; b < a; b++) pairs[a][b][cell[a] * 16 + cell[b]]++;
        }
    }
    for (size_t a = 0; a < 14; a++) {
        for (size_t b = 0; b < a; b++) check_even(pairs[a][b], 256, KEYS, "pair of probes");
    }
}
END_TEST

// ---- Keys of all sorts -------------------------------------------------------------------------

enum { LONG_KEY = 1 << 20 };
static uint8_t *long_key; // LONG_KEY bytes, zero but for what a key set writes

static uint64_t hash_shared_prefix(void *ctx, uint64_t i)
{
    char key[96];
    int n = snprintf(key, sizeof(key), "%060d/%llu", 7, (unsigned long long)i);
    return tm_hash64(key, (size_t)n, *(uint64_t *)ctx);
}

static uint64_t hash_zero_run(void *ctx, uint64_t i) // zeros, as many as the number says
{
    return tm_hash64(long_key, i, *(uint64_t *)ctx);
}

static uint64_t hash_one_bit(void *ctx, uint64_t i) // 64 KiB of zeros and one 1
{
    size_t at = (size_t)(i >> 3) % 65536;
    long_key[at] = (uint8_t)(1 << (i & 7));
    uint64_t hash = tm_hash64(long_key, 200 + at / 8, *(uint64_t *)ctx);
    long_key[at] = 0;
    return hash;
}

static uint64_t hash_utf8(void *ctx, uint64_t i)
{
    char key[64];
    int n = snprintf(key, sizeof(key), "ключ-鍵-🔑-%llx-é", (unsigned long long)i);
    return tm_hash64(key, (size_t)n, *(uint64_t *)ctx);
}

START_TEST(rates_hold_for_keys_of_all_sorts)
{
    static const struct {
        const char *what;
        hash_fn *hash;
    } sets[] = {{"sequential numbers", hash_number},
                {"a shared prefix of 60 bytes", hash_shared_prefix},
                {"zeros of different lengths", hash_zero_run},
                {"UTF-8", hash_utf8}};
    long_key = calloc(1, LONG_KEY);
    ck_assert_ptr_nonnull(long_key);
    for (tm_filter_kind kind = TM_FILTER_BLOOM; kind <= TM_FILTER_BLOCKED; kind++) {
        for (size_t i = 0; i < TM_COUNT(sets); i++) {
            sample s = {0};
            bool runs = sets[i].hash == hash_zero_run; // long keys: fewer of them
            double expected =
                measure(kind, 8000, 600, runs ? 5 : 60, runs ? 1000 : 5000, sets[i].hash, &s);
            ck_assert(sample_fits(&s, expected, sets[i].what));
        }
    }
    free(long_key);
}
END_TEST

// Sets too small for many filters: one filter, many seeds.
static void check_small_set(tm_filter_kind kind, uint64_t n, uint64_t all, hash_fn *hash,
                            const char *what)
{
    sample s = {0};
    double expected = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        tm_filter_builder b;
        tm_buf out = {0};
        tm_filter_contract c;
        tm_filter_view v;
        ck_assert_int_eq(tm_filter_builder_init(&b, kind, 6000, seed, NULL), 0);
        for (uint64_t i = 0; i < n; i++)
            ck_assert_int_eq(tm_filter_builder_add(&b, hash(&seed, i)), 0);
        ck_assert_int_eq(tm_filter_builder_finish(&b, &out, &c, NULL), 0);
        ck_assert_int_eq(tm_filter_view_init(&v, tm_buf_slice(&out), NULL, NULL), 0);
        ck_assert_uint_eq(c.keys_added, n);
        size_t hits = 0;
        for (uint64_t i = n; i < all; i++) hits += tm_filter_may_contain(&v, hash(&seed, i));
        sample_add(&s, (double)hits / (double)(all - n));
        expected = kind == TM_FILTER_BLOOM ? tm_filter_rate_exact(n, c.bits, c.probes)
                                           : tm_filter_expected_rate(&c);
        tm_filter_builder_deinit(&b);
        tm_buf_deinit(&out);
    }
    ck_assert(sample_fits(&s, expected, what));
}

static uint64_t hash_short(void *ctx, uint64_t i) // the empty key, all of one byte, some of two
{
    uint8_t key[2] = {(uint8_t)(i - 1), (uint8_t)((i - 1) >> 8)};
    return tm_hash64(key, i == 0 ? 0 : i <= 256 ? 1 : 2, *(uint64_t *)ctx);
}

static uint64_t hash_megabyte(void *ctx, uint64_t i)
{
    long_key[(i * 977) % LONG_KEY] ^= 1;
    uint64_t hash = tm_hash64(long_key, LONG_KEY, *(uint64_t *)ctx);
    long_key[(i * 977) % LONG_KEY] ^= 1;
    return hash;
}

START_TEST(rates_hold_for_the_shortest_and_longest_keys)
{
    long_key = calloc(1, LONG_KEY);
    ck_assert_ptr_nonnull(long_key);
    for (tm_filter_kind kind = TM_FILTER_BLOOM; kind <= TM_FILTER_BLOCKED; kind++) {
        check_small_set(kind, 150, 1500, hash_short, "keys of 0, 1 and 2 bytes");
        check_small_set(kind, 300, 1500, hash_one_bit, "one-bit differences");
        // Keys of 1 MiB that differ in one bit: hashed once each, hashes must be all different.
        uint64_t seed = kind, hashes[40];
        for (uint64_t i = 0; i < TM_COUNT(hashes); i++) {
            hashes[i] = hash_megabyte(&seed, i);
            for (uint64_t j = 0; j < i; j++) ck_assert_uint_ne(hashes[i], hashes[j]);
        }
    }
    free(long_key);
}
END_TEST

// ---- What the bits tell ------------------------------------------------------------------------

START_TEST(fill_and_cardinality)
{
    enum { FILTERS = 60, KEYS = 3276, BITS = 32768 };
    static uint8_t bits[BITS / 8];
    tm_random random = tm_random_seed(77);
    double fill = 0, keys = 0, blocked_keys = 0, blocked_rate = 0;
    for (int f = 0; f < FILTERS; f++) {
        tm_filter_observed seen;
        memset(bits, 0, sizeof(bits));
        for (int i = 0; i < KEYS; i++) tm_bloom_add(bits, BITS, 7, tm_random_next(&random));
        tm_filter_view v = {.kind = TM_FILTER_BLOOM, .probes = 7, .lines = BITS, .bits = bits};
        tm_filter_observe(&v, &seen);
        ck_assert_double_lt(fabs(seen.fill - 0.5033), 5 * 0.0015);
        ck_assert_double_lt(fabs(seen.keys - KEYS), 5 * 14);
        ck_assert_double_eq(seen.fill, (double)seen.set_bits / BITS);
        fill += seen.fill;
        keys += seen.keys;

        memset(bits, 0, sizeof(bits));
        for (int i = 0; i < KEYS; i++) tm_blocked_add(bits, BITS / 512, 6, tm_random_next(&random));
        v = (tm_filter_view){
            .kind = TM_FILTER_BLOCKED, .probes = 6, .lines = BITS / 512, .bits = bits};
        tm_filter_observe(&v, &seen);
        ck_assert_double_lt(fabs(seen.keys - KEYS), 5 * 14);
        blocked_keys += seen.keys;
        blocked_rate += seen.rate;
    }
    ck_assert_double_lt(fabs(fill / FILTERS - 0.5033), 5 * 0.0015 / sqrt(FILTERS));
    ck_assert_double_lt(fabs(keys / FILTERS - KEYS), 5 * 14 / sqrt(FILTERS));
    ck_assert_double_lt(fabs(blocked_keys / FILTERS - KEYS), 5 * 14 / sqrt(FILTERS) + 4);
    double expected = tm_filter_rate_blocked(KEYS, BITS / 512, 6);
    ck_assert_double_lt(fabs(blocked_rate / FILTERS - expected), 0.01 * expected);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("filter_rate");
    TCase *tc = tcase_create("rates");
    tcase_set_timeout(tc, 240);
    tcase_add_test(tc, partitions_have_the_expected_rate);
    tcase_add_test(tc, rates_at_ten_bits);
    tcase_add_test(tc, a_broken_hash_is_caught);
    tcase_add_test(tc, blocked_rate_at_every_number_of_lines);
    tcase_add_test(tc, bloom_rate_at_every_size);
    tcase_add_test(tc, lines_and_bits_are_evenly_used);
    tcase_add_test(tc, probes_are_independent);
    tcase_add_test(tc, rates_hold_for_keys_of_all_sorts);
    tcase_add_test(tc, rates_hold_for_the_shortest_and_longest_keys);
    tcase_add_test(tc, fill_and_cardinality);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
