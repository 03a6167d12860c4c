// SPDX-License-Identifier: BSD-2-Clause
//
// table_lookup.c - point lookups: route, probe, find.
//
// COST with everything in memory, in EPOCH mode: a search among the partitions (a small array, used
// by all lookups in the table), two lines of the filter, a search in the index, one in the data
// block. No lock, no reference count, no allocation, no call through a pointer.
#include "base/mem.h"
#include "sstable/table_internal.h"

// ---- Pins of a context -------------------------------------------------------------------------

void tm_read_ctx_reset(tm_read_ctx *rc)
{
    for (uint32_t i = 0; i < rc->pin_count; i++) {
        tm_cached_unref(i < TM_READ_PINS ? rc->pins[i] : rc->more[i - TM_READ_PINS]);
    }
    tm_free(rc->more);
    rc->more = NULL;
    rc->pin_count = rc->more_cap = 0;
}

// Takes over the caller's pin of b; after a failure, too. A block that is held already (the index,
// when older versions of a key are looked for) is not held twice.
static int hold(tm_read_ctx *rc, tm_cached *b)
{
    uint32_t n = rc->pin_count;
    for (uint32_t i = n; i > 0 && i + TM_READ_PINS > n; i--) {
        tm_cached *held = i > TM_READ_PINS ? rc->more[i - 1 - TM_READ_PINS] : rc->pins[i - 1];
        if (held != b) continue;
        tm_cached_unref(b);
        return TAMIS_OK;
    }
    if (n < TM_READ_PINS) {
        rc->pins[n] = b;
    } else {
        if (n - TM_READ_PINS == rc->more_cap) {
            uint32_t cap = rc->more_cap == 0 ? 16 : rc->more_cap * 2;
            tm_cached **more = tm_realloc(rc->more, cap * sizeof(tm_cached *));
            if (more == NULL) {
                tm_cached_unref(b);
                return tm_fail_nomem(rc->err);
            }
            rc->more = more;
            rc->more_cap = cap;
        }
        rc->more[n - TM_READ_PINS] = b;
    }
    rc->pin_count++;
    return TAMIS_OK;
}

// ---- Steps told to explain ---------------------------------------------------------------------

static uint64_t clock_ns(const tm_table *t, const tm_read_ctx *rc)
{
    return rc->step != NULL ? t->env.vfs->monotonic_ns(t->env.vfs) : 0;
}

static void tell(tm_read_ctx *rc, const tm_read_step *s)
{
    if (TM_UNLIKELY(rc->step != NULL)) rc->step(rc->step_ctx, s);
}

// ---- Blocks: in memory, or read ----------------------------------------------------------------

// The block in the slot, held as the mode asks. OK with *out NULL: it has to be read (PINNED only).
static int look(tm_read_ctx *rc, tm_cache_slot *slot, tm_cached **out)
{
    if (TM_LIKELY(rc->mode == TM_READ_EPOCH)) {
        *out = tm_cache_load(slot);
        if (TM_UNLIKELY(*out == NULL)) return TAMIS_BUSY;
    } else {
        *out = tm_cache_pin(slot);
        if (*out == NULL) return rc->mode == TM_READ_CACHED ? TAMIS_BUSY : TAMIS_OK;
        tm_table_count_cached(rc->counts, *out);
        return hold(rc, *out);
    }
    tm_table_count_cached(rc->counts, *out);
    return TAMIS_OK;
}

static tm_load load_of(const tm_read_ctx *rc)
{
    return (tm_load){.counts = rc->counts, .cold = rc->no_fill};
}

static int get_top(tm_table *t, tm_read_ctx *rc, tm_top_block **out)
{
    tm_cached *b;
    TM_TRY(look(rc, &t->top, &b));
    *out = (tm_top_block *)(void *)b;
    if (TM_LIKELY(b != NULL)) return TAMIS_OK;
    tm_load how = load_of(rc);
    uint64_t start = clock_ns(t, rc);
    TM_TRY(tm_table_load_top(t, &how, out, rc->err));
    tell(rc, &(tm_read_step){.what = "index", .outcome = "read", .file_number = t->meta.number,
                             .offset = t->meta.tail_offset,
                             .bytes = t->meta.file_bytes - t->meta.tail_offset,
                             .nanos = clock_ns(t, rc) - start});
    return hold(rc, &(*out)->head);
}

static int get_index(tm_probe *p, tm_read_ctx *rc, tm_index_block **out)
{
    tm_table *t = p->table;
    tm_top_block *top = (tm_top_block *)(void *)p->top;
    uint64_t start = clock_ns(t, rc);
    tm_cached *b;
    TM_TRY(look(rc, tm_table_index_slot(top, p->partition), &b));
    *out = (tm_index_block *)(void *)b;
    if (TM_UNLIKELY(b == NULL)) {
        tm_load how = load_of(rc);
        TM_TRY(tm_table_load_index(t, &how, top, p->partition, out, rc->err));
        TM_TRY(hold(rc, &(*out)->head));
    }
    if (TM_UNLIKELY(rc->step != NULL)) {
        const tm_partition *part = &top->partitions[p->partition];
        tell(rc, &(tm_read_step){.what = "index", .outcome = "read", .cached = b != NULL,
                                 .file_number = t->meta.number, .offset = part->index_offset,
                                 .bytes = part->index_length, .nanos = clock_ns(t, rc) - start});
    }
    return TAMIS_OK;
}

