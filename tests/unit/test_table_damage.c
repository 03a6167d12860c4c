// SPDX-License-Identifier: BSD-2-Clause
//
// Lookups in a table that is damaged, cut, not the one it should be, or cannot be read.
#include <errno.h>

#include "tests/unit/table_kit.h"

#define LARGE ((size_t)64 * 1024 * 1024)

static const kit_shape small_shape = {
    "small", 24, 2, 0, 24, 128, 64, 80, TM_COMPRESSION_LZ4, TM_FILTER_BLOCKED, 10000, false, true,
    31};

// Each answer is right, or an error of one of the two kinds. Returns how many were errors.
static uint32_t get_some(kit *k, int allowed, int allowed2)
{
    uint32_t errors = 0;
    for (uint32_t i = 0; i <= 2 * k->n; i++) {
        uint8_t key[64];
        tamis_error err = {0};
        tm_read_counts counts = {0};
        tm_read_ctx rc = {.mode = TM_READ_PINNED, .counts = &counts, .err = &err};
        tm_found found;
        const kit_entry *e = &k->entries[i / 2 % k->n];
        memcpy(key, e->key.data, e->key.len);
        key[e->key.len] = 0;
        tm_slice s = tm_slice_of(key, e->key.len + i % 2);
        int st = kit_lookup(k, &rc, s, e->trailer, &found);
        if (st == TAMIS_OK || st == TAMIS_NOTFOUND) {
            kit_check(k, s, e->trailer, st, &found);
        } else {
            ck_assert_msg(st == allowed || st == allowed2, "%d: %s", st, err.message);
            ck_assert_int_eq(err.code, st);
            if (st == TAMIS_CORRUPT) ck_assert_uint_eq(err.file_number, 7);
            errors++;
        }
        tm_read_ctx_reset(&rc);
    }
    uint64_t cover = 77;
    tm_read_counts counts = {0};
    tm_read_ctx rc = {.mode = TM_READ_PINNED, .counts = &counts};
    int st = tm_table_range_cover(k->table, &rc, tm_slice_str("b"), 900, &cover);
    ck_assert(st == allowed || st == allowed2 || (st == TAMIS_OK && cover == 500));
    return errors + (st != TAMIS_OK);
}

START_TEST(every_byte_changed)
{
    kit k;
    kit_begin(&k, &small_shape);
    ck_assert_uint_lt(k.meta.file_bytes, 16384);
    uint32_t harmful = 0;
    for (uint64_t at = 0; at < k.meta.file_bytes; at++) {
        uint8_t byte, changed;
        kit_bytes(&k, at, &byte, 1, false);
        changed = (uint8_t)(byte ^ (1u << at % 8));
        kit_bytes(&k, at, &changed, 1, true);
        kit_open(&k, at % 2 == 0 ? LARGE : 2000);
        uint32_t errors = get_some(&k, TAMIS_CORRUPT, TAMIS_UNSUPPORTED);
        harmful += errors != 0;
        // A damaged block costs its own keys: most lookups are served, but for damage in the tail.
        if (at < k.meta.tail_offset) ck_assert_uint_le(errors, 2 * k.n * 2 / 3);
        kit_close(&k);
        kit_bytes(&k, at, &byte, 1, true);
    }
    // All but the header and the filters are met by lookups.
    ck_assert_uint_gt(harmful, k.meta.file_bytes / 3);
    kit_end(&k);
}
END_TEST

START_TEST(cut_at_every_length)
{
    kit k;
    kit_begin(&k, &small_shape);
    size_t size = (size_t)k.meta.file_bytes;
    uint8_t *file = tm_alloc(size);
    ck_assert_ptr_nonnull(file);
    kit_bytes(&k, 0, file, size, false);
    for (uint64_t n = size; n-- > 0;) {
        tm_file f;
        int st = tm_file_open(k.dir, "000007.sst", 7, TAMIS_FILE_WRITE, &f, NULL);
        ck_assert_int_eq(st, TAMIS_OK);
        ck_assert_int_eq(tm_file_truncate(&f, n, NULL), TAMIS_OK);
        ck_assert_int_eq(tm_file_close(&f, NULL), TAMIS_OK);
        kit_open(&k, LARGE);
        ck_assert_uint_eq(get_some(&k, TAMIS_CORRUPT, TAMIS_CORRUPT), 2 * k.n + 2); // by its size
        tm_table *t = NULL;
        tamis_error err;
        ck_assert_int_eq(tm_table_open(&k.env, &k.meta, &k.order, true, &t, &err), TAMIS_CORRUPT);
        ck_assert_ptr_null(t);
        kit_close(&k);
    }
    tm_free(file);
    kit_end(&k);
}
END_TEST

