// SPDX-License-Identifier: BSD-2-Clause
//
// table_iter.c - a walk over the entries of a table, both ways.
//
//   top ──► index of the partition at hand ──► data block at hand ──► pos
//
// Each of the three is pinned while the walk stands below it. The key is put together in the
// iterator's own buffer; the block's prefix stands there from its first entry on, so that a step
// inside a block copies a suffix. The value points into the pinned block.
//
// Reading ahead: after two blocks in a row that were not in memory, the next one is read together
// with what stands behind it (before it, walking back) in the file, twice as much each time. What
// was read ahead stays as it is in the file until the walk gets there; a frame that is cut off at
// the end of the stretch begins the next one. The memory counts in the cache's budget.
#include "base/mem.h"
#include "sstable/table_internal.h"

#define AHEAD_AFTER 2u                  // misses in a row
#define AHEAD_FIRST ((size_t)16 * 1024) // bytes of the first stretch, at least
#define AHEAD_DEFAULT ((size_t)256 * 1024)
#define AHEAD_MAX ((size_t)64 * 1024 * 1024)

typedef enum direction { STANDING, FORWARD, BACKWARD } direction;

typedef struct table_iter {
    tm_iter it;
    tm_data_block *data;   // NULL: none at hand, as for index and top
    uint32_t pos;          // entry of data
    uint8_t *key;
    size_t key_cap;
    tm_table *table;
    tm_top_block *top;
    tm_index_block *index;
    uint32_t partition;    // of index
    uint32_t block;        // entry of index that data is
    bool cached_only;
    tm_load load;
    tm_readahead ahead;
    size_t ahead_next, ahead_max; // bytes
    direction moving;      // of the misses
    uint32_t misses;       // blocks in a row that were not in memory
    uint32_t near_p, near_i, near_pos; // where a seek that is being approached leads
    int near;              // the last stage that was reached
} table_iter;

static table_iter *self_of(tm_iter *it) { return (table_iter *)(void *)it; }

// ---- Ends --------------------------------------------------------------------------------------

static bool fail(table_iter *x, int st)
{
    tm_iter_fail(&x->it, st);
    return false;
}

static bool end(table_iter *x)
{
    x->it.valid = false;
    return false;
}

static void start(table_iter *x)
{
    x->it.valid = false;
    x->it.status = TAMIS_OK;
    x->moving = STANDING;
    x->misses = 0;
    x->near = -1;
}

static void drop_data(table_iter *x)
{
    if (x->data == NULL) return;
    tm_cached_unref(&x->data->head);
    x->data = NULL;
}

static void drop_index(table_iter *x)
{
    drop_data(x);
    if (x->index == NULL) return;
    tm_cached_unref(&x->index->head);
    x->index = NULL;
}

// ---- Reading ahead -----------------------------------------------------------------------------

static bool ahead_room(table_iter *x, size_t n)
{
    tm_readahead *a = &x->ahead;
    if (a->cap >= n) return true;
    uint8_t *bytes = tm_alloc(n);
    if (bytes == NULL) return false;
    tm_free(a->bytes);
    tm_cache_charge(x->table->env.cache, (int64_t)n - (int64_t)a->cap);
    a->bytes = bytes;
    a->cap = n;
    return true;
}

// Reads the stretch that begins (walking back: ends) with the frame at offset. It is only ahead:
// what fails here is left to the read of the one frame that is needed.
static void read_ahead(table_iter *x, uint64_t offset, uint32_t length)
{
    tm_readahead *a = &x->ahead;
    size_t want = TM_MIN(TM_MAX(x->ahead_next, (size_t)length * 4), x->ahead_max);
    a->len = 0;
    if (want <= length) return;
    uint64_t from = offset;
    if (x->moving == FORWARD) {
        want = (size_t)TM_MIN((uint64_t)want, x->table->meta.tail_offset - offset);
    } else {
        uint64_t before = TM_MIN((uint64_t)want - length, offset - TM_TABLE_HEADER_BYTES);
        from = offset - before;
        want = (size_t)before + length;
    }
    if (!ahead_room(x, want)) return;
    if (tm_table_read(x->table, from, a->bytes, want, NULL) != TAMIS_OK) return;
    a->from = from;
    a->len = want;
    x->ahead_next = TM_MIN(want * 2, x->ahead_max);
}

