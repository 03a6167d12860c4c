// SPDX-License-Identifier: BSD-2-Clause
//
// The filter library as an application sees it: tamis_filter.h alone, but for what makes damage and
// lets memory end.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tamis_filter.h"

#include "base/coding.h"
#include "base/hash.h"
#include "base/mem.h"

static const int32_t kinds[] = {TAMIS_FILTER_BLOOM, TAMIS_FILTER_BLOCKED};

static tamis_filter *create(int32_t kind, uint64_t keys, double bits_per_key, uint64_t seed)
{
    tamis_filter_params p = tamis_filter_params_init();
    p.kind = kind;
    p.expected_keys = keys;
    p.bits_per_key = bits_per_key;
    p.seed = seed;
    tamis_filter *f;
    tamis_error err;
    ck_assert_int_eq(tamis_filter_create(&p, &f, &err), TAMIS_OK);
    return f;
}

static void add_range(tamis_filter *f, uint64_t begin, uint64_t end)
{
    for (uint64_t i = begin; i < end; i++) tamis_filter_add(f, &i, sizeof(i));
}

static uint64_t count_range(const tamis_filter *f, uint64_t begin, uint64_t end)
{
    uint64_t hits = 0;
    for (uint64_t i = begin; i < end; i++) {
        hits += (uint64_t)tamis_filter_may_contain(f, &i, sizeof(i));
    }
    return hits;
}

static tamis_filter_info describe(const tamis_filter *f)
{
    tamis_filter_info info = {.size = sizeof(info)};
    ck_assert_int_eq(tamis_filter_describe(f, &info, NULL), TAMIS_OK);
    return info;
}

// ---- Plan and create ---------------------------------------------------------------------------

START_TEST(sizes_are_those_of_the_textbook)
{
    static const struct {
        uint64_t keys;
        double rate;
        uint64_t bits;
        uint32_t probes;
    } table[] = {{10000000, 0.01, 95850584, 7},
                 {10000000, 0.001, 143775876, 10},
                 {1000000, 0.01, 9585059, 7}};
    for (size_t i = 0; i < TM_COUNT(table); i++) {
        tamis_filter_params p = tamis_filter_params_init();
        tamis_filter_info info = {.size = sizeof(info)};
        p.kind = TAMIS_FILTER_BLOOM;
        p.expected_keys = table[i].keys;
        p.rate = table[i].rate;
        ck_assert_int_eq(tamis_filter_plan(&p, &info, NULL), TAMIS_OK);
        ck_assert_uint_eq(info.bits, table[i].bits);
        ck_assert_uint_eq(info.probes, table[i].probes);
        ck_assert_double_lt(fabs(info.expected_rate / table[i].rate - 1), 0.005);
        ck_assert_str_eq(info.name, "bloom");
        // blocked holds the rate, at a few bits more.
        p.kind = TAMIS_FILTER_DEFAULT;
        ck_assert_int_eq(tamis_filter_plan(&p, &info, NULL), TAMIS_OK);
        ck_assert_int_eq(info.kind, TAMIS_FILTER_BLOCKED);
        ck_assert_double_le(info.expected_rate, table[i].rate);
        ck_assert_uint_gt(info.bits, table[i].bits);
        ck_assert_double_lt((double)info.bits, 1.09 * (double)table[i].bits);
        ck_assert_uint_eq(info.bits % 512, 0);
        ck_assert_uint_eq(info.set_bits, 0);
    }
}
END_TEST

START_TEST(plan_is_what_create_builds)
{
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        tamis_filter_params p = tamis_filter_params_init();
        tamis_filter_info plan = {.size = sizeof(plan)};
        tamis_filter *f;
        p.kind = kinds[k];
        p.expected_keys = 1234;
        p.bits_per_key = 7.25;
        p.probes = 3;
        p.seed = 5;
        ck_assert_int_eq(tamis_filter_plan(&p, &plan, NULL), TAMIS_OK);
        ck_assert_int_eq(tamis_filter_create(&p, &f, NULL), TAMIS_OK);
        tamis_filter_info info = describe(f);
        ck_assert_int_eq(info.kind, kinds[k]);
        ck_assert_uint_eq(info.probes, 3);
        ck_assert_uint_eq(info.seed, 5);
        ck_assert_uint_eq(info.bits, kinds[k] == TAMIS_FILTER_BLOOM ? 8947 : 18 * 512);
        ck_assert_uint_eq(info.bits, plan.bits);
        ck_assert_uint_eq(info.bytes, plan.bytes);
        ck_assert_uint_ge(info.bytes, info.bits / 8);
        ck_assert_uint_eq(info.added_keys, 0);
        ck_assert_double_eq(info.expected_rate, plan.expected_rate);
        ck_assert_double_eq(info.rate_at_added, 0);
        ck_assert_double_eq(info.rate_from_fill, 0);
        ck_assert_double_eq(info.estimated_keys, 0);
        ck_assert_uint_eq(count_range(f, 0, 1000), 0);
        tamis_filter_free(f);
    }
    tamis_filter_free(NULL);
}
END_TEST

