// SPDX-License-Identifier: BSD-2-Clause
//
// compact_input.h - the tables that a compaction reads, as one merged walk forward: each level-0
// table for itself, the tables of a sorted level one behind the other, so that only one of them is
// open and holds a buffer at a time. The block cache is passed by.
//
// The walk offers first, seek, next and destroy.
#ifndef TM_COMPACT_INPUT_H
#define TM_COMPACT_INPUT_H

#include "lsm/pick.h"

typedef struct tm_compact_input {
    tm_table_cache *files;
    tm_order order;
    size_t readahead;    // of each table that is open
    uint64_t bytes_read; // so far; the walk's thread
} tm_compact_input;

static inline uint32_t tm_pick_inputs(const tm_pick *p)
{
    return p->count[0] + p->count[1];
}
static inline tm_file_ref *tm_pick_input(const tm_pick *p, uint32_t i)
{
    return i < p->count[0] ? p->inputs[0][i] : p->inputs[1][i - p->count[0]];
}
// Tables that are open at one time.
static inline uint32_t tm_pick_runs(const tm_pick *p)
{
    return (p->level == 0 ? p->count[0] : p->count[0] > 0) + (p->count[1] > 0);
}

// in must outlive the walk, and the tables, too (their version is pinned).
int tm_compact_input_open(tm_compact_input *in, const tm_pick *p, tm_iter **out,
                          tamis_error *err) TM_CHECK_RESULT;

#endif // TM_COMPACT_INPUT_H
