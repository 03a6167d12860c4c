// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/ikey.h"
#include "base/mem.h"

START_TEST(trailers_hold_both_parts)
{
    uint64_t t = tm_trailer(TM_MAX_SEQ, TM_KIND_DELETE_EXPIRY);
    ck_assert_uint_eq(tm_trailer_seq(t), TM_MAX_SEQ);
    ck_assert_int_eq((int)tm_trailer_kind(t), TM_KIND_DELETE_EXPIRY);
    ck_assert_uint_eq(tm_trailer_seek(TM_MAX_SEQ), UINT64_MAX);
    ck_assert_uint_ge(tm_trailer_seek(5), tm_trailer(5, TM_KIND_MAX));
    ck_assert_uint_lt(tm_trailer_seek(5), tm_trailer(6, TM_KIND_DELETE));
}
END_TEST

START_TEST(the_newest_comes_first)
{
    tm_order o = tm_order_bytewise();
    tm_slice a = tm_slice_str("a"), b = tm_slice_str("b");
    ck_assert_int_lt(tm_order_compare_internal(&o, a, 1, b, 9), 0);
    ck_assert_int_gt(tm_order_compare_internal(&o, b, 9, a, 1), 0);
    ck_assert_int_lt(tm_order_compare_internal(&o, a, 9, a, 1), 0);
    ck_assert_int_gt(tm_order_compare_internal(&o, a, 1, a, UINT64_MAX), 0);
    ck_assert_int_eq(tm_order_compare_internal(&o, a, 9, a, 9), 0);
}
END_TEST

START_TEST(heads_follow_the_order)
{
    static const char bytes[] = {0, 1, 'a', 'b', '\x7f', '\x80', '\xff'};
    enum { N = 400 };
    char key[N][10];
    size_t len[N];
    unsigned x = 1;
    for (size_t i = 0; i < N; i++) {
        len[i] = i % 11 % 10;
        for (size_t k = 0; k < len[i]; k++) {
            x = x * 1103515245 + 12345;
            key[i][k] = bytes[(x >> 16) % (k < 3 ? 2 : sizeof(bytes))];
        }
    }
    for (size_t i = 0; i < N; i++) {
        tm_slice a = tm_slice_of(key[i], len[i]);
        for (size_t j = 0; j < N; j++) {
            tm_slice b = tm_slice_of(key[j], len[j]);
            uint32_t ha = tm_head32(a.data, a.len), hb = tm_head32(b.data, b.len);
            uint64_t wa = tm_head64(a.data, a.len), wb = tm_head64(b.data, b.len);
            if (ha < hb || wa < wb) ck_assert_int_lt(tm_slice_compare(a, b), 0);
            ck_assert_uint_eq(wa >> 32, ha);
        }
    }
    ck_assert_uint_eq(tm_head64((const uint8_t *)"12345678", 8), 0x3132333435363738u);
    ck_assert_uint_eq(tm_head64((const uint8_t *)"12345", 5), 0x3132333435000000u);
    ck_assert_uint_eq(tm_head32((const uint8_t *)"12", 2), 0x31320000u);
    ck_assert_uint_eq(tm_head32(NULL, 0), 0);
}
END_TEST

// ---- Separators --------------------------------------------------------------------------------

static const uint8_t alphabet[] = {0x00, 0x01, 0x02, 0xfe, 0xff};
enum { LETTERS = 5, LONGEST = 4, WORDS = 1 + 5 + 25 + 125 + 625 };

// The i-th word, shorter ones first.
static size_t word(size_t i, uint8_t out[LONGEST])
{
    size_t len = 0, of_len = 1;
    while (i >= of_len) {
        i -= of_len;
        of_len *= LETTERS;
        len++;
    }
    for (size_t k = len; k-- > 0; i /= LETTERS) out[k] = alphabet[i % LETTERS];
    return len;
}

