// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"

START_TEST(every_status_has_its_name)
{
    static const struct {
        int status;
        const char *name;
    } all[] = {{0, "OK"},        {-1, "NOTFOUND"},     {-2, "INVALID"},   {-3, "MISUSE"},
               {-4, "NOMEM"},    {-5, "IO"},           {-6, "NOSPACE"},   {-7, "CORRUPT"},
               {-8, "LOCKED"},   {-9, "BUSY"},         {-12, "READONLY"}, {-13, "CLOSED"},
               {-14, "EXISTS"},  {-15, "UNSUPPORTED"}, {-16, "TOOLARGE"}, {-17, "ABORTED"},
               {-18, "POISONED"}};
    for (size_t i = 0; i < TM_COUNT(all); i++) {
        ck_assert_str_eq(tamis_status_name(all[i].status), all[i].name);
    }
    static const int none[] = {1, -10, -11, -19, -1000, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < TM_COUNT(none); i++) {
        ck_assert_str_eq(tamis_status_name(none[i]), "UNKNOWN");
    }
}
END_TEST

static tamis_error dirty(void)
{
    tamis_error err;
    memset(&err, 0xa5, sizeof(err));
    return err;
}

START_TEST(fail_fills_every_field)
{
    tamis_error err = dirty();
    ck_assert_int_eq(tm_fail(&err, TAMIS_INVALID, "key of %d bytes", 7), TAMIS_INVALID);
    ck_assert_int_eq(err.code, TAMIS_INVALID);
    ck_assert_int_eq(err.sys, 0);
    ck_assert_uint_eq(err.retryable, 0);
    ck_assert_uint_eq(err.reserved0, 0);
    ck_assert_uint_eq(err.file_number, 0);
    ck_assert_uint_eq(err.offset, 0);
    for (size_t i = 0; i < 3; i++) ck_assert_uint_eq(err.reserved[i], 0);
    ck_assert_str_eq(err.message, "key of 7 bytes");
}
END_TEST

START_TEST(waiting_helps_against_some_failures)
{
    static const int passing[] = {TAMIS_NOSPACE, TAMIS_BUSY, TAMIS_LOCKED};
    static const int lasting[] = {TAMIS_INVALID, TAMIS_CORRUPT, TAMIS_POISONED, TAMIS_CLOSED};
    tamis_error err;
    for (size_t i = 0; i < TM_COUNT(passing); i++) {
        tm_fail(&err, passing[i], "x");
        ck_assert_uint_eq(err.retryable, 1);
    }
    for (size_t i = 0; i < TM_COUNT(lasting); i++) {
        tm_fail(&err, lasting[i], "x");
        ck_assert_uint_eq(err.retryable, 0);
    }
}
END_TEST

START_TEST(no_detail_is_asked_for)
{
    ck_assert_int_eq(tm_fail(NULL, TAMIS_BUSY, "x"), TAMIS_BUSY);
    ck_assert_int_eq(tm_fail_sys(NULL, EIO, 1, 2, "x"), TAMIS_IO);
    ck_assert_int_eq(tm_fail_corrupt(NULL, 1, 2, "x"), TAMIS_CORRUPT);
    ck_assert_int_eq(tm_fail_nomem(NULL), TAMIS_NOMEM);
    tamis_error from;
    tm_fail(&from, TAMIS_ABORTED, "stop");
    ck_assert_int_eq(tm_fail_copy(NULL, &from), TAMIS_ABORTED);
}
END_TEST

