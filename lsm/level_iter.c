// SPDX-License-Identifier: BSD-2-Clause
#include "lsm/level_iter.h"

#include "base/mem.h"

typedef struct level_iter {
    tm_iter it;
    tm_order order;
    tm_table_iter_options options;
    tm_table *const *tables;
    size_t n;
    size_t at;      // the table that is open
    tm_iter *table; // its iterator, NULL if none is
} level_iter;

static inline level_iter *of(tm_iter *it)
{
    return (level_iter *)(void *)it;
}

// Opens table i, if it is not open; false where that fails.
static bool open_table(level_iter *l, size_t i)
{
    if (l->table != NULL && l->at == i) return true;
    tm_iter_destroy(l->table);
    l->table = NULL;
    int st = tm_table_iter_create(l->tables[i], &l->options, &l->table, &l->it.error);
    if (st == TAMIS_OK) {
        l->at = i;
        return true;
    }
    l->table = NULL;
    tm_iter_fail(&l->it, st);
    return false;
}

// Shows the table's entry; where it has none in this direction, goes on to its neighbours. (A table
// may have range deletes only.)
static void show(level_iter *l, bool back)
{
    tm_iter *it = &l->it, *t = l->table;
    while (!t->valid) {
        if (t->status != TAMIS_OK) {
            it->error = t->error;
            tm_iter_fail(it, t->status);
            return;
        }
        if (l->at == (back ? 0 : l->n - 1)) {
            it->valid = false;
            it->status = TAMIS_OK;
            return;
        }
        if (!open_table(l, back ? l->at - 1 : l->at + 1)) return;
        t = l->table;
        if (back) {
            t->ops->last(t);
        } else {
            t->ops->first(t);
        }
    }
    it->valid = true;
    it->status = TAMIS_OK;
    it->key = t->key;
    it->trailer = t->trailer;
    it->value = t->value;
}

// ---- Which table -------------------------------------------------------------------------------

// Whether all entries of the table stand before key.
static bool ends_before(const level_iter *l, size_t i, tm_slice key)
{
    const tm_table_meta *meta = tm_table_get_meta(l->tables[i]);
    if (meta->flags & TM_TABLE_UNBOUNDED) return false;
    int c = tm_order_compare(&l->order, tm_buf_slice(&meta->largest), key);
    return c < 0 || (c == 0 && meta->flags & TM_TABLE_LARGEST_EXCLUSIVE);
}

static bool begins_behind(const level_iter *l, size_t i, tm_slice key)
{
    const tm_table_meta *meta = tm_table_get_meta(l->tables[i]);
    return tm_order_compare(&l->order, tm_buf_slice(&meta->smallest), key) > 0;
}

// The first table that does not end before key; n if none.
static size_t table_at_or_behind(const level_iter *l, tm_slice key)
{
    size_t low = 0, high = l->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (ends_before(l, mid, key)) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

// How many tables do not begin behind key.
static size_t tables_before(const level_iter *l, tm_slice key)
{
    size_t low = 0, high = l->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (begins_behind(l, mid, key)) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return low;
}

// ---- Movements ---------------------------------------------------------------------------------

static void level_end(tm_iter *it)
{
    it->valid = false;
    it->status = TAMIS_OK;
}

static void level_first(tm_iter *it)
{
    level_iter *l = of(it);
    level_end(it);
    if (l->n == 0 || !open_table(l, 0)) return;
    l->table->ops->first(l->table);
    show(l, false);
}

static void level_last(tm_iter *it)
{
    level_iter *l = of(it);
    level_end(it);
    if (l->n == 0 || !open_table(l, l->n - 1)) return;
    l->table->ops->last(l->table);
    show(l, true);
}

static void level_seek(tm_iter *it, tm_slice key, uint64_t trailer)
{
    level_iter *l = of(it);
    level_end(it);
    size_t i = table_at_or_behind(l, key);
    if (i == l->n || !open_table(l, i)) return;
    l->table->ops->seek(l->table, key, trailer);
    show(l, false);
}

static void level_seek_before(tm_iter *it, tm_slice key, uint64_t trailer)
{
    level_iter *l = of(it);
    level_end(it);
    size_t count = tables_before(l, key);
    if (count == 0 || !open_table(l, count - 1)) return;
    l->table->ops->seek_before(l->table, key, trailer);
    show(l, true);
}

static void level_next(tm_iter *it)
{
    level_iter *l = of(it);
    l->table->ops->next(l->table);
    show(l, false);
}

static void level_prev(tm_iter *it)
{
    level_iter *l = of(it);
    l->table->ops->prev(l->table);
    show(l, true);
}

static void level_rest(tm_iter *it)
{
    if (of(it)->table != NULL) tm_iter_rest(of(it)->table);
}

static void level_approach(tm_iter *it, tm_slice key, uint64_t trailer, int stage)
{
    level_iter *l = of(it);
    if (stage == 0) {
        size_t i = table_at_or_behind(l, key);
        level_end(it);
        if (i == l->n || !open_table(l, i)) return;
    }
    if (l->table != NULL) l->table->ops->approach(l->table, key, trailer, stage);
}

static void level_destroy(tm_iter *it)
{
    tm_iter_destroy(of(it)->table);
    tm_free(it);
}

static const tm_iter_ops level_ops = {level_first,       level_last, level_seek,
                                      level_seek_before, level_next, level_prev,
                                      level_destroy,     level_rest, level_approach};

int tm_level_iter_create(const tm_order *order, tm_table *const *tables, size_t n,
                         const tm_table_iter_options *options, tm_iter **out, tamis_error *err)
{
    *out = NULL;
    level_iter *l = tm_calloc(1, sizeof(*l));
    if (l == NULL) return tm_fail_nomem(err);
    l->it.ops = &level_ops;
    l->order = *order;
    l->options = *options;
    l->tables = tables;
    l->n = n;
    *out = &l->it;
    return TAMIS_OK;
}
