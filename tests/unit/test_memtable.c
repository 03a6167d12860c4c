// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/sync.h"
#include "lsm/memtable.h"

enum { SEED = 77, BUFFER = 1 << 20, KEY_MAX = 65535 };

// ---- Failing allocations ------------------------------------------------------------------------

typedef struct gate {
    long left; // so many pass; then one fails, or all if sticky
    bool sticky, hit;
} gate;

static bool pass(void *ctx, size_t n)
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

// ---- The model: an array, sorted when it is compared --------------------------------------------

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

static int by_order(const void *a, const void *b)
{
    const item *x = a, *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int c = n ? memcmp(x->key, y->key, n) : 0;
    if (c == 0) c = (x->len > y->len) - (x->len < y->len);
    if (model_reversed) c = -c;
    if (c != 0) return c;
    return (x->trailer < y->trailer) - (x->trailer > y->trailer);
}

static void model_sort(model *m)
{
    model_reversed = m->reversed;
    if (m->n > 0) qsort(m->items, m->n, sizeof(item), by_order);
}

// The first item at or behind; the model is sorted.
static size_t model_find(const model *m, tm_slice key, uint64_t trailer)
{
    uint8_t nothing = 0;
    item probe = {.key = key.len ? (uint8_t *)(uintptr_t)key.data : &nothing, .len = key.len,
                  .trailer = trailer};
    model_reversed = m->reversed;
    size_t i = 0;
    while (i < m->n && by_order(&m->items[i], &probe) < 0) i++;
    return i;
}

static void model_add(model *m, tm_slice key, uint64_t trailer, uint64_t seed, size_t value_len)
{
    if (m->n == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 64;
        m->items = realloc(m->items, m->cap * sizeof(item));
    }
    item *i = &m->items[m->n++];
    *i = (item){malloc(key.len + 1), key.len, trailer, seed, value_len};
    if (key.len) memcpy(i->key, key.data, key.len);
}

static void model_free(model *m)
{
    for (size_t i = 0; i < m->n; i++) free(m->items[i].key);
    free(m->items);
}

static void fill_value(uint8_t *out, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)(tm_mix64(seed + i / 8) >> (8 * (i % 8)));
}

static bool is_value(tm_slice value, const item *i)
{
    bool same = value.len == i->value_len;
    for (size_t k = 0; same && k < value.len; k++) {
        same = value.data[k] == (uint8_t)(tm_mix64(i->seed + k / 8) >> (8 * (k % 8)));
    }
    return same;
}

static void check_at(const tm_iter *it, const model *m, size_t i)
{
    bool right = it->status == TAMIS_OK && it->valid == (i < m->n);
    if (right && i < m->n) {
        const item *e = &m->items[i];
        right = it->trailer == e->trailer && is_value(it->value, e) &&
                tm_slice_equal(it->key, tm_slice_of(e->key, e->len));
    }
    if (!right) ck_abort_msg("another entry than number %zu of %zu", i, m->n);
}

static int reversed_compare(void *ctx, const void *a, size_t alen, const void *b, size_t blen)
{
    (void)ctx;
    return tm_slice_compare(tm_slice_of(b, blen), tm_slice_of(a, alen));
}

static tm_order reversed_order(void)
{
    static const tamis_comparator c = {
        .size = sizeof(c), .name = "reversed", .compare = reversed_compare};
    return tm_order_of(&c);
}

static uint64_t hash_of(tm_slice key)
{
    return tm_hash64(key.data, key.len, SEED);
}

static tm_memtable *create(const tm_order *o, size_t write_buffer)
{
    tm_memtable *m = NULL;
    ck_assert_int_eq(tm_memtable_create(o, SEED, write_buffer, &m, NULL), TAMIS_OK);
    return m;
}

// ---- Kinds of keys ------------------------------------------------------------------------------

typedef struct keys { // makes the i-th key
    const char *name;
    size_t (*make)(uint8_t *out, uint64_t i, tm_random *r);
} keys;