static void refused(tamis_filter_params p, int status, const char *word)
{
    tamis_filter *f = (tamis_filter *)&p;
    tamis_filter_info info = {.size = sizeof(info)};
    tamis_error err;
    ck_assert_int_eq(tamis_filter_create(&p, &f, &err), status);
    ck_assert_ptr_null(f);
    ck_assert_int_eq(err.code, status);
    ck_assert_msg(strstr(err.message, word) != NULL, "%s", err.message);
    ck_assert_int_eq(tamis_filter_plan(&p, &info, NULL), status);
}

START_TEST(wrong_parameters_are_named)
{
    tamis_filter_params good = tamis_filter_params_init(), p;
    good.expected_keys = 100;
    static const double bad_bits[] = {-1, 0.09, 100.1, 1e300, (double)INFINITY, (double)NAN};
    static const double bad_rates[] = {-0.1, 1, 1.5, (double)INFINITY, (double)NAN};
    p = good, p.size = 0, refused(p, TAMIS_INVALID, "size");
    p = good, p.kind = 3, refused(p, TAMIS_INVALID, "kind");
    p = good, p.kind = -1, refused(p, TAMIS_INVALID, "kind");
    p = good, p.expected_keys = 0, refused(p, TAMIS_INVALID, "expected_keys");
    p = good, p.probes = 15, refused(p, TAMIS_INVALID, "probes");
    p = good, p.kind = TAMIS_FILTER_BLOOM, p.probes = 31, refused(p, TAMIS_INVALID, "probes");
    p = good, p.rate = 0.1, p.bits_per_key = 10, refused(p, TAMIS_INVALID, "both");
    for (size_t i = 0; i < TM_COUNT(bad_bits); i++) {
        p = good, p.bits_per_key = bad_bits[i], refused(p, TAMIS_INVALID, "bits a key");
    }
    for (size_t i = 0; i < TM_COUNT(bad_rates); i++) {
        p = good, p.rate = bad_rates[i], refused(p, TAMIS_INVALID, "rate");
    }
    p = good, p.expected_keys = 1000000, p.rate = 1e-13, refused(p, TAMIS_INVALID, "reach");
    p.kind = TAMIS_FILTER_BLOOM, p.rate = 1e-40, refused(p, TAMIS_INVALID, "reach");
    p = good, p.expected_keys = UINT64_MAX, refused(p, TAMIS_TOOLARGE, "memory");
    p.rate = 0.01, refused(p, TAMIS_TOOLARGE, "memory");
    p.expected_keys = UINT64_C(1) << 56, refused(p, TAMIS_TOOLARGE, "memory");
    p.kind = TAMIS_FILTER_BLOOM, refused(p, TAMIS_TOOLARGE, "memory");
    ck_assert_int_eq(tamis_filter_create(NULL, &(tamis_filter *){NULL}, NULL), TAMIS_INVALID);
    tamis_filter *f = create(0, 10, 10, 0);
    tamis_filter_info info = {.size = 8};
    ck_assert_int_eq(tamis_filter_describe(f, &info, NULL), TAMIS_INVALID);
    tamis_filter_free(f);
}
END_TEST

// ---- Add and ask -------------------------------------------------------------------------------

