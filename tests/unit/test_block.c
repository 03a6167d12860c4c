// SPDX-License-Identifier: BSD-2-Clause
//
// Blocks of entries: there and back, searched, damaged; and their compression.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "sstable/block_builder.h"
#include "sstable/compress.h"

enum { MOST = 300, KEY_MAX = 60, VALUE_MAX = 80 };

typedef struct entry {
    uint8_t key[KEY_MAX], value[VALUE_MAX];
    size_t klen, vlen;
    uint64_t trailer;
} entry;

static entry entries[MOST];
static tm_order order;

static int reverse(void *ctx, const void *a, size_t alen, const void *b, size_t blen)
{
    (void)ctx;
    return -tm_slice_compare(tm_slice_of(a, alen), tm_slice_of(b, blen));
}

static tm_slice key_of(const entry *e)
{
    return tm_slice_of(e->key, e->klen);
}

static int compare(const void *x, const void *y)
{
    const entry *a = x, *b = y;
    return tm_order_compare_internal(&order, key_of(a), a->trailer, key_of(b), b->trailer);
}

// Styles: short keys, long common starts, equal heads, every length, one key in many versions.
static size_t make_entries(tm_random *r, int style)
{
    size_t n = 1 + (size_t)tm_random_below(r, MOST), kept = 0;
    bool one_kind = tm_random_below(r, 2), one_seq = tm_random_below(r, 2);
    for (size_t i = 0; i < n; i++) {
        entry *e = &entries[i];
        memset(e->key, style == 1 ? 'p' : 0, sizeof e->key);
        size_t start = style == 1 ? 40 : style == 2 ? 4 : 0;
        e->klen = start + (size_t)tm_random_below(r, style == 3 ? KEY_MAX : 8);
        if (style == 4) e->klen = 5;
        for (size_t k = start; k < e->klen && style != 4; k++) {
            e->key[k] = (uint8_t)(tm_random_below(r, 3) ? tm_random_next(r) : 0);
        }
        e->vlen = (size_t)tm_random_below(r, tm_random_below(r, 2) ? VALUE_MAX : 2);
        for (size_t k = 0; k < e->vlen; k++) e->value[k] = (uint8_t)tm_random_next(r);
        uint64_t seq =
            one_seq && style != 4 ? 0 : tm_random_next(r) >> (8 + tm_random_below(r, 50));
        tm_kind kind = one_kind ? TM_KIND_PUT : (tm_kind)tm_random_below(r, 5);
        e->trailer = tm_trailer(seq, kind);
    }
    qsort(entries, n, sizeof entries[0], compare);
    for (size_t i = 0; i < n; i++) { // no entry twice
        if (kept > 0 && compare(&entries[kept - 1], &entries[i]) == 0) continue;
        entries[kept++] = entries[i];
    }
    return kept;
}

typedef struct made {
    tm_buf raw;
    uint32_t *offsets;
    tm_block block;
} made;

static void make_block(size_t n, made *m)
{
    tm_block_builder b;
    memset(m, 0, sizeof *m);
    tm_block_builder_init(&b, order.bytewise);
    for (size_t i = 0; i < n; i++) {
        const entry *e = &entries[i];
        ck_assert_int_eq(
            tm_block_builder_add(&b, key_of(e), e->trailer, tm_slice_of(e->value, e->vlen), NULL),
            TAMIS_OK);
    }
    size_t estimate = tm_block_builder_estimate(&b);
    ck_assert_int_eq(tm_block_builder_finish(&b, &m->raw, NULL), TAMIS_OK);
    ck_assert_uint_le(m->raw.len, estimate);
    tm_block_builder_deinit(&b);
    m->offsets = calloc(n + 1, sizeof *m->offsets);
    ck_assert_int_eq(tm_block_init(&m->block, tm_buf_slice(&m->raw), (uint32_t)n, order.bytewise,
                                   m->offsets, 1, 0, NULL),
                     TAMIS_OK);
}

static void free_block(made *m)
{
    tm_buf_deinit(&m->raw);
    free(m->offsets);
}