static size_t make_random(uint8_t *out, uint64_t i, tm_random *r)
{
    (void)i;
    for (size_t k = 0; k < 16; k += 8) tm_put64(out + k, tm_random_next(r));
    return 16;
}

// Few letters, among them the least and the greatest byte; every length, 0 too.
static size_t make_short(uint8_t *out, uint64_t i, tm_random *r)
{
    (void)i;
    size_t n = tm_random_below(r, 7);
    for (size_t k = 0; k < n; k++) out[k] = (uint8_t[]){0, 1, 'a', 0xff}[tm_random_below(r, 4)];
    return n;
}

static size_t make_decimal(uint8_t *out, uint64_t i)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "user:table:%012llu", (unsigned long long)i);
    memcpy(out, text, (size_t)n);
    return (size_t)n;
}

static size_t make_ascending(uint8_t *out, uint64_t i, tm_random *r)
{
    (void)r;
    return make_decimal(out, i);
}

static size_t make_descending(uint8_t *out, uint64_t i, tm_random *r)
{
    (void)r;
    return make_decimal(out, 1000000 - i);
}

static size_t make_shuffled(uint8_t *out, uint64_t i, tm_random *r)
{
    (void)r;
    return make_decimal(out, tm_mix64(i) % 1000000);
}

// Four ascending runs, in turn; the fourth begins anew every 50.
static size_t make_runs(uint8_t *out, uint64_t i, tm_random *r)
{
    (void)r;
    uint64_t run = i % 4;
    return make_decimal(out, run * 100000 + (run == 3 ? (i / 4) % 50 : i / 4));
}

static size_t make_one(uint8_t *out, uint64_t i, tm_random *r)
{
    (void)i;
    (void)r;
    memcpy(out, "the key", 7);
    return 7;
}

// Ascending into the middle of other keys.
static size_t make_middle(uint8_t *out, uint64_t i, tm_random *r)
{
    if (i < 100) return make_decimal(out, tm_random_below(r, 1000000));
    return make_decimal(out, 500000 + i);
}

// What is before the keys of a node that was left full is added, again and again.
static size_t make_comb(uint8_t *out, uint64_t i, tm_random *r)
{
    (void)r;
    return make_decimal(out, (i % 15) * 10000 + (i / 15) % 2 * 5000 + i / 30);
}

static const keys kinds[] = {
    {"random", make_random},       {"short", make_short},         {"ascending", make_ascending},
    {"descending", make_descending}, {"shuffled", make_shuffled}, {"runs", make_runs},
    {"one", make_one},             {"middle", make_middle},       {"comb", make_comb},
};
enum { KINDS = TM_COUNT(kinds) };

static tm_kind kind_of(uint64_t seq)
{
    return seq % 7 == 0 ? TM_KIND_DELETE : TM_KIND_PUT;
}

// Adds the i-th entry to both; the status of the memtable's.
static int add(tm_memtable *t, model *m, const keys *k, uint64_t i, tm_random *r)
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

static void check_walks(tm_memtable *t, model *m)
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
static void check_searches(tm_memtable *t, model *m, const keys *k, tm_random *r, int n)
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
        bool has = at < m->n && tm_slice_equal(tm_slice_of(m->items[at].key, m->items[at].len), key);
        ck_assert_int_eq(tm_memtable_get(t, key, trailer, hash_of(key), &found, &value), has);
        if (has) {
            ck_assert_uint_eq(found, m->items[at].trailer);
            ck_assert(is_value(value, &m->items[at]));
        }
    }
    tm_iter_destroy(it);
}

// ---- Tests --------------------------------------------------------------------------------------