START_TEST(another_table_under_the_name)
{
    kit k;
    kit_begin(&k, &small_shape);
    struct {
        void *field;
        size_t n;
    } fields[] = {{&k.meta.id, 1},       {&k.meta.file_bytes, 8}, {&k.meta.tail_offset, 8},
                  {&k.meta.entries, 8}, {&k.meta.hash_seed, 8}};
    for (size_t i = 0; i < TM_COUNT(fields); i++) {
        for (int by = 1; by < 256; by += by + 1) {
            uint8_t *byte = fields[i].field;
            *byte = (uint8_t)(*byte + by);
            kit_open(&k, LARGE);
            tm_table *t = NULL;
            int st = tm_table_open(&k.env, &k.meta, &k.order, true, &t, NULL);
            ck_assert_int_eq(st, TAMIS_CORRUPT);
            kit_close(&k);
            *byte = (uint8_t)(*byte - by);
        }
    }
    uint64_t ranges = k.meta.range_deletes, tail = k.meta.tail_offset, size = k.meta.file_bytes;
    k.meta.range_deletes = 0;
    kit_open(&k, LARGE);
    ck_assert_uint_eq(get_some(&k, TAMIS_CORRUPT, TAMIS_OK), 2 * k.n + 1);
    kit_close(&k);
    k.meta.range_deletes = ranges;
    static const uint64_t wild[] = {0, 63, 1000000, UINT64_MAX - 5, UINT64_MAX};
    for (size_t i = 0; i < TM_COUNT(wild); i++) {
        k.meta.tail_offset = wild[i];
        kit_open(&k, LARGE);
        ck_assert_uint_eq(get_some(&k, TAMIS_CORRUPT, TAMIS_CORRUPT), 2 * k.n + 2);
        kit_close(&k);
        k.meta.tail_offset = tail;
        k.meta.file_bytes = wild[i];
        kit_open(&k, LARGE);
        ck_assert_uint_eq(get_some(&k, TAMIS_CORRUPT, TAMIS_CORRUPT), 2 * k.n + 2);
        kit_close(&k);
        k.meta.file_bytes = size;
    }
    kit_end(&k);
}
END_TEST

START_TEST(each_call_fails_once)
{
    kit k;
    kit_begin(&k, &small_shape);
    uint32_t failures = 0, unavailable = 0;
    for (uint64_t n = 1;; n++) {
        kit_open(&k, n % 2 == 0 ? LARGE : 2000);
        uint64_t call = tamis_vfs_memory_calls(k.memory) + n;
        tamis_vfs_memory_fail(k.memory, call, EIO, 0);
        uint32_t errors = get_some(&k, TAMIS_IO, TAMIS_IO);
        bool met = tamis_vfs_memory_calls(k.memory) >= call;
        tamis_vfs_memory_fail(k.memory, 0, 0, 0);
        ck_assert_uint_eq(get_some(&k, TAMIS_OK, TAMIS_OK), 0); // it passes
        kit_close(&k);
        if (!met) break;
        failures += errors != 0;
        unavailable += errors == 0; // a filter, or the range deletes with the top level
    }
    ck_assert_uint_gt(failures, 3);
    ck_assert_uint_gt(unavailable, 1);
    kit_end(&k);
}
END_TEST

static bool deny_nth(void *ctx, size_t n)
{
    (void)n;
    return --*(int64_t *)ctx != 0;
}

START_TEST(each_allocation_fails_once)
{
    kit k;
    kit_begin(&k, &small_shape);
    for (int64_t n = 1;; n++) {
        int64_t left = n;
        kit_open(&k, n % 2 == 0 ? LARGE : 0);
        tm_mem_set_hook(deny_nth, &left);
        tm_table *t = NULL;
        int st = tm_table_open(&k.env, &k.meta, &k.order, true, &t, NULL);
        ck_assert(st == TAMIS_OK || st == TAMIS_NOMEM);
        if (st == TAMIS_OK) tm_table_close(t);
        (void)get_some(&k, TAMIS_NOMEM, TAMIS_NOMEM);
        tm_mem_set_hook(NULL, NULL);
        ck_assert_uint_eq(get_some(&k, TAMIS_OK, TAMIS_OK), 0);
        kit_close(&k);
        if (left > 0) break;
    }
    kit_end(&k);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("table_damage");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, every_byte_changed);
    tcase_add_test(t, cut_at_every_length);
    tcase_add_test(t, another_table_under_the_name);
    tcase_add_test(t, each_call_fails_once);
    tcase_add_test(t, each_allocation_fails_once);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
