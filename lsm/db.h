// SPDX-License-Identifier: BSD-2-Clause
//
// db.h - the store itself: its parts and its locks. Private to lsm/.
//
//   writers ──► db_write.c ──► log, memtable ──► (full) immutable memtables
//                                                   │ db_flush.c
//                                                   ▼
//   readers ──► view { memtables, version } ◄── db_install.c ◄── level 0 ... 6 ◄── db_compact.c
//
// LOCKS, in the order in which they may be taken
//  1  queue.m   who waits to write; the head of the queue is the leader and owns the log, the
//               active memtables and last_seq without a lock
//  2  log_m     syncing and replacing logs; held across syncs. Appends do not take it
//  3  mu        everything under "mu" below; never held across file calls
//  4  small ones: snapshots.m, notes, the block cache's, the table cache's
//
// READERS take none of them: they load family->view inside an epoch, or pin it.
//
// LIFE. db->refs counts the handle, iterators, snapshots and values. tamis_close stops the work and
// closes the files; memory goes with the last reference.
#ifndef TM_DB_H
#define TM_DB_H

#include "base/sched.h"
#include "base/sync.h"
#include "lsm/batch.h"
#include "lsm/family.h"
#include "lsm/manifest.h"
#include "lsm/memtable.h"
#include "lsm/notes.h"
#include "lsm/options.h"
#include "lsm/snapshot.h"
#include "lsm/stats.h"
#include "lsm/version.h"
#include "wal/wal_writer.h"

#define TM_MAX_OLD_LOGS    64
#define TM_MAX_COMPACTIONS 8

typedef struct tm_writer {            // one call that waits in the queue
    _Atomic(struct tm_writer *) next; // written under the queue's mutex
    tm_slice parts[4];                // the operations, in the log's form
    uint32_t part_count;
    uint64_t count;
    size_t bytes; // of parts
    size_t data;  // bytes of keys and values
    bool single;  // one operation, told by op
    tm_batch_op op;
    tm_family *family;   // of all operations; NULL: of several, as parts[0] says
    uint32_t end_family; // family id in force behind parts
    tamis_sync sync;
    bool no_stall;
    bool barrier; // wants the log to itself: joins no group
    bool done;
    int status;
    uint64_t last_seq;
    tamis_error *err;
    tm_cond cond;
} tm_writer;

typedef struct tm_compact_job {
    tm_job job;
    bool queued; // mu
    struct tamis_db *db;
} tm_compact_job;

struct tamis_db {
    // Fixed after open.
    tm_config config;
    tm_buf path;
    const tamis_vfs *vfs;
    tamis_dir *dir;
    tamis_file *lock;
    uint8_t store_id[16];
    uint64_t hash_seed;
    uint64_t process; // tm_process_id at open: a child of fork is refused
    bool readonly;
    tm_cache *cache;
    tm_table_cache *files;
    tm_table_env table_env;
    tm_sched *sched;
    tm_family *default_family;
    // Ascending by id, the default family first. Changed by the leader under mu: either may read.
    tm_family **families;
    uint32_t family_count, family_cap;
    uint32_t next_family; // id of the next one to be created

    _Atomic uint64_t refs; // the handle, iterators, snapshots, values, family handles
    _Atomic bool closed;
    _Atomic uint64_t last_seq; // newest visible sequence number; stored by the leader
    tm_stats stats;
    tm_snapshots snapshots;
    tm_notes notes;
    tm_dead_files dead;
    _Atomic uint64_t iterators; // alive; values are what refs counts beyond them, snapshots
    _Atomic uint64_t handles;   // and handles of families
    _Atomic uint64_t next_file;

    struct { // who waits to write
        tm_mutex m;
        tm_writer *head, *tail;
    } queue;

    // The leader's.
    uint64_t alloc_seq; // last sequence number given out; numbers of failed writes stay used
    uint64_t delay_debt_us;
    tm_buf group;          // slices of the group at hand
    tm_family *touched;    // families that the group at hand writes to, by next_touched
    size_t memtable_bytes; // of the memtables in use, all families
    uint64_t log_total;    // bytes appended to logs since open
    uint64_t log_oldest; // the least mem_begin of the families: where the oldest unflushed write is

    tm_mutex log_m;
    tm_wal_writer *log; // replaced under log_m and mu by the leader; appended to by the leader
    tm_wal_writer *old_logs[TM_MAX_OLD_LOGS]; // log_m: not yet durable, oldest first
    uint32_t old_log_count;                   // log_m

    _Atomic bool poisoned; // a sync failed: no write is taken until reopened

    // Stall state: set under mu, read by the leader without it.
    _Atomic uint32_t stall;      // tm_stall
    _Atomic uint64_t delay_rate; // bytes a second while slowed down