// What explain is told of the data block at hand, but for the outcome.
static int data_step(tm_probe *p, tm_read_ctx *rc, const tm_index_block *index, uint32_t i,
                     tm_read_step *s)
{
    uint32_t length;
    TM_TRY(tm_table_data_place(p->table, index, i, &s->offset, &length, rc->err));
    s->what = "data";
    s->file_number = p->table->meta.number;
    s->bytes = length;
    return TAMIS_OK;
}

// A data block that the processor's caches do not hold costs a wait for its struct and one for its
// heads, which stand behind it, one for its offsets and one for the entry. The first two are begun
// together, and the third as soon as the struct is here. (40 MB of blocks, hit at random: 560 ns a
// lookup, 780 without.)
static inline void prefetch_block(const tm_cached *b)
{
    const char *p = (const char *)b;
    if (b == NULL) return;
    for (size_t line = 1; line <= 7; line++) __builtin_prefetch(p + line * TM_CACHE_LINE);
}
static inline void prefetch_offsets(const tm_block *b)
{
    for (size_t i = 0; i <= b->n && i < 64; i += 16) __builtin_prefetch(b->offsets + i);
}

static int get_data(tm_probe *p, tm_read_ctx *rc, tm_index_block *index, uint32_t i,
                    tm_data_block **out, tm_read_step *s)
{
    uint64_t start = clock_ns(p->table, rc);
    tm_cached *b;
    prefetch_block(atomic_load_explicit(&index->head.slots[i], memory_order_relaxed));
    TM_TRY(look(rc, &index->head.slots[i], &b));
    *out = (tm_data_block *)(void *)b;
    if (TM_UNLIKELY(b == NULL)) {
        tm_load how = load_of(rc);
        TM_TRY(tm_table_load_data(p->table, &how, index, i, out, rc->err));
        TM_TRY(hold(rc, &(*out)->head));
    }
    if (TM_UNLIKELY(rc->step != NULL)) {
        s->cached = b != NULL;
        s->nanos = clock_ns(p->table, rc) - start;
        TM_TRY(data_step(p, rc, index, i, s));
    }
    return TAMIS_OK;
}

// ---- Route -------------------------------------------------------------------------------------

// The filter of the partition into *p; without one, the probe says "maybe".
static int get_filter(tm_probe *p, tm_read_ctx *rc)
{
    tm_table *t = p->table;
    tm_top_block *top = (tm_top_block *)(void *)p->top;
    tm_cache_slot *slot = tm_table_filter_slot(top, p->partition);
    if (TM_UNLIKELY(atomic_load_explicit(slot, memory_order_relaxed) == NULL) &&
        top->partitions[p->partition].filter_length == 0) {
        p->no_filter = true;
        return TAMIS_OK;
    }
    uint64_t start = clock_ns(t, rc);
    TM_TRY(look(rc, slot, &p->filter_block));
    p->filter_cached = p->filter_block != NULL;
    if (TM_UNLIKELY(p->filter_block == NULL)) {
        tm_load how = load_of(rc);
        tm_filter_block *f = tm_table_load_filter(t, &how, top, p->partition);
        p->filter_nanos = clock_ns(t, rc) - start;
        if (f != NULL) TM_TRY(hold(rc, p->filter_block = &f->head));
    }
    const tm_filter_block *f = (const tm_filter_block *)(const void *)p->filter_block;
    if (f != NULL && TM_LIKELY(f->view.bits != NULL)) {
        p->filter = &f->view;
        tm_filter_prefetch(&f->view, p->hash);
    } else {
        p->no_filter = true;
    }
    return TAMIS_OK;
}

int tm_table_route(tm_table *t, tm_read_ctx *rc, tm_slice key, uint64_t trailer, uint64_t hash,
                   tm_probe *out)
{
    *out = (tm_probe){.table = t, .hash = hash};
    tm_top_block *top;
    if (rc->mode == TM_READ_EPOCH && !t->order.bytewise) return TAMIS_BUSY;
    TM_TRY(get_top(t, rc, &top));
    out->top = &top->head;
    out->partition = tm_block_lower_bound(&top->block, &t->order, key, trailer);
    out->outside = out->partition == top->block.n;
    if (out->outside) return TAMIS_OK;
    return get_filter(out, rc);
}

// ---- Probe -------------------------------------------------------------------------------------