START_TEST(nothing_is_in_an_empty_one)
{
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, 0);
    tm_slice key = tm_slice_str("k"), value;
    uint64_t found, cover = 1;
    const tm_range_set *set;
    tm_iter *it;
    ck_assert(!tm_memtable_get(t, key, UINT64_MAX, hash_of(key), &found, &value));
    tm_memtable_prefetch(t, hash_of(key));
    ck_assert_int_eq(tm_memtable_range_cover(t, key, TM_MAX_SEQ, &cover, NULL), TAMIS_OK);
    ck_assert_uint_eq(cover, 0);
    ck_assert_int_eq(tm_memtable_ranges(t, &set, NULL), TAMIS_OK);
    ck_assert_ptr_null(set);
    ck_assert_int_eq(tm_memtable_iter_create(t, &it, NULL), TAMIS_OK);
    it->ops->first(it);
    ck_assert(!it->valid);
    it->ops->last(it);
    ck_assert(!it->valid);
    it->ops->seek(it, key, 0);
    ck_assert(!it->valid);
    it->ops->seek_before(it, key, 0);
    ck_assert(!it->valid);
    ck_assert_int_eq(it->status, TAMIS_OK);
    ck_assert_uint_eq(tm_memtable_entries(t), 0);
    ck_assert_uint_eq(tm_memtable_hash_seed(t), SEED);
    tm_memtable_unref(t);
    it->ops->first(it); // it holds a reference
    ck_assert(!it->valid);
    tm_iter_destroy(it);
    tm_memtable_unref(NULL);
}
END_TEST

START_TEST(every_kind_of_keys_is_kept_in_order)
{
    const keys *k = &kinds[_i % KINDS];
    tm_order o = _i < KINDS ? tm_order_bytewise() : reversed_order();
    model m = {.reversed = _i >= KINDS};
    tm_memtable *t = create(&o, BUFFER);
    tm_random r = tm_random_seed((uint64_t)_i);
    uint64_t deletes = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        ck_assert_int_eq(add(t, &m, k, i, &r), TAMIS_OK);
        deletes += kind_of(i) == TM_KIND_DELETE;
        if (i < 40 || i % 997 == 0) check_walks(t, &m);
    }
    check_walks(t, &m);
    check_searches(t, &m, k, &r, 300);
    ck_assert_uint_eq(tm_memtable_entries(t), 4000);
    ck_assert_uint_eq(tm_memtable_deletes(t), deletes);
    ck_assert_uint_ge(tm_memtable_bytes(t), tm_memtable_data(t));
    tm_memtable_unref(t);
    model_free(&m);
}
END_TEST

START_TEST(an_iterator_steps_on_where_its_leaf_was_split)
{
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, BUFFER);
    model m = {0};
    tm_random r = tm_random_seed(3);
    for (uint64_t i = 0; i < 200; i++) ck_assert_int_eq(add(t, &m, &kinds[4], i, &r), TAMIS_OK);
    model_sort(&m);
    tm_iter *its[200];
    for (size_t i = 0; i < 200; i++) {
        ck_assert_int_eq(tm_memtable_iter_create(t, &its[i], NULL), TAMIS_OK);
        its[i]->ops->seek(its[i], tm_slice_of(m.items[i].key, m.items[i].len), UINT64_MAX);
        check_at(its[i], &m, i);
    }
    model later = {0};
    for (uint64_t i = 200; i < 3000; i++) ck_assert_int_eq(add(t, &later, &kinds[4], i, &r), 0);
    for (size_t i = 0; i < 200; i++) { // what was there is met, in order, whatever else is
        bool back = i % 2;
        size_t at = i, met = 0;
        check_at(its[i], &m, at);
        for (;;) {
            tm_buf before = {0};
            ck_assert_int_eq(tm_buf_set(&before, its[i]->key), TAMIS_OK);
            if (back) its[i]->ops->prev(its[i]);
            else its[i]->ops->next(its[i]);
            if (!its[i]->valid) {
                tm_buf_deinit(&before);
                break;
            }
            int c = tm_slice_compare(its[i]->key, tm_buf_slice(&before));
            ck_assert(back ? c <= 0 : c >= 0); // keys may repeat
            tm_buf_deinit(&before);
            if (tm_trailer_seq(its[i]->trailer) > 200) continue;
            at = back ? at - 1 : at + 1;
            met++;
            check_at(its[i], &m, at);
        }
        ck_assert_uint_eq(met, back ? i : 199 - i);
        tm_iter_destroy(its[i]);
    }
    tm_memtable_unref(t);
    model_free(&m);
    model_free(&later);
}
END_TEST

