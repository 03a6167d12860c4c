// SPDX-License-Identifier: BSD-2-Clause
//
// user_iter.h - from all versions of all keys to what a reader sees: the newest visible version of
// each key, without deleted ones, within bounds, both ways.
//
// Range deletes of the sources come as sets. Where a range delete of one source hides what an older
// source (a later child of the merge) has, the walk seeks past it in that source; in the range
// delete's own and newer ones, whose entries may be newer than it, it goes entry by entry.
//
// INVARIANTS
//  U1  Walking forward, the merged iterator stands at the entry that is shown; or, where that was
//      made of merge operands (ahead), somewhere behind its newest version. Walking back, it stands
//      before all versions of the key that is shown. There, and ahead, key and value are copies.
//  U2  A failure ends the walk where it is met; the next seek, first or last begins anew.
//
// Threads: one at a time. The library's own iterators (api) wrap it.
#ifndef TM_USER_ITER_H
#define TM_USER_ITER_H

#include "base/iter.h"
#include "lsm/tamis.h"
#include "sstable/range_set.h"

typedef struct tm_user_iter tm_user_iter;

typedef struct tm_user_iter_options {
    tm_order order;
    uint64_t seq; // newest sequence number that is seen
    // Newest number of a batch that is read through: those from TM_OVERLAY_SEQ up to it are seen,
    // too. 0: there is none.
    uint64_t overlay_seq;
    uint64_t now_ms;                             // values that expire until then are gone
    const _Atomic(const tamis_merger *) *merger; // the family's; NULL: it has none
    bool has_lower, has_upper;
    tm_slice lower, upper; // [lower, upper); copied
    bool has_prefix;
    tm_slice prefix; // copied; needs a bytewise order
    // Range deletes of all sources. The sets outlive the iterator; arrays are copied.
    const tm_range_set *const *ranges;
    size_t range_count;
    // Which child of the merge each set comes from; NULL: not known. Children must stand newest
    // first: where two have a key, all of the earlier one's versions are newer.
    const uint32_t *range_children;
} tm_user_iter_options;

// Takes the merged internal iterator, also on failure.
int tm_user_iter_create(tm_iter *merged, const tm_user_iter_options *options, tm_user_iter **out,
                        tamis_error *err) TM_CHECK_RESULT;
void tm_user_iter_destroy(tm_user_iter *it);
// Puts it aside: not valid, no block held. restart makes it as new, with other options; its sources
// and their range deletes stay.
void tm_user_iter_rest(tm_user_iter *it);
int tm_user_iter_restart(tm_user_iter *it, const tm_user_iter_options *options,
                         tamis_error *err) TM_CHECK_RESULT;
void tm_user_iter_first(tm_user_iter *it);
void tm_user_iter_last(tm_user_iter *it);
void tm_user_iter_seek(tm_user_iter *it, tm_slice key);          // first >= key, within bounds
void tm_user_iter_seek_for_prev(tm_user_iter *it, tm_slice key); // last <= key, within bounds
void tm_user_iter_next(tm_user_iter *it);
void tm_user_iter_prev(tm_user_iter *it);
bool tm_user_iter_valid(const tm_user_iter *it);
tm_slice tm_user_iter_key(const tm_user_iter *it); // until the next movement
tm_slice tm_user_iter_value(const tm_user_iter *it);
int tm_user_iter_status(const tm_user_iter *it, tamis_error *err);
uint64_t tm_user_iter_skipped(const tm_user_iter *it); // hidden entries passed over, for statistics

#endif // TM_USER_ITER_H
