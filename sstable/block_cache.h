// SPDX-License-Identifier: BSD-2-Clause
//
// block_cache.h - decoded blocks of all tables in one byte budget, reached by direct pointers.
//
// There is no hash table. Whoever owns a block's place (a table: its top level and its partitions;
// an index partition in memory: its data blocks) has an atomic pointer there, a tm_cache_slot. A
// hit is one load. A block knows its slot; eviction clears the slot and retires the block.
//
//   table ── top ──► tm_cached(top) ── slots ──► tm_cached(filter)
//                                         └────► tm_cached(index) ── slots ──► tm_cached(data)
//
// INVARIANTS
//  C1  A slot holds NULL or a block whose reference the cache owns.
//  C2  A block that owns slots (top, index) leaves the cache only when all of them are empty: its
//      children go first. A slot of a block that has left is never filled again.
//  C3  What is in the cache, plus what was charged to it, plus what is retired but not yet freed,
//      counts as used. Used stays within the budget, except for what is pinned.
//  C4  Data blocks are evicted first (SIEVE: Zhang et al., NSDI 2024); index and filter partitions
//      only when data blocks hold less than a sixteenth of the room (the budget less what is
//      charged), top levels before them where these hold more than a quarter, else after them.
//  C5  A block that is pinned is not chosen, unless the block that owns its slot is.
//
// Pins of blocks that are not in the cache (evicted since, or never taken in) make others leave,
// but at most half of the budget.
//
// Threads: load and pin are lock-free, inside an epoch (base/epoch.h) or on a slot whose owner is
// pinned. Everything else takes the cache's one mutex, never held across I/O. Those that say
// "frees" run what other threads retired, and may wait for readers to leave their epochs: hold no
// lock there, be in no epoch and in no function that an epoch's end runs.
#ifndef TM_BLOCK_CACHE_H
#define TM_BLOCK_CACHE_H

#include <stdatomic.h>

#include "base/epoch.h"
#include "base/status.h"

typedef enum tm_cached_kind {
    TM_CACHED_DATA = 0,
    TM_CACHED_INDEX = 1,
    TM_CACHED_FILTER = 2,
    TM_CACHED_TOP = 3,
    TM_CACHED_RANGE = 4
} tm_cached_kind;
#define TM_CACHED_KINDS 5

typedef struct tm_cache tm_cache;
typedef struct tm_cached tm_cached;
typedef _Atomic(tm_cached *) tm_cache_slot;

// The head of every cached block; table.c embeds it first in the decoded form of each kind. What
// eviction writes stands in the first cache line, what lookups read at the end, beside the decoded
// form.
struct tm_cached {
    tm_retired retired;
    tm_cached *prev, *next;   // queue, newer and older; the cache's mutex
    tm_cache_slot *slot;      // where it is linked; the cache's mutex
    tm_cached *parent;        // the block that owns the slot, NULL if a table does; the mutex
    uint32_t live_children;   // linked blocks in slots that this block owns; the cache's mutex
    uint32_t slot_count;      // of slots
    void (*destroy)(tm_cached *self); // frees the memory; called when the last reference goes
    tm_cache *cache;
    size_t charge;            // bytes
    tm_cache_slot *slots;     // that this block owns; they stand in its own memory
    _Atomic uint32_t refs;    // one of the cache's while linked, one for each pin
    _Atomic uint8_t touched;  // set by readers (only when clear), cleared by eviction's hand
    uint8_t kind;             // tm_cached_kind
    _Atomic uint8_t state;    // block_cache.c
};

// A new block, not linked, with the caller's pin. Slots, if it owns some, are set by its maker.
static inline void tm_cached_init(tm_cached *b, tm_cache *c, tm_cached_kind kind, size_t charge,
                                  void (*destroy)(tm_cached *self))
{
    memset(b, 0, sizeof *b);
    b->destroy = destroy;
    b->cache = c;
    b->charge = charge;
    b->kind = (uint8_t)kind;
    atomic_init(&b->refs, 1);
}

typedef struct tm_cache_usage {
    size_t budget;
    size_t bytes[TM_CACHED_KINDS]; // linked, or kept (tm_cache_keep)
    size_t blocks[TM_CACHED_KINDS]; // linked
    size_t pinned;                 // referenced by pins, linked or not
    size_t retired;                // evicted, not yet freed, pins of such included
    size_t charged;                // by tm_cache_charge
    uint64_t inserts, evictions, rejected;
} tm_cache_usage;

int tm_cache_create(size_t budget, tm_cache **out, tamis_error *err) TM_CHECK_RESULT;
void tm_cache_destroy(tm_cache *c); // after all blocks are gone; not inside an epoch; frees
void tm_cache_set_budget(tm_cache *c, size_t budget); // frees
// Memory that is used elsewhere but counts in the budget (memtables, compaction buffers): makes
// room by evicting. delta may be negative. Never fails: what cannot be evicted stays. Frees, where
// delta is positive.
void tm_cache_charge(tm_cache *c, int64_t delta);
// The same for what a table keeps as long as it lives: counted in bytes[kind].
void tm_cache_keep(tm_cache *c, tm_cached_kind kind, int64_t delta);
void tm_cache_usage_get(tm_cache *c, tm_cache_usage *out);
bool tm_cache_check(tm_cache *c); // for tests: C1, C2 and the sums, over all blocks

// Hit path. Inside an epoch or with the owner pinned. NULL: not in memory.
static inline tm_cached *tm_cache_load(tm_cache_slot *slot)
{
    tm_cached *b = atomic_load_explicit(slot, memory_order_acquire); // pairs with the insert
    if (b != NULL && atomic_load_explicit(&b->touched, memory_order_relaxed) == 0) {
        atomic_store_explicit(&b->touched, 1, memory_order_relaxed);
    }
    return b;
}
void tm_cached_first_pin(tm_cached *b); // part of tm_cached_ref
// One more reference on a block that cannot be freed now (loaded in this epoch, or pinned).
static inline void tm_cached_ref(tm_cached *b)
{
    // Relaxed: who gives a reference on has one, and orders it.
    if (atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed) == 1) tm_cached_first_pin(b);
}
void tm_cached_unref(tm_cached *b); // any thread; NULL is fine

// Load and pin in one, entering an epoch for the moment of it. NULL: not in memory, or this thread
// could not be registered for epochs and the block must be read.
tm_cached *tm_cache_pin(tm_cache_slot *slot);

// Links a new block (refs = 1, the caller's pin) into its empty slot, making room first. If another
// thread linked one meanwhile, block is destroyed and the other is returned, pinned. If there is no
// room, or the parent has left the cache, block is returned unlinked: it lives until its last
// unref. parent must be pinned by the caller. cold: it goes where eviction looks next. Frees.
tm_cached *tm_cache_insert(tm_cache *c, tm_cache_slot *slot, tm_cached *parent, tm_cached *block,
                           bool cold);
// Unlinks the block in the slot, if any (its children first): for tables that go away, when nobody
// inserts below that slot any more.
void tm_cache_drop(tm_cache *c, tm_cache_slot *slot);

#endif // TM_BLOCK_CACHE_H