START_TEST(keys_are_found_and_others_rarely)
{
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        tamis_filter *f = create(kinds[k], 20000, 10, 99);
        add_range(f, 0, 20000);
        ck_assert_uint_eq(count_range(f, 0, 20000), 20000);
        tamis_filter_info info = describe(f);
        double rate = (double)count_range(f, 1000000, 1500000) / 500000;
        ck_assert_double_lt(fabs(rate / info.expected_rate - 1), 0.06);
        ck_assert_double_lt(fabs(info.rate_from_fill / info.expected_rate - 1), 0.06);
        ck_assert_double_lt(fabs(info.estimated_keys - 20000), 5 * 40);
        ck_assert_double_lt(fabs(info.fill - 0.5), 0.06);
        // Not quite all: some were false positives when they were added.
        ck_assert_uint_le(info.added_keys, 20000);
        ck_assert_uint_ge(info.added_keys, 19940);
        tamis_filter_clear(f);
        info = describe(f);
        ck_assert_uint_eq(info.set_bits, 0);
        ck_assert_uint_eq(info.added_keys, 0);
        ck_assert_uint_eq(count_range(f, 0, 20000), 0);
        tamis_filter_free(f);
    }
}
END_TEST

START_TEST(keys_are_any_bytes)
{
    static const tamis_slice keys[] = {{NULL, 0}, {"\0", 1}, {"\0\0", 2},     {"a", 1},
                                       {"A", 1},  {"é", 2},  {"e\xcc\x81", 3}};
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        for (size_t i = 0; i < TM_COUNT(keys); i++) { // each alone: the others are absent
            tamis_filter *f = create(kinds[k], 10, 60, 1);
            ck_assert_int_eq(tamis_filter_add(f, keys[i].data, keys[i].len), 1);
            for (size_t j = 0; j < TM_COUNT(keys); j++) {
                ck_assert_int_eq(tamis_filter_may_contain(f, keys[j].data, keys[j].len), i == j);
            }
            tamis_filter_free(f);
        }
    }
}
END_TEST

START_TEST(duplicates_change_nothing)
{
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        // Four bits for one key: 4 in the standard filter, a line in the blocked one.
        tamis_filter *f = create(kinds[k], 1, 4, 7);
        ck_assert_uint_eq(describe(f).bits, kinds[k] == TAMIS_FILTER_BLOOM ? 4 : 512);
        ck_assert_int_eq(tamis_filter_add(f, "key", 3), 1);
        tamis_filter_info once = describe(f);
        ck_assert_uint_eq(once.added_keys, 1);
        for (int i = 0; i < 100; i++) ck_assert_int_eq(tamis_filter_add(f, "key", 3), 0);
        tamis_filter_info often = describe(f);
        ck_assert_mem_eq(&once, &often, sizeof(once));
        tamis_filter_free(f);
    }
}
END_TEST

START_TEST(an_overfull_filter_shows)
{
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        tamis_filter_params p = tamis_filter_params_init();
        tamis_filter *f;
        p.kind = kinds[k];
        p.expected_keys = 10000;
        p.rate = 0.01;
        ck_assert_int_eq(tamis_filter_create(&p, &f, NULL), TAMIS_OK);
        add_range(f, 0, 30000);
        tamis_filter_info three = describe(f);
        add_range(f, 30000, 50000);
        tamis_filter_info five = describe(f);
        double rate = (double)count_range(f, 1000000, 1020000) / 20000;
        ck_assert_uint_eq(count_range(f, 0, 50000), 50000);
        ck_assert_double_gt(five.rate_from_fill, 0.5);
        ck_assert_double_lt(fabs(five.rate_from_fill - rate), 0.02);
        ck_assert_double_lt(five.expected_rate, 0.0101); // of the plan: not what there is
        ck_assert_double_gt(three.estimated_keys, 28500);
        ck_assert_double_lt(three.estimated_keys, 31500);
        ck_assert_double_gt(five.estimated_keys, 45000);
        ck_assert_double_lt(five.estimated_keys, 55000);
        ck_assert_uint_gt(five.added_keys, 2 * five.expected_keys);
        ck_assert_double_gt(five.rate_at_added, 0.2);
        if (kinds[k] == TAMIS_FILTER_BLOOM) {
            ck_assert_double_lt(fabs(three.rate_from_fill - 0.436), 0.02);
            ck_assert_double_lt(fabs(five.rate_from_fill - 0.832), 0.02);
        }
        tamis_filter_free(f);
    }
}
END_TEST

