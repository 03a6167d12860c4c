// SPDX-License-Identifier: BSD-2-Clause
//
// wal_writer.h - appends records to a new record file.
//
//   0          synced            end          reserved
//   +------------+----------------+- - - - - - - +
//   |  durable   |  in the kernel |     room     |
//   +------------+----------------+- - - - - - - +
//
// INVARIANTS
//  1. synced <= end; end is where the last whole record ends (or the header).
//  2. Each record says how far the file was durable when it was written: synced at that time.
//  3. A failed append leaves end as it was: what it wrote is cut off again. Where that fails too
//     the writer is broken: nothing is ever appended behind rubbish, the file must be replaced.
//  4. After a failed sync the writer is poisoned: the kernel may have dropped what it holds, so no
//     later sync means anything. Every call but the reading ones and close answers POISONED.
//
// Threads: append, seal and close by one thread at a time; sync, set_manifest and the reading calls
// by any thread at any time (sync beside append: neither waits for the other).
// Ownership: the writer owns its file. The folder must outlive it.
// Errors: NOSPACE, IO, NOMEM and INVALID of an append: nothing of it is there, now or later.
// Cost: one write call for an append of up to 1 MiB, one for each MiB above; the payload is copied
// once. The memory kept is at most a little above 1 MiB.
#ifndef TM_WAL_WRITER_H
#define TM_WAL_WRITER_H

#include "base/file.h"
#include "wal/wal_format.h"

typedef struct tm_wal_writer tm_wal_writer;

// Creates the file, which must not exist (EXISTS), and writes its header. Nothing is synced,
// neither the file nor the folder. reserve_bytes: room is asked of the file system in such steps,
// ahead of the end; 0: never. A refusal is no error, the write will tell. On failure the file is
// removed.
int tm_wal_writer_create(tamis_dir *dir, const char *name, const tm_wal_header *h,
                         uint64_t reserve_bytes, tm_wal_writer **out,
                         tamis_error *err) TM_CHECK_RESULT;

// Closes the file, without a sync, and frees. NULL is fine. The failure is only told.
int tm_wal_writer_close(tm_wal_writer *w, tamis_error *err);

// Appends one record whose payload is the parts one after the other: count operations, the first
// of which has sequence number seq. Two appends must not have the same seq, failed ones included:
// by it the pieces of a large payload are known to belong together.
int tm_wal_writer_append(tm_wal_writer *w, const tm_slice *parts, size_t n_parts, uint64_t seq,
                         uint64_t count, tamis_error *err) TM_CHECK_RESULT;

// The manifest in force is durable up to synced_length: the next record says so, if that is new.
void tm_wal_writer_set_manifest(tm_wal_writer *w, uint64_t number, uint64_t synced_length);

// Makes all records durable whose append had returned when it was called. IO (never NOSPACE) if the
// sync fails, POISONED if one had failed before.
int tm_wal_writer_sync(tm_wal_writer *w, tamis_error *err) TM_CHECK_RESULT;

// Sync, a seal, sync: from then on every wrong bit before the seal is known for damage. Nothing is
// done where the last record is a durable seal.
int tm_wal_writer_seal(tm_wal_writer *w, tamis_error *err) TM_CHECK_RESULT;

uint64_t tm_wal_writer_number(const tm_wal_writer *w);
uint64_t tm_wal_writer_end(const tm_wal_writer *w);
uint64_t tm_wal_writer_synced(const tm_wal_writer *w);
bool tm_wal_writer_broken(const tm_wal_writer *w);   // see 3
bool tm_wal_writer_poisoned(const tm_wal_writer *w); // see 4

#endif // TM_WAL_WRITER_H
