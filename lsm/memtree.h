// SPDX-License-Identifier: BSD-2-Clause
//
// memtree.h - the order of a memtable: a B+-tree that one writer extends while readers walk it
// without locks. Nothing is ever removed.
//
//   leaf    order  2 | 0 2 1        the order word: how many slots are filled, and the slots as
//           heads  "ka" "kx" "kf"   their keys ascend. A slot is written once.
//           entries  |    |    |
//                    v    v    v    entries: trailer, lengths, key, value, in one piece
//
//   inner   order, heads, first entry of each child, children; the first child has no lower bound
//
// A node lies between two entries that bound it, or the ends. All its keys begin with what the keys
// of these two have in common, so the 4-byte head of a key is taken behind that: 14 heads decide
// nearly every search without a look at a key. (Where the order is not bytewise, all heads are 0,
// and keys are compared.) The order word is that of Mao, Kohler and Morris, "Cache craftiness for
// fast multicore key-value storage" (2012).
//
// INVARIANTS
//  T1  A slot is written before the order word that shows it is stored with release, and never
//      after. So whoever loads the word with acquire has a frozen, complete view of the node.
//  T2  A full leaf is split into two new ones. The old one stays as it is: who stands in it goes on
//      in the state of that moment, which holds all that was added before.
//  T3  A leaf's next (prev) begins where it ends (ends where it begins), in replaced leaves too.
//  T4  What an inner node says of a child is its first entry: nothing in the child is before it, in
//      internal order, and nothing in the child before is at or behind it.
//  T5  Where a child is split, the right half is shown before the left half replaces the child. A
//      reader looks at the order word again when it has loaded a child, and so never searches a
//      node for a key that does not lie between what bounds it.
//
// Threads: one writer; any number of readers beside it. Memory is the arena's, freed as a whole.
// Cost: an addition or search waits for about three cache lines, whatever the size; a node takes
// some 14 (ascending keys) to 40 bytes for each entry.
#ifndef TM_MEMTREE_H
#define TM_MEMTREE_H

#include "base/ikey.h"
#include "lsm/mem_arena.h"

typedef struct tm_mem_entry {
    uint64_t trailer;
    uint32_t key_len, value_len;
    uint8_t bytes[]; // key, value
} tm_mem_entry;

static inline tm_slice tm_mem_entry_key(const tm_mem_entry *e)
{
    return tm_slice_of(e->bytes, e->key_len);
}
static inline tm_slice tm_mem_entry_value(const tm_mem_entry *e)
{
    return tm_slice_of(e->bytes + e->key_len, e->value_len);
}

#define TM_MEMTREE_LEVELS 16 // inner nodes have 7 children at least: enough for any memory

typedef struct tm_memtree_node tm_memtree_node;
typedef struct tm_memtree_step { // a node on the way down, and what bounds it (NULL: nothing)
    tm_memtree_node *node;
    const tm_mem_entry *low, *high;
    uint32_t at; // inner: place of the child; leaf: place of the first entry at or behind the key
} tm_memtree_step;
typedef struct tm_memtree_path {
    uint32_t height; // steps[height] is the root, steps[0] the leaf
    tm_memtree_step steps[TM_MEMTREE_LEVELS];
} tm_memtree_path;

typedef struct tm_memtree {
    _Atomic(tm_memtree_node *) root;
    tm_order order;
    // The writer's.
    TM_ALIGNED(TM_CACHE_LINE) tm_memtree_node *hint; // where the last entry was added
    const tm_mem_entry *hint_high;                   // what bounds it
    uint32_t streak;                                 // how many were added at its end, in a row
    size_t counts[TM_MEMTREE_LEVELS];                // nodes that hold entries, by level
} tm_memtree;

// Takes the first leaf from the arena; false when memory ends.
bool tm_memtree_init(tm_memtree *t, const tm_order *order, tm_mem_arena *a) TM_CHECK_RESULT;

// An upper bound of the bytes that nodes for n more entries take, whatever they are. SIZE_MAX: more
// than there can be.
size_t tm_memtree_bound(const tm_memtree *t, size_t n);

// Adding has two steps, so that nothing has changed when memory ends: find the place (*need: bytes
// of new nodes), make sure of need and the entry, then link the entry there.
void tm_memtree_locate(const tm_memtree *t, tm_slice key, uint64_t trailer, tm_memtree_path *path,
                       size_t *need);
void tm_memtree_link(tm_memtree *t, tm_mem_arena *a, tm_memtree_path *path, const tm_mem_entry *e);

// ---- Reading -----------------------------------------------------------------------------------

typedef struct tm_memtree_cursor { // a place in a frozen view of a leaf
    const tm_memtree_node *leaf;
    uint64_t order;
    uint32_t at;
} tm_memtree_cursor;

// Each gives the entry it stops at, or NULL at the end.
const tm_mem_entry *tm_memtree_first(const tm_memtree *t, tm_memtree_cursor *c);
const tm_mem_entry *tm_memtree_last(const tm_memtree *t, tm_memtree_cursor *c);
// The first entry at or behind (key, trailer); the last one before it.
const tm_mem_entry *tm_memtree_seek(const tm_memtree *t, tm_memtree_cursor *c, tm_slice key,
                                    uint64_t trailer);
const tm_mem_entry *tm_memtree_seek_before(const tm_memtree *t, tm_memtree_cursor *c, tm_slice key,
                                           uint64_t trailer);
// From an entry only.
const tm_mem_entry *tm_memtree_next(tm_memtree_cursor *c);
const tm_mem_entry *tm_memtree_prev(tm_memtree_cursor *c);

#endif // TM_MEMTREE_H