START_TEST(lengths_at_the_limits)
{
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, BUFFER);
    size_t lens[] = {0, 1, KEY_MAX - 1, KEY_MAX};
    uint8_t *big = malloc(3 << 20);
    model m = {0};
    fill_value(big, 3 << 20, 0);
    uint8_t *key = calloc(1, KEY_MAX + 1);
    for (size_t i = 0; i < TM_COUNT(lens); i++) {
        tm_slice k = tm_slice_of(key, lens[i]);
        size_t value_len = i % 2 ? 0 : 3 << 20;
        ck_assert_int_eq(tm_memtable_add(t, k, tm_trailer(i + 1, TM_KIND_PUT),
                                         tm_slice_of(big, value_len), hash_of(k), NULL), TAMIS_OK);
        model_add(&m, k, tm_trailer(i + 1, TM_KIND_PUT), 0, value_len);
    }
    tamis_error err = {0};
    tm_slice k = tm_slice_of(key, KEY_MAX + 1), none = tm_slice_of(NULL, 0);
    ck_assert_int_eq(tm_memtable_add(t, k, 999, none, 1, &err), TAMIS_TOOLARGE);
    ck_assert_int_eq(err.code, TAMIS_TOOLARGE);
    ck_assert_int_eq(tm_memtable_add_range(t, k, none, 9, NULL), TAMIS_TOOLARGE);
    ck_assert_int_eq(tm_memtable_add_range(t, none, k, 9, NULL), TAMIS_TOOLARGE);
    ck_assert_uint_eq(tm_memtable_entries(t), 4);
    check_walks(t, &m);
    uint64_t found;
    tm_slice value;
    ck_assert(tm_memtable_get(t, none, UINT64_MAX, hash_of(none), &found, &value));
    ck_assert_uint_eq(value.len, 3 << 20);
    tm_memtable_unref(t);
    model_free(&m);
    free(key);
    free(big);
}
END_TEST

START_TEST(without_memory_nothing_changes)
{
    const keys *k = &kinds[_i];
    tm_order o = tm_order_bytewise();
    for (long n = 0;; n++) { // creation
        gate g = {.left = n};
        tm_memtable *t = (tm_memtable *)&o;
        tamis_error err = {0};
        tm_mem_set_hook(pass, &g);
        int st = tm_memtable_create(&o, SEED, BUFFER, &t, &err);
        tm_mem_set_hook(NULL, NULL);
        if (st == TAMIS_OK) {
            ck_assert(!g.hit);
            tm_memtable_unref(t);
            break;
        }
        ck_assert_int_eq(st, TAMIS_NOMEM);
        ck_assert_int_eq(err.code, TAMIS_NOMEM);
        ck_assert_ptr_null(t);
        ck_assert_int_lt(n, 20);
    }
    tm_memtable *t = create(&o, 0); // chunks of 64 KiB
    model m = {0};
    tm_random r = tm_random_seed(9);
    size_t failed = 0;
    for (uint64_t i = 0; i < 6000; i++) { // every chunk is refused at first
        gate g = {.sticky = true};
        size_t data = tm_memtable_data(t), bytes = tm_memtable_bytes(t);
        tm_mem_set_hook(pass, &g);
        int st = add(t, &m, k, i, &r);
        tm_mem_set_hook(NULL, NULL);
        if (st == TAMIS_OK) continue;
        failed++;
        ck_assert_int_eq(st, TAMIS_NOMEM);
        ck_assert_uint_eq(tm_memtable_data(t), data);
        ck_assert_uint_eq(tm_memtable_bytes(t), bytes);
        ck_assert_uint_eq(tm_memtable_entries(t), m.n);
        check_walks(t, &m);
        ck_assert_int_eq(add(t, &m, k, i, &r), TAMIS_OK);
    }
    ck_assert_uint_ge(failed, 3);
    check_walks(t, &m);
    tm_memtable_unref(t);
    model_free(&m);
}
END_TEST

