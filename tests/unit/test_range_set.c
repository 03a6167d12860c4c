// SPDX-License-Identifier: BSD-2-Clause
//
// Range deletes in fragments, against a list of them that is looked through.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "sstable/range_set.h"

enum { MOST = 40, KEYS = 64 };

typedef struct range {
    unsigned start, limit; // limit KEYS: to the end
    uint64_t seq;
} range;

static range ranges[MOST];
static tm_order order;

static tm_slice key_at(unsigned i, uint8_t *room)
{
    room[0] = (uint8_t)('a' + i / 8);
    room[1] = (uint8_t)('a' + i % 8);
    return tm_slice_of(room, i % 8 == 0 ? 1 : 2); // "b" stands before "bb"
}

static uint64_t cover_of(size_t n, unsigned key, uint64_t seq)
{
    uint64_t cover = 0;
    for (size_t i = 0; i < n; i++) {
        if (key >= ranges[i].start && key < ranges[i].limit && ranges[i].seq <= seq &&
            ranges[i].seq > cover) {
            cover = ranges[i].seq;
        }
    }
    return cover;
}

static void build(size_t n, tm_range_set *out)
{
    tm_range_builder b;
    tm_range_builder_init(&b);
    for (size_t i = 0; i < n; i++) {
        uint8_t x[2], y[2];
        tm_slice limit = ranges[i].limit < KEYS ? key_at(ranges[i].limit, y) : tm_slice_of(NULL, 0);
        ck_assert_int_eq(tm_range_builder_add(&b, key_at(ranges[i].start, x), limit, ranges[i].seq),
                         TAMIS_OK);
    }
    ck_assert_int_eq(tm_range_builder_finish(&b, &order, out), TAMIS_OK);
    tm_range_builder_deinit(&b);
}

static void check_same(const tm_range_set *s, size_t n)
{
    uint8_t room[2];
    for (unsigned k = 0; k < KEYS; k++) {
        for (uint64_t seq = 0; seq <= 2 * MOST + 2; seq += 3) {
            ck_assert_uint_eq(tm_range_set_cover(s, &order, key_at(k, room), seq),
                              cover_of(n, k, seq));
        }
    }
    for (uint32_t i = 0; i < s->n; i++) { // in order, apart, numbers descending
        const tm_range_fragment *f = &s->fragments[i];
        ck_assert(f->unbounded || tm_order_compare(&order, f->start, f->limit) < 0);
        ck_assert(!f->unbounded || i + 1 == s->n);
        if (i > 0)
            ck_assert_int_le(tm_order_compare(&order, s->fragments[i - 1].limit, f->start), 0);
        for (uint32_t k = 1; k < f->count; k++) {
            ck_assert_uint_gt(s->seqs[f->first + k - 1], s->seqs[f->first + k]);
        }
    }
}

static size_t make_ranges(tm_random *r)
{
    size_t n = (size_t)tm_random_below(r, MOST + 1);
    for (size_t i = 0; i < n; i++) {
        unsigned a = (unsigned)tm_random_below(r, KEYS);
        ranges[i].start = a;
        ranges[i].limit = a + 1 + (unsigned)tm_random_below(r, KEYS - a);
        if (tm_random_below(r, 8) == 0) ranges[i].limit = KEYS;
        ranges[i].seq = 1 + 2 * i + tm_random_below(r, 2);
    }
    for (size_t i = n; i > 1; i--) { // in any order
        size_t k = (size_t)tm_random_below(r, i);
        range t = ranges[i - 1];
        ranges[i - 1] = ranges[k];
        ranges[k] = t;
    }
    return n;
}

START_TEST(fragments_cover_what_the_ranges_do)
{
    for (uint64_t seed = 1; seed <= 80; seed++) {
        tm_random r = tm_random_seed(seed);
        tm_range_set s = {0}, back = {0}, joined = {0}, half = {0};
        tm_buf bytes = {0};
        order = tm_order_bytewise();
        size_t n = make_ranges(&r);
        build(n, &s);
        check_same(&s, n);
        if (n > 0) { // there and back
            ck_assert_int_eq(tm_range_set_encode(&s, &bytes), TAMIS_OK);
            ck_assert_int_eq(tm_range_set_decode(&back, tm_buf_slice(&bytes), &order, NULL),
                             TAMIS_OK);
            check_same(&back, n);
            for (size_t i = 0; seed <= 10 && i < bytes.len; i++) { // damage: refused, or harmless
                tm_range_set bad = {0};
                uint8_t room[2];
                bytes.data[i] ^= (uint8_t)(1u << (seed + i) % 8);
                if (tm_range_set_decode(&bad, tm_buf_slice(&bytes), &order, NULL) == TAMIS_OK) {
                    (void)tm_range_set_cover(&bad, &order, key_at(9, room), 50);
                    tm_range_set_deinit(&bad);
                }
                bytes.data[i] ^= (uint8_t)(1u << (seed + i) % 8);
                ck_assert_int_eq(
                    tm_range_set_decode(&bad, tm_slice_of(bytes.data, i), &order, NULL),
                    TAMIS_CORRUPT);
            }
        }
        // Two sets made one are the set of all.
        tm_range_builder b;
        tm_range_builder_init(&b);
        build(n / 2, &half);
        ck_assert_int_eq(tm_range_builder_add_set(&b, &half), TAMIS_OK);
        ck_assert_int_eq(tm_range_builder_add_set(&b, &s), TAMIS_OK);
        ck_assert_int_eq(tm_range_builder_finish(&b, &order, &joined), TAMIS_OK);
        check_same(&joined, n);
        tm_range_builder_deinit(&b);
        tm_range_set_deinit(&s);
        tm_range_set_deinit(&back);
        tm_range_set_deinit(&joined);
        tm_range_set_deinit(&half);
        tm_buf_deinit(&bytes);
    }
}
END_TEST

START_TEST(what_covers_nothing_is_left_out)
{
    tm_range_builder b;
    tm_range_set s = {0};
    order = tm_order_bytewise();
    tm_range_builder_init(&b);
    ck_assert_int_eq(tm_range_builder_add(&b, tm_slice_str("b"), tm_slice_str("b"), 5), TAMIS_OK);
    ck_assert_int_eq(tm_range_builder_add(&b, tm_slice_str("c"), tm_slice_str("b"), 6), TAMIS_OK);
    ck_assert_int_eq(tm_range_builder_finish(&b, &order, &s), TAMIS_OK);
    ck_assert_uint_eq(s.n, 0);
    ck_assert_uint_eq(tm_range_set_cover(&s, &order, tm_slice_str("b"), 100), 0);
    tm_range_set_deinit(&s);
    tm_range_builder_deinit(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("range_set");
    TCase *t = tcase_create("range_set");
    tcase_add_test(t, fragments_cover_what_the_ranges_do);
    tcase_add_test(t, what_covers_nothing_is_left_out);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
