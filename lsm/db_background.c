// SPDX-License-Identifier: BSD-2-Clause
//
// db_background.c - when flushes, compactions and cleaning run, what follows from their failures,
// and the timer behind interval syncs and idle seals.
//
// RULES
//  B1  Work that is due is submitted whenever something changes under mu (tm_db_schedule), and
//      again by whoever finishes: it is never forgotten, and at rest nothing runs.
//  B2  After a failure the next try waits, doubling from 50 ms to 0.8 s; the first success ends
//      that.
//  B3  After a failed sync of log, manifest or folder nothing runs any more (the store is
//      poisoned).

#include "lsm/db.h"

enum { RETRY_MS = 50, RETRY_SHIFT_MAX = 4, IDLE_SEAL_MS = 100, TICK_MS = 50, REST_TICK_MS = 800 };

uint64_t tm_db_now_ns(const struct tamis_db *db)
{
    return db->vfs->monotonic_ns(db->vfs);
}

static bool wants_flush(const tm_family *f)
{
    return f->frozen_count > 0 && !f->flushing && !f->settling;
}

static bool wants_compaction(const tm_family *f)
{
    return !f->settling &&
           (f->compact_due || tm_db_trim_due(f) || (f->manual != NULL && !f->manual->running));
}

static bool is_due(struct tamis_db *db, bool (*wants)(const tm_family *f))
{
    for (uint32_t i = 0; i < db->family_count; i++) {
        if (wants(db->families[i])) return true;
    }
    return false;
}

bool tm_db_work_due(struct tamis_db *db)
{
    if (atomic_load_explicit(&db->poisoned, memory_order_relaxed)) return db->mu.busy_jobs > 0;
    return db->mu.busy_jobs > 0 || db->mu.compactions_queued > 0 || is_due(db, wants_flush) ||
           is_due(db, wants_compaction);
}

void tm_db_schedule(struct tamis_db *db)
{
    if (db->readonly || db->sched == NULL || db->mu.closing) return;
    if (atomic_exchange_explicit(&db->clean_due, false, memory_order_relaxed)) {
        tm_sched_submit(db->sched, TM_LANE_HIGH, &db->clean_job);
    }
    if (atomic_load_explicit(&db->poisoned, memory_order_relaxed) || db->mu.paused) return;
    if (db->mu.retry_at_ns > tm_db_now_ns(db) && tm_sched_threads(db->sched) > 0) return; // B2
    if (is_due(db, wants_flush)) tm_sched_submit(db->sched, TM_LANE_HIGH, &db->flush_job);
    uint32_t running = db->mu.compactions_queued;
    for (uint32_t i = 0; i < db->family_count; i++) running += db->families[i]->compacting;
    if (running < db->compact_slots && is_due(db, wants_compaction)) {
        for (uint32_t i = 0; i < db->compact_slots; i++) {
            if (db->compact_jobs[i].queued) continue;
            db->compact_jobs[i].queued = true;
            db->mu.compactions_queued++;
            tm_sched_submit(db->sched, TM_LANE_LOW, &db->compact_jobs[i].job);
            break;
        }
    }
}

void tm_db_background_result(struct tamis_db *db, int status, const tamis_error *e,
                             const char *what)
{
    if (status == TAMIS_OK) {
        db->mu.background_status = TAMIS_OK;
        db->mu.retry_shift = 0;
        db->mu.retry_at_ns = 0;
        return;
    }
    if (status == TAMIS_NOTFOUND || status == TAMIS_ABORTED) return;
    db->mu.background_status = status;
    db->mu.background_error = *e;
    db->mu.retry_at_ns = tm_db_now_ns(db) + ((uint64_t)RETRY_MS * 1000000 << db->mu.retry_shift);
    if (db->mu.retry_shift < RETRY_SHIFT_MAX) db->mu.retry_shift++;
    tm_stats_add(&db->stats, TM_STAT_background_errors, 1);
    tm_cond_broadcast(&db->mu.changed);
    tm_mutex_unlock(&db->mu.m);
    tamis_event event = {.kind = TAMIS_EVENT_BACKGROUND_ERROR, .file_number = e->file_number};
    tm_db_event(db, &event, "%s failed: %.200s", what, e->message);
    tm_mutex_lock(&db->mu.m);
}

// ---- Jobs --------------------------------------------------------------------------------------