START_TEST(what_was_reserved_cannot_fail)
{
    const keys *k = &kinds[_i];
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, 0);
    model m = {0};
    tm_random r = tm_random_seed(11);
    uint64_t i = 0;
    for (size_t round = 0; round < 300; round++) {
        size_t count = round % 10 == 0 ? 500 : 1 + (size_t)tm_random_below(&r, 20);
        gate g = {.left = 0};
        tm_mem_set_hook(pass, &g);
        size_t bytes = tm_memtable_bytes(t);
        int st = tm_memtable_reserve(t, count * 64, count, NULL);
        tm_mem_set_hook(NULL, NULL);
        if (st != TAMIS_OK) {
            ck_assert_int_eq(st, TAMIS_NOMEM);
            ck_assert_uint_eq(tm_memtable_bytes(t), bytes);
            ck_assert_int_eq(tm_memtable_reserve(t, count * 64, count, NULL), TAMIS_OK);
        }
        gate closed = {.sticky = true};
        tm_mem_set_hook(pass, &closed);
        for (size_t n = 0; n < count; n++, i++) {
            if (tm_random_below(&r, 10) == 0) {
                uint8_t a[64], b[64];
                tm_slice start = tm_slice_of(a, k->make(a, i, &r));
                tm_slice limit = tm_slice_of(b, k->make(b, i + 1, &r));
                if (start.len + limit.len > 64) limit.len = 64 - start.len;
                ck_assert_int_eq(tm_memtable_add_range(t, start, limit, i + 1, NULL), TAMIS_OK);
            } else {
                ck_assert_int_eq(add(t, &m, k, i, &r), TAMIS_OK);
            }
        }
        tm_mem_set_hook(NULL, NULL);
        ck_assert(!closed.hit);
    }
    check_walks(t, &m);
    ck_assert_int_eq(tm_memtable_reserve(t, SIZE_MAX, 1, NULL), TAMIS_NOMEM);
    ck_assert_int_eq(tm_memtable_reserve(t, 1, SIZE_MAX, NULL), TAMIS_NOMEM);
    ck_assert_int_eq(tm_memtable_reserve(t, SIZE_MAX / 2, SIZE_MAX / 64, NULL), TAMIS_NOMEM);
    tm_memtable_unref(t);
    model_free(&m);
}
END_TEST

START_TEST(a_large_value_is_reserved_too)
{
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, BUFFER);
    size_t n = 5 << 20;
    uint8_t *big = calloc(1, n);
    for (uint64_t i = 0; i < 3; i++) {
        ck_assert_int_eq(tm_memtable_reserve(t, n + 1, 1, NULL), TAMIS_OK);
        gate closed = {.sticky = true};
        tm_mem_set_hook(pass, &closed);
        ck_assert_int_eq(tm_memtable_add(t, tm_slice_str("k"), tm_trailer(i + 1, TM_KIND_PUT),
                                         tm_slice_of(big, n), hash_of(tm_slice_str("k")), NULL), 0);
        tm_mem_set_hook(NULL, NULL);
    }
    ck_assert_uint_ge(tm_memtable_data(t), 3 * n);
    ck_assert_uint_le(tm_memtable_bytes(t), 3 * n + (1 << 20));
    tm_memtable_unref(t);
    free(big);
}
END_TEST

// ---- Range deletes ------------------------------------------------------------------------------

typedef struct range {
    char start[4], limit[4];
    uint64_t seq;
} range;

static uint64_t expected_cover(const range *ranges, size_t n, const char *key, uint64_t seq)
{
    uint64_t cover = 0;
    for (size_t i = 0; i < n; i++) {
        bool in = strcmp(ranges[i].start, key) <= 0 &&
                  (ranges[i].limit[0] == 0 || strcmp(key, ranges[i].limit) < 0);
        if (in && ranges[i].seq <= seq && ranges[i].seq > cover) cover = ranges[i].seq;
    }
    return cover;
}

