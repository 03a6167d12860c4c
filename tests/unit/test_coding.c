// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <stdlib.h>

#include "base/coding.h"
#include "base/mem.h"
#include "base/random.h"

START_TEST(fixed_widths_are_little_endian)
{
    uint8_t p[8];
    tm_put16(p, 0x8182);
    ck_assert_int_eq(memcmp(p, "\x82\x81", 2), 0);
    ck_assert_uint_eq(tm_get16(p), 0x8182);
    tm_put32(p, 0x81828384);
    ck_assert_int_eq(memcmp(p, "\x84\x83\x82\x81", 4), 0);
    ck_assert_uint_eq(tm_get32(p), 0x81828384);
    tm_put64(p, 0x8182838485868788);
    ck_assert_int_eq(memcmp(p, "\x88\x87\x86\x85\x84\x83\x82\x81", 8), 0);
    ck_assert_uint_eq(tm_get64(p), 0x8182838485868788);
    tm_put32be(p, 0x81828384);
    ck_assert_int_eq(memcmp(p, "\x81\x82\x83\x84", 4), 0);
    ck_assert_uint_eq(tm_get32be(p), 0x81828384);
}
END_TEST

static uint64_t read_varint(const void *data, size_t n, bool *bad, size_t *left)
{
    tm_cursor c = tm_cursor_of(tm_slice_of(data, n));
    uint64_t v = tm_read_varint(&c);
    *bad = c.bad;
    *left = tm_cursor_left(&c);
    return v;
}

// Around every power of two: the length, the way back, and every cut.
START_TEST(varints_go_there_and_back)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        for (int d = -1; d <= 1; d++) {
            uint64_t v = ((uint64_t)1 << bit) + (uint64_t)(int64_t)d;
            uint8_t p[TM_MAX_VARINT64 + 1] = {0};
            size_t n = (size_t)(tm_put_varint(p, v) - p), left;
            unsigned bits = v != 0 ? 64 - (unsigned)__builtin_clzll(v) : 1;
            ck_assert_uint_eq(n, (bits + 6) / 7);
            ck_assert_uint_eq(n, tm_varint_len(v));
            bool bad;
            ck_assert_uint_eq(read_varint(p, n + 1, &bad, &left), v);
            ck_assert(!bad);
            ck_assert_uint_eq(left, 1);
            for (size_t cut = 0; cut < n; cut++) {
                ck_assert_uint_eq(read_varint(p, cut, &bad, &left), 0);
                ck_assert(bad);
                ck_assert_uint_eq(left, 0);
            }
        }
    }
    ck_assert_uint_eq(tm_varint_len(UINT64_MAX), TM_MAX_VARINT64);
}
END_TEST

START_TEST(varints_have_one_spelling)
{
    static const struct {
        const char *bytes;
        size_t n;
    } refused[] = {
        {"\x80\x00", 2},                                      // 0
        {"\xff\x00", 2},                                      // 127
        {"\x81\x80\x00", 3},                                  // 1
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10},     // 0 in ten bytes
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10},     // 2 to the 64th
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10},     // and more
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00", 11}, // eleven bytes
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11}, // likewise
    };
    for (size_t i = 0; i < TM_COUNT(refused); i++) {
        bool bad;
        size_t left;
        ck_assert_uint_eq(read_varint(refused[i].bytes, refused[i].n, &bad, &left), 0);
        ck_assert_msg(bad, "spelling %zu was accepted", i);
    }
    bool bad;
    size_t left;
    ck_assert_uint_eq(read_varint("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, &bad, &left),
                      UINT64_MAX);
    ck_assert(!bad);
}
END_TEST