// The least length of any s with a <= s < b, found by trying all bytes at each place: s is a, or
// leaves a at some place upwards and is as short as possible from there.
static size_t shortest(tm_slice a, tm_slice b)
{
    for (size_t n = 0; n < a.len; n++) { // s of n + 1 bytes that leaves a at place n
        uint8_t s[LONGEST];
        memcpy(s, a.data, n);
        for (unsigned c = a.data[n] + 1u; c <= 0xff; c++) {
            s[n] = (uint8_t)c;
            if (tm_slice_compare(tm_slice_of(s, n + 1), b) < 0) return n + 1;
        }
    }
    return a.len;
}

START_TEST(separators_are_between_and_shortest)
{
    tm_order o = tm_order_bytewise();
    tm_buf out = {0};
    size_t shorter = 0;
    for (size_t i = 0; i < WORDS; i++) {
        uint8_t aw[LONGEST], bw[LONGEST];
        tm_slice a = tm_slice_of(aw, word(i, aw));
        for (size_t j = 0; j < WORDS; j++) {
            tm_slice b = tm_slice_of(bw, word(j, bw));
            if (tm_slice_compare(a, b) >= 0) continue;
            tm_buf_clear(&out);
            ck_assert_int_eq(tm_order_separator(&o, a, b, &out), TAMIS_OK);
            tm_slice s = tm_buf_slice(&out);
            ck_assert(tm_slice_compare(a, s) <= 0);
            ck_assert(tm_slice_compare(s, b) < 0);
            size_t least = shortest(a, b);
            ck_assert(s.len == least);
            if (s.len == a.len) ck_assert(tm_slice_equal(s, a)); // not raised for nothing
            shorter += s.len < a.len;
        }
    }
    ck_assert_uint_gt(shorter, 10000);
    tm_buf_deinit(&out);
}
END_TEST

static void separate(const tm_order *o, const char *a, const char *b, const char *expected)
{
    tm_buf out = {0};
    ck_assert_int_eq(tm_order_separator(o, tm_slice_str(a), tm_slice_str(b), &out), TAMIS_OK);
    ck_assert(tm_slice_equal(tm_buf_slice(&out), tm_slice_str(expected)));
    tm_buf_deinit(&out);
}

START_TEST(separators_by_example)
{
    tm_order o = tm_order_bytewise();
    separate(&o, "user:1000", "user:3000", "user:2");
    separate(&o, "user:1000", "user:2000", "user:2");
    separate(&o, "user:1000", "user:2", "user:11");
    separate(&o, "user", "user:1", "user");
    separate(&o, "", "a", "");
    separate(&o,
             "a\xff\xff"
             "b",
             "b",
             "a\xff\xff"
             "b");
    separate(&o,
             "a\xff\xff"
             "bc",
             "b",
             "a\xff\xff"
             "c");
    separate(&o, "b", "a", "b"); // out of order: a stays
    separate(&o, "a", "a", "a");
}
END_TEST

// ---- Comparators of the application ------------------------------------------------------------

// Descending bytes.
static int compare_reverse(void *ctx, const void *a, size_t alen, const void *b, size_t blen)
{
    (void)ctx;
    return tm_slice_compare(tm_slice_of(b, blen), tm_slice_of(a, alen));
}

// Gives what ctx says, cut to the capacity; its length unless that is longer.
static size_t separator_given(void *ctx, const void *a, size_t alen, const void *b, size_t blen,
                              void *out)
{
    (void)a;
    (void)b;
    (void)blen;
    const char *given = ctx;
    size_t n = strlen(given);
    memcpy(out, given, TM_MIN(n, alen));
    return n;
}

static size_t canonical_lower(void *ctx, const void *key, size_t len, void *out)
{
    const uint8_t *k = key;
    uint8_t *o = out;
    for (size_t i = 0; i < len; i++) {
        o[i] = k[i] >= 'A' && k[i] <= 'Z' ? (uint8_t)(k[i] | 32) : k[i];
    }
    return ctx != NULL ? len + 1 : len; // ctx: break the contract
}

static tamis_comparator reverse(char *given)
{
    return (tamis_comparator){.size = sizeof(tamis_comparator),
                              .name = "test.reverse",
                              .ctx = given,
                              .compare = compare_reverse,
                              .separator = separator_given};
}

