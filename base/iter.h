// SPDX-License-Identifier: BSD-2-Clause
//
// iter.h - the contract of internal iterators: ordered walks over internal entries, every version
// of every key, as memtables, tables, levels and merges give them.
//
// CONTRACT
//  I1  Born not valid. A movement sets valid, and key, trailer and value when valid.
//  I2  key is the whole user key in one piece. key and value live until the next movement.
//  I3  Not valid means the end in the direction of the movement, or a failure: status tells
//      (TAMIS_OK at the plain end). A failure stays until the next seek, first or last.
//  I4  seek finds the first entry at or behind (key, trailer) in internal order; seek_before the
//      last entry before it.
//  I5  next and prev are called on a valid iterator only.
//  I6  Changing direction is allowed at any valid position.
//
// Reads are field loads; movements go through the table. Implementations embed tm_iter first.
#ifndef TM_ITER_H
#define TM_ITER_H

#include "base/ikey.h"

typedef struct tm_iter tm_iter;
typedef struct tm_iter_ops {
    void (*first)(tm_iter *it);
    void (*last)(tm_iter *it);
    void (*seek)(tm_iter *it, tm_slice key, uint64_t trailer);
    void (*seek_before)(tm_iter *it, tm_slice key, uint64_t trailer);
    void (*next)(tm_iter *it);
    void (*prev)(tm_iter *it);
    void (*destroy)(tm_iter *it); // frees it and what it holds
    void (*rest)(tm_iter *it);    // lets go of what a position holds; NULL: nothing
    // One stage, from 0 on, of getting near to what a seek will want: waits for what the stage
    // before has prefetched, and prefetches more. Many iterators that are brought near stage by
    // stage wait for memory together. The seek to the same place comes next. NULL: no stages.
    void (*approach)(tm_iter *it, tm_slice key, uint64_t trailer, int stage);
} tm_iter_ops;
enum { TM_ITER_STAGES = 6 };

struct tm_iter {
    const tm_iter_ops *ops;
    bool valid;
    int status;
    tm_slice key;
    uint64_t trailer;
    tm_slice value;
    tamis_error error; // filled when status is a failure
};

static inline void tm_iter_destroy(tm_iter *it)
{
    if (it != NULL) it->ops->destroy(it);
}
// For an iterator that is put aside: not valid afterwards, and holds no block.
static inline void tm_iter_rest(tm_iter *it)
{
    if (it->ops->rest != NULL) it->ops->rest(it);
    it->valid = false;
    it->status = TAMIS_OK;
}
// For implementations: ends the walk with a failure.
static inline void tm_iter_fail(tm_iter *it, int status)
{
    it->valid = false;
    it->status = status;
}

#endif // TM_ITER_H