    struct {
        tm_mutex m;
        tm_cond changed; // background work ended, versions changed, errors came or went
        tm_manifest *manifest;
        bool installing; // somebody is between writing an edit and publishing it
        bool closing;
        bool paused;
        tamis_error poison_error;
        int background_status; // last failure of background work; cleared by its next success
        tamis_error background_error;
        uint32_t retry_shift; // back-off of background work after a failure
        uint64_t retry_at_ns;
        uint64_t job_number;
        tm_family *dropped; // that readers hold still: their counters count
        tm_buf live_logs;   // numbers (uint64_t) of logs with a file, ascending
        uint32_t compactions_queued;
        uint32_t busy_jobs; // flush, compaction, clean jobs that run
    } mu;

    tm_job flush_job, clean_job;
    tm_compact_job compact_jobs[TM_MAX_COMPACTIONS];
    uint32_t compact_slots; // how many of compact_jobs are used
    _Atomic bool clean_due;
    _Atomic uint64_t
        unsynced_since_ns;         // INTERVAL: when the oldest write that waits was made; 0 none
    _Atomic uint64_t rate_next_ns; // the rate limit's next free moment
    tm_thread timer;               // interval syncs, idle seals, retries
    bool timer_started;
    tm_cond timer_wake;
    _Atomic uint64_t last_append_ns;
    _Atomic uint64_t manifest_number, manifest_synced; // what log records vouch for
};

typedef enum tm_stall { TM_STALL_NONE = 0, TM_STALL_SLOW = 1, TM_STALL_STOP = 2 } tm_stall;

// ---- db_view.c ---------------------------------------------------------------------------------

// The view, counted: tm_view_unref. Enters an epoch for the moment of it.
tm_view *tm_family_pin_view(tm_family *f);
void tm_db_ref(struct tamis_db *db);
void tm_db_unref(struct tamis_db *db);
// OK, or CLOSED, or MISUSE in a child of fork.
int tm_db_check(struct tamis_db *db, tamis_error *err) TM_CHECK_RESULT;
// A checked copy of the caller's read options.
int tm_read_options_check(struct tamis_db *db, const tamis_read_options *in,
                          tamis_read_options *out, tamis_error *err) TM_CHECK_RESULT;

// ---- db_family.c -------------------------------------------------------------------------------

// The family of a handle of the caller's (NULL = default); INVALID if it is none of this store's,
// NOTFOUND if it was dropped.
int tm_db_family(struct tamis_db *db, const tamis_cf *cf, tm_family **out,
                 tamis_error *err) TM_CHECK_RESULT;
// By id; NULL if there is none. Leader, or mu held.
tm_family *tm_db_family_by_id(const struct tamis_db *db, uint32_t id);
// Takes f into the list (which takes its reference). Leader and mu held, or single-threaded.
int tm_db_list_family(struct tamis_db *db, tm_family *f, tamis_error *err) TM_CHECK_RESULT;
// The plug-ins and options that the opener gave for a family of this name; NULL: none.
const tamis_family *tm_db_given_family(const struct tamis_db *db, tm_slice name);

// ---- db_recover.c ------------------------------------------------------------------------------

// A new, empty store: its first manifest and log.
int tm_db_create(struct tamis_db *db, tamis_error *err) TM_CHECK_RESULT;
// Reads manifest and logs, makes versions and memtables; writer opens then write tables, a new
// manifest and a new log, and remove or set aside what nothing names. files: the folder's list.
struct tm_folder;
int tm_db_recover(struct tamis_db *db, const struct tm_folder *files,
                  tamis_error *err) TM_CHECK_RESULT;

// ---- db_log.c: logs as a sequence --------------------------------------------------------------

// Begins a new log; the one in use (if any) is kept until it is durable. Leader or open.
int tm_db_new_log(struct tamis_db *db, tamis_error *err) TM_CHECK_RESULT;
// Makes every log up to now durable, oldest first. A failure poisons the store.
int tm_db_sync_logs(struct tamis_db *db, tamis_error *err) TM_CHECK_RESULT;
// Closes old logs below min_log without syncing them: their data stands in tables. Takes log_m.
void tm_db_forget_logs(struct tamis_db *db, uint64_t min_log);
// OK, or the failure that poisoned the store.
int tm_db_check_poison(struct tamis_db *db, tamis_error *err) TM_CHECK_RESULT;
int tm_db_poison(struct tamis_db *db, int status, const tamis_error *why); // returns status

// ---- db_write.c --------------------------------------------------------------------------------

int tm_db_write(struct tamis_db *db, tm_writer *w) TM_CHECK_RESULT;
// Freezes the memtable of f and begins a new log. As the leader.
int tm_db_switch_memtable(struct tamis_db *db, tm_family *f, tamis_error *err) TM_CHECK_RESULT;
// Runs fn as the queue's leader, with no writer beside it.
int tm_db_as_leader(struct tamis_db *db,
                    int (*fn)(struct tamis_db *db, void *arg, tamis_error *err), void *arg,
                    tamis_error *err) TM_CHECK_RESULT;

// ---- db_install.c: changes of the table list ---------------------------------------------------

