// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "lsm/batch.h"

static tm_slice str(const char *s)
{
    return tm_slice_str(s);
}

static const tm_slice none = {NULL, 0};

static bool refuse(void *ctx, size_t n)
{
    (void)ctx;
    (void)n;
    return false;
}

// ---- What is written ---------------------------------------------------------------------------

static int put(tamis_batch *b, const char *key, const char *value)
{
    return tm_batch_add(b, 0, TM_KIND_PUT, str(key), str(value));
}

START_TEST(an_empty_batch)
{
    tamis_batch b;
    tm_batch_init(&b);
    ck_assert_uint_eq(tamis_batch_count(&b), 0);
    ck_assert_uint_eq(tamis_batch_bytes(&b), 0);
    tm_batch_reader r = tm_batch_reader_of(tm_buf_slice(&b.rep));
    tm_batch_op op;
    ck_assert_int_eq(tm_batch_reader_next(&r, &op), TAMIS_NOTFOUND);
    ck_assert_int_eq(tm_batch_reader_next(&r, &op), TAMIS_NOTFOUND);
    tm_batch_deinit(&b);
    tamis_batch_free(NULL);
    ck_assert_ptr_null(tamis_batch_create(NULL, 0));
}
END_TEST

// The bytes that docs/format.md tells of.
START_TEST(the_bytes_are_those_of_the_format)
{
    tamis_batch b;
    tm_batch_init(&b);
    ck_assert_int_eq(put(&b, "key", "v"), TAMIS_OK);
    ck_assert_int_eq(tm_batch_add(&b, 0, TM_KIND_DELETE, none, none), TAMIS_OK);
    ck_assert_int_eq(tm_batch_add(&b, 300, TM_KIND_RANGE_DELETE, str("a"), none), TAMIS_OK);
    ck_assert_int_eq(tm_batch_add(&b, 300, TM_KIND_SINGLE_DELETE, str("b"), str("left out")), 0);
    ck_assert_int_eq(tm_batch_add(&b, 0, TM_KIND_MERGE, none, str("m")), TAMIS_OK);
    static const uint8_t bytes[] = {
        1,    3,    'k', 'e', 'y', 1, 'v', // put
        0,    0,                           // delete
        0x85, 0xac, 2,   1,   'a', 0,      // range delete in family 300
        4,    1,    'b',                   // single delete
        0x82, 0,    0,   1,   'm',         // merge in family 0
    };
    ck_assert_uint_eq(tamis_batch_bytes(&b), sizeof(bytes));
    ck_assert_mem_eq(b.rep.data, bytes, sizeof(bytes));
    ck_assert_uint_eq(tamis_batch_count(&b), 5);
    ck_assert_uint_eq(b.data, 3 + 1 + 0 + 1 + 1 + 1);
    ck_assert_uint_eq(b.family, 0);
    tm_batch_deinit(&b);
}
END_TEST

static tm_kind kind_of(uint64_t i)
{
    static const tm_kind kinds[] = {TM_KIND_PUT,           TM_KIND_DELETE,
                                    TM_KIND_MERGE,         TM_KIND_PUT_EXPIRY,
                                    TM_KIND_SINGLE_DELETE, TM_KIND_RANGE_DELETE};
    return kinds[i % TM_COUNT(kinds)];
}

static tm_batch_op random_op(tm_random *r, const uint8_t *bytes)
{
    tm_batch_op op = {.family = (uint32_t)tm_random_below(r, 3),
                      .kind = kind_of(tm_random_next(r))};
    if (op.family == 2) op.family = UINT32_MAX;
    op.key = tm_slice_of(bytes + tm_random_below(r, 100), tm_random_below(r, 200));
    op.value = tm_slice_of(bytes + tm_random_below(r, 100), tm_random_below(r, 300));
    if (op.kind == TM_KIND_DELETE || op.kind == TM_KIND_SINGLE_DELETE) op.value = none;
    if (op.kind == TM_KIND_PUT_EXPIRY && op.value.len < 8) op.value.len = 8;
    return op;
}