// Data block i is not in memory.
static int load_data(table_iter *x, uint32_t i, direction way)
{
    tamis_error *err = &x->it.error;
    uint64_t offset;
    uint32_t length;
    if (x->cached_only) return tm_fail(err, TAMIS_BUSY, "the block is not in memory");
    TM_TRY(tm_table_data_place(x->table, x->index, i, &offset, &length, err));
    x->misses = way == STANDING ? 0 : way == x->moving ? x->misses + 1 : 1;
    x->moving = way;
    if (x->misses > AHEAD_AFTER && tm_readahead_find(&x->ahead, offset, length) == NULL) {
        read_ahead(x, offset, length);
    }
    return tm_table_load_data(x->table, &x->load, x->index, i, &x->data, err);
}

// ---- Getting to a block ------------------------------------------------------------------------

static bool need_top(table_iter *x)
{
    if (x->top != NULL) return true;
    if (x->cached_only) {
        x->top = (tm_top_block *)(void *)tm_cache_pin(&x->table->top);
        if (x->top != NULL) return true;
        return fail(x, tm_fail(&x->it.error, TAMIS_BUSY, "the top level is not in memory"));
    }
    int st = tm_table_pin_top(x->table, &x->load, &x->top, &x->it.error);
    return st == TAMIS_OK || fail(x, st);
}

static bool need_index(table_iter *x, uint32_t p)
{
    if (x->index != NULL && x->partition == p) return true;
    drop_index(x);
    x->partition = p;
    if (x->cached_only) {
        tm_cached *b = tm_cache_pin(tm_table_index_slot(x->top, p));
        x->index = (tm_index_block *)(void *)b;
        if (b != NULL) return true;
        return fail(x, tm_fail(&x->it.error, TAMIS_BUSY, "the index is not in memory"));
    }
    int st = tm_table_pin_index(x->table, &x->load, x->top, p, &x->index, &x->it.error);
    return st == TAMIS_OK || fail(x, st);
}

static bool need_data(table_iter *x, uint32_t i, direction way)
{
    if (x->data != NULL && x->block == i) return true;
    drop_data(x); // first, so that it may make room
    x->block = i;
    tm_cached *b = tm_cache_pin(&x->index->head.slots[i]);
    if (b != NULL) {
        tm_table_count_cached(x->load.counts, b);
        x->data = (tm_data_block *)(void *)b;
        x->misses = 0;
        x->ahead_next = AHEAD_FIRST;
        return true;
    }
    int st = load_data(x, i, way);
    return st == TAMIS_OK || fail(x, st);
}

// To block i of partition p, or the first one behind it; the partition's index need not have an i.
static bool enter_forward(table_iter *x, uint32_t p, uint32_t i, direction way)
{
    for (; p < x->top->block.n; p++, i = 0) {
        if (!need_index(x, p)) return false;
        if (i < x->index->block.n) return need_data(x, i, way);
    }
    return end(x);
}

// To the block before block i of partition p.
static bool enter_backward(table_iter *x, uint32_t p, uint32_t i, direction way)
{
    while (i == 0) {
        if (p == 0) return end(x);
        if (!need_index(x, --p)) return false;
        i = x->index->block.n;
    }
    return need_index(x, p) && need_data(x, i - 1, way);
}

// ---- Showing an entry --------------------------------------------------------------------------

static bool grow_key(table_iter *x, size_t need)
{
    uint8_t *key = tm_realloc(x->key, TM_MAX(need, x->key_cap * 2));
    if (key == NULL) return fail(x, tm_fail_nomem(&x->it.error));
    x->key = key;
    x->key_cap = TM_MAX(need, x->key_cap * 2);
    return true;
}

