// SPDX-License-Identifier: BSD-2-Clause
//
// block_cache.c - the queues of cached blocks, their eviction, and the budget.
//
//   queue:  head (newest) ◄── prev ── ... ── hand ── ... ── next ──► tail (oldest)
//
// SIEVE: new blocks enter at the head; the hand walks from the tail to the head and round again; a
// touched block is spared once, an untouched one leaves. A hit moves nothing, it sets a flag.
#include "sstable/block_cache.h"

#include "base/mem.h"
#include "base/sync.h"

typedef enum block_state {
    STATE_NEW = 0, // never given to the cache
    STATE_LINKED,  // in its slot and queue
    STATE_EVICTED, // unlinked; its bytes are in retired until readers have left
    STATE_HELD     // unlinked and seen by nobody but pins, or never linked; its bytes are in held
} block_state;

typedef enum queue_id { QUEUE_DATA, QUEUE_PARTITIONS, QUEUE_TOPS, QUEUES } queue_id;

typedef struct queue {
    tm_cached *head, *tail;
    tm_cached *hand; // looked at next; NULL: the tail
    size_t count, bytes;
} queue;

// The hand spares at most so many touched blocks in one search, so that a search is short.
#define SPARED_MAX 1024u
// Blocks that a drop unlinks before it lets others have the mutex.
#define DROP_STEP 512u

#define PIN_SHARDS 16u
typedef struct pin_shard { // bytes of blocks whose references rose from 1 less those that fell to 1
    TM_ALIGNED(TM_CACHE_LINE) _Atomic int64_t bytes;
} pin_shard;

struct tm_cache {
    pin_shard pins[PIN_SHARDS]; // by thread; their sum counts
    _Atomic size_t retired;     // bytes of STATE_EVICTED
    _Atomic size_t held;        // bytes of STATE_HELD
    TM_ALIGNED(TM_CACHE_LINE) tm_mutex mutex; // guards all below
    size_t budget;
    queue queues[QUEUES];
    size_t bytes[TM_CACHED_KINDS], blocks[TM_CACHED_KINDS]; // linked
    size_t kept[TM_CACHED_KINDS];
    size_t linked, charged; // sums; charged with kept
    uint64_t inserts, evictions, rejected;
};

static queue_id queue_of(uint8_t kind)
{
    if (kind == TM_CACHED_DATA) return QUEUE_DATA;
    return kind == TM_CACHED_INDEX || kind == TM_CACHED_FILTER ? QUEUE_PARTITIONS : QUEUE_TOPS;
}

// ---- Life --------------------------------------------------------------------------------------

int tm_cache_create(size_t budget, tm_cache **out, tamis_error *err)
{
    tm_cache *c = tm_alloc_aligned(TM_CACHE_LINE, sizeof *c);
    if (c == NULL) return tm_fail_nomem(err);
    memset(c, 0, sizeof *c);
    c->budget = budget;
    int st = tm_mutex_init(&c->mutex, err);
    if (st != TAMIS_OK) {
        tm_free(c);
        return st;
    }
    *out = c;
    return TAMIS_OK;
}

void tm_cache_destroy(tm_cache *c)
{
    if (c == NULL) return;
    tm_epoch_synchronize(); // blocks that were retired still count themselves off here
    assert(c->linked == 0 && atomic_load_explicit(&c->held, memory_order_relaxed) == 0);
    tm_mutex_deinit(&c->mutex);
    tm_free(c);
}

// ---- References --------------------------------------------------------------------------------

static block_state state_of(const tm_cached *b)
{
    // Relaxed: it changes with the mutex, or (EVICTED to HELD) ordered by refs and the epochs.
    return (block_state)atomic_load_explicit(&b->state, memory_order_relaxed);
}

static void set_state(tm_cached *b, block_state s)
{
    atomic_store_explicit(&b->state, (uint8_t)s, memory_order_relaxed);
}

static void count_pin(tm_cache *c, int64_t bytes)
{
    pin_shard *s = &c->pins[tm_epoch_thread_index() % PIN_SHARDS];
    atomic_fetch_add_explicit(&s->bytes, bytes, memory_order_relaxed);
}

void tm_cached_first_pin(tm_cached *b)
{
    count_pin(b->cache, (int64_t)b->charge);
}

