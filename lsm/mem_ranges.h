// SPDX-License-Identifier: BSD-2-Clause
//
// mem_ranges.h - the range deletes of a memtable.
//
//   list   newest -> ... -> oldest                 every range delete, as it was added
//   tiers  { 64 }  { 16 } { 16 }  { 4 } { 4 }      sets of them, made by readers
//          oldest ------------------> newest       ^ up to 3 of about the same size: the fourth
//                                                    melts them into one (of the next size)
//
// A reader looks at a few newest ones in the list and at the tiers; where the list has grown beyond
// the tiers, it folds it into a new tier first. Each range delete so is put into a set O(log n)
// times.
//
// INVARIANTS
//  R1  Sets and lists of tiers are immutable, and stay until the memtable is freed.
//  R2  The tiers hold the oldest range deletes without a gap: the first `folded` of the list.
//
// Threads: one writer adds; any thread reads. Folding takes a small mutex.
#ifndef TM_MEM_RANGES_H
#define TM_MEM_RANGES_H

#include "base/sync.h"
#include "lsm/mem_arena.h"
#include "sstable/range_set.h"

typedef struct tm_mem_range tm_mem_range;
typedef struct tm_mem_tiers tm_mem_tiers;

typedef struct tm_mem_ranges {
    _Atomic(const tm_mem_range *) newest;
    _Atomic(const tm_mem_tiers *) tiers;
    tm_order order;
    tm_mutex m;
    tm_mem_tiers *kept;   // m: all lists of tiers ever, with the set that each brought
    _Atomic size_t bytes; // of sets and lists of tiers
} tm_mem_ranges;

int tm_mem_ranges_init(tm_mem_ranges *r, const tm_order *order, tamis_error *err) TM_CHECK_RESULT;
void tm_mem_ranges_deinit(tm_mem_ranges *r);

// Bytes of the arena that a range delete takes, which must be made sure of before it is added.
size_t tm_mem_ranges_need(tm_slice start, tm_slice limit);
#define TM_MEM_RANGE_HEAD 32 // of them, beside start and limit
void tm_mem_ranges_add(tm_mem_ranges *r, tm_mem_arena *a, tm_slice start, tm_slice limit,
                       uint64_t seq);

// The newest range delete <= seq over key, 0 if none. One load where there are none at all.
int tm_mem_ranges_cover(tm_mem_ranges *r, tm_slice key, uint64_t seq, uint64_t *cover,
                        tamis_error *err) TM_CHECK_RESULT;
// All range deletes so far, as sets: appends their pointers (const tm_range_set *) to out.
int tm_mem_ranges_sets(tm_mem_ranges *r, tm_buf *out, tamis_error *err) TM_CHECK_RESULT;
// The same as one set; NULL if there are none.
int tm_mem_ranges_all(tm_mem_ranges *r, const tm_range_set **out, tamis_error *err) TM_CHECK_RESULT;

#endif // TM_MEM_RANGES_H
