// SPDX-License-Identifier: BSD-2-Clause
//
// search.h - one key in one view: memtables newest first, then the tables of level 0 newest first,
// then one table of each level, until the newest visible entry is found; past merge operands, until
// the value below them is. Shared by get, multi-get, has and explain.
#ifndef TM_SEARCH_H
#define TM_SEARCH_H

#include "lsm/db.h"
#include "lsm/fold.h"

typedef struct tm_search {
    // In.
    struct tamis_db *db;
    tm_family *family;
    const tm_view *view;
    tm_slice key;
    uint64_t seq;         // newest sequence number that is seen
    tm_memtable *overlay; // of a batch that is read through (NULL: none), and its newest number
    uint64_t overlay_seq;
    uint64_t hash;  // of key with the store's seed
    tm_read_ctx rc; // mode, no_fill, step, step_ctx, err are the caller's
    // Out, where the result is OK.
    tm_slice value;
    tm_memtable *mem; // where it stands: a memtable of the view,
    tm_cached *block; // or a block (tm_found.block),
    tm_fold *fold;    // or it was made of merge operands and stands in fold->out
    // Private.
    uint64_t cover;  // newest range delete over key so far
    uint32_t levels; // bit set: counts[level] is in use
    tm_read_counts counts[TM_LEVELS];
} tm_search;

// OK, NOTFOUND, BUSY (EPOCH and CACHED modes: a block is not in memory; EPOCH: the key has merge
// operands, and no callback is called there) or a failure. After anything but BUSY in EPOCH mode
// the caller lets go with tm_search_done.
int tm_search_run(tm_search *s) TM_CHECK_RESULT;
void tm_search_done(tm_search *s);
// Adds what was counted to the store's statistics.
void tm_search_account(tm_search *s);

#endif // TM_SEARCH_H