START_TEST(hashes_and_batches_are_the_same_filter)
{
    enum { N = 1000 };
    static uint64_t numbers[2 * N], hashes[2 * N];
    static tamis_slice keys[2 * N];
    static uint8_t by_key[2 * N], by_hash[2 * N];
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        tamis_filter *one = create(kinds[k], N, 8, 3), *many = create(kinds[k], N, 8, 3);
        tamis_filter *hashed = create(kinds[k], N, 8, 3);
        for (size_t i = 0; i < 2 * N; i++) {
            numbers[i] = i;
            keys[i] = (tamis_slice){&numbers[i], sizeof(numbers[i])};
            hashes[i] = tamis_filter_hash(one, keys[i].data, keys[i].len);
            ck_assert_uint_eq(hashes[i], tm_hash64(&numbers[i], 8, 3));
        }
        size_t changed = 0;
        for (size_t i = 0; i < N; i++) changed += (size_t)tamis_filter_add_hash(one, hashes[i]);
        ck_assert_uint_eq(tamis_filter_add_many(many, keys, N), changed);
        ck_assert_uint_eq(tamis_filter_add_hashes(hashed, hashes, N), changed);
        ck_assert_uint_eq(tamis_filter_add_hashes(hashed, hashes, N), 0);
        ck_assert_uint_eq(tamis_filter_add_hashes(hashed, hashes, 0), 0);
        ck_assert_uint_eq(describe(hashed).set_bits, describe(one).set_bits);
        size_t hits = tamis_filter_may_contain_many(many, keys, 2 * N, by_key);
        ck_assert_uint_eq(tamis_filter_may_contain_hashes(hashed, hashes, 2 * N, by_hash), hits);
        ck_assert_mem_eq(by_key, by_hash, sizeof(by_key));
        ck_assert_uint_ge(hits, N);
        ck_assert_uint_lt(hits, N + N / 10);
        for (size_t i = 0; i < 2 * N; i++) {
            ck_assert_int_eq(by_key[i], tamis_filter_may_contain(one, &numbers[i], 8));
            ck_assert_int_eq(by_key[i], tamis_filter_may_contain_hash(many, hashes[i]));
            hits -= by_key[i];
        }
        ck_assert_uint_eq(hits, 0);
        tamis_filter_free(one);
        tamis_filter_free(many);
        tamis_filter_free(hashed);
    }
}
END_TEST

START_TEST(another_seed_errs_on_other_keys)
{
    tamis_filter *a = create(0, 2000, 6, 1), *b = create(0, 2000, 6, 2);
    add_range(a, 0, 2000);
    add_range(b, 0, 2000);
    uint64_t both = 0, of_a = 0;
    for (uint64_t i = 10000; i < 60000; i++) {
        int hit = tamis_filter_may_contain(a, &i, 8);
        of_a += (uint64_t)hit;
        both += (uint64_t)(hit && tamis_filter_may_contain(b, &i, 8));
    }
    ck_assert_uint_gt(of_a, 2000);
    ck_assert_uint_lt(both, of_a / 5); // the rate's share of them, not all
    tamis_filter_free(a);
    tamis_filter_free(b);
}
END_TEST

// ---- Unite -------------------------------------------------------------------------------------

START_TEST(union_and_overlap)
{
    static const uint64_t overlaps[] = {0, 1000, 3000};
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        for (size_t i = 0; i < TM_COUNT(overlaps); i++) {
            tamis_filter_params p = tamis_filter_params_init();
            tamis_filter *a, *b;
            double either, both, want = (double)(6000 - overlaps[i]);
            p.kind = kinds[k];
            p.expected_keys = 6554;
            p.bits_per_key = 10;
            p.probes = 7;
            ck_assert_int_eq(tamis_filter_create(&p, &a, NULL), TAMIS_OK);
            ck_assert_int_eq(tamis_filter_create(&p, &b, NULL), TAMIS_OK);
            add_range(a, 0, 3000);
            add_range(b, 3000 - overlaps[i], 6000 - overlaps[i]);
            ck_assert_int_eq(tamis_filter_overlap(a, b, &either, &both, NULL), TAMIS_OK);
            ck_assert_double_lt(fabs(both - (double)overlaps[i]), 5 * 13);
            ck_assert_double_lt(fabs(either - want), 5 * 20);
            ck_assert_int_eq(tamis_filter_overlap(a, b, NULL, NULL, NULL), TAMIS_OK);

            tamis_filter *whole;
            ck_assert_int_eq(tamis_filter_create(&p, &whole, NULL), TAMIS_OK);
            add_range(whole, 0, 6000 - overlaps[i]);
            ck_assert_int_eq(tamis_filter_union(a, b, NULL), TAMIS_OK);
            tamis_filter_info united = describe(a), direct = describe(whole);
            ck_assert_uint_eq(united.set_bits, direct.set_bits);
            ck_assert_uint_eq(count_range(a, 0, 20000), count_range(whole, 0, 20000));
            ck_assert_double_lt(fabs((double)united.added_keys - want), 5 * 20);
            tamis_filter_free(a);
            tamis_filter_free(b);
            tamis_filter_free(whole);
        }
    }
}
END_TEST

