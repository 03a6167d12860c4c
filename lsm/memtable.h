// SPDX-License-Identifier: BSD-2-Clause
//
// memtable.h - the newest writes of one family, ordered, in memory.
//
//   filter      one 64-bit word for a key: "no" ends a lookup at the cost of one cache line
//   tree        memtree.h: entries in internal order, keys and values inline
//   ranges      mem_ranges.h: range deletes
//   arena       mem_arena.h: where all but the filter and sets of range deletes stands
//
// INVARIANTS
//  M1  An entry is immutable once linked, and stays until the memtable is freed.
//  M2  An entry's filter bits are set before it is linked, and both before its sequence number is
//      made visible (the caller's release store, which readers acquire).
//
// Threads: one writer at a time (the group's leader); any number of readers beside it, lock-free,
// inside an epoch or holding a reference.
#ifndef TM_MEMTABLE_H
#define TM_MEMTABLE_H

#include "base/epoch.h"
#include "base/iter.h"
#include "sstable/block_cache.h"
#include "sstable/range_set.h"

typedef struct tm_memtable tm_memtable;

// write_buffer: bytes it is meant to hold; sizes the filter and the arena's chunks. Born with one
// reference.
int tm_memtable_create(const tm_order *order, uint64_t hash_seed, size_t write_buffer,
                       tm_memtable **out, tamis_error *err) TM_CHECK_RESULT;
void tm_memtable_ref(tm_memtable *m);
void tm_memtable_unref(tm_memtable *m); // frees at the last one; NULL is fine

// Charges what it has come to use since the last time to the cache's budget; what was charged is
// given back when it is freed. The writer's. Always the same cache, which must outlive the
// memtable.
void tm_memtable_charge(tm_memtable *m, tm_cache *cache);

// Room for n bytes of keys and values in count entries or range deletes is made beforehand, so that
// the adds of one group cannot fail half-way. NOMEM changes nothing.
int tm_memtable_reserve(tm_memtable *m, size_t n, size_t count, tamis_error *err) TM_CHECK_RESULT;
// Adds a point entry; hash as tm_order_hash with the memtable's seed. (key, trailer) must be new:
// if it is not (damage), both are there. TOOLARGE, NOMEM: nothing changed.
int tm_memtable_add(tm_memtable *m, tm_slice key, uint64_t trailer, tm_slice value, uint64_t hash,
                    tamis_error *err) TM_CHECK_RESULT;
// Adds a range delete: O(log n); reads fold new ones in when they next look.
int tm_memtable_add_range(tm_memtable *m, tm_slice start, tm_slice limit, uint64_t seq,
                          tamis_error *err) TM_CHECK_RESULT;

// The newest entry of key at or behind trailer; false if there is none. Lives with the memtable.
bool tm_memtable_get(const tm_memtable *m, tm_slice key, uint64_t trailer, uint64_t hash,
                     uint64_t *found_trailer, tm_slice *value);
void tm_memtable_prefetch(const tm_memtable *m, uint64_t hash); // its filter line
// The newest range delete <= seq over key, 0 if none. One load where there are none at all.
int tm_memtable_range_cover(tm_memtable *m, tm_slice key, uint64_t seq, uint64_t *cover,
                            tamis_error *err) TM_CHECK_RESULT;
bool tm_memtable_has_ranges(const tm_memtable *m);
// All range deletes so far as sets that live until the memtable is freed: appends their pointers
// (const tm_range_set *) to out. Many of these calls among many adds cost O(log n) each.
int tm_memtable_range_sets(tm_memtable *m, tm_buf *out, tamis_error *err) TM_CHECK_RESULT;
// The same as one set; empty: NULL. O(n) after each add: for a memtable that gets no more.
int tm_memtable_ranges(tm_memtable *m, const tm_range_set **out, tamis_error *err) TM_CHECK_RESULT;

// Holds a reference. Sees entries added later, too: callers filter by sequence number.
int tm_memtable_iter_create(tm_memtable *m, tm_iter **out, tamis_error *err) TM_CHECK_RESULT;

size_t tm_memtable_bytes(const tm_memtable *m);     // memory in all: arena, filter, sets
size_t tm_memtable_data(const tm_memtable *m);      // bytes in use: entries, nodes, sets
uint64_t tm_memtable_entries(const tm_memtable *m); // point entries and range deletes
uint64_t tm_memtable_deletes(const tm_memtable *m);
uint64_t tm_memtable_hash_seed(const tm_memtable *m);

#endif // TM_MEMTABLE_H
