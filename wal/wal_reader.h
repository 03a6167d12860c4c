// SPDX-License-Identifier: BSD-2-Clause
//
// wal_reader.h - reads a record file back, and judges its end: whole, torn by a crash, or damaged.
//
//            logical end          end of file
//   +---------+--------------------+- - - - -         every record up to the logical end was
//   | records |  tail: cut off     | zeros            delivered, and none behind it
//   +---------+--------------------+- - - - -
//        ^
//        V = the highest offset up to which anybody says that the file was durable: its own
//            records, also those behind unreadable ones, and what the caller knows from others
//
// INVARIANTS
//  1. An unreadable record below V, or one that a single flipped bit explains, is CORRUPT. Any
//     other is where the tail begins.
//  2. Nothing behind an unreadable record is delivered, but by salvage.
//  3. What is delivered was written at this place of this file: a record of another file, or of
//     another offset, is none.
//
// Threads: one at a time. Ownership: payloads are the reader's, until the callback returns.
// Errors: CORRUPT has file number, offset and what was expected; IO and NOMEM say nothing about the
// file. A callback's status other than OK ends the reading and is returned.
// Cost: linear in the file's size, for every content. Memory: a window of a little above 1 MiB, and
// the payload at hand where it is larger than a record; both bounded by what the file has.
#ifndef TM_WAL_READER_H
#define TM_WAL_READER_H

#include "base/file.h"
#include "wal/wal_format.h"

typedef struct tm_wal_reader tm_wal_reader;

typedef struct tm_wal_record {
    tm_slice payload;
    uint64_t seq, count;
    uint64_t offset;
    uint64_t manifest, manifest_synced; // 0 if the record does not say
    bool seal;                          // no payload, count 0
} tm_wal_record;

typedef int (*tm_wal_each)(void *ctx, const tm_wal_record *rec, tamis_error *err);

typedef struct tm_wal_end {
    uint64_t logical_end; // behind the last record that was delivered
    uint64_t file_bytes;
    uint64_t cut_bytes; // the tail's, from there to the file's last byte that is not zero
    uint64_t vouched;   // highest offset that the file's own records vouch for; 0 if none
    uint64_t manifest, manifest_synced; // the highest that header and records vouch for
    uint64_t last_seq; // of the last operation; 0 if there was none
    bool sealed;       // the last record is a seal
    bool whole;        // it ends at stop_at, at the end of the file, or with zeros only
} tm_wal_end;

// Reads and checks the header. store_id NULL: of any store. NOTFOUND: no such file. UNSUPPORTED:
// from a newer version. CORRUPT: no header, or one of another file; see tm_wal_was_begun.
int tm_wal_reader_open(tamis_dir *dir, const char *name, uint64_t number, tm_wal_kind kind,
                       const uint8_t *store_id, tm_wal_reader **out,
                       tamis_error *err) TM_CHECK_RESULT;
void tm_wal_reader_close(tm_wal_reader *r); // NULL is fine
const tm_wal_header *tm_wal_reader_header(const tm_wal_reader *r);

// Delivers the records in order, then judges the end. vouched: what others say was durable; 0 if
// nobody does. stop_at: where the file ends for the log that comes next, whatever stands behind;
// UINT64_MAX if there is none. That the file ends before is for the caller to judge.
// *end is filled as far as it is known also when CORRUPT is returned.
int tm_wal_reader_scan(tm_wal_reader *r, uint64_t vouched, uint64_t stop_at, tm_wal_each each,
                       void *ctx, tm_wal_end *end, tamis_error *err) TM_CHECK_RESULT;

// ---- Damaged files -----------------------------------------------------------------------------

// For a file whose header open found CORRUPT: whether the file itself shows that it had a header.
// Then this is damage. If not, and nothing else vouches for it, the file was never begun.
int tm_wal_was_begun(tamis_dir *dir, const char *name, uint64_t number, const uint8_t store_id[16],
                     bool *begun, tamis_error *err) TM_CHECK_RESULT;

// Opens without reading the header, for salvage. The header that is told has only the arguments.
int tm_wal_reader_open_blind(tamis_dir *dir, const char *name, uint64_t number, tm_wal_kind kind,
                             const uint8_t store_id[16], tm_wal_reader **out,
                             tamis_error *err) TM_CHECK_RESULT;

// Delivers every record that can be read, wherever it stands, in order of offsets, and calls lost
// (may be NULL) for each stretch between them. Zeros at the end of the file are no loss.
int tm_wal_reader_salvage(tm_wal_reader *r, tm_wal_each each,
                          void (*lost)(void *ctx, uint64_t from, uint64_t to), void *ctx,
                          tamis_error *err) TM_CHECK_RESULT;

#endif // TM_WAL_READER_H