START_TEST(what_is_written_is_read)
{
    enum { N = 500 };
    tamis_batch b;
    tm_random r = tm_random_seed(1);
    uint8_t bytes[400];
    tm_batch_op ops[N], op;
    uint64_t data = 0;
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (uint8_t)tm_random_next(&r);
    tm_batch_init(&b);
    for (size_t i = 0; i < N; i++) {
        ops[i] = random_op(&r, bytes);
        ck_assert_int_eq(tm_batch_add(&b, ops[i].family, ops[i].kind, ops[i].key, ops[i].value), 0);
        data += ops[i].key.len + ops[i].value.len;
    }
    ck_assert_uint_eq(b.count, N);
    ck_assert_uint_eq(b.data, data);
    tm_batch_reader reader = tm_batch_reader_of(tm_buf_slice(&b.rep));
    for (size_t i = 0; i < N; i++) {
        ck_assert_int_eq(tm_batch_reader_next(&reader, &op), TAMIS_OK);
        ck_assert_uint_eq(op.family, ops[i].family);
        ck_assert_int_eq(op.kind, ops[i].kind);
        ck_assert(tm_slice_equal(op.key, ops[i].key));
        ck_assert(tm_slice_equal(op.value, ops[i].value));
    }
    ck_assert_int_eq(tm_batch_reader_next(&reader, &op), TAMIS_NOTFOUND);
    tm_batch_deinit(&b);
}
END_TEST

// ---- Limits and failures -----------------------------------------------------------------------

static void check_refused(tm_kind kind, tm_slice key, tm_slice value, int status)
{
    tamis_batch b;
    tm_batch_init(&b);
    ck_assert_int_eq(put(&b, "k", "v"), TAMIS_OK);
    ck_assert_int_eq(tm_batch_add(&b, 9, kind, key, value), status);
    ck_assert_int_eq(b.error.code, status);
    ck_assert_uint_eq(b.count, 1);
    ck_assert_uint_eq(b.rep.len, 5);
    ck_assert_uint_eq(b.data, 2);
    ck_assert_uint_eq(b.family, 0);
    // It is kept, and nothing is added any more, until the batch is cleared.
    ck_assert_int_eq(put(&b, "k", "v"), status);
    ck_assert_int_eq(tm_batch_add(&b, 3, TM_KIND_DELETE, str("k"), none), status);
    ck_assert_int_eq(b.status, status);
    ck_assert_uint_eq(tamis_batch_count(&b), 1);
    tamis_batch_clear(&b);
    ck_assert_int_eq(b.status, TAMIS_OK);
    ck_assert_int_eq(put(&b, "k", "v"), TAMIS_OK);
    ck_assert_uint_eq(tamis_batch_bytes(&b), 5);
    tm_batch_deinit(&b);
}

START_TEST(what_is_too_large_or_wrong_is_refused)
{
    uint8_t *key = calloc(1, TAMIS_MAX_KEY + 1);
    tm_slice long_key = tm_slice_of(key, TAMIS_MAX_KEY + 1);
    // Refused by its length: the bytes are not looked at.
    tm_slice long_value = tm_slice_of(key, TAMIS_MAX_VALUE + 1);
    check_refused(TM_KIND_PUT, long_key, none, TAMIS_TOOLARGE);
    check_refused(TM_KIND_DELETE, long_key, none, TAMIS_TOOLARGE);
    check_refused(TM_KIND_PUT, str("k"), long_value, TAMIS_TOOLARGE);
    check_refused(TM_KIND_RANGE_DELETE, str("k"), long_key, TAMIS_TOOLARGE);
    check_refused(TM_KIND_PUT_EXPIRY, str("k"), tm_slice_of(key, TAMIS_MAX_VALUE + 9),
                  TAMIS_TOOLARGE);
    check_refused(TM_KIND_PUT_EXPIRY, str("k"), str("seven b"), TAMIS_INVALID);
    check_refused(TM_KIND_VALUE_POINTER, str("k"), str("v"), TAMIS_INVALID);
    check_refused(TM_KIND_DELETE_EXPIRY, str("k"), str("v"), TAMIS_INVALID);
    check_refused((tm_kind)0x80, str("k"), str("v"), TAMIS_INVALID);
    check_refused(TM_KIND_PUT, tm_slice_of(NULL, 1), none, TAMIS_INVALID);
    check_refused(TM_KIND_PUT, none, tm_slice_of(NULL, 1), TAMIS_INVALID);

    tamis_batch b; // the greatest that are allowed
    tm_batch_op op;
    tm_batch_init(&b);
    ck_assert_int_eq(tm_batch_add(&b, 0, TM_KIND_PUT, tm_slice_of(key, TAMIS_MAX_KEY),
                                  tm_slice_of(key, TAMIS_MAX_KEY)), TAMIS_OK);
    long_key.len = TAMIS_MAX_KEY;
    ck_assert_int_eq(tm_batch_add(&b, 0, TM_KIND_RANGE_DELETE, long_key, long_key), TAMIS_OK);
    tm_batch_reader r = tm_batch_reader_of(tm_buf_slice(&b.rep));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tm_batch_reader_next(&r, &op), TAMIS_OK);
        ck_assert_uint_eq(op.key.len, TAMIS_MAX_KEY);
        ck_assert_uint_eq(op.value.len, TAMIS_MAX_KEY);
    }
    tm_batch_deinit(&b);
    free(key);
}
END_TEST

