// SPDX-License-Identifier: BSD-2-Clause
//
// wal_look.h - looking at the bytes of a record file: is there a record at this offset, where is
// the next one, could one flipped bit be all that is wrong. What it means is the reader's business.
//
// The file is read through a window that moves forward; it holds at least one whole record.
//
//   0            at              at + window.len          size
//   +-------------+===============+------------------------+
//
// Threads: one at a time. Memory: the window, 256 KiB or a little above 1 MiB where records are as
// large, and never more than the file has.
// Errors: those of reading, and NOMEM. What the bytes say is an answer, never an error.
// Cost: each function is linear in the stretch that it covers, whatever the bytes are.
#ifndef TM_WAL_LOOK_H
#define TM_WAL_LOOK_H

#include "base/file.h"
#include "wal/wal_format.h"

typedef struct tm_wal_view {
    tm_file file;
    uint64_t size; // when it was opened
    tm_wal_place place;
    tm_buf window;
    uint64_t at; // offset of the window's first byte
} tm_wal_view;

// A missing file: NOTFOUND. Nothing is to be closed after a failure.
int tm_wal_view_open(tm_wal_view *v, tamis_dir *dir, const char *name, const tm_wal_place *place,
                     tamis_error *err) TM_CHECK_RESULT;
void tm_wal_view_close(tm_wal_view *v);

// The n bytes at offset, which the file has; n is at most that of a record. Until the next call.
int tm_wal_view_bytes(tm_wal_view *v, uint64_t offset, size_t n, uint8_t **out,
                      tamis_error *err) TM_CHECK_RESULT;

typedef enum tm_wal_verdict {
    TM_WAL_GOOD, // a record
    TM_WAL_NONE, // a zero byte, or the limit: no record was begun here
    TM_WAL_BAD   // something else
} tm_wal_verdict;

typedef struct tm_wal_look {
    tm_wal_verdict verdict;
    bool header_good;   // what frame says is true, whatever became of the payload
    tm_wal_frame frame; // with header_good
    tm_slice payload;   // GOOD: until the next call
    tm_wal_fault fault; // NONE, BAD
} tm_wal_look;

// limit <= size: nothing from there on counts.
int tm_wal_look_at(tm_wal_view *v, uint64_t offset, uint64_t limit, tm_wal_look *out,
                   tamis_error *err) TM_CHECK_RESULT;

// The first offset in [*offset, limit) with the header of a record, whose payload may be anything.
// *offset = limit: there is none.
int tm_wal_find_header(tm_wal_view *v, uint64_t *offset, uint64_t limit, tm_wal_frame *frame,
                       tamis_error *err) TM_CHECK_RESULT;

// Where [from, limit) ends if zeros at its end are not counted.
int tm_wal_trim_zeros(tm_wal_view *v, uint64_t from, uint64_t limit, uint64_t *end,
                      tamis_error *err) TM_CHECK_RESULT;

// Whether flipping one bit makes a record of what stands at offset. The header's bits are tried,
// and the payload's in records of up to 16 KiB. Not counted: a bit whose setting is all that the
// record has in a disk sector, as a sector that was not written looks the same.
int tm_wal_one_bit_off(tm_wal_view *v, uint64_t offset, uint64_t limit, bool *out,
                       tamis_error *err) TM_CHECK_RESULT;

#endif // TM_WAL_LOOK_H
