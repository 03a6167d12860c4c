// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"

static bool deny(void *ctx, size_t n)
{
    (void)n;
    ++*(int *)ctx;
    return false;
}

static bool deny_above(void *ctx, size_t n)
{
    return n <= *(size_t *)ctx;
}

static void ck_content(const tm_buf *b, const char *expected)
{
    ck_assert(tm_slice_equal(tm_buf_slice(b), tm_slice_str(expected)));
}

START_TEST(zeroed_is_empty)
{
    tm_buf b = {0};
    ck_assert_uint_eq(tm_buf_slice(&b).len, 0);
    ck_assert_int_eq(tm_buf_append(&b, NULL, 0), TAMIS_OK);
    ck_assert_int_eq(tm_buf_set(&b, tm_slice_of(NULL, 0)), TAMIS_OK);
    ck_assert_ptr_null(b.data);
    tm_buf_deinit(&b);
    tm_buf_deinit(&b);
}
END_TEST

START_TEST(bytes_are_kept_over_growth)
{
    tm_buf b = {0};
    size_t moves = 0;
    for (size_t i = 0; i < 100000; i++) {
        uint8_t byte = (uint8_t)(i * 7 >> 3);
        size_t before = b.cap;
        ck_assert_int_eq(tm_buf_append(&b, &byte, 1), TAMIS_OK);
        moves += b.cap != before;
    }
    ck_assert_uint_eq(b.len, 100000);
    ck_assert_uint_le(moves, 12); // doubling
    for (size_t i = 0; i < b.len; i++) ck_assert_uint_eq(b.data[i], (uint8_t)(i * 7 >> 3));
    tm_buf_clear(&b);
    ck_assert_uint_eq(b.len, 0);
    ck_assert_uint_ge(b.cap, 100000);
    tm_buf_deinit(&b);
    ck_assert_ptr_null(b.data);
    ck_assert_uint_eq(b.len + b.cap, 0);
}
END_TEST

START_TEST(room_is_room)
{
    tm_buf b = {0};
    for (size_t n = 0; n < 300; n++) {
        ck_assert_int_eq(tm_buf_reserve(&b, n), TAMIS_OK);
        ck_assert_uint_ge(b.cap - b.len, n);
        if (n != 0) memset(b.data + b.len, 1, n);
        b.len += n;
    }
    const uint8_t *data = b.data;
    size_t left = b.cap - b.len;
    ck_assert_int_eq(tm_buf_reserve(&b, left), TAMIS_OK); // fits exactly: nothing moves
    ck_assert_ptr_eq(b.data, data);
    tm_buf_deinit(&b);
}
END_TEST

START_TEST(set_replaces)
{
    tm_buf b = {0};
    ck_assert_int_eq(tm_buf_append(&b, "0123456789", 10), TAMIS_OK);
    ck_assert_int_eq(tm_buf_set(&b, tm_slice_str("abc")), TAMIS_OK);
    ck_content(&b, "abc");
    ck_assert_int_eq(tm_buf_set(&b, tm_slice_of(b.data + 1, 2)), TAMIS_OK); // a part of itself
    ck_content(&b, "bc");
    char big[500];
    memset(big, 'x', sizeof(big));
    big[499] = 0;
    ck_assert_int_eq(tm_buf_set(&b, tm_slice_str(big)), TAMIS_OK);
    ck_content(&b, big);
    ck_assert_int_eq(tm_buf_set(&b, tm_slice_of(NULL, 0)), TAMIS_OK);
    ck_assert_uint_eq(b.len, 0);
    tm_buf_deinit(&b);
}
END_TEST