static range random_range(tm_random *r, uint64_t seq)
{
    range g = {.seq = seq};
    snprintf(g.start, sizeof(g.start), "%03u", (unsigned)tm_random_below(r, 300));
    snprintf(g.limit, sizeof(g.limit), "%03u", (unsigned)tm_random_below(r, 300));
    if (tm_random_below(r, 50) == 0) g.limit[0] = 0; // to the end
    return g;
}

START_TEST(range_deletes_cover_as_they_should)
{
    enum { N = 1200 };
    static range ranges[N];
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, BUFFER);
    tm_random r = tm_random_seed(4);
    for (size_t n = 0; n < N;) {
        ranges[n] = random_range(&r, n + 1);
        ck_assert_int_eq(tm_memtable_add_range(t, tm_slice_str(ranges[n].start),
                                               tm_slice_str(ranges[n].limit), n + 1, NULL), 0);
        n++;
        if (tm_random_below(&r, 4) == 0) continue;
        for (int i = 0; i < 3; i++) {
            char key[8];
            uint64_t seq = tm_random_below(&r, n + 2), cover = 99999;
            snprintf(key, sizeof(key), "%03u%s", (unsigned)tm_random_below(&r, 301), i ? "" : "x");
            ck_assert_int_eq(tm_memtable_range_cover(t, tm_slice_str(key), seq, &cover, NULL), 0);
            ck_assert_uint_eq(cover, expected_cover(ranges, n, key, seq));
        }
        if (n % 10 == 0) { // sets together say the same, and live on
            tm_buf sets = {0};
            ck_assert_int_eq(tm_memtable_range_sets(t, &sets, NULL), TAMIS_OK);
            const tm_range_set **set = (const tm_range_set **)(void *)sets.data;
            size_t count = sets.len / sizeof(*set);
            ck_assert_uint_ge(count, 1);
            ck_assert_uint_le(count, 30);
            uint64_t cover = 0;
            for (size_t i = 0; i < count; i++) {
                cover = TM_MAX(cover, tm_range_set_cover(set[i], &o, tm_slice_str("150"), n));
            }
            ck_assert_uint_eq(cover, expected_cover(ranges, n, "150", n));
            tm_buf_deinit(&sets);
        }
        if (n % 100 == 0) {
            const tm_range_set *all, *again;
            ck_assert_int_eq(tm_memtable_ranges(t, &all, NULL), TAMIS_OK);
            ck_assert_int_eq(tm_memtable_ranges(t, &again, NULL), TAMIS_OK);
            ck_assert_ptr_eq(all, again);
            for (unsigned i = 0; i < 300; i++) {
                char key[8];
                snprintf(key, sizeof(key), "%03u", i);
                ck_assert_uint_eq(tm_range_set_cover(all, &o, tm_slice_str(key), n / 2),
                                  expected_cover(ranges, n, key, n / 2));
            }
        }
    }
    ck_assert_uint_eq(tm_memtable_entries(t), N);
    tm_memtable_unref(t);
}
END_TEST

// What covers nothing gives no set.
START_TEST(an_empty_range_gives_no_set)
{
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, BUFFER);
    const tm_range_set *set = (const tm_range_set *)&o;
    tm_buf sets = {0};
    ck_assert_int_eq(tm_memtable_add_range(t, tm_slice_str("b"), tm_slice_str("a"), 1, NULL), 0);
    ck_assert_int_eq(tm_memtable_ranges(t, &set, NULL), TAMIS_OK);
    ck_assert_ptr_null(set);
    ck_assert_int_eq(tm_memtable_range_sets(t, &sets, NULL), TAMIS_OK);
    ck_assert_uint_eq(sets.len, 0);
    tm_memtable_unref(t);
}
END_TEST

