// SPDX-License-Identifier: BSD-2-Clause
//
// iter_support.h - an internal iterator over an array, for tests of what stands on iterators.
//
// What it shows is a copy that is freed at the next movement, so that the address sanitizer sees
// who looks too late. It can be told to fail.
#ifndef ITER_SUPPORT_H
#define ITER_SUPPORT_H

#include <check.h>
#include <stdlib.h>

#include "base/iter.h"
#include "base/random.h"

typedef struct entry {
    char key[12]; // text
    uint64_t trailer;
    char value[32];
    size_t child;
} entry;

static inline tm_slice entry_key(const entry *e)
{
    return tm_slice_str(e->key);
}

typedef struct array_iter {
    tm_iter it;
    tm_order order;
    const entry *entries; // sorted
    size_t n, at;
    char *shown;
    long fail_in; // so many movements pass before one fails; negative: never
    size_t moves;
} array_iter;

static size_t array_iters_alive;

static inline void array_show(array_iter *a, bool inside)
{
    free(a->shown);
    a->shown = NULL;
    a->moves++;
    a->it.status = TAMIS_OK;
    a->it.valid = false;
    if (a->fail_in == 0) {
        tm_iter_fail(&a->it, tm_fail(&a->it.error, TAMIS_IO, "told to fail"));
        return;
    }
    if (a->fail_in > 0) a->fail_in--;
    if (!inside) return;
    const entry *e = &a->entries[a->at];
    size_t klen = strlen(e->key), vlen = strlen(e->value);
    a->shown = malloc(klen + vlen + 1);
    memcpy(a->shown, e->key, klen);
    memcpy(a->shown + klen, e->value, vlen);
    a->it.key = tm_slice_of(a->shown, klen);
    a->it.value = tm_slice_of(a->shown + klen, vlen);
    a->it.trailer = e->trailer;
    a->it.valid = true;
}

static inline array_iter *array_of(tm_iter *it)
{
    return (array_iter *)(void *)it;
}

static inline size_t array_find(const array_iter *a, tm_slice key, uint64_t trailer)
{
    size_t i = 0;
    while (i < a->n && tm_order_compare_internal(&a->order, entry_key(&a->entries[i]),
                                                 a->entries[i].trailer, key, trailer) < 0) {
        i++;
    }
    return i;
}

static inline void array_to(array_iter *a, size_t at) // SIZE_MAX is before the first
{
    a->at = at;
    array_show(a, at < a->n);
}

static inline void array_first(tm_iter *it)
{
    array_to(array_of(it), 0);
}
static inline void array_last(tm_iter *it)
{
    array_to(array_of(it), array_of(it)->n - 1);
}
static inline void array_seek(tm_iter *it, tm_slice key, uint64_t trailer)
{
    array_to(array_of(it), array_find(array_of(it), key, trailer));
}
static inline void array_seek_before(tm_iter *it, tm_slice key, uint64_t trailer)
{
    array_to(array_of(it), array_find(array_of(it), key, trailer) - 1);
}
static inline void array_next(tm_iter *it)
{
    ck_assert(it->valid); // I5
    array_to(array_of(it), array_of(it)->at + 1);
}
static inline void array_prev(tm_iter *it)
{
    ck_assert(it->valid);
    array_to(array_of(it), array_of(it)->at - 1);
}
static inline void array_destroy(tm_iter *it)
{
    array_iters_alive--;
    free(array_of(it)->shown);
    free(it);
}

static inline tm_iter *array_iter_create(const tm_order *order, const entry *entries, size_t n)
{
    static const tm_iter_ops ops = {array_first, array_last, array_seek,   array_seek_before,
                                    array_next,  array_prev, array_destroy, NULL, NULL};
    array_iter *a = calloc(1, sizeof(*a));
    a->it.ops = &ops;
    a->order = *order;
    a->entries = entries;
    a->n = n;
    a->fail_in = -1;
    array_iters_alive++;
    return &a->it;
}

// ---- An order that is not bytewise -------------------------------------------------------------

static inline int compare_reversed(void *ctx, const void *a, size_t alen, const void *b,
                                   size_t blen)
{
    (void)ctx;
    return tm_slice_compare(tm_slice_of(b, blen), tm_slice_of(a, alen));
}

static inline tm_order order_reversed(void)
{
    static const tamis_comparator c = {
        .size = sizeof(c), .name = "reversed", .compare = compare_reversed};
    return tm_order_of(&c);
}

// ---- Sorting entries ---------------------------------------------------------------------------

static tm_order entry_order; // qsort passes no context

static inline int entry_compare(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int c =
        tm_order_compare_internal(&entry_order, entry_key(x), x->trailer, entry_key(y), y->trailer);
    return c != 0 ? c : (x->child > y->child) - (x->child < y->child);
}

static inline void sort_entries(const tm_order *order, entry *entries, size_t n)
{
    entry_order = *order;
    if (n > 0) qsort(entries, n, sizeof(*entries), entry_compare);
}

#endif // ITER_SUPPORT_H
