// SPDX-License-Identifier: BSD-2-Clause
//
// version.h - the tables of one family, level by level, at one moment.
//
//   level 0   newest first; tables may overlap (each is one flushed memtable)
//   level 1+  ascending and disjoint by user key: all versions of a key stand in one table
//
// INVARIANTS
//  V1  A version never changes. An edit makes a new one (tm_version_apply).
//  V2  A table is shared by all versions that list it and counted by them; when the last one goes
//      it is handed to the store's list of dead tables (db_obsolete.c), which closes it, and
//      unlinks the file if an edit that drops it is durable.
//  V3  Levels from 1 on: largest(i) < smallest(i+1), or <= where largest(i) is exclusive.
//
// Threads: versions are immutable; references are atomic. tm_file.busy and the sizes that picking
// uses belong to the store's mutex.
#ifndef TM_VERSION_H
#define TM_VERSION_H

#include <stdatomic.h>

#include "lsm/edit.h"
#include "sstable/table.h"

typedef struct tm_file_ref tm_file_ref;
typedef struct tm_dead_files { // where unreferenced tables go: a lock-free stack
    _Atomic(tm_file_ref *) head;
    void (*wake)(void *ctx); // something was pushed; called by any thread, must not block
    void *wake_ctx;
} tm_dead_files;

struct tm_file_ref { // one table of the store
    _Atomic uint32_t refs;
    tm_table *table;
    const tm_table_meta *meta; // the table's own
    tm_dead_files *dead;
    tm_file_ref *next_dead;
    _Atomic bool dropped; // an edit without it is durable: the file may be unlinked
    bool busy;            // input of a running compaction (the store's mutex)
    bool marked;          // wants to be compacted for its tombstones (the store's mutex)
    uint64_t look_ms;     // when expired entries make it worth a look; 0: never (the same)
};

// Takes the table (also on failure). Born with one reference.
int tm_file_ref_create(tm_table *table, tm_dead_files *dead, tm_file_ref **out,
                       tamis_error *err) TM_CHECK_RESULT;
void tm_file_ref_get(tm_file_ref *f);
void tm_file_ref_put(tm_file_ref *f); // NULL is fine

typedef struct tm_level {
    tm_file_ref **files;
    tm_table **tables; // the same, as level iterators want them
    uint64_t *heads;   // tm_head64 of the largest keys, for the first cut of a search (bytewise)
    uint32_t count;
    uint64_t bytes;
} tm_level;

typedef struct tm_version {
    _Atomic uint32_t refs;
    tm_order order;
    uint32_t levels_used; // highest level with tables, plus 1
    bool has_ranges;      // some table has range deletes
    uint64_t entries;
    tm_level levels[TM_LEVELS];
} tm_version;

int tm_version_create(const tm_order *order, tm_version **out,
                      tamis_error *err) TM_CHECK_RESULT; // empty
void tm_version_ref(tm_version *v);
void tm_version_unref(tm_version *v); // NULL is fine

typedef struct tm_version_add {
    uint32_t level;
    tm_file_ref *file;
} tm_version_add;
typedef struct tm_version_drop {
    uint32_t level;
    uint64_t number;
} tm_version_drop;
// base without drops and with adds. CORRUPT if a table to drop is not there, one to add is already,
// or a level would overlap (V3): the message names the tables.
int tm_version_apply(const tm_version *base, const tm_version_drop *drops, size_t drop_count,
                     const tm_version_add *adds, size_t add_count, tm_version **out,
                     tamis_error *err) TM_CHECK_RESULT;

// The table of level (>= 1) that may hold key: the first whose largest key is not before it, if its
// smallest is not behind it. -1 if none.
int64_t tm_version_find(const tm_version *v, uint32_t level, tm_slice key);
// Tables of a level that overlap [smallest, largest] (both inclusive, NULL = open): [*first, *last)
// for levels from 1 on. Level 0: use tm_file_overlaps on each.
void tm_version_overlap(const tm_version *v, uint32_t level, const tm_slice *smallest,
                        const tm_slice *largest, uint32_t *first, uint32_t *last);
bool tm_file_overlaps(const tm_order *order, const tm_file_ref *f, const tm_slice *smallest,
                      const tm_slice *largest);
// Whether key stands before (-1), inside (0) or behind (1) the table's bounds.
int tm_file_locate(const tm_order *order, const tm_table_meta *meta, tm_slice key);
uint64_t tm_version_bytes(const tm_version *v);
uint64_t tm_version_tables(const tm_version *v);

#endif // TM_VERSION_H
