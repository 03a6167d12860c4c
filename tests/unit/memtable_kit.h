// SPDX-License-Identifier: BSD-2-Clause
//
// memtable_kit.h - a memtable beside the array of what was added to it, kinds of keys, and memory
// that ends, for the tests of memtables.
#ifndef MEMTABLE_KIT_H
#define MEMTABLE_KIT_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "lsm/memtable.h"

enum { SEED = 77, BUFFER = 1 << 20, KEY_MAX = 65535 };

// ---- Failing allocations -----------------------------------------------------------------------

typedef struct gate {
    long left; // so many pass; then one fails, or all if sticky
    bool sticky, hit;
} gate;

static inline bool pass(void *ctx, size_t n)
{
    gate *g = ctx;
    (void)n;
    if (g->left > 0) {
        g->left--;
        return true;
    }
    bool fails = g->sticky || !g->hit;
    g->hit = true;
    return !fails;
}

// ---- The model: an array, sorted when it is compared -------------------------------------------

typedef struct item {
    uint8_t *key;
    size_t len;
    uint64_t trailer, seed; // the value is made from the seed
    size_t value_len;
} item;

typedef struct model {
    item *items;
    size_t n, cap;
    bool reversed; // keys descend
} model;

static bool model_reversed; // qsort passes no context

static inline int by_order(const void *a, const void *b)
{
    const item *x = a, *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int c = n ? memcmp(x->key, y->key, n) : 0;
    if (c == 0) c = (x->len > y->len) - (x->len < y->len);
    if (model_reversed) c = -c;
    if (c != 0) return c;
    return (x->trailer < y->trailer) - (x->trailer > y->trailer);
}

static inline void model_sort(model *m)
{
    model_reversed = m->reversed;
    if (m->n > 0) qsort(m->items, m->n, sizeof(item), by_order);
}

// The first item at or behind; the model is sorted.
static inline size_t model_find(const model *m, tm_slice key, uint64_t trailer)
{
    uint8_t nothing = 0;
    item probe = {.key = key.len ? (uint8_t *)(uintptr_t)key.data : &nothing,
                  .len = key.len,
                  .trailer = trailer};
    model_reversed = m->reversed;
    size_t i = 0;
    while (i < m->n && by_order(&m->items[i], &probe) < 0) i++;
    return i;
}

static inline void model_add(model *m, tm_slice key, uint64_t trailer, uint64_t seed,
                             size_t value_len)
{
    if (m->n == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 64;
        m->items = realloc(m->items, m->cap * sizeof(item));
    }
    item *i = &m->items[m->n++];
    *i = (item){malloc(key.len + 1), key.len, trailer, seed, value_len};
    if (key.len) memcpy(i->key, key.data, key.len);
}

static inline void model_free(model *m)
{
    for (size_t i = 0; i < m->n; i++) free(m->items[i].key);
    free(m->items);
}

static inline void fill_value(uint8_t *out, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)(tm_mix64(seed + i / 8) >> (8 * (i % 8)));
}

static inline bool is_value(tm_slice value, const item *i)
{
    bool same = value.len == i->value_len;
    for (size_t k = 0; same && k < value.len; k++) {
        same = value.data[k] == (uint8_t)(tm_mix64(i->seed + k / 8) >> (8 * (k % 8)));
    }
    return same;
}

static inline void check_at(const tm_iter *it, const model *m, size_t i)
{
    bool right = it->status == TAMIS_OK && it->valid == (i < m->n);
    if (right && i < m->n) {
        const item *e = &m->items[i];
        right = it->trailer == e->trailer && is_value(it->value, e) &&
                tm_slice_equal(it->key, tm_slice_of(e->key, e->len));
    }
    if (!right) ck_abort_msg("another entry than number %zu of %zu", i, m->n);
}

static inline int reversed_compare(void *ctx, const void *a, size_t alen, const void *b,
                                   size_t blen)
{
    (void)ctx;
    return tm_slice_compare(tm_slice_of(b, blen), tm_slice_of(a, alen));
}

static inline tm_order reversed_order(void)
{
    static const tamis_comparator c = {
        .size = sizeof(c), .name = "reversed", .compare = reversed_compare};
    return tm_order_of(&c);
}

static inline uint64_t hash_of(tm_slice key)
{
    return tm_hash64(key.data, key.len, SEED);
}

static inline tm_memtable *create(const tm_order *o, size_t write_buffer)
{
    tm_memtable *m = NULL;
    ck_assert_int_eq(tm_memtable_create(o, SEED, write_buffer, &m, NULL), TAMIS_OK);
    return m;
}

// ---- Kinds of keys -----------------------------------------------------------------------------

typedef struct keys { // makes the i-th key
    const char *name;
    size_t (*make)(uint8_t *out, uint64_t i, tm_random *r);
} keys;

static inline size_t make_random(uint8_t *out, uint64_t i, tm_random *r)
{
    (void)i;
    for (size_t k = 0; k < 16; k += 8) tm_put64(out + k, tm_random_next(r));
    return 16;
}

// Few letters, among them the least and the greatest byte; every length, 0 too.
static inline size_t make_short(uint8_t *out, uint64_t i, tm_random *r)
{
    (void)i;
    size_t n = tm_random_below(r, 7);
    for (size_t k = 0; k < n; k++) out[k] = (uint8_t[]){0, 1, 'a', 0xff}[tm_random_below(r, 4)];
    return n;
}

static inline size_t make_decimal(uint8_t *out, uint64_t i)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "user:table:%012llu", (unsigned long long)i);
    memcpy(out, text, (size_t)n);
    return (size_t)n;
}