START_TEST(unequal_shapes_are_not_united)
{
    tamis_filter_params p = tamis_filter_params_init();
    p.expected_keys = 1000;
    p.probes = 6;
    tamis_filter_params others[4] = {p, p, p, p};
    static const char *const words[4] = {"kind", "bits", "probes", "seed"};
    others[0].kind = TAMIS_FILTER_BLOOM;
    others[1].expected_keys = 1100;
    others[2].probes = 5;
    others[3].seed = 1;
    tamis_filter *a, *b;
    tamis_error err;
    ck_assert_int_eq(tamis_filter_create(&p, &a, NULL), TAMIS_OK);
    add_range(a, 0, 100);
    uint64_t before = describe(a).set_bits;
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(tamis_filter_create(&others[i], &b, NULL), TAMIS_OK);
        add_range(b, 100, 200);
        ck_assert_int_eq(tamis_filter_union(a, b, &err), TAMIS_INVALID);
        ck_assert_msg(strstr(err.message, words[i]) != NULL, "%s", err.message);
        ck_assert_int_eq(tamis_filter_overlap(a, b, NULL, NULL, &err), TAMIS_INVALID);
        ck_assert_uint_eq(describe(a).set_bits, before);
        tamis_filter_free(b);
    }
    tamis_filter_free(a);
}
END_TEST

// ---- Store and load ----------------------------------------------------------------------------

static uint8_t *stored(const tamis_filter *f, size_t *len)
{
    uint64_t size = tamis_filter_image_size(f);
    uint8_t *image = malloc(size);
    ck_assert_ptr_nonnull(image);
    ck_assert_int_eq(tamis_filter_store(f, image, size, len, NULL), TAMIS_OK);
    ck_assert_uint_eq(*len, size);
    return image;
}

START_TEST(a_loaded_filter_is_the_same)
{
    static const uint64_t sizes[] = {1, 10, 51, 1000};
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        for (size_t s = 0; s < TM_COUNT(sizes); s++) {
            size_t len, again_len;
            tamis_filter *f = create(kinds[k], sizes[s], 9.585, 123), *g;
            add_range(f, 0, sizes[s]);
            uint8_t *image = stored(f, &len);
            uint8_t *shifted = malloc(len + 1); // need not be aligned
            ck_assert_ptr_nonnull(shifted);
            memcpy(shifted + 1, image, len);
            ck_assert_int_eq(tamis_filter_load(shifted + 1, len, &g, NULL), TAMIS_OK);
            free(shifted);
            tamis_filter_info a = describe(f), b = describe(g);
            ck_assert_mem_eq(&a, &b, sizeof(a));
            uint8_t *again = stored(g, &again_len);
            ck_assert_uint_eq(len, again_len);
            ck_assert_mem_eq(image, again, len);
            ck_assert_uint_eq(count_range(g, 0, sizes[s]), sizes[s]);
            add_range(g, sizes[s], sizes[s] + 5); // and goes on
            ck_assert_uint_eq(count_range(g, 0, sizes[s] + 5), sizes[s] + 5);
            free(image);
            free(again);
            tamis_filter_free(f);
            tamis_filter_free(g);
        }
    }
}
END_TEST

// Frozen: 20 keys of 8 bytes little-endian at 10 bits, seed 42.
static const char *const golden[2] = {
    // clang-format off
    "74616d6973464c54010000004000000080000000000000000000000000000000"
    "00000000000000000000000000000000000000000000000025a2ed45a4dbb5f8"
    "01010107102700002a0000000000000014000000000000001400000000000000"
    "c800000000000000620000000000000000000000000000000000000000000000"
    "e9b94b40479afd691778caad70925e326c066956130e1e9b4e00000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000",
    "74616d6973464c54010000004000000080000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000001bcad7b9cab3c140"
    "0201010d102700002a0000000000000014000000000000001400000000000000"
    "0002000000000000d50000000000000000000000000000000000000000000000"
    "a60e29e5642c2f9926403b1311991981d0bb0f348660b7245051b82084210331"
    "048aaad523674870b04e90b90a21b0e8f367a8df09a878c5686ef0a15a888075",
    // clang-format on
};

