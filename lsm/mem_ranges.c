// SPDX-License-Identifier: BSD-2-Clause
#include "lsm/mem_ranges.h"

#include "base/mem.h"

enum {
    UNFOLDED_MAX = 16, // a search through so many costs less than a set
    ALIKE = 3,         // tiers of about the same size
    TIERS_MAX = 64     // ALIKE for each power of 4
};

struct tm_mem_range {
    const tm_mem_range *next; // the one before it in time
    uint64_t seq;
    uint64_t number; // from 1
    uint32_t start_len, limit_len;
    uint8_t bytes[]; // start, limit
};
static_assert(offsetof(tm_mem_range, bytes) == TM_MEM_RANGE_HEAD, "told in the header");

typedef struct tier {
    tm_range_set set;
    uint64_t items;
} tier;

struct tm_mem_tiers {
    tm_mem_tiers *kept; // the list of tiers before it
    uint64_t folded;    // R2
    uint32_t count;
    const tier *tiers[TIERS_MAX]; // oldest first; the last one came with this list
    tier made;
};

static tm_slice start_of(const tm_mem_range *r)
{
    return tm_slice_of(r->bytes, r->start_len);
}

static tm_slice limit_of(const tm_mem_range *r)
{
    return tm_slice_of(r->bytes + r->start_len, r->limit_len);
}

int tm_mem_ranges_init(tm_mem_ranges *r, const tm_order *order, tamis_error *err)
{
    atomic_init(&r->newest, NULL);
    atomic_init(&r->tiers, NULL);
    atomic_init(&r->bytes, 0);
    r->order = *order;
    r->kept = NULL;
    return tm_mutex_init(&r->m, err);
}

void tm_mem_ranges_deinit(tm_mem_ranges *r)
{
    while (r->kept != NULL) {
        tm_mem_tiers *t = r->kept;
        r->kept = t->kept;
        tm_range_set_deinit(&t->made.set);
        tm_free(t);
    }
    tm_mutex_deinit(&r->m);
}

// ---- The writer --------------------------------------------------------------------------------

size_t tm_mem_ranges_need(tm_slice start, tm_slice limit)
{
    return tm_mem_arena_round(TM_MEM_RANGE_HEAD + start.len + limit.len);
}

void tm_mem_ranges_add(tm_mem_ranges *r, tm_mem_arena *a, tm_slice start, tm_slice limit,
                       uint64_t seq)
{
    tm_mem_range *range = tm_mem_arena_alloc(a, tm_mem_ranges_need(start, limit));
    range->next = atomic_load_explicit(&r->newest, memory_order_relaxed);
    range->number = range->next != NULL ? range->next->number + 1 : 1;
    range->seq = seq;
    range->start_len = (uint32_t)start.len;
    range->limit_len = (uint32_t)limit.len;
    if (start.len != 0) memcpy(range->bytes, start.data, start.len);
    if (limit.len != 0) memcpy(range->bytes + start.len, limit.data, limit.len);
    // Release: pairs with the acquire in load_newest.
    atomic_store_explicit(&r->newest, range, memory_order_release);
}

// ---- Tiers -------------------------------------------------------------------------------------

static const tm_mem_range *load_newest(const tm_mem_ranges *r)
{
    return atomic_load_explicit(&r->newest, memory_order_acquire);
}

static const tm_mem_tiers *load_tiers(const tm_mem_ranges *r)
{
    // Acquire: pairs with the release in fold.
    return atomic_load_explicit(&r->tiers, memory_order_acquire);
}

static uint64_t folded(const tm_mem_tiers *t)
{
    return t != NULL ? t->folded : 0;
}

static uint32_t magnitude(uint64_t items) // power of 4
{
    uint32_t power = 0;
    while (items >>= 2) power++;
    return power;
}

// How many of the old tiers stay beside a new one that has *items to begin with: those behind go
// into it.
static uint32_t tiers_to_keep(const tm_mem_tiers *old, uint64_t *items, bool all)
{
    uint32_t count = old != NULL ? old->count : 0;
    all = all || count == TIERS_MAX;
    for (;;) {
        uint32_t kept = count;
        uint64_t sum = *items;
        while (kept > 0 && (all || magnitude(old->tiers[kept - 1]->items) <= magnitude(*items))) {
            sum += old->tiers[--kept]->items;
        }
        if (kept == count || (!all && count - kept < ALIKE)) return count;
        count = kept;
        *items = sum;
    }
}

