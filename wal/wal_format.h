// SPDX-License-Identifier: BSD-2-Clause
//
// wal_format.h - the bytes of record files, shared by writer and reader: the file's header, and the
// header of a record. docs/format.md ("Record files") is the text that this follows.
//
//   0        128                                        file
//   +--------+--------+---------+--------+---------+----+------ - - -
//   | header | record | payload | record | payload | .. | zeros: unused room
//   +--------+--------+---------+--------+---------+----+------ - - -
//           /          '.
//          h type  header   record    varints: payload length, sequence, count,
//          1   1   sum 4    sum 8     unsynced [, manifest, its durable length]
//
// Both sums are bound to the place of the record: store id, file number, offset. Where the header's
// sum is right, what the header says was once written by us at this place: how far the payload
// reaches, and up to where the file was durable at that time. The payload has a sum of its own.
#ifndef TM_WAL_FORMAT_H
#define TM_WAL_FORMAT_H

#include "base/slice.h"
#include "base/status.h"

enum {
    TM_WAL_HEADER_BYTES = 128,
    TM_WAL_MAJOR = 1,
    TM_WAL_MINOR = 0,
    TM_WAL_FRAME_MIN = 18, // of a record's header
    TM_WAL_FRAME_MAX = 64,
    TM_WAL_PAYLOAD_MAX = 1 << 20 // of one record; more is cut into several
};

// Required features that this version reads: range deletes, merge operands, expiring entries.
#define TM_WAL_KNOWN_FEATURES ((uint64_t)0x7)

// ---- The file's header -------------------------------------------------------------------------

typedef enum tm_wal_kind { TM_WAL_LOG, TM_WAL_MANIFEST } tm_wal_kind;

typedef struct tm_wal_header {
    tm_wal_kind kind;
    uint64_t required, optional; // features
    uint64_t number;
    uint8_t store_id[16];
    uint64_t base; // log: last sequence number given out before; manifest: format level
    // Logs; 0 in a manifest.
    uint64_t previous;        // number of the log before, 0 if none
    uint64_t previous_end;    // where its last record ends
    uint64_t previous_synced; // it was known durable up to here; <= previous_end
    uint64_t manifest;        // in force
    uint64_t manifest_synced; // it was known durable up to here
} tm_wal_header;

void tm_wal_header_encode(const tm_wal_header *h, uint8_t out[TM_WAL_HEADER_BYTES]);

// CORRUPT: no header of this kind and number, whatever else it may be. UNSUPPORTED: one that is
// right, of a major version or with a required feature that this version does not know.
int tm_wal_header_decode(const uint8_t bytes[TM_WAL_HEADER_BYTES], tm_wal_kind kind,
                         uint64_t number, tm_wal_header *out, tamis_error *err) TM_CHECK_RESULT;

// Whether a header that did not decode was written here all the same: its checksum is right, or
// would be with one bit flipped.
bool tm_wal_header_was_written(const uint8_t bytes[TM_WAL_HEADER_BYTES]);

// ---- The header of a record --------------------------------------------------------------------

typedef enum tm_wal_type {
    TM_WAL_WHOLE = 1,
    TM_WAL_FIRST = 2, // a payload above TM_WAL_PAYLOAD_MAX: first, middle ..., last
    TM_WAL_MIDDLE = 3,
    TM_WAL_LAST = 4,
    TM_WAL_SEAL = 5 // vouches for all before it; no payload
} tm_wal_type;

// What the sums of a file's records are bound to, together with the offset.
typedef struct tm_wal_place {
    uint8_t store_id[16];
    uint64_t number;
} tm_wal_place;

typedef struct tm_wal_frame {
    tm_wal_type type;
    bool has_manifest;
    uint32_t header_bytes;  // set by encode and decode
    uint32_t payload_bytes; // <= TM_WAL_PAYLOAD_MAX
    uint64_t seq, count;    // seq + count does not overflow
    uint64_t vouched;       // the file was durable up to here; <= the record's offset
    uint64_t manifest, manifest_synced; // with has_manifest
    uint64_t checksum;      // of the record, unmasked; set by decode
} tm_wal_frame;

// Why bytes are no record.
typedef struct tm_wal_fault {
    const char *what;         // for a message; NULL: nothing is wrong
    bool sums;                // the two below say more
    uint64_t expected, found; // what is stored and what the bytes give
} tm_wal_fault;

// Writes the header of the record at offset so that it ends where payload begins; there are
// TM_WAL_FRAME_MAX bytes before payload for it, and payload_bytes behind. Sets f->header_bytes.
// INVALID if the numbers need more room than a header has (none that a store can reach do).
int tm_wal_frame_encode(tm_wal_frame *f, const tm_wal_place *place, uint64_t offset,
                        uint8_t *payload, tamis_error *err) TM_CHECK_RESULT;

// Reads the header at p, where n bytes are (at least TM_WAL_FRAME_MAX, or all that the file has).
// False, and *fault if it is asked for: there is none. Whether the payload fits into the file is
// another question.
bool tm_wal_frame_decode(const uint8_t *p, size_t n, const tm_wal_place *place, uint64_t offset,
                         tm_wal_frame *f, tm_wal_fault *fault) TM_CHECK_RESULT;

// The same for the record's sum. head is the record's header, which f was decoded from.
bool tm_wal_frame_check(const uint8_t *head, const uint8_t *payload, const tm_wal_frame *f,
                        const tm_wal_place *place, uint64_t offset,
                        tm_wal_fault *fault) TM_CHECK_RESULT;

#endif // TM_WAL_FORMAT_H