START_TEST(null_and_the_name_mean_bytewise)
{
    tm_order o = tm_order_of(NULL);
    ck_assert(o.bytewise);
    tamis_comparator c = reverse(NULL);
    c.name = TM_BYTEWISE_NAME;
    o = tm_order_of(&c);
    ck_assert(o.bytewise);
    ck_assert_str_eq(tm_order_name(&o), "tamis.bytewise");
    ck_assert_int_lt(tm_order_compare(&o, tm_slice_str("a"), tm_slice_str("b")), 0);
}
END_TEST

START_TEST(an_own_order_is_used)
{
    tamis_comparator c = reverse(NULL);
    tm_order o = tm_order_of(&c);
    ck_assert(!o.bytewise);
    ck_assert_str_eq(tm_order_name(&o), "test.reverse");
    ck_assert_int_gt(tm_order_compare(&o, tm_slice_str("a"), tm_slice_str("b")), 0);
    ck_assert_int_gt(tm_order_compare_internal(&o, tm_slice_str("a"), 9, tm_slice_str("b"), 1), 0);
    ck_assert_int_lt(tm_order_compare_internal(&o, tm_slice_str("a"), 9, tm_slice_str("a"), 1), 0);
}
END_TEST

START_TEST(shorter_structs_end_earlier)
{
    static const struct {
        size_t size;
        int fields; // name, ctx, compare, separator, canonical
    } all[] = {
        {0, 0},
        {offsetof(tamis_comparator, name), 0},
        {offsetof(tamis_comparator, ctx) - 1, 0},
        {offsetof(tamis_comparator, ctx), 1},
        {offsetof(tamis_comparator, compare), 2},
        {offsetof(tamis_comparator, separator), 3},
        {offsetof(tamis_comparator, canonical), 4},
        {offsetof(tamis_comparator, canonical) + 1, 4},
        {sizeof(tamis_comparator), 5},
        {sizeof(tamis_comparator) + 100, 5},
    };
    char given[] = "g";
    for (size_t i = 0; i < TM_COUNT(all); i++) {
        // In memory of that size, so that a sanitizer sees a look beyond.
        tamis_comparator full = reverse(given);
        full.canonical = canonical_lower;
        full.size = all[i].size;
        size_t bytes = TM_MAX(all[i].size, sizeof(full.size));
        void *copy = tm_calloc(1, bytes);
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, &full, TM_MIN(bytes, sizeof(full)));
        tm_order o = tm_order_of(copy);
        tm_free(copy);
        ck_assert(!o.bytewise);
        ck_assert_uint_eq(o.user.size, sizeof(tamis_comparator));
        ck_assert_int_eq(o.user.name != NULL, all[i].fields > 0);
        ck_assert_int_eq(o.user.ctx != NULL, all[i].fields > 1);
        ck_assert_int_eq(o.user.compare != NULL, all[i].fields > 2);
        ck_assert_int_eq(o.user.separator != NULL, all[i].fields > 3);
        ck_assert_int_eq(o.user.canonical != NULL, all[i].fields > 4);
        ck_assert_str_eq(tm_order_name(&o), all[i].fields > 0 ? "test.reverse" : "");
    }
}
END_TEST

START_TEST(an_own_separator_is_checked)
{
    static const struct {
        const char *given, *expected;
    } all[] = {
        // Descending: "mmm" <= s < "kkk" asks for a string from "mmm" down to above "kkk".
        {"l", "l"},         {"mm", "mm"},  // between
        {"n", "mmm"},                      // before a
        {"k", "mmm"},       {"kk", "mmm"}, // at or behind b
        {"", "mmm"},                       // the last of all in this order
        {"xyz", "mmm"},                    // as long as a: a stays, whatever was written
        {"toolong", "mmm"},                // says more than it may
    };
    for (size_t i = 0; i < TM_COUNT(all); i++) {
        char given[16] = {0};
        memcpy(given, all[i].given, strlen(all[i].given));
        tamis_comparator c = reverse(given);
        tm_order o = tm_order_of(&c);
        separate(&o, "mmm", "kkk", all[i].expected);
    }
    tamis_comparator c = reverse(NULL);
    c.separator = NULL;
    tm_order o = tm_order_of(&c);
    separate(&o, "mmm", "kkk", "mmm");
    char empty[] = "";
    c = reverse(empty);
    c.compare = compare_reverse;
    o = tm_order_of(&c);
    tm_buf out = {0};
    ck_assert_int_eq(tm_order_separator(&o, tm_slice_of(NULL, 0), tm_slice_of(NULL, 0), &out),
                     TAMIS_OK);
    ck_assert_uint_eq(out.len, 0);
    tm_buf_deinit(&out);
}
END_TEST