// whole: the block's prefix is not in the key buffer yet.
static inline void show(table_iter *x, uint32_t pos, bool whole)
{
    const tm_block *b = &x->data->block;
    uint32_t len = tm_block_key_len(b, pos);
    x->pos = pos;
    if (TM_UNLIKELY(len + TM_BLOCK_KEY_SLACK > x->key_cap) &&
        !grow_key(x, len + TM_BLOCK_KEY_SLACK)) {
        return;
    }
    (void)(whole ? tm_block_key(b, pos, x->key) : tm_block_key_suffix(b, pos, x->key));
    x->it.key = tm_slice_of(x->key, len);
    x->it.trailer = tm_block_trailer(b, pos);
    x->it.value = tm_block_value(b, pos);
    x->it.valid = true;
}

// Shows entry pos of the block at hand or, if it has no such, the first one behind it.
static void show_forward(table_iter *x, uint32_t pos)
{
    while (pos >= x->data->block.n) {
        if (!enter_forward(x, x->partition, x->block + 1, FORWARD)) return;
        pos = 0;
    }
    show(x, pos, true);
}

// Shows the last of the first pos entries of the block at hand or, if there is none, the one before
// it.
static void show_backward(table_iter *x, uint32_t pos)
{
    while (pos == 0) {
        if (!enter_backward(x, x->partition, x->block, BACKWARD)) return;
        pos = x->data->block.n;
    }
    show(x, pos - 1, true);
}

// ---- Movements ---------------------------------------------------------------------------------

static void iter_first(tm_iter *it)
{
    table_iter *x = self_of(it);
    start(x);
    if (need_top(x) && enter_forward(x, 0, 0, FORWARD)) show_forward(x, 0);
}

static void iter_last(tm_iter *it)
{
    table_iter *x = self_of(it);
    start(x);
    if (!need_top(x) || !enter_backward(x, x->top->block.n, 0, BACKWARD)) return;
    show_backward(x, x->data->block.n);
}

static void iter_seek(tm_iter *it, tm_slice key, uint64_t trailer)
{
    table_iter *x = self_of(it);
    const tm_order *order = &x->table->order;
    if (x->near == TM_ITER_STAGES - 1) { // all but the entry itself has been found
        x->near = -1;
        show_forward(x, x->near_pos);
        return;
    }
    start(x);
    if (!need_top(x)) return;
    uint32_t p = tm_block_lower_bound(&x->top->block, order, key, trailer);
    if (p == x->top->block.n || !need_index(x, p)) return;
    uint32_t i = tm_block_lower_bound(&x->index->block, order, key, trailer);
    if (!enter_forward(x, p, i, STANDING)) return;
    show_forward(x, tm_block_lower_bound(&x->data->block, order, key, trailer));
}

// The lines of a block's head that a pin and a search touch first.
static void prefetch_head(tm_cache_slot *slot)
{
    const tm_cached *b = atomic_load_explicit(slot, memory_order_relaxed); // not looked into
    if (b == NULL) return;
    __builtin_prefetch((const char *)b + offsetof(tm_cached, refs), 1);
    __builtin_prefetch((const char *)b + sizeof(tm_cached));
}

// Where the search in it begins: the middle of the heads, or all of a few.
static void prefetch_heads(const tm_block *b)
{
    enum { LINE = 64, ALL = 8 * LINE };
    size_t bytes = (size_t)b->n * 4, from = bytes > ALL ? bytes / 2 - ALL / 2 : 0;
    if (b->heads == NULL) return;
    for (size_t at = from; at < bytes && at < from + ALL; at += LINE) {
        __builtin_prefetch(b->heads + at);
    }
}

