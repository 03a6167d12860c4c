// SPDX-License-Identifier: BSD-2-Clause
//
// manifest.h - the live manifest: a record file of edits, and CURRENT that names it.
//
// INVARIANTS
//  N1  A manifest is complete, sealed and durable before CURRENT names it.
//  N2  An edit is durable before anything relies on it.
//  N3  A manifest whose append or sync failed is never appended to again.
//
// Threads: one at a time (the installer).
#ifndef TM_MANIFEST_H
#define TM_MANIFEST_H

#include "base/file.h"
#include "lsm/edit.h"

typedef struct tm_manifest tm_manifest;

// Writes MANIFEST-number with the snapshot edit, seals it, switches CURRENT. On failure nothing
// refers to it and the file is removed, unless *poisoned tells that a sync or the switch failed:
// then either manifest may be in force, and nothing may be written any more.
int tm_manifest_create(tamis_dir *dir, uint64_t number, const uint8_t store_id[16],
                       const tm_edit *snapshot, tm_manifest **out, bool *poisoned,
                       tamis_error *err) TM_CHECK_RESULT;
// Appends and syncs. *poisoned tells a failed sync (the edit is unknown) from a failed append.
int tm_manifest_append(tm_manifest *m, const tm_edit *e, bool *poisoned,
                       tamis_error *err) TM_CHECK_RESULT;
int tm_manifest_close(tm_manifest *m, bool seal, tamis_error *err); // NULL is fine
bool tm_manifest_broken(const tm_manifest *m);                      // N3: it has to be replaced
uint64_t tm_manifest_number(const tm_manifest *m);
uint64_t tm_manifest_synced(const tm_manifest *m); // length known durable
uint64_t tm_manifest_bytes(const tm_manifest *m);
uint64_t tm_manifest_snapshot_bytes(const tm_manifest *m); // of the first edit: when to roll

// CURRENT. NOTFOUND if it is missing.
int tm_current_read(tamis_dir *dir, uint64_t *number, tamis_error *err) TM_CHECK_RESULT;

// Reads a manifest: each edit in order. vouched: length that logs say was durable. whole: it ended
// exactly at its end (nothing cut). required: features (docs/format.md) beyond ours are refused.
typedef struct tm_manifest_end {
    bool whole, sealed;
    uint64_t cut_bytes, logical_end;
    uint8_t store_id[16];
    uint64_t edits;
} tm_manifest_end;
int tm_manifest_read(tamis_dir *dir, uint64_t number, uint64_t vouched,
                     int (*each)(void *ctx, tm_edit *e, tamis_error *err), void *ctx,
                     tm_manifest_end *end, tamis_error *err) TM_CHECK_RESULT;

#endif // TM_MANIFEST_H
