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
} tm_iter_ops;

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
// For implementations: ends the walk with a failure.
static inline void tm_iter_fail(tm_iter *it, int status)
{
    it->valid = false;
    it->status = status;
}

#endif // TM_ITER_H