START_TEST(golden_images)
{
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        char hex[1024] = "";
        size_t len;
        tamis_filter *f = create(kinds[k], 20, 10, 42);
        for (uint64_t i = 0; i < 20; i++) {
            uint8_t key[8];
            tm_put64(key, i);
            tamis_filter_add(f, key, sizeof(key));
        }
        uint8_t *image = stored(f, &len);
        ck_assert_uint_lt(2 * len, sizeof(hex));
        for (size_t i = 0; i < len; i++) sprintf(hex + 2 * i, "%02x", image[i]);
        ck_assert_str_eq(hex, golden[k]);
        free(image);
        tamis_filter_free(f);
    }
}
END_TEST

START_TEST(a_small_buffer_is_refused)
{
    tamis_filter *f = create(0, 100, 10, 0);
    size_t len = 0, size = tamis_filter_image_size(f);
    uint8_t byte = 0x5a;
    tamis_error err;
    ck_assert_int_eq(tamis_filter_store(f, &byte, 1, &len, &err), TAMIS_TOOLARGE);
    ck_assert_uint_eq(len, size);
    ck_assert_uint_eq(byte, 0x5a);
    ck_assert_int_eq(tamis_filter_store(f, NULL, 0, &len, &err), TAMIS_TOOLARGE);
    ck_assert_int_eq(tamis_filter_store(f, &byte, size - 1, NULL, &err), TAMIS_TOOLARGE);
    tamis_filter_free(f);
}
END_TEST

static int load(const uint8_t *image, size_t len)
{
    uint8_t *exact = malloc(len + (len == 0)); // so that a sanitizer sees reads beyond it
    ck_assert_ptr_nonnull(exact);
    memcpy(exact, image, len);
    tamis_filter *f;
    tamis_error err = {0};
    int st = tamis_filter_load(exact, len, &f, &err);
    ck_assert_int_eq(err.code, st);
    ck_assert((st == TAMIS_OK) == (f != NULL));
    tamis_filter_free(f);
    free(exact);
    return st;
}

START_TEST(every_damage_is_noticed)
{
    for (size_t k = 0; k < TM_COUNT(kinds); k++) {
        size_t len;
        tamis_filter *f = create(kinds[k], 100, 10, 0);
        add_range(f, 0, 100);
        uint8_t *image = stored(f, &len);
        ck_assert_int_eq(load(image, len), TAMIS_OK);
        for (size_t at = 0; at < len; at++) {
            for (int bit = 0; bit < 8; bit++) {
                image[at] ^= (uint8_t)(1 << bit);
                int st = load(image, len);
                // Only the version is looked at before the checksum.
                ck_assert_int_eq(st, at == 8 || at == 9 ? TAMIS_UNSUPPORTED : TAMIS_CORRUPT);
                image[at] ^= (uint8_t)(1 << bit);
            }
        }
        for (size_t cut = 0; cut < len; cut++) ck_assert_int_eq(load(image, cut), TAMIS_CORRUPT);
        ck_assert_int_eq(tamis_filter_load(NULL, 0, &(tamis_filter *){NULL}, NULL), TAMIS_CORRUPT);
        uint8_t *longer = calloc(1, len + 64);
        ck_assert_ptr_nonnull(longer);
        memcpy(longer, image, len);
        ck_assert_int_eq(load(longer, len + 1), TAMIS_CORRUPT);
        ck_assert_int_eq(load(longer, len + 64), TAMIS_CORRUPT);
        free(longer);
        free(image);
        tamis_filter_free(f);
    }
}
END_TEST

// Sets one byte and makes the checksum right again: an image that was made wrong.
static int load_forged(uint8_t *image, size_t len, size_t at, uint8_t value)
{
    uint8_t byte = image[at];
    image[at] = value;
    tm_put64(image + 56, tm_checksum2(image, 56, image + 64, len - 64));
    int st = load(image, len);
    image[at] = byte;
    return st;
}

