// SPDX-License-Identifier: BSD-2-Clause
//
// family.h - a column family: a name, an order and options of its own; memtables and a version of
// its own. Log, manifest, sequence numbers, cache and background threads are the store's (db.h).
//
// The public tamis_cf is this struct. It lives by a count: one reference is the store's list, one
// for each handle and iterator, and one for each job that works on it.
#ifndef TM_FAMILY_H
#define TM_FAMILY_H

#include "lsm/memtable.h"
#include "lsm/options.h"
#include "lsm/stats.h"
#include "lsm/version.h"

#define TM_MAX_WRITE_BUFFERS 8
#define TM_IDLE_ITERATORS    4

// What a read of one family looks at. Immutable once published; counted.
typedef struct tm_view {
    tm_retired retired;
    _Atomic uint32_t refs;
    tm_version *version;
    uint32_t mem_count;
    tm_memtable *mems[TM_MAX_WRITE_BUFFERS + 1]; // newest first; [0] is the active one
} tm_view;

typedef struct tm_frozen { // an immutable memtable
    tm_memtable *mem;
    uint64_t first_log; // the first log that holds writes of it
    uint64_t last_seq;  // of the store when it was frozen
} tm_frozen;

typedef struct tm_manual { // a caller of tamis_compact, waiting
    struct tm_manual *next;
    const tm_slice *smallest, *largest; // NULL: open
    uint64_t before; // tables from this number on are new enough in the last level
    uint32_t level;  // next level to push down
    bool running, done;
    int status;
    tamis_error error;
} tm_manual;

struct tamis_cf {
    struct tamis_db *db;
    uint32_t id;
    _Atomic uint32_t refs;
    _Atomic uint64_t ttl_ms; // config.ttl_ms, for writers
    _Atomic bool can_merge;  // it has a merger, by name
    _Atomic bool dropped;    // handles answer NOTFOUND; nothing more is installed
    tm_order order;
    _Atomic(tm_view *) view;
    _Atomic(const tamis_merger *) merger; // &plugins.merger once it is there; never changed
    tm_stats stats;                       // of reads
    // Iterators that were freed while their view was in force, to be used again (db_iter.c).
    _Atomic(struct tamis_iter *) idle[TM_IDLE_ITERATORS];
    // Changed by the leader under mu, while no job works on the family.
    tm_buf name;  // text
    tm_buf given; // text: options that were given for it, as text; kept in the manifest
    tm_config config;
    tm_buf merger_name; // text; "" if it never had one
    tm_plugins plugins;
    // The leader's.
    tm_memtable *mem;         // also mems[0] of the view; NULL until something is written
    _Atomic uint64_t mem_log; // first log that holds writes of mem; 0 while it is empty
    size_t mem_bytes;         // memory of mem when it was last looked at
    uint64_t mem_begin;       // log_total of the store when mem got its first write
    struct tamis_cf *next_touched;
    size_t group_data, group_entries; // of the group at hand
    bool is_touched;
    // mu:
    tm_frozen frozen[TM_MAX_WRITE_BUFFERS]; // oldest first
    uint32_t frozen_count;
    uint64_t flushed_seq; // writes up to this number stand in tables
    bool flushing;
    bool settling; // somebody waits for the jobs to end: none is begun
    tm_version *version;
    tm_buf cursors[TM_LEVELS]; // where the next compaction of a level begins
    uint32_t compacting;       // running compactions
    bool compact_due;
    bool trim_due;        // range deletes came or moved: tables may lie under them (db_trim.c)
    uint64_t next_expiry; // when the first table is all past its time (ms); 0: none will be
    uint64_t slow_rate;   // bytes a second that its level 0 allows writers; 0: no limit
    bool full;            // its memtables or level 0 hold writers back
    tm_manual *manual;    // waiting, first in first out
    struct tamis_cf *next_dropped; // of those that readers hold still
};
typedef struct tamis_cf tm_family;

// The one "option" of a family in the manifest: all that were given for it, as text.
#define TM_GIVEN_OPTIONS "given"

typedef struct tm_family_spec { // copied
    uint32_t id;
    tm_slice name;
    tm_order order;
    tm_slice merger; // name kept in the store; empty: none so far
    tm_slice given;
    const tm_config *config;
    const tm_plugins *plugins;
} tm_family_spec;

// With an empty version. Born with one reference. INVALID if the plug-in is not the merger that the
// store names.
int tm_family_create(struct tamis_db *db, const tm_family_spec *spec, tm_family **out,
                     tamis_error *err) TM_CHECK_RESULT;
static inline tm_slice tm_family_name(const tm_family *f)
{
    return tm_buf_text(&f->name);
}
// Takes the plug-ins over that f does not have yet, or may have anew (compaction filter). mu held,
// no job on f; or f is not shared yet.
void tm_family_plug_in(tm_family *f, const tm_plugins *plugins);
void tm_family_ref(tm_family *f);
void tm_family_unref(tm_family *f); // NULL is fine

// Frees the iterators that are kept for use again, when nobody can be looking at them.
void tm_family_retire_idle(tm_family *f);

void tm_view_unref(tm_view *v);
tm_view *tm_view_alloc(tamis_error *err); // empty; NULL if out of memory
// Publishes the family's memtables and version as its view, in v (from tm_view_alloc). mu held.
void tm_family_publish(tm_family *f, tm_view *v);

#endif // TM_FAMILY_H