START_TEST(a_full_batch_takes_no_more)
{
    tamis_batch b;
    uint8_t byte;
    tm_batch_init(&b);
    b.rep = (tm_buf){&byte, TAMIS_MAX_BATCH - 20, TAMIS_MAX_BATCH - 20}; // never looked at
    ck_assert_int_eq(put(&b, "k", "v"), TAMIS_TOOLARGE);
    ck_assert_uint_eq(b.rep.len, TAMIS_MAX_BATCH - 20);
    ck_assert_uint_eq(b.count, 0);
}
END_TEST

START_TEST(without_memory_nothing_is_added)
{
    tamis_batch b;
    uint8_t value[1000] = {0};
    tm_batch_init(&b);
    ck_assert_int_eq(put(&b, "k", "v"), TAMIS_OK);
    tm_mem_set_hook(refuse, NULL);
    int st = tm_batch_add(&b, 5, TM_KIND_PUT, str("k"), tm_slice_of(value, sizeof(value)));
    tm_mem_set_hook(NULL, NULL);
    ck_assert_int_eq(st, TAMIS_NOMEM);
    ck_assert_int_eq(b.error.code, TAMIS_NOMEM);
    ck_assert_uint_eq(b.rep.len, 5);
    ck_assert_uint_eq(b.count, 1);
    ck_assert_uint_eq(b.family, 0);
    tm_batch_deinit(&b);
    ck_assert_int_eq(b.status, TAMIS_OK);
}
END_TEST

// ---- Damage ------------------------------------------------------------------------------------

// Reads a copy that ends where its memory ends, and gives the number of operations; -1: CORRUPT.
static int read_all(const uint8_t *bytes, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    if (n) memcpy(copy, bytes, n);
    tm_batch_reader r = tm_batch_reader_of(tm_slice_of(copy, n));
    tm_batch_op op;
    int st, count = 0;
    while ((st = tm_batch_reader_next(&r, &op)) == TAMIS_OK) {
        ck_assert(op.key.data >= copy);
        ck_assert(op.key.data + op.key.len <= copy + n);
        ck_assert(op.value.len == 0 || op.value.data + op.value.len <= copy + n);
        ck_assert_uint_le(op.key.len, TAMIS_MAX_KEY);
        count++;
    }
    ck_assert(st == TAMIS_NOTFOUND || st == TAMIS_CORRUPT);
    ck_assert_int_eq(tm_batch_reader_next(&r, &op), st); // it stays so
    free(copy);
    return st == TAMIS_NOTFOUND ? count : -1;
}

