// SPDX-License-Identifier: BSD-2-Clause
//
// table_verify.h - reads a whole table file and reports every damage in it.
//
// It walks the frames of the file, so that damage in one place does not hide damage in another,
// then compares what it saw with the index, the filters, the properties, the footer and the
// manifest's record. What it finds goes to finding, one error a place.
//
// Checked: header and footer; every frame's checksum; the inner form of every block; that keys
// ascend strictly over the whole file; that every key lies where index and top level send a search
// for it and stands in its partition's filter; counts, bounds, sequence numbers and sizes against
// footer, properties and meta; the digest of the file against meta.
//
// order NULL: the comparator of a table that is not bytewise is not at hand. Then whatever needs it
// (order of keys, separators, bounds, range fragments, hashes with a canonical spelling) is not
// checked; all else is. A bytewise table is checked in full either way.
//
// Threads: one call, one thread; the file may be in use by readers.
#ifndef TM_TABLE_VERIFY_H
#define TM_TABLE_VERIFY_H

#include "base/file.h"
#include "sstable/table.h"

// meta may lack a digest (all zero): then the digest is not compared. progress may be NULL; what it
// returns other than TAMIS_OK ends the call with that status. OK, CORRUPT (there were findings), a
// failure to read, NOMEM. out may be NULL.
int tm_table_verify_file(tm_file *file, const tm_table_meta *meta, const tm_order *order,
                         void (*finding)(void *ctx, const tamis_error *e),
                         int (*progress)(void *ctx, uint64_t bytes), void *ctx, tm_table_check *out,
                         tamis_error *err) TM_CHECK_RESULT;

#endif // TM_TABLE_VERIFY_H