static void check_search(const tm_block *b, size_t n, tm_slice key, uint64_t trailer)
{
    uint32_t expected = 0, found;
    while (expected < n && tm_order_compare_internal(&order, key_of(&entries[expected]),
                                                     entries[expected].trailer, key, trailer) < 0) {
        expected++;
    }
    ck_assert_uint_eq(tm_block_lower_bound(b, &order, key, trailer), expected);
    bool there = tm_block_find(b, &order, key, trailer, &found);
    ck_assert_uint_eq(found, expected);
    ck_assert(there ==
              (expected < n && tm_order_compare(&order, key_of(&entries[expected]), key) == 0));
}

START_TEST(what_is_built_is_read_and_found)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        tm_random r = tm_random_seed(seed * 10 + (uint64_t)_i);
        tamis_comparator c = {.size = sizeof c, .name = "test.reverse", .compare = reverse};
        order = seed % 3 == 0 ? tm_order_of(&c) : tm_order_bytewise();
        size_t n = make_entries(&r, _i);
        uint8_t key[KEY_MAX + TM_BLOCK_KEY_SLACK];
        uint32_t at;
        made m;
        make_block(n, &m);
        const tm_block *b = &m.block;
        ck_assert(tm_block_is_sorted(b, &order, &at));
        for (uint32_t i = 0; i < n; i++) {
            const entry *e = &entries[i];
            uint32_t len = tm_block_key(b, i, key);
            ck_assert_uint_eq(len, e->klen);
            ck_assert(len == 0 || memcmp(key, e->key, len) == 0);
            len = tm_block_key_suffix(b, i, key); // the prefix stands there
            ck_assert(len == e->klen && (len == 0 || memcmp(key, e->key, len) == 0));
            ck_assert_uint_eq(tm_block_trailer(b, i), e->trailer);
            tm_slice v = tm_block_value(b, i);
            ck_assert(tm_slice_equal(v, tm_slice_of(e->value, e->vlen)));
            check_search(b, n, key_of(e), e->trailer);
            check_search(b, n, key_of(e), UINT64_MAX);
            check_search(b, n, key_of(e), 0);
        }
        for (int i = 0; i < 100; i++) { // keys near those that are there
            entry e = entries[tm_random_below(&r, n)];
            if (e.klen > 0) e.key[tm_random_below(&r, e.klen)] ^= (uint8_t)tm_random_next(&r);
            if (tm_random_below(&r, 3) == 0) e.klen = (size_t)tm_random_below(&r, e.klen + 1);
            check_search(b, n, key_of(&e), tm_random_next(&r));
        }
        check_search(b, n, tm_slice_of(NULL, 0), 0);
        free_block(&m);
    }
}
END_TEST

// A block is checked by its checksum before it comes here: what passes that is not trusted all the
// same, and must not be read beyond its end.
static void touch(const uint8_t *bytes, size_t len, uint32_t n, bool bytewise)
{
    uint8_t *raw = malloc(len ? len : 1), key[UINT16_MAX * 2 + 64];
    uint32_t *offsets = calloc((size_t)n + 1, sizeof *offsets), at;
    tm_block b;
    if (len > 0) memcpy(raw, bytes, len);
    if (tm_block_init(&b, tm_slice_of(raw, len), n, bytewise, offsets, 1, 0, NULL) == TAMIS_OK) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < n; i++) {
            sum += tm_block_key(&b, i, key) + tm_block_trailer(&b, i);
            tm_slice v = tm_block_value(&b, i);
            for (size_t k = 0; k < v.len; k++) sum += v.data[k];
        }
        uint32_t found = tm_block_lower_bound(&b, &order, tm_slice_str("key"), sum);
        ck_assert_uint_le(found, n);
        (void)tm_block_is_sorted(&b, &order, &at);
    }
    free(offsets);
    free(raw);
}