void tm_cached_unref(tm_cached *b)
{
    if (b == NULL) return;
    // After the subtraction another thread may free the block.
    tm_cache *c = b->cache;
    size_t charge = b->charge;
    // Release: what this thread did with the block comes before its end; acquire: the last one sees
    // what all others did.
    uint32_t before = atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel);
    assert(before != 0);
    if (before == 2) count_pin(c, -(int64_t)charge);
    if (before != 1) return;
    block_state state = state_of(b);
    assert(state == STATE_NEW || state == STATE_HELD);
    if (state == STATE_HELD) atomic_fetch_sub_explicit(&c->held, charge, memory_order_relaxed);
    b->destroy(b);
}

// Runs when no reader that could have loaded the block from its slot is left.
static void free_retired(tm_retired *r)
{
    tm_cached *b = TM_CONTAINER(r, tm_cached, retired);
    set_state(b, STATE_HELD); // read by whoever lets go last
    atomic_fetch_add_explicit(&b->cache->held, b->charge, memory_order_relaxed);
    atomic_fetch_sub_explicit(&b->cache->retired, b->charge, memory_order_relaxed);
    tm_cached_unref(b);
}

tm_cached *tm_cache_pin(tm_cache_slot *slot)
{
    tm_epoch_slot *e = tm_epoch_enter();
    if (e == NULL) return NULL;
    tm_cached *b = tm_cache_load(slot);
    if (b != NULL) tm_cached_ref(b);
    tm_epoch_exit(e);
    return b;
}

// ---- Queues, all with the mutex ----------------------------------------------------------------

static void queue_remove(queue *q, tm_cached *b)
{
    if (q->hand == b) q->hand = b->prev;
    *(b->prev != NULL ? &b->prev->next : &q->head) = b->next;
    *(b->next != NULL ? &b->next->prev : &q->tail) = b->prev;
    b->prev = b->next = NULL;
    q->count--;
    q->bytes -= b->charge;
}

static void queue_insert(queue *q, tm_cached *b, bool cold)
{
    if (cold) { // on the older side of the hand, which goes back to it
        b->prev = q->hand != NULL ? q->hand : q->tail;
        b->next = q->hand != NULL ? q->hand->next : NULL;
        if (q->hand != NULL) q->hand = b;
    } else {
        b->prev = NULL;
        b->next = q->head;
    }
    *(b->prev != NULL ? &b->prev->next : &q->head) = b;
    *(b->next != NULL ? &b->next->prev : &q->tail) = b;
    q->count++;
    q->bytes += b->charge;
}

static void link_block(tm_cache *c, tm_cache_slot *slot, tm_cached *parent, tm_cached *b, bool cold)
{
    set_state(b, STATE_LINKED);
    b->slot = slot;
    b->parent = parent;
    if (parent != NULL) parent->live_children++;
    queue_insert(&c->queues[queue_of(b->kind)], b, cold);
    c->bytes[b->kind] += b->charge;
    c->blocks[b->kind]++;
    c->linked += b->charge;
    c->inserts++;
    tm_cached_ref(b); // the cache's
    // Release: readers that load the pointer see the whole block (tm_cache_load).
    atomic_store_explicit(slot, b, memory_order_release);
}

static void unlink_block(tm_cache *c, tm_cached *b)
{
    assert(state_of(b) == STATE_LINKED && b->live_children == 0);
    // Readers that still see the old pointer are inside an epoch, for which the block is kept.
    atomic_store_explicit(b->slot, NULL, memory_order_relaxed);
    queue_remove(&c->queues[queue_of(b->kind)], b);
    c->bytes[b->kind] -= b->charge;
    c->blocks[b->kind]--;
    c->linked -= b->charge;
    if (b->parent != NULL) b->parent->live_children--;
    b->slot = NULL;
    b->parent = NULL;
    set_state(b, STATE_EVICTED);
    atomic_fetch_add_explicit(&c->retired, b->charge, memory_order_relaxed);
    tm_epoch_retire(&b->retired, free_retired);
}

// Unlinks b and all below it, children first, but at most *left blocks; false: some are left. Three
// levels deep at most: top, index, data.
static bool unlink_tree(tm_cache *c, tm_cached *b, size_t *left)
{
    for (uint32_t i = 0; b->live_children != 0 && i < b->slot_count; i++) {
        tm_cached *child = atomic_load_explicit(&b->slots[i], memory_order_relaxed);
        if (child != NULL && !unlink_tree(c, child, left)) return false;
    }
    if (*left == 0) return false;
    --*left;
    unlink_block(c, b);
    return true;
}