// Whatever is accepted spells back to the same bytes.
START_TEST(accepted_bytes_are_canonical)
{
    tm_random r = tm_random_seed(1);
    size_t accepted = 0;
    for (int i = 0; i < 200000; i++) {
        uint8_t p[12], q[12];
        for (size_t k = 0; k < sizeof(p); k++) {
            uint64_t x = tm_random_next(&r);
            static const uint8_t odd[] = {0x00, 0x01, 0x7f, 0x80, 0x81, 0xff, 0xff, 0x80};
            p[k] = x & 8 ? odd[x >> 32 & 7] : (uint8_t)(x >> 40);
        }
        size_t n = (size_t)tm_random_below(&r, sizeof(p) + 1), left;
        bool bad;
        uint64_t v = read_varint(p, n, &bad, &left);
        if (bad) continue;
        accepted++;
        size_t used = n - left;
        ck_assert_uint_eq((size_t)(tm_put_varint(q, v) - q), used);
        ck_assert_int_eq(memcmp(p, q, used), 0);
    }
    ck_assert_uint_gt(accepted, 50000);
}
END_TEST

static void fill(tm_buf *b)
{
    ck_assert_int_eq(tm_buf_put16(b, 0xfffe), TAMIS_OK);
    ck_assert_int_eq(tm_buf_put32(b, 0xfffefdfc), TAMIS_OK);
    ck_assert_int_eq(tm_buf_put64(b, 0xfffefdfcfbfaf9f8), TAMIS_OK);
    ck_assert_int_eq(tm_buf_put_varint(b, 300), TAMIS_OK);
    ck_assert_int_eq(tm_buf_put_slice(b, tm_slice_str("hello")), TAMIS_OK);
    ck_assert_int_eq(tm_buf_put_slice(b, tm_slice_of(NULL, 0)), TAMIS_OK);
    ck_assert_int_eq(tm_buf_append(b, "xyz!", 4), TAMIS_OK);
}

// Reads what fill wrote; how many of the eight readings were whole.
static int read_all(tm_cursor *c)
{
    int good = 0;
    good += tm_read16(c) == 0xfffe;
    good += tm_read32(c) == 0xfffefdfc;
    good += tm_read64(c) == 0xfffefdfcfbfaf9f8;
    good += tm_read_varint(c) == 300;
    good += tm_slice_equal(tm_read_slice(c), tm_slice_str("hello"));
    tm_slice empty = tm_read_slice(c);
    good += empty.len == 0 && !c->bad;
    good += tm_slice_equal(tm_read_bytes(c, 3), tm_slice_str("xyz"));
    good += tm_read8(c) == '!';
    return good;
}

START_TEST(buffers_are_read_back)
{
    tm_buf b = {0};
    fill(&b);
    tm_cursor c = tm_cursor_of(tm_buf_slice(&b));
    ck_assert_uint_eq(tm_cursor_left(&c), 2 + 4 + 8 + 2 + 6 + 1 + 4);
    ck_assert_int_eq(read_all(&c), 8);
    ck_assert(!c.bad);
    ck_assert_uint_eq(tm_cursor_left(&c), 0);
    tm_buf_deinit(&b);
}
END_TEST

// In memory of exactly the cut length, so that a sanitizer sees a step too far.
START_TEST(every_cut_is_noticed)
{
    tm_buf b = {0};
    fill(&b);
    int last = -1;
    for (size_t n = 0; n < b.len; n++) {
        uint8_t *copy = tm_alloc(n);
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, b.data, n);
        tm_cursor c = tm_cursor_of(tm_slice_of(copy, n));
        int good = read_all(&c);
        ck_assert(c.bad);
        ck_assert_int_lt(good, 8);
        ck_assert_int_ge(good, last);
        last = good;
        tm_free(copy);
    }
    ck_assert_int_eq(last, 7);
    tm_buf_deinit(&b);
}
END_TEST

START_TEST(a_bad_cursor_stays_bad)
{
    tm_cursor c = tm_cursor_of(tm_slice_str("abcdefgh"));
    ck_assert_uint_eq(tm_read_bytes(&c, 9).len, 0);
    ck_assert(c.bad);
    ck_assert_uint_eq(tm_cursor_left(&c), 0);
    ck_assert_uint_eq(tm_read8(&c), 0);
    ck_assert_uint_eq(tm_read16(&c), 0);
    ck_assert_uint_eq(tm_read32(&c), 0);
    ck_assert_uint_eq(tm_read64(&c), 0);
    ck_assert_uint_eq(tm_read_varint(&c), 0);
    ck_assert_uint_eq(tm_read_bytes(&c, 1).len, 0);
    ck_assert_uint_eq(tm_read_bytes(&c, 0).len, 0);
    ck_assert_uint_eq(tm_read_slice(&c).len, 0);
    ck_assert(c.bad);
}
END_TEST