static void end_job(struct tamis_db *db) // mu held; gives it up
{
    tm_mutex_unlock(&db->mu.m);
    tm_epoch_synchronize(); // what the old version held can go as soon as the last call has left
    tm_db_clean_dead(db);
    tm_mutex_lock(&db->mu.m);
    tm_db_schedule(db); // B1
    db->mu.busy_jobs--;
    tm_cond_broadcast(&db->mu.changed);
    tm_mutex_unlock(&db->mu.m);
}

// The families in turn, each while it is there and wants it. mu held; given up meanwhile.
static void work_on_families(struct tamis_db *db, bool (*wants)(const tm_family *f),
                             int (*work)(struct tamis_db *db, tm_family *f, tamis_error *err),
                             const char *what)
{
    for (uint32_t id = 0; !db->mu.closing;) {
        tm_family *f = NULL;
        for (uint32_t i = 0; i < db->family_count && f == NULL; i++) {
            if (db->families[i]->id >= id && wants(db->families[i])) f = db->families[i];
        }
        if (f == NULL) return;
        tamis_error e = {0};
        id = f->id + 1;
        tm_family_ref(f); // it may be dropped meanwhile
        int st = work(db, f, &e);
        tm_db_background_result(db, st, &e, what);
        tm_mutex_unlock(&db->mu.m);
        tm_family_unref(f);
        tm_mutex_lock(&db->mu.m);
    }
}

static void run_flush(tm_job *job)
{
    struct tamis_db *db = TM_CONTAINER(job, struct tamis_db, flush_job);
    tm_mutex_lock(&db->mu.m);
    db->mu.busy_jobs++;
    work_on_families(db, wants_flush, tm_db_flush_family, "flush");
    end_job(db);
}

static void run_compaction(tm_job *job)
{
    tm_compact_job *self = TM_CONTAINER(job, tm_compact_job, job);
    struct tamis_db *db = self->db;
    tm_mutex_lock(&db->mu.m);
    self->queued = false;
    db->mu.compactions_queued--;
    db->mu.busy_jobs++;
    work_on_families(db, wants_compaction, tm_db_compact_family, "compaction");
    end_job(db);
}

static void run_clean(tm_job *job)
{
    struct tamis_db *db = TM_CONTAINER(job, struct tamis_db, clean_job);
    tm_mutex_lock(&db->mu.m);
    db->mu.busy_jobs++;
    end_job(db);
}

// Called by any thread, with or without locks: only a mark. Who lets go of an iterator schedules.
static void wake_cleaner(void *ctx)
{
    struct tamis_db *db = ctx;
    atomic_store_explicit(&db->clean_due, true, memory_order_relaxed);
}

// ---- The timer ---------------------------------------------------------------------------------

static int seal_log(struct tamis_db *db, void *arg, tamis_error *err)
{
    (void)arg;
    (void)err;
    tamis_error detail = {0};
    if (tm_db_check_poison(db, NULL) != TAMIS_OK || tm_wal_writer_broken(db->log)) return TAMIS_OK;
    tm_mutex_lock(&db->log_m);
    int st = tm_wal_writer_seal(db->log, &detail);
    tm_mutex_unlock(&db->log_m);
    if (st != TAMIS_OK && tm_wal_writer_poisoned(db->log)) (void)!tm_db_poison(db, st, &detail);
    return TAMIS_OK;
}

// A log that was synced and then left alone gets a seal, so that its end is told from a tear.
// True: it should be asked again soon.
static bool seal_when_idle(struct tamis_db *db, uint64_t *seen_end, uint64_t *idle_since)
{
    tm_mutex_lock(&db->log_m);
    uint64_t end = tm_wal_writer_end(db->log), number = tm_wal_writer_number(db->log);
    bool synced = tm_wal_writer_synced(db->log) >= end && db->old_log_count == 0;
    tm_mutex_unlock(&db->log_m);
    uint64_t mark = end ^ (number << 40), now = tm_db_now_ns(db);
    if (mark != *seen_end || !synced) {
        bool grew = mark != *seen_end;
        *seen_end = mark;
        *idle_since = now;
        return grew;
    }
    if (*idle_since == 0) return false; // sealed
    if (now - *idle_since < (uint64_t)IDLE_SEAL_MS * 1000000) return true;
    (void)!tm_db_as_leader(db, seal_log, NULL, NULL);
    tm_mutex_lock(&db->log_m);
    *seen_end = tm_wal_writer_end(db->log) ^ (tm_wal_writer_number(db->log) << 40);
    tm_mutex_unlock(&db->log_m);
    *idle_since = 0; // nothing to do until it grows again
    return false;
}