// ---- Hashes, memory ----------------------------------------------------------------------------

static bool deny(void *ctx, size_t n)
{
    (void)ctx;
    (void)n;
    return false;
}

START_TEST(the_canonical_spelling_is_hashed)
{
    tamis_comparator c = reverse(NULL);
    c.canonical = canonical_lower;
    tm_order own = tm_order_of(&c), bytewise = tm_order_bytewise();
    tm_buf scratch = {0};
    uint64_t h, lower, plain;
    tm_slice upper_key = tm_slice_str("KeY");
    ck_assert_int_eq(tm_order_hash(&own, upper_key, 3, &scratch, &h), TAMIS_OK);
    ck_assert_int_eq(tm_order_hash(&own, tm_slice_str("key"), 3, &scratch, &lower), TAMIS_OK);
    ck_assert_uint_eq(h, lower);
    ck_assert_uint_eq(h, tm_hash64("key", 3, 3));
    ck_assert_int_eq(tm_order_hash(&bytewise, upper_key, 3, &scratch, &plain), TAMIS_OK);
    ck_assert_uint_eq(plain, tm_hash64("KeY", 3, 3));
    ck_assert_int_eq(tm_order_hash(&own, tm_slice_of(NULL, 0), 3, &scratch, &h), TAMIS_OK);
    ck_assert_uint_eq(h, tm_hash64("", 0, 3));

    char broken[] = "x";
    own.user.ctx = broken; // claims more bytes than there are: the key itself is taken
    ck_assert_int_eq(tm_order_hash(&own, upper_key, 3, &scratch, &h), TAMIS_OK);
    ck_assert_uint_eq(h, plain);
    tm_buf_deinit(&scratch);
}
END_TEST

START_TEST(refused_memory_is_told)
{
    tamis_comparator c = reverse(NULL);
    c.canonical = canonical_lower;
    char given[] = "l";
    c.ctx = given;
    tm_order own = tm_order_of(&c), bytewise = tm_order_bytewise();
    tm_buf out = {0};
    uint64_t h;
    tm_slice a = tm_slice_str("a"), b = tm_slice_str("b");
    tm_mem_set_hook(deny, NULL);
    ck_assert_int_eq(tm_order_separator(&bytewise, a, b, &out), TAMIS_NOMEM);
    ck_assert_int_eq(tm_order_separator(&own, b, a, &out), TAMIS_NOMEM);
    ck_assert_int_eq(tm_order_hash(&own, a, 0, &out, &h), TAMIS_NOMEM);
    ck_assert_int_eq(tm_order_hash(&bytewise, a, 0, &out, &h), TAMIS_OK);
    tm_mem_set_hook(NULL, NULL);
    ck_assert_uint_eq(out.len, 0);
    tm_buf_deinit(&out);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ikey");
    TCase *t = tcase_create("ikey");
    tcase_add_test(t, trailers_hold_both_parts);
    tcase_add_test(t, the_newest_comes_first);
    tcase_add_test(t, heads_follow_the_order);
    tcase_add_test(t, separators_are_between_and_shortest);
    tcase_add_test(t, separators_by_example);
    tcase_add_test(t, null_and_the_name_mean_bytewise);
    tcase_add_test(t, an_own_order_is_used);
    tcase_add_test(t, shorter_structs_end_earlier);
    tcase_add_test(t, an_own_separator_is_checked);
    tcase_add_test(t, the_canonical_spelling_is_hashed);
    tcase_add_test(t, refused_memory_is_told);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
