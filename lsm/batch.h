// SPDX-License-Identifier: BSD-2-Clause
//
// batch.h - a list of operations in the form in which the log keeps them (docs/format.md).
//
//   kind [family] key [value]   kind [family] key [value]   ...
//
// INVARIANTS
//  B1  rep is always a whole number of operations that tm_batch_reader_next accepts.
//  B2  A failed operation adds nothing. The first failure is kept: until the batch is cleared every
//      further operation answers with it, and so does a commit.
//
// Threads: one at a time.
#ifndef TM_BATCH_H
#define TM_BATCH_H

#include "base/ikey.h"
#include "lsm/tamis.h"

struct tamis_batch {
    tm_buf rep; // payload of a log record
    uint64_t count;
    struct tamis_db *db; // whose families it speaks of
    bool foreign;        // some operation is of another family than the default one
    uint32_t family;     // family id in force at the end of rep
    size_t data;         // bytes of keys and values
    int status;          // first failure of an operation; kept until clear
    tamis_error error;
    // Of the public batch (db_batch.c).
    uint32_t flags;
    tm_buf marks;               // savepoints
    tm_buf packed;              // what tamis_batch_data handed out
    tm_buf value;               // scratch: an expiry and its value
    struct tm_overlay *overlay; // TAMIS_BATCH_INDEXED: what has been indexed so far; NULL: nothing
};

// Bit of an operation's first byte: a varint family id follows.
#define TM_BATCH_FAMILY_FOLLOWS 0x80u

void tm_batch_init(tamis_batch *b);
void tm_batch_deinit(tamis_batch *b);
// kind PUT, DELETE, MERGE, RANGE_DELETE ...; value ignored where the kind has none. TOOLARGE above
// a limit, INVALID for a kind that no batch holds.
int tm_batch_add(tamis_batch *b, uint32_t family, tm_kind kind, tm_slice key,
                 tm_slice value) TM_CHECK_RESULT;

typedef struct tm_batch_mark { // a state that a batch can go back to
    size_t rep_len, data;
    uint64_t count;
    uint32_t family;
    bool foreign;
    int status;
} tm_batch_mark;
tm_batch_mark tm_batch_mark_of(const tamis_batch *b);
void tm_batch_return(tamis_batch *b, const tm_batch_mark *m);

typedef struct tm_batch_op {
    uint32_t family;
    tm_kind kind;
    tm_slice key, value;
} tm_batch_op;
typedef struct tm_batch_reader {
    tm_cursor c;
    uint32_t family;
} tm_batch_reader;
tm_batch_reader tm_batch_reader_of(tm_slice rep);
// OK and *op (slices of rep), NOTFOUND at the end, CORRUPT where the bytes make no operation.
// After CORRUPT it stays so.
int tm_batch_reader_next(tm_batch_reader *r, tm_batch_op *op) TM_CHECK_RESULT;

#endif // TM_BATCH_H
