// SPDX-License-Identifier: BSD-2-Clause
//
// range_set.h - range deletes, fragmented: an immutable list of non-overlapping stretches of keys
// in order, each with the sequence numbers of the range deletes that cover it, newest first.
//
//   deletes:   [a--------e)@9                     fragments:  [a,c) 9
//                  [c--------h)@12                            [c,e) 12 9
//                                                             [e,h) 12
//
// A point entry with sequence s is deleted for a reader at r if the newest covering number <= r is
// > s. The same structure serves memtables, tables and merged views of them.
#ifndef TM_RANGE_SET_H
#define TM_RANGE_SET_H

#include "base/ikey.h"

typedef struct tm_range_fragment {
    tm_slice start, limit; // limit.len 0 in the last: to the end (see unbounded)
    bool unbounded;
    uint32_t first, count; // its numbers: seqs[first .. first + count), descending
} tm_range_fragment;

typedef struct tm_range_set { // all-zero is the empty set
    tm_range_fragment *fragments;
    uint64_t *seqs;
    uint8_t *bytes; // what the slices point into
    uint32_t n;
    size_t memory;
} tm_range_set;

// Collects range deletes in any order, then makes the set.
typedef struct tm_range_builder {
    tm_buf bytes; // starts and limits
    tm_buf items; // fixed-size records into bytes
    uint32_t n;
} tm_range_builder;
void tm_range_builder_init(tm_range_builder *b);
void tm_range_builder_deinit(tm_range_builder *b);
// start >= limit covers nothing and is dropped; an empty limit is "to the end".
int tm_range_builder_add(tm_range_builder *b, tm_slice start, tm_slice limit,
                         uint64_t seq) TM_CHECK_RESULT;
int tm_range_builder_add_set(tm_range_builder *b, const tm_range_set *s) TM_CHECK_RESULT;
int tm_range_builder_finish(const tm_range_builder *b, const tm_order *order,
                            tm_range_set *out) TM_CHECK_RESULT;

void tm_range_set_deinit(tm_range_set *s);
// The newest covering number <= seq at key; 0 if none.
uint64_t tm_range_set_cover(const tm_range_set *s, const tm_order *order, tm_slice key,
                            uint64_t seq);
// The first fragment whose limit is beyond key (n if none), to walk or skip with.
uint32_t tm_range_set_find(const tm_range_set *s, const tm_order *order, tm_slice key);
int tm_range_set_encode(const tm_range_set *s,
                        tm_buf *out) TM_CHECK_RESULT; // the block of format.md
// Checks order, bounds and counts; CORRUPT (file and offset are the caller's to fill).
int tm_range_set_decode(tm_range_set *s, tm_slice raw, const tm_order *order,
                        tamis_error *err) TM_CHECK_RESULT;

#endif // TM_RANGE_SET_H
