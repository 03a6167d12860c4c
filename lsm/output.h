// SPDX-License-Identifier: BSD-2-Clause
//
// output.h - from a merged stream of entries to new tables: what may go is dropped here, for
// flushes and compactions alike.
//
// WHICH ENTRIES MAY GO. Snapshots cut the sequence numbers into stripes; two versions of a key in
// one stripe look alike to every reader.
//  O1  A version goes if a newer one of its key (a put or delete) stands in its stripe.
//  O2  A version goes if a range delete in its stripe is newer and covers it.
//  O3  A delete in the oldest stripe goes if no older version can stand below the output level: the
//      versions that it hid are dropped with it (O1).
//  O4  The same holds for range deletes, stretch by stretch.
//  O5  In the last level, a put that every reader sees gets sequence number 0, unless range deletes
//      are among the input: equal numbers cost a block nothing.
//  O6  Merge operands of one stripe are made one with what is below them in it: a value that never
//      expires, a deletion, the end of a value; in the oldest stripe, where nothing can be below,
//      with none. If nothing is met an associative merger makes one operand of them. Where the
//      merger fails all stays.
//  O7  A value past its time is a deletion.
// The compaction filter is asked about values that no snapshot sees, if they are the first to be
// written of their key; what it drops is a deletion.
// Tables are cut between different user keys; range deletes are cut at the tables' bounds.
#ifndef TM_OUTPUT_H
#define TM_OUTPUT_H

#include "base/iter.h"
#include "lsm/snapshot.h"
#include "lsm/version.h"

struct tamis_db;
struct tamis_cf;

typedef struct tm_output_options {
    struct tamis_db *db;
    struct tamis_cf *family;
    const tm_version *version; // what stands below; NULL for a flush
    uint32_t level;
    const tm_stripes *stripes;
    const tm_range_set *ranges;       // of all inputs; NULL if there are none
    const tm_slice *start, *limit;    // only keys in [start, limit); NULL: open
    uint64_t table_bytes;             // cut at this size; UINT64_MAX: one table
    bool (*stop)(struct tamis_cf *f); // asked now and then; true ends with ABORTED
} tm_output_options;

typedef struct tm_output {
    tm_table_meta *tables;
    size_t count, cap;
    uint64_t entries_in, entries_dropped, bytes_written;
} tm_output;

// Reads merged from start to limit. On failure the tables written so far are removed.
int tm_output_run(const tm_output_options *options, tm_iter *merged, tm_output *out,
                  tamis_error *err) TM_CHECK_RESULT;
void tm_output_deinit(tm_output *out);
// Removes the files: for an install that failed without a trace.
void tm_output_remove_files(struct tamis_db *db, const tm_output *out);

#endif // TM_OUTPUT_H