START_TEST(what_is_not_understood_is_refused)
{
    size_t len;
    tamis_filter *f = create(0, 100, 10, 0);
    add_range(f, 0, 100);
    uint8_t *image = stored(f, &len);
    ck_assert_int_eq(load_forged(image, len, 8, 1), TAMIS_OK);
    ck_assert_int_eq(load_forged(image, len, 8, 2), TAMIS_UNSUPPORTED); // major version
    ck_assert_int_eq(load_forged(image, len, 10, 9), TAMIS_OK);         // a minor one adds nothing
    ck_assert_int_eq(load_forged(image, len, 12, 128), TAMIS_CORRUPT);  // header length
    ck_assert_int_eq(load_forged(image, len, 16, 0), TAMIS_CORRUPT);    // body length
    for (size_t at = 24; at < 56; at++) {
        ck_assert_int_eq(load_forged(image, len, at, 1), TAMIS_CORRUPT);
    }
    ck_assert_int_eq(load_forged(image, len, 64, 3), TAMIS_UNSUPPORTED); // kind
    ck_assert_int_eq(load_forged(image, len, 65, 2), TAMIS_UNSUPPORTED); // format
    ck_assert_int_eq(load_forged(image, len, 66, 2), TAMIS_UNSUPPORTED); // hash
    ck_assert_int_eq(load_forged(image, len, 67, 0), TAMIS_CORRUPT);     // probes
    uint8_t set = image[64 + 40];
    ck_assert_int_eq(load_forged(image, len, 64 + 40, (uint8_t)(set - 1)), TAMIS_CORRUPT);
    ck_assert_int_eq(load_forged(image, len, len - 1, (uint8_t)~image[len - 1]), TAMIS_CORRUPT);
    free(image);
    tamis_filter_free(f);
}
END_TEST

// ---- Memory ------------------------------------------------------------------------------------

static bool allow_until(void *ctx, size_t n)
{
    (void)n;
    size_t *left = ctx;
    if (*left == 0) return false;
    (*left)--;
    return true;
}

START_TEST(memory_that_ends)
{
    size_t len;
    tamis_filter *f = create(0, 100, 10, 0), *g;
    add_range(f, 0, 100);
    uint8_t *image = stored(f, &len);
    tamis_filter_params p = tamis_filter_params_init();
    tamis_error err;
    p.expected_keys = 100;
    for (size_t allowed = 0; allowed < 2; allowed++) { // a filter is two allocations
        size_t left = allowed;
        tm_mem_set_hook(allow_until, &left);
        ck_assert_int_eq(tamis_filter_create(&p, &g, &err), TAMIS_NOMEM);
        ck_assert_ptr_null(g);
        ck_assert_int_eq(err.code, TAMIS_NOMEM);
        left = allowed;
        ck_assert_int_eq(tamis_filter_load(image, len, &g, &err), TAMIS_NOMEM);
        ck_assert_ptr_null(g);
        tm_mem_set_hook(NULL, NULL);
    }
    size_t left = 2;
    tm_mem_set_hook(allow_until, &left);
    ck_assert_int_eq(tamis_filter_create(&p, &g, &err), TAMIS_OK);
    // Nothing else allocates.
    add_range(g, 0, 100);
    ck_assert_int_eq(tamis_filter_union(g, f, &err), TAMIS_OK);
    ck_assert_int_eq(tamis_filter_store(g, image, len, NULL, &err), TAMIS_OK);
    describe(g);
    tm_mem_set_hook(NULL, NULL);
    tamis_filter_free(g);
    tamis_filter_free(f);
    free(image);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("filter_public");
    TCase *tc = tcase_create("library");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, sizes_are_those_of_the_textbook);
    tcase_add_test(tc, plan_is_what_create_builds);
    tcase_add_test(tc, wrong_parameters_are_named);
    tcase_add_test(tc, keys_are_found_and_others_rarely);
    tcase_add_test(tc, keys_are_any_bytes);
    tcase_add_test(tc, duplicates_change_nothing);
    tcase_add_test(tc, an_overfull_filter_shows);
    tcase_add_test(tc, hashes_and_batches_are_the_same_filter);
    tcase_add_test(tc, another_seed_errs_on_other_keys);
    tcase_add_test(tc, union_and_overlap);
    tcase_add_test(tc, unequal_shapes_are_not_united);
    tcase_add_test(tc, a_loaded_filter_is_the_same);
    tcase_add_test(tc, golden_images);
    tcase_add_test(tc, a_small_buffer_is_refused);
    tcase_add_test(tc, every_damage_is_noticed);
    tcase_add_test(tc, what_is_not_understood_is_refused);
    tcase_add_test(tc, memory_that_ends);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