START_TEST(range_sets_without_memory)
{
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, BUFFER);
    static range ranges[60];
    tm_random r = tm_random_seed(8);
    for (size_t n = 0; n < 60; n++) {
        ranges[n] = random_range(&r, n + 1);
        ck_assert_int_eq(tm_memtable_add_range(t, tm_slice_str(ranges[n].start),
                                               tm_slice_str(ranges[n].limit), n + 1, NULL), 0);
        bool one = n % 2;
        for (long fail = 0;; fail++) {
            gate g = {.left = fail};
            const tm_range_set *set = NULL;
            tm_buf sets = {0};
            uint64_t cover = 0;
            tamis_error err = {0};
            tm_mem_set_hook(pass, &g);
            int st = one ? tm_memtable_ranges(t, &set, &err) : tm_memtable_range_sets(t, &sets, &err);
            tm_mem_set_hook(NULL, NULL);
            tm_buf_deinit(&sets);
            gate closed = {.sticky = true}; // a lookup needs no memory
            tm_mem_set_hook(pass, &closed);
            ck_assert_int_eq(tm_memtable_range_cover(t, tm_slice_str("150"), 99, &cover, NULL), 0);
            tm_mem_set_hook(NULL, NULL);
            ck_assert_uint_eq(cover, expected_cover(ranges, n + 1, "150", 99));
            if (!g.hit) {
                ck_assert_int_eq(st, TAMIS_OK);
                break;
            }
            ck_assert_int_lt(fail, 100);
            if (st != TAMIS_OK) { // a buffer may have grown by less instead
                ck_assert_int_eq(st, TAMIS_NOMEM);
                ck_assert_int_eq(err.code, TAMIS_NOMEM);
            }
        }
    }
    tm_memtable_unref(t);
}
END_TEST

// ---- Readers beside the writer ------------------------------------------------------------------

enum { SHARED = 12000 };
typedef struct shared {
    tm_memtable *t;
    const keys *k;
    _Atomic uint64_t published; // sequence number
    uint8_t *keys;              // 32 bytes each: length, bytes
    uint64_t failures;
} shared;

static tm_slice shared_key(const shared *s, uint64_t i)
{
    return tm_slice_of(s->keys + 32 * i + 1, s->keys[32 * i]);
}

// Everything up to the published number is there, in order, and nothing twice.
static uint64_t scan_failures(shared *s, bool back)
{
    uint64_t seen = atomic_load_explicit(&s->published, memory_order_acquire), n = 0, failures = 0;
    tm_iter *it;
    tm_buf last = {0};
    uint64_t last_trailer = 0;
    if (tm_memtable_iter_create(s->t, &it, NULL) != TAMIS_OK) return 1;
    if (back) it->ops->last(it);
    else it->ops->first(it);
    for (bool begun = false; it->valid; begun = true) {
        n += tm_trailer_seq(it->trailer) <= seen;
        if (begun) {
            tm_order o = tm_order_bytewise();
            int c = tm_order_compare_internal(&o, tm_buf_slice(&last), last_trailer, it->key,
                                              it->trailer);
            failures += back ? c <= 0 : c >= 0;
        }
        failures += tm_buf_set(&last, it->key) != TAMIS_OK;
        last_trailer = it->trailer;
        if (back) it->ops->prev(it);
        else it->ops->next(it);
    }
    tm_iter_destroy(it);
    tm_buf_deinit(&last);
    return failures + (n != seen);
}

static uint64_t search_failures(shared *s, tm_iter *it, uint64_t seen, tm_random *r)
{
    uint64_t i = tm_random_below(r, seen), found = 0, failures = 0, trailer = tm_trailer(i + 1, 1);
    tm_slice key = shared_key(s, i), value;
    bool has = tm_memtable_get(s->t, key, tm_trailer_seek(i + 1), hash_of(key), &found, &value);
    failures += !has || found != trailer || value.len != 8 || tm_get64(value.data) != i;
    it->ops->seek(it, key, trailer);
    failures += !it->valid || it->trailer != trailer;
    it->ops->seek_before(it, key, trailer - 1);
    // Only what is newer than the view may have come between.
    while (it->valid && tm_trailer_seq(it->trailer) > seen) it->ops->prev(it);
    failures += !it->valid || it->trailer != trailer;
    uint64_t cover;
    failures += tm_memtable_range_cover(s->t, tm_slice_str("r"), seen, &cover, NULL) != TAMIS_OK;
    return failures + (cover != seen / 50 * 50); // one range delete for each 50 entries
}