START_TEST(cut_or_flipped_bytes_do_no_harm)
{
    tamis_batch b;
    tm_random r = tm_random_seed(2);
    uint8_t bytes[400] = {0};
    bool whole[4096] = {true};
    tm_batch_init(&b);
    for (int i = 0; i < 12; i++) {
        tm_batch_op op = random_op(&r, bytes);
        ck_assert_int_eq(tm_batch_add(&b, op.family, op.kind, op.key, op.value), TAMIS_OK);
        ck_assert_uint_lt(b.rep.len, sizeof(whole));
        whole[b.rep.len] = true;
    }
    ck_assert_int_eq(read_all(b.rep.data, b.rep.len), 12);
    for (size_t n = 0; n < b.rep.len; n++) {
        ck_assert_int_eq(read_all(b.rep.data, n) >= 0, whole[n]); // whole operations, or damage
    }
    for (size_t i = 0; i < b.rep.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            b.rep.data[i] ^= (uint8_t)(1 << bit);
            read_all(b.rep.data, b.rep.len);
            b.rep.data[i] ^= (uint8_t)(1 << bit);
        }
    }
    tm_batch_deinit(&b);
}
END_TEST

typedef struct sample {
    uint8_t bytes[24];
    size_t n;
    int count; // -1: damaged
} sample;

static const sample samples[] = {
    {{1, 0, 0}, 3, 1},
    {{0, 0}, 2, 1},
    {{0x80, 0, 0}, 3, 1},                             // family 0, spelled out
    {{0x80, 0x80, 0, 0}, 4, -1},                      // a family in more bytes than it needs
    {{0x80, 0xff, 0xff, 0xff, 0xff, 0x0f, 0}, 7, 1},  // the greatest family
    {{0x80, 0x80, 0x80, 0x80, 0x80, 0x10, 0}, 7, -1}, // one above
    {{0, 0x80, 0}, 3, -1},                            // a length in more bytes than it needs
    {{0, 1}, 2, -1},                                  // a key that is not there
    {{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 11, -1}, // of 2^64 - 1 bytes
    {{1, 0}, 2, -1}, // a value that is not there
    {{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 12, -1},
    {{3, 0, 7, 1, 2, 3, 4, 5, 6, 7}, 10, -1}, // no room for a time of expiry
    {{3, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8}, 11, 1},
    {{6, 0, 0}, 3, -1}, // kinds that no batch holds
    {{7, 0, 0}, 3, -1},
    {{8, 0, 0}, 3, -1},
    {{0x7f, 0, 0}, 3, -1},
    {{0x86, 0, 0, 0}, 4, -1},
    {{5, 0, 0}, 3, 1},
};

START_TEST(hostile_samples)
{
    ck_assert_int_eq(read_all(samples[_i].bytes, samples[_i].n), samples[_i].count);
}
END_TEST

START_TEST(lengths_above_the_limits_are_damage)
{
    size_t n = TAMIS_MAX_KEY + 1;
    uint8_t *bytes = calloc(1, 2 * n + 16);
    for (int value = 0; value < 2; value++) { // as a key, and as the limit of a range delete
        uint8_t *p = bytes;
        *p++ = TM_KIND_RANGE_DELETE;
        p = tm_put_varint(p, value ? 0 : n);
        p += value ? 0 : n;
        p = tm_put_varint(p, value ? n : 0);
        p += value ? n : 0;
        ck_assert_int_eq(read_all(bytes, (size_t)(p - bytes)), -1);
    }
    free(bytes);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("batch");
    TCase *c = tcase_create("writing");
    tcase_add_test(c, an_empty_batch);
    tcase_add_test(c, the_bytes_are_those_of_the_format);
    tcase_add_test(c, what_is_written_is_read);
    tcase_add_test(c, what_is_too_large_or_wrong_is_refused);
    tcase_add_test(c, a_full_batch_takes_no_more);
    tcase_add_test(c, without_memory_nothing_is_added);
    suite_add_tcase(s, c);
    c = tcase_create("reading");
    tcase_add_test(c, cut_or_flipped_bytes_do_no_harm);
    tcase_add_loop_test(c, hostile_samples, 0, TM_COUNT(samples));
    tcase_add_test(c, lengths_above_the_limits_are_damage);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    SRunner *r = srunner_create(suite());
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