START_TEST(system_errors_are_sorted)
{
    static const struct {
        int sys, status;
        uint32_t retryable;
    } all[] = {{ENOSPC, TAMIS_NOSPACE, 1}, {EDQUOT, TAMIS_NOSPACE, 1}, {ENOMEM, TAMIS_NOMEM, 0},
               {EIO, TAMIS_IO, 0},         {EMFILE, TAMIS_IO, 1},      {ENFILE, TAMIS_IO, 1},
               {EINTR, TAMIS_IO, 1},       {EAGAIN, TAMIS_IO, 1},      {EACCES, TAMIS_IO, 0},
               {EROFS, TAMIS_IO, 0}};
    for (size_t i = 0; i < TM_COUNT(all); i++) {
        tamis_error err = dirty();
        ck_assert_int_eq(tm_fail_sys(&err, all[i].sys, 12, 34, "write %s", "000012.log"),
                         all[i].status);
        ck_assert_int_eq(err.code, all[i].status);
        ck_assert_int_eq(err.sys, all[i].sys);
        ck_assert_uint_eq(err.retryable, all[i].retryable);
        ck_assert_uint_eq(err.file_number, 12);
        ck_assert_uint_eq(err.offset, 34);
        ck_assert_uint_eq(err.reserved0, 0);
    }
    tamis_error err;
    tm_fail_sys(&err, ENOSPC, 12, 0, "write %s", "000012.log");
    ck_assert_str_eq(err.message, "write 000012.log: No space left on device");
    tm_fail_sys(&err, 99999, 0, 0, "sync x");
    ck_assert_int_eq(strncmp(err.message, "sync x: ", 8), 0);
    ck_assert_uint_gt(strlen(err.message), 8);
}
END_TEST

START_TEST(system_text_survives_a_long_name)
{
    char name[600];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    tamis_error err = dirty();
    tm_fail_sys(&err, EIO, 0, 0, "read %s", name);
    size_t len = strlen(err.message);
    const char *end = ": Input/output error";
    ck_assert_uint_eq(len, sizeof(err.message) - 1);
    ck_assert_str_eq(err.message + len - strlen(end), end);
}
END_TEST

START_TEST(corruption_tells_the_place)
{
    tamis_error err = dirty();
    ck_assert_int_eq(tm_fail_corrupt(&err, 3, UINT64_MAX, "checksum of block %u", 5u),
                     TAMIS_CORRUPT);
    ck_assert_int_eq(err.code, TAMIS_CORRUPT);
    ck_assert_uint_eq(err.file_number, 3);
    ck_assert_uint_eq(err.offset, UINT64_MAX);
    ck_assert_uint_eq(err.retryable, 0);
    ck_assert_str_eq(err.message, "checksum of block 5");
}
END_TEST

// Characters of 2, 3 and 4 bytes, shifted so that each of their bytes meets the end once.
START_TEST(long_text_is_cut_at_a_character)
{
    static const char *const characters[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t c = 0; c < TM_COUNT(characters); c++) {
        size_t width = strlen(characters[c]);
        for (size_t shift = 0; shift < 4; shift++) {
            char text[400];
            size_t n = 0;
            while (n < shift) text[n++] = '.';
            for (; n + width < sizeof(text); n += width) memcpy(text + n, characters[c], width);
            text[n] = 0;
            tamis_error err = dirty();
            tm_fail(&err, TAMIS_IO, "%s", text);
            size_t len = strlen(err.message);
            ck_assert_uint_lt(len, sizeof(err.message));
            ck_assert_uint_gt(len, sizeof(err.message) - 1 - width);
            ck_assert_uint_eq((len - shift) % width, 0);
            ck_assert_int_eq(memcmp(err.message, text, len), 0);
        }
    }
}
END_TEST

START_TEST(length_that_just_fits_is_kept)
{
    char text[270];
    memset(text, 'a', sizeof(text));
    tamis_error err;
    text[263] = 0;
    tm_fail(&err, TAMIS_IO, "%s", text);
    ck_assert_str_eq(err.message, text);
    text[263] = 'a';
    text[264] = 0;
    tm_fail(&err, TAMIS_IO, "%s", text);
    ck_assert_uint_eq(strlen(err.message), 263);
}
END_TEST