static inline size_t make_ascending(uint8_t *out, uint64_t i, tm_random *r)
{
    (void)r;
    return make_decimal(out, i);
}

static inline size_t make_descending(uint8_t *out, uint64_t i, tm_random *r)
{
    (void)r;
    return make_decimal(out, 1000000 - i);
}

static inline size_t make_shuffled(uint8_t *out, uint64_t i, tm_random *r)
{
    (void)r;
    return make_decimal(out, tm_mix64(i) % 1000000);
}

// Four ascending runs, in turn; the fourth begins anew every 50.
static inline size_t make_runs(uint8_t *out, uint64_t i, tm_random *r)
{
    (void)r;
    uint64_t run = i % 4;
    return make_decimal(out, run * 100000 + (run == 3 ? (i / 4) % 50 : i / 4));
}

static inline size_t make_one(uint8_t *out, uint64_t i, tm_random *r)
{
    (void)i;
    (void)r;
    memcpy(out, "the key", 7);
    return 7;
}

// Ascending into the middle of other keys.
static inline size_t make_middle(uint8_t *out, uint64_t i, tm_random *r)
{
    if (i < 100) return make_decimal(out, tm_random_below(r, 1000000));
    return make_decimal(out, 500000 + i);
}

// What is before the keys of a node that was left full is added, again and again.
static inline size_t make_comb(uint8_t *out, uint64_t i, tm_random *r)
{
    (void)r;
    return make_decimal(out, (i % 15) * 10000 + (i / 15) % 2 * 5000 + i / 30);
}

static const keys kinds[] = {
    {"random", make_random},
    {"short", make_short},
    {"ascending", make_ascending},
    {"descending", make_descending},
    {"shuffled", make_shuffled},
    {"runs", make_runs},
    {"one", make_one},
    {"middle", make_middle},
    {"comb", make_comb},
};
enum { KINDS = TM_COUNT(kinds) };

static inline tm_kind kind_of(uint64_t seq)
{
    return seq % 7 == 0 ? TM_KIND_DELETE : TM_KIND_PUT;
}

// Adds the i-th entry to both; the status of the memtable's.
static inline int add(tm_memtable *t, model *m, const keys *k, uint64_t i, tm_random *r)
{
    uint8_t buf[64], value[64];
    tm_slice key = tm_slice_of(buf, k->make(buf, i, r));
    size_t value_len = kind_of(i) == TM_KIND_DELETE ? 0 : (size_t)tm_random_below(r, 40);
    fill_value(value, value_len, i);
    uint64_t trailer = tm_trailer(i + 1, kind_of(i));
    tamis_error err = {0};
    int st = tm_memtable_add(t, key, trailer, tm_slice_of(value, value_len), hash_of(key), &err);
    ck_assert_int_eq(err.code, st);
    if (st == TAMIS_OK) model_add(m, key, trailer, i, value_len);
    return st;
}

static inline void check_walks(tm_memtable *t, model *m)
{
    tm_iter *it;
    model_sort(m);
    ck_assert_int_eq(tm_memtable_iter_create(t, &it, NULL), TAMIS_OK);
    ck_assert(!it->valid);
    it->ops->first(it);
    for (size_t i = 0; i < m->n; i++) {
        check_at(it, m, i);
        it->ops->next(it);
    }
    check_at(it, m, SIZE_MAX);
    it->ops->last(it);
    for (size_t i = m->n; i > 0; i--) {
        check_at(it, m, i - 1);
        it->ops->prev(it);
    }
    check_at(it, m, SIZE_MAX);
    tm_iter_destroy(it);
}

// Seeks, both ways, and lookups, around the entries and elsewhere.
static inline void check_searches(tm_memtable *t, model *m, const keys *k, tm_random *r, int n)
{
    tm_iter *it;
    model_sort(m);
    ck_assert_int_eq(tm_memtable_iter_create(t, &it, NULL), TAMIS_OK);
    for (int i = 0; i < n; i++) {
        uint8_t buf[64];
        tm_slice key = tm_slice_of(buf, k->make(buf, tm_random_below(r, m->n + 5), r));
        uint64_t trailer = tm_trailer(tm_random_below(r, m->n + 5), TM_KIND_PUT);
        if (m->n > 0 && tm_random_below(r, 2)) {
            const item *some = &m->items[tm_random_below(r, m->n)];
            key = tm_slice_of(some->key, some->len);
            trailer = some->trailer + tm_random_below(r, 3) - 1;
        }
        if (tm_random_below(r, 5) == 0) trailer = tm_random_below(r, 2) ? UINT64_MAX : 0;
        size_t at = model_find(m, key, trailer);
        it->ops->seek(it, key, trailer);
        check_at(it, m, at);
        if (it->valid) {
            it->ops->prev(it);
            check_at(it, m, at - 1); // SIZE_MAX before the first
        }
        it->ops->seek_before(it, key, trailer);
        check_at(it, m, at - 1);
        if (it->valid) {
            it->ops->next(it);
            check_at(it, m, at);
        }
        uint64_t found = 0;
        tm_slice value;
        bool has =
            at < m->n && tm_slice_equal(tm_slice_of(m->items[at].key, m->items[at].len), key);
        ck_assert_int_eq(tm_memtable_get(t, key, trailer, hash_of(key), &found, &value), has);
        if (has) {
            ck_assert_uint_eq(found, m->items[at].trailer);
            ck_assert(is_value(value, &m->items[at]));
        }
    }
    tm_iter_destroy(it);
}

#endif // MEMTABLE_KIT_H
