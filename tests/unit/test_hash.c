// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <stdlib.h>

#include "base/coding.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/random.h"

enum { DATA = 3000 };

static uint8_t data[DATA];

static void make_data(void)
{
    tm_random r = tm_random_seed(7);
    for (size_t i = 0; i < DATA; i++) data[i] = (uint8_t)(tm_random_next(&r) >> 56);
}

// Published values of XXH3: a stored checksum must never change its meaning.
START_TEST(known_values)
{
    ck_assert_uint_eq(tm_checksum(NULL, 0), 0x2d06800538d394c2u);
    ck_assert_uint_eq(tm_checksum("", 0), 0x2d06800538d394c2u);
    tm_digest *d = tm_digest_create();
    ck_assert_ptr_nonnull(d);
    uint8_t out[16];
    tm_digest_final(d, out);
    ck_assert_int_eq(
        memcmp(out, "\x99\xaa\x06\xd3\x01\x47\x98\xd8\x60\x01\xc3\x24\x46\x8d\x49\x7f", 16), 0);
    tm_digest_destroy(d);
    tm_digest_destroy(NULL);
}
END_TEST

START_TEST(two_pieces_are_one)
{
    make_data();
    for (size_t n = 0; n < 700; n += n < 300 ? 1 : 37) {
        uint64_t whole = tm_checksum(data, n);
        for (size_t cut = 0; cut <= n; cut += n < 40 ? 1 : 13) {
            ck_assert_uint_eq(tm_checksum2(data, cut, data + cut, n - cut), whole);
        }
        ck_assert_uint_eq(tm_checksum2(data, n, NULL, 0), whole);
        ck_assert_uint_eq(tm_checksum2(NULL, 0, data, n), whole);
    }
    ck_assert_uint_eq(tm_checksum2(data, DATA - 1, data + DATA - 1, 1), tm_checksum(data, DATA));
}
END_TEST

START_TEST(a_digest_does_not_see_the_pieces)
{
    make_data();
    uint8_t whole[16], out[16];
    tm_digest *d = tm_digest_create();
    tm_digest_update(d, data, DATA);
    tm_digest_final(d, whole);
    tm_digest_destroy(d);
    for (size_t piece = 1; piece < DATA; piece += 97) {
        d = tm_digest_create();
        ck_assert_ptr_nonnull(d);
        for (size_t i = 0; i < DATA; i += piece) {
            tm_digest_update(d, data + i, TM_MIN(piece, DATA - i));
            tm_digest_update(d, NULL, 0);
        }
        tm_digest_final(d, out);
        ck_assert_int_eq(memcmp(whole, out, 16), 0);
        tm_digest_update(d, "x", 1); // final leaves the stream open
        tm_digest_final(d, out);
        ck_assert_int_ne(memcmp(whole, out, 16), 0);
        tm_digest_destroy(d);
    }
}
END_TEST

START_TEST(every_bit_and_the_seed_count)
{
    make_data();
    static const size_t sizes[] = {1, 3, 8, 16, 17, 128, 129, 240, 241, 1000};
    for (size_t i = 0; i < TM_COUNT(sizes); i++) {
        size_t n = sizes[i];
        uint64_t before = tm_hash64(data, n, 5);
        ck_assert_uint_ne(tm_hash64(data, n, 6), before);
        ck_assert_uint_ne(tm_hash64(data, n - 1, 5), before);
        ck_assert_uint_eq(tm_hash64(data, n, 0), tm_checksum(data, n));
        for (size_t bit = 0; bit < n * 8; bit++) {
            data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            ck_assert_uint_ne(tm_hash64(data, n, 5), before);
            data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
}
END_TEST

static int by_value(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    return (x > y) - (x < y);
}

// A compiler that turned the hash of an integer's bytes into a constant would be seen here.
START_TEST(integers_differ)
{
    enum { N = 20000 };
    uint64_t *h = tm_alloc(N * sizeof(*h));
    ck_assert_ptr_nonnull(h);
    for (uint64_t i = 0; i < N; i++) {
        uint8_t key[8];
        tm_put64(key, i);
        h[i] = tm_hash64(key, 8, 0);
    }
    qsort(h, N, sizeof(*h), by_value);
    for (size_t i = 1; i < N; i++) ck_assert_uint_ne(h[i - 1], h[i]);
    tm_free(h);
}
END_TEST

static bool deny(void *ctx, size_t n)
{
    (void)ctx;
    (void)n;
    return false;
}

START_TEST(a_digest_needs_memory)
{
    tm_mem_set_hook(deny, NULL);
    tm_digest *d = tm_digest_create();
    tm_mem_set_hook(NULL, NULL);
    ck_assert_ptr_null(d);
}
END_TEST

START_TEST(random_numbers_replay_and_spread)
{
    tm_random a = tm_random_seed(42), b = tm_random_seed(42), c = tm_random_seed(43);
    size_t same = 0, count[10] = {0};
    for (int i = 0; i < 10000; i++) {
        uint64_t x = tm_random_next(&a);
        ck_assert_uint_eq(x, tm_random_next(&b));
        same += x == tm_random_next(&c);
        uint64_t digit = tm_random_below(&a, 10);
        ck_assert_uint_lt(digit, 10);
        (void)tm_random_next(&b);
        count[digit]++;
    }
    ck_assert_uint_eq(same, 0);
    for (size_t i = 0; i < 10; i++) {
        ck_assert_uint_gt(count[i], 850);
        ck_assert_uint_lt(count[i], 1150);
    }
    ck_assert_uint_eq(tm_random_below(&a, 1), 0);
    ck_assert_uint_eq(tm_mulhi64(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
    ck_assert_uint_eq(tm_mulhi64((uint64_t)1 << 63, 10), 5);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hash");
    TCase *t = tcase_create("hash");
    tcase_add_test(t, known_values);
    tcase_add_test(t, two_pieces_are_one);
    tcase_add_test(t, a_digest_does_not_see_the_pieces);
    tcase_add_test(t, every_bit_and_the_seed_count);
    tcase_add_test(t, integers_differ);
    tcase_add_test(t, a_digest_needs_memory);
    tcase_add_test(t, random_numbers_replay_and_spread);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