START_TEST(what_cannot_be_shown_is_replaced)
{
    static const struct {
        const char *in, *out;
    } all[] = {
        {"a\nb\x1b[0m\x7f", "a?b?[0m?"},
        {"\x80|\xff|\xc0\xaf|", "?|?|??|"}, // lone, never valid, overlong '/'
        {"\xe0\x80\xaf|", "???|"},          // overlong
        {"\xed\xa0\x80|", "???|"},          // a surrogate
        {"\xf4\x90\x80\x80|", "????|"},     // above U+10FFFF
        {"\xf5\x80\x80\x80|", "????|"},     // likewise
        {"\xc3|", "?|"},                    // its second byte missing
        {"\xe2\x82|", "??|"},               // its third byte missing
        {"\xc3\xa9 \xed\x9f\xbf \xf4\x8f\xbf\xbf", "\xc3\xa9 \xed\x9f\xbf \xf4\x8f\xbf\xbf"},
        {"end\xe2\x82", "end"}, // cut by whoever made it
    };
    for (size_t i = 0; i < TM_COUNT(all); i++) {
        tamis_error err;
        tm_fail(&err, TAMIS_IO, "%s", all[i].in);
        ck_assert_str_eq(err.message, all[i].out);
    }
}
END_TEST

START_TEST(message_may_quote_itself)
{
    tamis_error err;
    tm_fail(&err, TAMIS_IO, "inner");
    tm_fail(&err, TAMIS_IO, "outer (%s)", err.message);
    ck_assert_str_eq(err.message, "outer (inner)");
    tm_fail_sys(&err, EIO, 0, 0, "%s", err.message);
    ck_assert_str_eq(err.message, "outer (inner): Input/output error");
}
END_TEST

START_TEST(copy_is_whole)
{
    tamis_error from, to = dirty();
    tm_fail_corrupt(&from, 8, 9, "bad");
    ck_assert_int_eq(tm_fail_copy(&to, &from), TAMIS_CORRUPT);
    ck_assert_int_eq(memcmp(&from, &to, sizeof(to)), 0);
    ck_assert_int_eq(tm_fail_copy(&to, &to), TAMIS_CORRUPT);
    ck_assert_str_eq(to.message, "bad");
}
END_TEST

static int gives(int status)
{
    return status;
}

static int tries(int status, int *reached)
{
    TM_TRY(gives(status));
    ++*reached;
    return TAMIS_OK;
}

static int goes(int status, int *undone)
{
    int st;
    TM_GOTO(gives(status));
    st = TAMIS_BUSY;
out:
    ++*undone;
    return st;
}

START_TEST(macros_pass_failures_on)
{
    int reached = 0, undone = 0;
    ck_assert_int_eq(tries(TAMIS_IO, &reached), TAMIS_IO);
    ck_assert_int_eq(reached, 0);
    ck_assert_int_eq(tries(TAMIS_OK, &reached), TAMIS_OK);
    ck_assert_int_eq(reached, 1);
    ck_assert_int_eq(goes(TAMIS_NOMEM, &undone), TAMIS_NOMEM);
    ck_assert_int_eq(goes(TAMIS_OK, &undone), TAMIS_BUSY);
    ck_assert_int_eq(undone, 2);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("status");
    TCase *t = tcase_create("status");
    tcase_add_test(t, every_status_has_its_name);
    tcase_add_test(t, fail_fills_every_field);
    tcase_add_test(t, waiting_helps_against_some_failures);
    tcase_add_test(t, no_detail_is_asked_for);
    tcase_add_test(t, system_errors_are_sorted);
    tcase_add_test(t, system_text_survives_a_long_name);
    tcase_add_test(t, corruption_tells_the_place);
    tcase_add_test(t, long_text_is_cut_at_a_character);
    tcase_add_test(t, length_that_just_fits_is_kept);
    tcase_add_test(t, what_cannot_be_shown_is_replaced);
    tcase_add_test(t, message_may_quote_itself);
    tcase_add_test(t, copy_is_whole);
    tcase_add_test(t, macros_pass_failures_on);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