// What a flush or compaction wants to become true.
typedef struct tm_change {
    tm_version_drop *drops;
    size_t drop_count;
    tm_version_add *adds;
    size_t add_count;
    uint32_t flushed; // so many of the oldest frozen memtables are in the added tables
    bool has_cursor;
    uint32_t cursor_level;
    tm_slice cursor;
} tm_change;
// Writes the edit of another change and syncs it; the caller then makes it true in memory. mu held;
// given up meanwhile, with db->mu.installing set.
int tm_db_install_edit(struct tamis_db *db, tm_edit *edit, tamis_error *err) TM_CHECK_RESULT;
// Writes the edit, syncs it, then publishes the new version. mu held; given up meanwhile. ABORTED
// if the family has been dropped.
int tm_db_install(struct tamis_db *db, tm_family *f, const tm_change *c,
                  tamis_error *err) TM_CHECK_RESULT;
// Sets stall and due work from the version of f (NULL: of all families). mu held.
void tm_db_update_pressure(struct tamis_db *db, tm_family *f);
// Marks the tables of v as dropped by a durable edit.
void tm_db_mark_dropped(const tm_version *v);
// Lowest log that is still needed; the writes of family except (NULL: none) left out. mu held.
uint64_t tm_db_min_log(struct tamis_db *db, const tm_family *except);
// A snapshot edit of everything, for a new manifest. mu held or single-threaded.
int tm_db_snapshot_edit(struct tamis_db *db, tm_edit *e, tamis_error *err) TM_CHECK_RESULT;

// ---- db_background.c ---------------------------------------------------------------------------

void tm_db_schedule(struct tamis_db *db); // submits what is due. mu held.
void tm_db_background_result(struct tamis_db *db, int status, const tamis_error *e,
                             const char *what); // mu held
int tm_db_start_background(struct tamis_db *db, tamis_error *err) TM_CHECK_RESULT;
void tm_db_stop_background(struct tamis_db *db);
bool tm_db_work_due(struct tamis_db *db);      // mu held
void tm_db_throttle(void *db, uint64_t bytes); // the rate limit; may wait
uint64_t tm_db_now_ns(const struct tamis_db *db);

// ---- db_flush.c, db_compact.c ------------------------------------------------------------------

struct tm_output;
// Whether a table should be compacted for its deletes alone.
bool tm_db_many_tombstones(const tm_family *f, uint32_t level, const tm_table_meta *m);
// Opens the tables of out for a version of f: adds[i] gets a reference each.
int tm_db_open_outputs(struct tamis_db *db, tm_family *f, const struct tm_output *out,
                       uint32_t level, tm_version_add *adds, tamis_error *err) TM_CHECK_RESULT;
// Flushes the oldest frozen memtables of f. mu held; given up meanwhile.
int tm_db_flush_family(struct tamis_db *db, tm_family *f, tamis_error *err) TM_CHECK_RESULT;
// Picks and runs one compaction, if one is due. mu held; given up meanwhile. NOTFOUND: none.
int tm_db_compact_family(struct tamis_db *db, tm_family *f, tamis_error *err) TM_CHECK_RESULT;

// ---- db_trim.c ---------------------------------------------------------------------------------

bool tm_db_trim_due(const tm_family *f); // mu held
// Drops tables that need not be read for it. mu held; given up meanwhile. NOTFOUND: there are none.
int tm_db_trim_family(struct tamis_db *db, tm_family *f, tamis_error *err) TM_CHECK_RESULT;

// ---- db_obsolete.c -----------------------------------------------------------------------------

// Closes dead tables and unlinks what durable edits dropped. Takes no lock of the store.
void tm_db_clean_dead(struct tamis_db *db);
// Deletes the logs below min_log, which a durable edit has made obsolete. Takes log_m and mu.
void tm_db_delete_logs(struct tamis_db *db, uint64_t min_log);

// ---- db_api.c ----------------------------------------------------------------------------------

int tm_db_flush_all(struct tamis_db *db, tamis_error *err) TM_CHECK_RESULT; // every family

// ---- db_batch.c --------------------------------------------------------------------------------

// out gets the value behind the moment of its expiry, as PUT_EXPIRY entries have it.
int tm_db_expiring_value(const struct tamis_db *db, uint64_t ttl_ms, tm_slice value, tm_buf *out,
                         tamis_error *err) TM_CHECK_RESULT;
// INVALID if start stands behind limit, in the family's order.
int tm_db_check_range(const tm_family *f, tm_slice start, tm_slice limit,
                      tamis_error *err) TM_CHECK_RESULT;

// ---- Events and the LOG file -------------------------------------------------------------------

void tm_db_event(struct tamis_db *db, tamis_event *event, const char *fmt, ...) TM_PRINTF(3, 4);
void tm_db_note(struct tamis_db *db, int severity, const char *fmt, ...) TM_PRINTF(3, 4);

#endif // TM_DB_H