// ---- Eviction, all with the mutex --------------------------------------------------------------

static bool evict_from(tm_cache *c, queue *q)
{
    tm_cached *b = q->hand;
    size_t spared = 0;
    for (size_t looked = 0, most = 2 * q->count; looked < most; looked++, b = b->prev) {
        if (b == NULL) b = q->tail;
        if (atomic_load_explicit(&b->refs, memory_order_relaxed) > 1) continue; // pinned (C5)
        if (spared < SPARED_MAX && atomic_load_explicit(&b->touched, memory_order_relaxed) != 0) {
            atomic_store_explicit(&b->touched, 0, memory_order_relaxed);
            spared++;
            continue;
        }
        size_t left = SIZE_MAX;
        q->hand = b;
        (void)unlink_tree(c, b, &left);
        c->evictions += SIZE_MAX - left;
        return true;
    }
    q->hand = b;
    return false;
}

static bool evict_one(tm_cache *c)
{
    size_t room = c->budget > c->charged ? c->budget - c->charged : 0;
    queue *data = &c->queues[QUEUE_DATA], *tops = &c->queues[QUEUE_TOPS];
    if (data->bytes > room / 16 && evict_from(c, data)) return true;
    if (tops->bytes > room / 4 && evict_from(c, tops)) return true;
    return evict_from(c, &c->queues[QUEUE_PARTITIONS]) || evict_from(c, data) ||
           evict_from(c, tops);
}

// Without what is retired.
static size_t used(tm_cache *c)
{
    size_t held = atomic_load_explicit(&c->held, memory_order_relaxed);
    return c->linked + c->charged + TM_MIN(held, c->budget / 2);
}

static size_t retired(tm_cache *c)
{
    return atomic_load_explicit(&c->retired, memory_order_relaxed);
}

static size_t retired_share(const tm_cache *c) { return c->budget / 16; }

// Evicts until need more bytes fit. What is retired is on its way out: if all of it counted here, a
// reader that stays inside for a moment would let every insert evict twice what the one before did.
// So a share of it counts, and reclaim sees to it that there is no more.
static bool make_room(tm_cache *c, size_t need)
{
    for (;;) {
        size_t now = used(c) + TM_MIN(retired(c), retired_share(c));
        if (now <= c->budget && c->budget - now >= need) return true;
        if (!evict_one(c)) return used(c) <= c->budget && c->budget - used(c) >= need;
    }
}

// Frees what is retired, for certain if it is more than share; without the mutex.
static void reclaim(tm_cache *c, size_t share)
{
    if (retired(c) == 0) return;
    tm_epoch_collect();
    bool inside = tm_epoch_self != NULL && tm_epoch_self->depth != 0;
    if (!inside && retired(c) > share) tm_epoch_synchronize();
}

// ---- Insert and drop ---------------------------------------------------------------------------

static tm_cached *reject(tm_cache *c, tm_cached *b)
{
    set_state(b, STATE_HELD);
    atomic_fetch_add_explicit(&c->held, b->charge, memory_order_relaxed);
    c->rejected++;
    return b;
}

// With the mutex.
static tm_cached *insert(tm_cache *c, tm_cache_slot *slot, tm_cached *parent, tm_cached *b,
                         bool cold)
{
    tm_cached *other = atomic_load_explicit(slot, memory_order_relaxed);
    if (other != NULL) {
        tm_cached_ref(other);
        return other;
    }
    if (parent != NULL && state_of(parent) != STATE_LINKED) return reject(c, b);
    size_t room = c->budget > c->charged ? c->budget - c->charged : 0;
    if (b->charge > room / 2 || !make_room(c, b->charge)) return reject(c, b);
    // Making room may have evicted the parent: with its own parent, which need not be pinned.
    if (parent != NULL && state_of(parent) != STATE_LINKED) return reject(c, b);
    link_block(c, slot, parent, b, cold);
    return b;
}

tm_cached *tm_cache_insert(tm_cache *c, tm_cache_slot *slot, tm_cached *parent, tm_cached *block,
                           bool cold)
{
    assert(state_of(block) == STATE_NEW && block->cache == c);
    tm_mutex_lock(&c->mutex);
    tm_cached *b = insert(c, slot, parent, block, cold);
    size_t share = retired_share(c);
    tm_mutex_unlock(&c->mutex);
    if (b != block) tm_cached_unref(block);
    reclaim(c, share);
    return b;
}