static void tell_filter(const tm_probe *p, tm_read_ctx *rc, bool maybe)
{
    const tm_top_block *top = (const tm_top_block *)(const void *)p->top;
    const tm_partition *part = &top->partitions[p->partition];
    tell(rc, &(tm_read_step){.what = "filter", .outcome = maybe ? "maybe" : "no",
                             .cached = p->filter_cached,
                             .file_number = p->table->meta.number,
                             .offset = tm_partition_filter_offset(part),
                             .bytes = part->filter_length, .nanos = p->filter_nanos});
}

bool tm_table_probe(tm_probe *p, tm_read_ctx *rc)
{
    if (p->outside) return false;
    if (TM_UNLIKELY(p->no_filter)) {
        const tm_top_block *top = (const tm_top_block *)(const void *)p->top;
        if (top->partitions[p->partition].filter_length != 0) {
            rc->counts->filter_unavailable++;
            if (rc->step != NULL) tell_filter(p, rc, true);
        }
        return true;
    }
    bool maybe = tm_filter_may_contain(p->filter, p->hash);
    rc->counts->filter_checks++;
    rc->counts->filter_negatives += !maybe;
    if (TM_UNLIKELY(rc->step != NULL)) tell_filter(p, rc, maybe);
    if (maybe) return true;
    p->hides = p->table->env.verify_filters;
    return p->hides;
}

// ---- Find --------------------------------------------------------------------------------------

// Where a search in the partition ended.
typedef struct place {
    tm_index_block *index;
    tm_data_block *data; // NULL: behind the last data block
    uint32_t i, j;       // block i of the index, entry j of the block
} place;

// The key has no entry at or behind the place; has it one before it, too new for the reader? That
// one stands right before the place, and in the same block: had the block before ended with it, and
// this one held none of the key, the search in the index would have led to the block before, whose
// separator then is the key with trailer 0, or lies behind it (docs/format.md, Entries).
static bool has_newer(const tm_table *t, const place *at, tm_slice key)
{
    uint32_t k;
    return at->data != NULL && at->j > 0 &&
           tm_block_find(&at->data->block, &t->order, key, UINT64_MAX, &k);
}

static int search(tm_probe *p, tm_read_ctx *rc, tm_slice key, uint64_t trailer, place *at,
                  bool *found, tm_read_step *s)
{
    const tm_order *order = &p->table->order;
    TM_TRY(get_index(p, rc, &at->index));
    at->i = tm_block_lower_bound(&at->index->block, order, key, trailer);
    if (TM_UNLIKELY(at->i == at->index->block.n)) return TAMIS_OK;
    TM_TRY(get_data(p, rc, at->index, at->i, &at->data, s));
    prefetch_offsets(&at->data->block);
    *found = tm_block_find(&at->data->block, order, key, trailer, &at->j);
    return TAMIS_OK;
}

// Whether the filter was right: once for each route.
static int judge(tm_probe *p, tm_read_ctx *rc, bool present)
{
    if (TM_UNLIKELY(p->hides)) {
        if (!present) return TAMIS_OK;
        const tm_top_block *top = (const tm_top_block *)(const void *)p->top;
        return tm_fail_corrupt(rc->err, p->table->meta.number,
                               tm_partition_filter_offset(&top->partitions[p->partition]),
                               "the filter of partition %u hides a key", p->partition);
    }
    if (p->no_filter || p->judged) return TAMIS_OK;
    p->judged = true;
    rc->counts->filter_true_positives += present;
    rc->counts->filter_false_positives += !present;
    return TAMIS_OK;
}

static const char *outcome_of(const tm_probe *p, bool found, bool present, uint64_t trailer)
{
    if (!found) return present || p->no_filter || p->hides ? "absent" : "false-positive";
    tm_kind kind = tm_trailer_kind(trailer);
    return kind == TM_KIND_DELETE || kind == TM_KIND_SINGLE_DELETE ? "deleted" : "found";
}

int tm_table_find(tm_probe *p, tm_read_ctx *rc, tm_slice key, uint64_t trailer, tm_found *out)
{
    if (TM_UNLIKELY(p->outside)) return TAMIS_NOTFOUND;
    place at = {0};
    tm_read_step s = {0};
    bool found = false;
    TM_TRY(search(p, rc, key, trailer, &at, &found, &s));
    if (found) {
        const tm_block *b = &at.data->block;
        out->trailer = tm_block_trailer(b, at.j);
        out->value = tm_block_value(b, at.j);
        out->block = &at.data->head;
    }
    bool judged = p->judged || (p->no_filter && rc->step == NULL);
    bool present = found || (!judged && has_newer(p->table, &at, key));
    if (TM_UNLIKELY(rc->step != NULL) && at.data != NULL) {
        s.outcome = outcome_of(p, found, present || p->judged, found ? out->trailer : 0);
        tell(rc, &s);
    }
    TM_TRY(judge(p, rc, present));
    return found ? TAMIS_OK : TAMIS_NOTFOUND;
}