// Stops where something is not in memory: the seek does the rest.
static void iter_approach(tm_iter *it, tm_slice key, uint64_t trailer, int stage)
{
    table_iter *x = self_of(it);
    const tm_order *order = &x->table->order;
    tm_cache_slot *slot;
    if (stage == 0) {
        start(x);
        if (x->top == NULL) x->top = (tm_top_block *)(void *)tm_cache_pin(&x->table->top);
        if (x->top == NULL) return;
    }
    if (x->near != stage - 1) return;
    switch (stage) {
    case 0:
        x->near_p = tm_block_lower_bound(&x->top->block, order, key, trailer);
        if (x->near_p == x->top->block.n) return;
        prefetch_head(tm_table_index_slot(x->top, x->near_p));
        break;
    case 1:
        slot = tm_table_index_slot(x->top, x->near_p);
        if (x->index == NULL || x->partition != x->near_p) {
            if (atomic_load_explicit(slot, memory_order_relaxed) == NULL) return;
            if (!need_index(x, x->near_p)) return;
        }
        prefetch_heads(&x->index->block);
        break;
    case 2:
        x->near_i = tm_block_lower_bound(&x->index->block, order, key, trailer);
        if (x->near_i == x->index->block.n) return;
        prefetch_head(&x->index->head.slots[x->near_i]);
        break;
    case 3:
        slot = &x->index->head.slots[x->near_i];
        if (x->data == NULL || x->block != x->near_i) {
            if (atomic_load_explicit(slot, memory_order_relaxed) == NULL) return;
            if (!need_data(x, x->near_i, STANDING)) return;
        }
        prefetch_heads(&x->data->block);
        break;
    case 4:
        x->near_pos = tm_block_lower_bound(&x->data->block, order, key, trailer);
        __builtin_prefetch(&x->data->block.offsets[x->near_pos]);
        break;
    default:
        __builtin_prefetch(x->data->block.raw + x->data->block.offsets[x->near_pos]);
        break;
    }
    x->near = stage;
}

static void iter_seek_before(tm_iter *it, tm_slice key, uint64_t trailer)
{
    table_iter *x = self_of(it);
    const tm_order *order = &x->table->order;
    start(x);
    if (!need_top(x)) return;
    uint32_t p = tm_block_lower_bound(&x->top->block, order, key, trailer), i = 0;
    if (p < x->top->block.n) {
        if (!need_index(x, p)) return;
        i = tm_block_lower_bound(&x->index->block, order, key, trailer);
        if (i < x->index->block.n) {
            if (!need_data(x, i, STANDING)) return;
            show_backward(x, tm_block_lower_bound(&x->data->block, order, key, trailer));
            return;
        }
    }
    if (enter_backward(x, p, i, STANDING)) show_backward(x, x->data->block.n);
}

static void iter_next(tm_iter *it)
{
    table_iter *x = self_of(it);
    uint32_t pos = x->pos + 1;
    if (TM_LIKELY(pos < x->data->block.n)) {
        show(x, pos, false);
    } else {
        show_forward(x, pos);
    }
}

static void iter_prev(tm_iter *it)
{
    table_iter *x = self_of(it);
    if (TM_LIKELY(x->pos > 0)) {
        show(x, x->pos - 1, false);
    } else {
        show_backward(x, 0);
    }
}

// ---- Life --------------------------------------------------------------------------------------

static void iter_rest(tm_iter *it)
{
    table_iter *x = self_of(it);
    drop_index(x);
    if (x->top != NULL) tm_cached_unref(&x->top->head);
    x->top = NULL;
    if (x->ahead.cap != 0) tm_cache_charge(x->table->env.cache, -(int64_t)x->ahead.cap);
    tm_free(x->ahead.bytes);
    memset(&x->ahead, 0, sizeof x->ahead);
}

static void iter_destroy(tm_iter *it)
{
    table_iter *x = self_of(it);
    iter_rest(it);
    tm_free(x->key);
    tm_free(x);
}

static const tm_iter_ops table_iter_ops = {
    .first = iter_first,
    .last = iter_last,
    .seek = iter_seek,
    .seek_before = iter_seek_before,
    .next = iter_next,
    .prev = iter_prev,
    .destroy = iter_destroy,
    .rest = iter_rest,
    .approach = iter_approach,
};

int tm_table_iter_create(tm_table *t, const tm_table_iter_options *options, tm_iter **out,
                         tamis_error *err)
{
    table_iter *x = tm_calloc(1, sizeof *x);
    if (x == NULL) return tm_fail_nomem(err);
    x->it.ops = &table_iter_ops;
    x->table = t;
    x->cached_only = options->cached_only;
    x->load = (tm_load){.counts = options->counts, .ahead = &x->ahead, .cold = options->no_fill};
    size_t most = options->readahead_bytes != 0 ? options->readahead_bytes : AHEAD_DEFAULT;
    x->ahead_max = TM_MIN(most, AHEAD_MAX);
    x->ahead_next = AHEAD_FIRST;
    *out = &x->it;
    return TAMIS_OK;
}