static void *read_all(void *arg)
{
    shared *s = arg;
    tm_random r = tm_random_seed((uint64_t)(uintptr_t)&r);
    tm_iter *it;
    uint64_t failures = 0;
    if (tm_memtable_iter_create(s->t, &it, NULL) != TAMIS_OK) return NULL;
    for (;;) {
        uint64_t seen = atomic_load_explicit(&s->published, memory_order_acquire);
        for (int i = 0; i < 300 && seen > 0; i++) failures += search_failures(s, it, seen, &r);
        failures += scan_failures(s, false);
        failures += scan_failures(s, true);
        if (seen == SHARED) break;
    }
    tm_iter_destroy(it);
    s->failures = failures;
    return s;
}

START_TEST(readers_see_what_was_published)
{
    tm_order o = tm_order_bytewise();
    shared s = {.t = create(&o, BUFFER), .k = &kinds[_i], .keys = calloc(SHARED, 32)};
    shared readers[2];
    tm_thread threads[2];
    tm_random r = tm_random_seed(1);
    for (uint64_t i = 0; i < SHARED; i++) {
        s.keys[32 * i] = (uint8_t)s.k->make(s.keys + 32 * i + 1, i, &r);
    }
    // The readers share the number through one struct; their counts are their own.
    for (int i = 0; i < 2; i++) readers[i] = s;
    _Atomic uint64_t *numbers[2] = {&readers[0].published, &readers[1].published};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tm_thread_start(&threads[i], read_all, &readers[i], "reader", NULL), 0);
    }
    for (uint64_t i = 0; i < SHARED; i++) {
        uint8_t value[8];
        tm_put64(value, i);
        tm_slice key = shared_key(&s, i);
        ck_assert_int_eq(tm_memtable_add(s.t, key, tm_trailer(i + 1, TM_KIND_PUT),
                                         tm_slice_of(value, 8), hash_of(key), NULL), TAMIS_OK);
        if ((i + 1) % 50 == 0) {
            ck_assert_int_eq(tm_memtable_add_range(s.t, tm_slice_str("q"), tm_slice_str("s"), i + 1,
                                                   NULL), TAMIS_OK);
        }
        for (int k = 0; k < 2; k++) atomic_store_explicit(numbers[k], i + 1, memory_order_release);
    }
    for (int i = 0; i < 2; i++) {
        tm_thread_join(&threads[i]);
        ck_assert_uint_eq(readers[i].failures, 0);
    }
    tm_memtable_unref(s.t);
    free(s.keys);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("memtable");
    TCase *c = tcase_create("order");
    tcase_add_test(c, nothing_is_in_an_empty_one);
    tcase_add_loop_test(c, every_kind_of_keys_is_kept_in_order, 0, 2 * KINDS);
    tcase_add_test(c, an_iterator_steps_on_where_its_leaf_was_split);
    tcase_add_test(c, lengths_at_the_limits);
    suite_add_tcase(s, c);
    c = tcase_create("memory");
    tcase_add_loop_test(c, without_memory_nothing_changes, 0, KINDS);
    tcase_add_loop_test(c, what_was_reserved_cannot_fail, 0, KINDS);
    tcase_add_test(c, a_large_value_is_reserved_too);
    suite_add_tcase(s, c);
    c = tcase_create("ranges");
    tcase_add_test(c, range_deletes_cover_as_they_should);
    tcase_add_test(c, an_empty_range_gives_no_set);
    tcase_add_test(c, range_sets_without_memory);
    suite_add_tcase(s, c);
    c = tcase_create("threads");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, readers_see_what_was_published, 0, KINDS);
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