// A set of the newest ones, down to the one after number. (Not of the sets that are melted: their
// fragments may be many more than the range deletes.)
static int build(const tm_mem_ranges *r, const tm_mem_range *newest, uint64_t number,
                 tm_range_set *out)
{
    tm_range_builder b;
    int st = TAMIS_OK;
    tm_range_builder_init(&b);
    for (const tm_mem_range *i = newest; i != NULL && i->number > number; i = i->next) {
        TM_GOTO(tm_range_builder_add(&b, start_of(i), limit_of(i), i->seq));
    }
    TM_GOTO(tm_range_builder_finish(&b, &r->order, out));
out:
    tm_range_builder_deinit(&b);
    return st;
}

// Puts what is in the list only into a tier, and melts tiers; all of them into one if told. m held.
static int fold(tm_mem_ranges *r, bool all)
{
    const tm_mem_tiers *old = load_tiers(r);
    const tm_mem_range *newest = load_newest(r);
    uint64_t items = newest->number - folded(old);
    if (items == 0 && (!all || old->count == 1)) return TAMIS_OK;
    tm_mem_tiers *t = tm_calloc(1, sizeof(*t));
    if (t == NULL) return TAMIS_NOMEM;
    uint32_t keep = tiers_to_keep(old, &items, all);
    for (uint32_t i = 0; i < keep; i++) t->tiers[i] = old->tiers[i];
    t->tiers[keep] = &t->made;
    t->count = keep + 1;
    t->folded = newest->number;
    t->made.items = items;
    int st = build(r, newest, newest->number - items, &t->made.set);
    if (st != TAMIS_OK) {
        tm_free(t);
        return st;
    }
    t->kept = r->kept;
    r->kept = t;
    size_t bytes = sizeof(*t) + t->made.set.memory;
    atomic_fetch_add_explicit(&r->bytes, bytes, memory_order_relaxed); // a figure by itself
    // Release: pairs with the acquire in load_tiers.
    atomic_store_explicit(&r->tiers, t, memory_order_release);
    return TAMIS_OK;
}

// ---- Readers -----------------------------------------------------------------------------------

static bool covers(const tm_mem_range *r, const tm_order *o, tm_slice key)
{
    return tm_order_compare(o, start_of(r), key) <= 0 &&
           (r->limit_len == 0 || tm_order_compare(o, key, limit_of(r)) < 0);
}

int tm_mem_ranges_cover(tm_mem_ranges *r, tm_slice key, uint64_t seq, uint64_t *cover,
                        tamis_error *err)
{
    (void)err;
    *cover = 0;
    const tm_mem_range *newest = load_newest(r);
    if (TM_LIKELY(newest == NULL)) return TAMIS_OK;
    const tm_mem_tiers *t = load_tiers(r);
    // Folding only saves time. Where another thread folds, or memory ends, the list tells as much.
    if (newest->number > folded(t) + UNFOLDED_MAX && tm_mutex_trylock(&r->m)) {
        TM_IGNORE(fold(r, false));
        tm_mutex_unlock(&r->m);
        t = load_tiers(r);
    }
    for (const tm_mem_range *i = newest; i != NULL && i->number > folded(t); i = i->next) {
        if (i->seq <= seq && i->seq > *cover && covers(i, &r->order, key)) *cover = i->seq;
    }
    for (uint32_t i = 0; t != NULL && i < t->count; i++) {
        uint64_t c = tm_range_set_cover(&t->tiers[i]->set, &r->order, key, seq);
        *cover = TM_MAX(*cover, c);
    }
    return TAMIS_OK;
}

// All of the list in tiers; NULL where there is none.
static int fold_all(tm_mem_ranges *r, bool into_one, const tm_mem_tiers **out, tamis_error *err)
{
    *out = NULL;
    if (load_newest(r) == NULL) return TAMIS_OK;
    tm_mutex_lock(&r->m);
    int st = fold(r, into_one);
    if (st == TAMIS_OK) *out = load_tiers(r);
    tm_mutex_unlock(&r->m);
    return st == TAMIS_OK ? TAMIS_OK : tm_fail_nomem(err);
}

int tm_mem_ranges_sets(tm_mem_ranges *r, tm_buf *out, tamis_error *err)
{
    const tm_mem_tiers *t;
    size_t before = out->len;
    TM_TRY(fold_all(r, false, &t, err));
    for (uint32_t i = 0; t != NULL && i < t->count; i++) {
        const tm_range_set *set = &t->tiers[i]->set;
        if (set->n == 0) continue;
        if (tm_buf_append(out, &set, sizeof(set)) != TAMIS_OK) {
            out->len = before;
            return tm_fail_nomem(err);
        }
    }
    return TAMIS_OK;
}

int tm_mem_ranges_all(tm_mem_ranges *r, const tm_range_set **out, tamis_error *err)
{
    const tm_mem_tiers *t;
    *out = NULL;
    TM_TRY(fold_all(r, true, &t, err));
    if (t != NULL && t->tiers[0]->set.n > 0) *out = &t->tiers[0]->set;
    return TAMIS_OK;
}