START_TEST(damage_does_no_harm)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        tm_random r = tm_random_seed(seed);
        order = tm_order_bytewise();
        size_t n = make_entries(&r, (int)seed);
        if (n > 40) n = 40;
        made m;
        make_block(n, &m);
        for (size_t i = 0; i < m.raw.len; i++) {
            touch(m.raw.data, i, (uint32_t)n, true);
            for (int bit = 0; bit < 8; bit += 3) {
                m.raw.data[i] ^= (uint8_t)(1 << bit);
                touch(m.raw.data, m.raw.len, (uint32_t)n, true);
                touch(m.raw.data, m.raw.len, (uint32_t)n, false);
                m.raw.data[i] ^= (uint8_t)(1 << bit);
            }
        }
        touch(m.raw.data, m.raw.len, (uint32_t)n + 1, true);
        touch(m.raw.data, m.raw.len, 1, true);
        free_block(&m);
    }
}
END_TEST

static bool fail_at(void *ctx, size_t n)
{
    (void)n;
    return --*(int *)ctx != 0;
}

START_TEST(without_memory_the_builder_stays_as_it_was)
{
    tm_random r = tm_random_seed(5);
    order = tm_order_bytewise();
    size_t n = make_entries(&r, 3);
    tm_block_builder b;
    tm_block_builder_init(&b, true);
    for (size_t i = 0; i < n; i++) {
        int countdown = 1;
        uint32_t before = tm_block_builder_count(&b);
        tm_mem_set_hook(fail_at, &countdown);
        int st = tm_block_builder_add(&b, key_of(&entries[i]), entries[i].trailer,
                                      tm_slice_of(entries[i].value, entries[i].vlen), NULL);
        tm_mem_set_hook(NULL, NULL);
        if (st != TAMIS_OK) {
            ck_assert_int_eq(st, TAMIS_NOMEM);
            ck_assert_uint_eq(tm_block_builder_count(&b), before);
            st = tm_block_builder_add(&b, key_of(&entries[i]), entries[i].trailer,
                                      tm_slice_of(entries[i].value, entries[i].vlen), NULL);
        }
        ck_assert_int_eq(st, TAMIS_OK);
    }
    ck_assert_uint_eq(tm_block_builder_count(&b), n);
    tm_block_builder_deinit(&b);
}
END_TEST

// ---- Compression -------------------------------------------------------------------------------

START_TEST(compression_is_kept_where_it_saves_an_eighth)
{
    enum { BYTES = 4096 };
    static uint8_t raw[BYTES], out[BYTES], back[BYTES];
    tm_compressor c = {0};
    tm_random r = tm_random_seed(1);
    ck_assert_int_eq(tm_compressor_init(&c, NULL), TAMIS_OK);
    for (size_t i = 0; i < BYTES; i++) raw[i] = (uint8_t)tm_random_next(&r);
    ck_assert_uint_eq(tm_compress(&c, raw, BYTES, out), 0); // noise
    for (size_t noise = 0; noise <= BYTES; noise += 64) {
        memset(raw + noise, 'x', BYTES - noise);
        uint32_t stored = tm_compress(&c, raw, BYTES, out);
        if (stored == 0) {
            ck_assert_uint_gt(noise, BYTES * 13 / 16);
            continue;
        }
        ck_assert_uint_le(stored, BYTES - BYTES / 8);
        tm_frame f = {.raw = BYTES, .stored = stored, .compression = TM_STORED_LZ4};
        ck_assert_int_eq(tm_decompress(&f, out, back, 1, 0, NULL), TAMIS_OK);
        ck_assert_mem_eq(raw, back, BYTES);
        f.raw = BYTES - 1; // another length than it has
        ck_assert_int_eq(tm_decompress(&f, out, back, 1, 0, NULL), TAMIS_CORRUPT);
        for (uint32_t i = 0; i < stored; i += 37) { // never beyond the room
            out[i] ^= 0x55;
            f.raw = BYTES;
            (void)!tm_decompress(&f, out, back, 1, 0, NULL);
            out[i] ^= 0x55;
        }
        for (size_t i = noise; i < noise + 64 && i < BYTES; i++)
            raw[i] = (uint8_t)tm_random_next(&r);
    }
    tm_compressor_deinit(&c);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("block");
    TCase *t = tcase_create("block");
    tcase_add_loop_test(t, what_is_built_is_read_and_found, 0, 5);
    tcase_add_test(t, damage_does_no_harm);
    tcase_add_test(t, without_memory_the_builder_stays_as_it_was);
    tcase_add_test(t, compression_is_kept_where_it_saves_an_eighth);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
