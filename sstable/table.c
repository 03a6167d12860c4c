// SPDX-License-Identifier: BSD-2-Clause
//
// table.c - the life of a table, and its range deletes.
#include "base/mem.h"
#include "sstable/table_internal.h"

// ---- Life --------------------------------------------------------------------------------------

static int load_now(tm_table *t, tamis_error *err)
{
    tm_read_counts counts = {0};
    tm_load how = {.counts = &counts};
    tm_top_block *top;
    TM_TRY(tm_table_load_top(t, &how, &top, err));
    tm_cached_unref(&top->head);
    return TAMIS_OK;
}

int tm_table_open(const tm_table_env *env, const tm_table_meta *meta, const tm_order *order,
                  bool load, tm_table **out, tamis_error *err)
{
    int st;
    tm_table *t = tm_alloc_aligned(TM_CACHE_LINE, sizeof *t);
    if (t == NULL) return tm_fail_nomem(err);
    memset(t, 0, sizeof *t);
    atomic_init(&t->top, NULL);
    atomic_init(&t->ranges, NULL);
    atomic_init(&t->info, NULL);
    t->env = *env;
    t->order = *order;
    tm_table_meta_init(&t->meta);
    st = tm_table_meta_copy(&t->meta, meta);
    TM_GOTO(st == TAMIS_NOMEM ? tm_fail_nomem(err) : st);
    TM_GOTO(tm_table_cache_add(env->files, meta->number, &t->file, err));
    if (load) TM_GOTO(load_now(t, err));
    *out = t;
    return TAMIS_OK;
out:
    tm_table_close(t);
    return st;
}

void tm_table_close(tm_table *t)
{
    if (t == NULL) return;
    tm_cache_drop(t->env.cache, &t->top);
    tm_range_set *set = atomic_load_explicit(&t->ranges, memory_order_acquire);
    if (set != NULL) {
        tm_cache_keep(t->env.cache, TM_CACHED_RANGE, -(int64_t)(sizeof *set + set->memory));
        tm_range_set_deinit(set);
        tm_free(set);
    }
    tm_free(atomic_load_explicit(&t->info, memory_order_acquire));
    tm_table_cache_remove(t->env.files, t->file);
    tm_table_meta_deinit(&t->meta);
    tm_free(t);
}

const tm_table_meta *tm_table_get_meta(const tm_table *t) { return &t->meta; }

// ---- Range deletes -----------------------------------------------------------------------------

static const tm_range_set *ranges_in_memory(tm_table *t)
{
    return atomic_load_explicit(&t->ranges, memory_order_acquire); // pairs with keep_ranges
}

int tm_table_ranges(tm_table *t, const tm_range_set **out, tamis_error *err)
{
    *out = NULL;
    if (t->meta.range_deletes == 0) return TAMIS_OK;
    if ((*out = ranges_in_memory(t)) != NULL) return TAMIS_OK;
    tm_read_counts counts = {0};
    tm_load how = {.counts = &counts};
    TM_TRY(tm_table_load_ranges(t, &how, err));
    *out = ranges_in_memory(t);
    return TAMIS_OK;
}

int tm_table_range_cover(tm_table *t, tm_read_ctx *rc, tm_slice key, uint64_t seq, uint64_t *cover)
{
    *cover = 0;
    if (TM_LIKELY(t->meta.range_deletes == 0)) return TAMIS_OK;
    if (rc->mode == TM_READ_EPOCH && !t->order.bytewise) return TAMIS_BUSY;
    const tm_range_set *set = ranges_in_memory(t);
    if (set == NULL) {
        if (rc->mode != TM_READ_PINNED) return TAMIS_BUSY;
        tm_load how = {.counts = rc->counts};
        TM_TRY(tm_table_load_ranges(t, &how, rc->err));
        set = ranges_in_memory(t);
    } else {
        rc->counts->cached_blocks[TM_CACHED_RANGE]++;
        rc->counts->cached_bytes[TM_CACHED_RANGE] += set->memory;
    }
    *cover = tm_range_set_cover(set, &t->order, key, seq);
    return TAMIS_OK;
}