START_TEST(refusal_changes_nothing)
{
    tm_buf b = {0};
    ck_assert_int_eq(tm_buf_append(&b, "abc", 3), TAMIS_OK);
    tm_buf before = b;
    char big[1000];
    memset(big, 'x', sizeof(big));
    int asked = 0;
    tm_mem_set_hook(deny, &asked);
    ck_assert_int_eq(tm_buf_append(&b, big, sizeof(big)), TAMIS_NOMEM);
    ck_assert_int_eq(tm_buf_reserve(&b, sizeof(big)), TAMIS_NOMEM);
    ck_assert_int_eq(tm_buf_set(&b, tm_slice_of(big, sizeof(big))), TAMIS_NOMEM);
    ck_assert_int_gt(asked, 0);
    asked = 0;
    ck_assert_int_eq(tm_buf_reserve(&b, SIZE_MAX), TAMIS_NOMEM); // no such size: nobody is asked
    ck_assert_int_eq(tm_buf_reserve(&b, SIZE_MAX - b.len), TAMIS_NOMEM);
    ck_assert_int_eq(asked, 0);
    tm_mem_set_hook(NULL, NULL);
    ck_assert_ptr_eq(b.data, before.data);
    ck_assert_uint_eq(b.cap, before.cap);
    ck_content(&b, "abc");
    tm_buf_deinit(&b);
}
END_TEST

START_TEST(what_is_needed_will_do_where_twice_is_not_to_be_had)
{
    tm_buf b = {0};
    ck_assert_int_eq(tm_buf_reserve(&b, 1000), TAMIS_OK);
    b.len = 1000;
    memset(b.data, 'y', 1000);
    size_t limit = 1500;
    tm_mem_set_hook(deny_above, &limit);
    ck_assert_int_eq(tm_buf_reserve(&b, 10), TAMIS_OK);
    tm_mem_set_hook(NULL, NULL);
    ck_assert_uint_eq(b.cap, 1010);
    ck_assert_uint_eq(b.data[999], 'y');
    tm_buf_deinit(&b);
}
END_TEST

START_TEST(slices_compare_as_bytes)
{
    static const char *const ascending[] = {"",   "a",    "aa",   "ab",   "b",
                                            "ba", "\x7f", "\x80", "\xff", "\xff\xff"};
    for (size_t i = 0; i < TM_COUNT(ascending); i++) {
        for (size_t j = 0; j < TM_COUNT(ascending); j++) {
            tm_slice a = tm_slice_str(ascending[i]), b = tm_slice_str(ascending[j]);
            int c = tm_slice_compare(a, b);
            ck_assert_int_eq((c > 0) - (c < 0), (i > j) - (i < j));
            ck_assert_int_eq(tm_slice_equal(a, b), i == j);
        }
    }
    tm_slice none = tm_slice_of(NULL, 0);
    ck_assert(tm_slice_equal(none, tm_slice_str("")));
    ck_assert_int_eq(tm_slice_compare(none, none), 0);
    ck_assert(tm_slice_starts_with(tm_slice_str("abc"), none));
    ck_assert(tm_slice_starts_with(tm_slice_str("abc"), tm_slice_str("abc")));
    ck_assert(!tm_slice_starts_with(tm_slice_str("abc"), tm_slice_str("abd")));
    ck_assert(!tm_slice_starts_with(tm_slice_str("ab"), tm_slice_str("abc")));
    ck_assert_uint_eq(tm_slice_common(tm_slice_str("abcd"), tm_slice_str("abx")), 2);
    ck_assert_uint_eq(tm_slice_common(tm_slice_str("ab"), tm_slice_str("abx")), 2);
    ck_assert_uint_eq(tm_slice_common(none, tm_slice_str("abx")), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("buf");
    TCase *t = tcase_create("buf");
    tcase_add_test(t, zeroed_is_empty);
    tcase_add_test(t, bytes_are_kept_over_growth);
    tcase_add_test(t, room_is_room);
    tcase_add_test(t, set_replaces);
    tcase_add_test(t, refusal_changes_nothing);
    tcase_add_test(t, what_is_needed_will_do_where_twice_is_not_to_be_had);
    tcase_add_test(t, slices_compare_as_bytes);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