void tm_cache_drop(tm_cache *c, tm_cache_slot *slot)
{
    for (bool done = false; !done;) {
        tm_mutex_lock(&c->mutex);
        size_t left = DROP_STEP;
        tm_cached *b = atomic_load_explicit(slot, memory_order_relaxed);
        done = b == NULL || unlink_tree(c, b, &left);
        tm_mutex_unlock(&c->mutex);
    }
}

// ---- Budget and figures ------------------------------------------------------------------------

static size_t add_clamped(size_t to, int64_t delta)
{
    if (delta >= 0) return to + (size_t)delta;
    size_t less = (size_t)0 - (size_t)delta;
    return to > less ? to - less : 0;
}

void tm_cache_set_budget(tm_cache *c, size_t budget)
{
    tm_mutex_lock(&c->mutex);
    c->budget = budget;
    (void)make_room(c, 0);
    size_t share = retired_share(c);
    tm_mutex_unlock(&c->mutex);
    reclaim(c, share);
}

static void charge(tm_cache *c, size_t *also, int64_t delta)
{
    tm_mutex_lock(&c->mutex);
    c->charged = add_clamped(c->charged, delta);
    if (also != NULL) *also = add_clamped(*also, delta);
    if (delta > 0) (void)make_room(c, 0);
    size_t share = retired_share(c);
    tm_mutex_unlock(&c->mutex);
    if (delta > 0) reclaim(c, share);
}

void tm_cache_charge(tm_cache *c, int64_t delta) { charge(c, NULL, delta); }

void tm_cache_keep(tm_cache *c, tm_cached_kind kind, int64_t delta)
{
    charge(c, &c->kept[kind], delta);
}

void tm_cache_usage_get(tm_cache *c, tm_cache_usage *out)
{
    int64_t pinned = 0;
    for (size_t i = 0; i < PIN_SHARDS; i++) {
        pinned += atomic_load_explicit(&c->pins[i].bytes, memory_order_relaxed);
    }
    size_t held = atomic_load_explicit(&c->held, memory_order_relaxed);
    *out = (tm_cache_usage){0};
    out->pinned = held + (size_t)TM_MAX(pinned, 0);
    out->retired = held + retired(c);
    tm_mutex_lock(&c->mutex);
    out->budget = c->budget;
    out->charged = c->charged;
    for (size_t k = 0; k < TM_CACHED_KINDS; k++) {
        out->bytes[k] = c->bytes[k] + c->kept[k];
        out->blocks[k] = c->blocks[k];
        out->charged -= c->kept[k];
    }
    out->inserts = c->inserts;
    out->evictions = c->evictions;
    out->rejected = c->rejected;
    tm_mutex_unlock(&c->mutex);
}

static bool check_block(const tm_cached *b, queue_id q)
{
    if (state_of(b) != STATE_LINKED || queue_of(b->kind) != q) return false;
    if (atomic_load_explicit(b->slot, memory_order_relaxed) != b) return false;
    if (b->parent != NULL && state_of(b->parent) != STATE_LINKED) return false;
    uint32_t children = 0;
    for (uint32_t i = 0; i < b->slot_count; i++) {
        const tm_cached *child = atomic_load_explicit(&b->slots[i], memory_order_relaxed);
        if (child != NULL && child->parent != b) return false;
        children += child != NULL;
    }
    return children == b->live_children;
}

bool tm_cache_check(tm_cache *c)
{
    bool good = true;
    size_t linked = 0;
    tm_mutex_lock(&c->mutex);
    for (queue_id q = QUEUE_DATA; q < QUEUES; q++) {
        size_t count = 0, bytes = 0;
        bool hand = c->queues[q].hand == NULL;
        for (tm_cached *b = c->queues[q].head; b != NULL && good; b = b->next) {
            good = check_block(b, q);
            good = good && (b->next != NULL ? b->next->prev : c->queues[q].tail) == b;
            hand = hand || c->queues[q].hand == b;
            count++;
            bytes += b->charge;
        }
        good = good && hand && count == c->queues[q].count && bytes == c->queues[q].bytes;
        linked += bytes;
    }
    good = good && linked == c->linked;
    tm_mutex_unlock(&c->mutex);
    return good;
}
