// SPDX-License-Identifier: BSD-2-Clause
//
// db_log.c - the logs as a sequence: the one in use, the older ones that are not durable yet, and
// what a failed sync means.
//
// A new log names the end of the one before it, and a sync of a log first completes the sync of all
// older ones (docs/reliability.md: no gaps).

#include "lsm/db.h"
#include "lsm/filename.h"

int tm_db_check_poison(struct tamis_db *db, tamis_error *err)
{
    // Acquire pairs with the release in tm_db_poison: the error is complete.
    if (TM_LIKELY(!atomic_load_explicit(&db->poisoned, memory_order_acquire))) return TAMIS_OK;
    return tm_fail_copy(err, &db->mu.poison_error);
}

int tm_db_poison(struct tamis_db *db, int status, const tamis_error *why)
{
    tm_mutex_lock(&db->mu.m);
    if (!atomic_load_explicit(&db->poisoned, memory_order_relaxed)) {
        db->mu.poison_error = *why;
        db->mu.poison_error.code = TAMIS_POISONED;
        db->mu.poison_error.retryable = 0;
        (void)!tm_fail(&db->mu.poison_error, TAMIS_POISONED,
                       "no writes are taken until the store is reopened, because: %.150s",
                       why->message);
        db->mu.poison_error.sys = why->sys;
        db->mu.poison_error.file_number = why->file_number;
        atomic_store_explicit(&db->poisoned, true, memory_order_release);
        tm_cond_broadcast(&db->mu.changed);
    }
    tm_mutex_unlock(&db->mu.m);
    tm_db_note(db, 2, "poisoned: %s", why->message);
    return status;
}

int tm_db_new_log(struct tamis_db *db, tamis_error *err)
{
    char name[TM_NAME_MAX];
    tamis_error detail = {0};
    tm_wal_writer *w = NULL, *old = db->log;
    uint64_t number = atomic_fetch_add_explicit(&db->next_file, 1, memory_order_relaxed);
    tm_filename(name, TM_FILE_LOG, number);
    tm_mutex_lock(&db->log_m);
    int st = TAMIS_OK;
    if (db->old_log_count == TM_MAX_OLD_LOGS) {
        st = tm_fail(&detail, TAMIS_BUSY, "%u logs wait for a sync", (unsigned)TM_MAX_OLD_LOGS);
        goto out;
    }
    tm_mutex_lock(&db->mu.m);
    st = tm_buf_reserve(&db->mu.live_logs, sizeof number);
    tm_mutex_unlock(&db->mu.m);
    if (st != TAMIS_OK) {
        st = tm_fail_nomem(&detail);
        goto out;
    }
    tm_wal_header h = {.kind = TM_WAL_LOG, .number = number, .base = db->alloc_seq};
    memcpy(h.store_id, db->store_id, sizeof h.store_id);
    h.manifest = atomic_load_explicit(&db->manifest_number, memory_order_acquire);
    h.manifest_synced = atomic_load_explicit(&db->manifest_synced, memory_order_acquire);
    if (old != NULL) {
        h.previous = tm_wal_writer_number(old);
        h.previous_end = tm_wal_writer_end(old);
        h.previous_synced = tm_wal_writer_synced(old);
    }
    TM_GOTO(tm_wal_writer_create(db->dir, name, &h, db->config.log_reserve, &w, &detail));
    st = tm_dir_sync(db->dir, &detail); // before the first write that promises anything
    if (st != TAMIS_OK) {
        (void)!tm_wal_writer_close(w, NULL);
        (void)!tm_dir_unlink(db->dir, name, NULL);
        tm_mutex_unlock(&db->log_m);
        st = tm_db_poison(db, st, &detail);
        (void)!tm_fail_copy(err, &detail);
        return st;
    }
    if (old != NULL) db->old_logs[db->old_log_count++] = old;
    tm_mutex_lock(&db->mu.m);
    db->log = w;
    // Room for the number was made by the reserve above.
    (void)!tm_buf_append(&db->mu.live_logs, &number, sizeof number);
    tm_mutex_unlock(&db->mu.m);
out:
    tm_mutex_unlock(&db->log_m);
    if (st != TAMIS_OK) (void)!tm_fail_copy(err, &detail);
    return st;
}

// log_m held.
static int sync_all(struct tamis_db *db, tamis_error *err)
{
    while (db->old_log_count > 0) {
        tm_wal_writer *w = db->old_logs[0];
        if (tm_wal_writer_synced(w) < tm_wal_writer_end(w)) {
            TM_TRY(tm_wal_writer_sync(w, err));
            tm_stats_add(&db->stats, TM_STAT_log_syncs, 1);
        }
        (void)!tm_wal_writer_close(w, NULL); // durable already: nothing hangs on it
        db->old_log_count--;
        memmove(db->old_logs, db->old_logs + 1, db->old_log_count * sizeof db->old_logs[0]);
    }
    if (db->log != NULL && tm_wal_writer_synced(db->log) < tm_wal_writer_end(db->log)) {
        TM_TRY(tm_wal_writer_sync(db->log, err));
        tm_stats_add(&db->stats, TM_STAT_log_syncs, 1);
    }
    return TAMIS_OK;
}

int tm_db_sync_logs(struct tamis_db *db, tamis_error *err)
{
    tamis_error detail = {0};
    TM_TRY(tm_db_check_poison(db, err));
    tm_mutex_lock(&db->log_m);
    // Cleared before the sync: an append that comes between is seen by the next one.
    atomic_store_explicit(&db->unsynced_since_ns, 0, memory_order_seq_cst);
    int st = sync_all(db, &detail);
    tm_mutex_unlock(&db->log_m);
    if (st != TAMIS_OK) {
        st = tm_db_poison(db, st, &detail);
        (void)!tm_fail_copy(err, &detail);
    }
    return st;
}

void tm_db_forget_logs(struct tamis_db *db, uint64_t min_log)
{
    tm_mutex_lock(&db->log_m);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < db->old_log_count; i++) {
        if (tm_wal_writer_number(db->old_logs[i]) < min_log) {
            (void)!tm_wal_writer_close(db->old_logs[i], NULL);
        } else {
            db->old_logs[kept++] = db->old_logs[i];
        }
    }
    db->old_log_count = kept;
    tm_mutex_unlock(&db->log_m);
}