START_TEST(an_empty_cursor_reads_nothing)
{
    tm_cursor c = tm_cursor_of(tm_slice_of(NULL, 0));
    ck_assert_uint_eq(tm_cursor_left(&c), 0);
    ck_assert_uint_eq(tm_read_bytes(&c, 0).len, 0);
    ck_assert(!c.bad);
    ck_assert_uint_eq(tm_read8(&c), 0);
    ck_assert(c.bad);
}
END_TEST

START_TEST(lengths_beyond_the_end_are_refused)
{
    static const uint64_t lengths[] = {3,         100,       UINT32_MAX, (uint64_t)UINT32_MAX + 3,
                                       INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < TM_COUNT(lengths); i++) {
        uint8_t p[TM_MAX_VARINT64 + 2] = {0};
        uint8_t *end = tm_put_varint(p, lengths[i]) + 2; // two bytes follow
        tm_cursor c = tm_cursor_of(tm_slice_of(p, (size_t)(end - p)));
        ck_assert_uint_eq(tm_read_slice(&c).len, 0);
        ck_assert(c.bad);
        c = tm_cursor_of(tm_slice_of(p, (size_t)(end - p)));
        ck_assert_uint_eq(tm_read_bytes(&c, SIZE_MAX).len, 0);
        ck_assert(c.bad);
    }
}
END_TEST

static bool deny(void *ctx, size_t n)
{
    (void)ctx;
    (void)n;
    return false;
}

START_TEST(refused_memory_changes_nothing)
{
    tm_buf b = {0};
    ck_assert_int_eq(tm_buf_reserve(&b, 64), TAMIS_OK);
    b.len = b.cap; // full
    memset(b.data, 'a', b.len);
    size_t len = b.len;
    tm_mem_set_hook(deny, NULL);
    ck_assert_int_eq(tm_buf_put16(&b, 1), TAMIS_NOMEM);
    ck_assert_int_eq(tm_buf_put32(&b, 1), TAMIS_NOMEM);
    ck_assert_int_eq(tm_buf_put64(&b, 1), TAMIS_NOMEM);
    ck_assert_int_eq(tm_buf_put_varint(&b, 1), TAMIS_NOMEM);
    ck_assert_int_eq(tm_buf_put_slice(&b, tm_slice_str("x")), TAMIS_NOMEM);
    b.len -= TM_MAX_VARINT64; // room for the length, not for the bytes
    ck_assert_int_eq(tm_buf_put_slice(&b, tm_slice_of(b.data, 40)), TAMIS_NOMEM);
    tm_mem_set_hook(NULL, NULL);
    ck_assert_uint_eq(b.len, len - TM_MAX_VARINT64);
    for (size_t i = 0; i < b.len; i++) ck_assert_uint_eq(b.data[i], 'a');
    ck_assert_int_eq(tm_buf_put_slice(&b, (tm_slice){b.data, SIZE_MAX}), TAMIS_NOMEM);
    tm_buf_deinit(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coding");
    TCase *t = tcase_create("coding");
    tcase_add_test(t, fixed_widths_are_little_endian);
    tcase_add_test(t, varints_go_there_and_back);
    tcase_add_test(t, varints_have_one_spelling);
    tcase_add_test(t, accepted_bytes_are_canonical);
    tcase_add_test(t, buffers_are_read_back);
    tcase_add_test(t, every_cut_is_noticed);
    tcase_add_test(t, a_bad_cursor_stays_bad);
    tcase_add_test(t, an_empty_cursor_reads_nothing);
    tcase_add_test(t, lengths_beyond_the_end_are_refused);
    tcase_add_test(t, refused_memory_changes_nothing);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