static void sync_when_due(struct tamis_db *db)
{
    uint64_t since = atomic_load_explicit(&db->unsynced_since_ns, memory_order_seq_cst);
    if (since == 0) return;
    if (tm_db_now_ns(db) - since >= db->config.sync_interval_ms * 1000000) {
        (void)!tm_db_sync_logs(db, NULL); // a failure poisons the store: writers hear of it
    }
}

// Ticks often while something happens, and more and more seldom at rest: hundreds of idle stores
// cost next to nothing. A write that waits for an interval sync wakes it.
static void *run_timer(void *arg)
{
    struct tamis_db *db = arg;
    uint64_t seen_end = 0, idle_since = 0;
    uint64_t least_us =
        TM_MIN((uint64_t)TICK_MS, TM_MAX(db->config.sync_interval_ms / 2, 1u)) * 1000;
    uint64_t tick_us = least_us;
    tm_mutex_lock(&db->mu.m);
    while (!db->mu.closing) {
        // Looked at under mu, under which who sets it signals: no wake-up is missed.
        if (atomic_load_explicit(&db->unsynced_since_ns, memory_order_relaxed) != 0) {
            tick_us = least_us;
        }
        tm_cond_wait_us(&db->timer_wake, &db->mu.m, tick_us);
        if (db->mu.closing) break;
        tm_db_schedule(db);
        bool busy = tm_db_work_due(db);
        tm_mutex_unlock(&db->mu.m);
        sync_when_due(db);
        busy = seal_when_idle(db, &seen_end, &idle_since) || busy;
        tm_epoch_collect();
        tick_us = busy ? least_us : TM_MIN(tick_us * 2, (uint64_t)REST_TICK_MS * 1000);
        tm_mutex_lock(&db->mu.m);
    }
    tm_mutex_unlock(&db->mu.m);
    return NULL;
}

// ---- Start and stop ----------------------------------------------------------------------------

int tm_db_start_background(struct tamis_db *db, tamis_error *err)
{
    uint32_t threads = (uint32_t)db->config.background_threads;
    db->dead.wake = wake_cleaner;
    db->dead.wake_ctx = db;
    db->flush_job.run = run_flush;
    db->clean_job.run = run_clean;
    db->compact_slots = threads > 1 ? TM_MIN(threads - 1, (uint32_t)TM_MAX_COMPACTIONS) : 1;
    for (uint32_t i = 0; i < db->compact_slots; i++) {
        db->compact_jobs[i].job.run = run_compaction;
        db->compact_jobs[i].db = db;
    }
    TM_TRY(tm_sched_create(threads, db->config.seed, &db->sched, err));
    if (threads > 0) {
        TM_TRY(tm_thread_start(&db->timer, run_timer, db, "tamis-timer", err));
        db->timer_started = true;
    }
    return TAMIS_OK;
}

void tm_db_stop_background(struct tamis_db *db)
{
    tm_mutex_lock(&db->mu.m);
    db->mu.closing = true;
    tm_cond_broadcast(&db->mu.changed);
    tm_cond_broadcast(&db->timer_wake);
    tm_mutex_unlock(&db->mu.m);
    if (db->timer_started) tm_thread_join(&db->timer);
    db->timer_started = false;
    tm_sched_destroy(db->sched);
    db->sched = NULL;
}

// ---- The rate limit ----------------------------------------------------------------------------

void tm_db_throttle(void *ctx, uint64_t bytes)
{
    struct tamis_db *db = ctx;
    if (db->config.rate_limit == 0) return;
    uint64_t cost_ns = (uint64_t)((double)bytes * 1e9 / (double)db->config.rate_limit);
    uint64_t now = tm_db_now_ns(db);
    uint64_t next = atomic_load_explicit(&db->rate_next_ns, memory_order_relaxed), mine;
    do {
        mine = TM_MAX(next, now);
    } while (!atomic_compare_exchange_weak_explicit(&db->rate_next_ns, &next, mine + cost_ns,
                                                    memory_order_relaxed, memory_order_relaxed));
    if (mine > now + 1000000) db->vfs->sleep_us(db->vfs, (mine - now) / 1000);
}
