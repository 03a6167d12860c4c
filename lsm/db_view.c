// SPDX-License-Identifier: BSD-2-Clause
//
// db_view.c - the views that readers look at, and the references that keep a store alive.

#include "base/mem.h"
#include "lsm/db.h"

// ---- Views -------------------------------------------------------------------------------------

static void view_free(tm_view *v)
{
    for (uint32_t i = 0; i < v->mem_count; i++) tm_memtable_unref(v->mems[i]);
    tm_version_unref(v->version);
    tm_free(v);
}

void tm_view_unref(tm_view *v)
{
    if (v == NULL) return;
    if (atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) == 1) view_free(v);
}

// The publisher's own reference goes after the last epoch that could have seen the pointer, so that
// a reader inside one always finds a count above zero.
static void view_retired(tm_retired *r)
{
    tm_view_unref(TM_CONTAINER(r, tm_view, retired));
}

tm_view *tm_view_alloc(tamis_error *err)
{
    tm_view *v = tm_calloc(1, sizeof *v);
    if (v == NULL)
        (void)!tm_fail_nomem(err);
    else
        atomic_init(&v->refs, 1);
    return v;
}

void tm_family_publish(tm_family *f, tm_view *v)
{
    v->version = f->version;
    tm_version_ref(v->version);
    if (f->mem != NULL) v->mems[v->mem_count++] = f->mem;
    for (uint32_t i = f->frozen_count; i > 0; i--) v->mems[v->mem_count++] = f->frozen[i - 1].mem;
    for (uint32_t i = 0; i < v->mem_count; i++) tm_memtable_ref(v->mems[i]);
    // Release: readers that load the pointer (acquire) see the view filled.
    tm_view *old = atomic_exchange_explicit(&f->view, v, memory_order_acq_rel);
    if (old != NULL) tm_epoch_retire(&old->retired, view_retired);
    tm_family_retire_idle(f);
}

tm_view *tm_family_pin_view(tm_family *f)
{
    tm_epoch_slot *slot = tm_epoch_enter();
    tm_view *v;
    if (TM_LIKELY(slot != NULL)) {
        v = atomic_load_explicit(&f->view, memory_order_acquire);
        atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
        tm_epoch_exit(slot);
        return v;
    }
    // No memory for this thread's epoch slot: views are replaced under mu only.
    tm_mutex_lock(&f->db->mu.m);
    v = atomic_load_explicit(&f->view, memory_order_acquire);
    atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
    tm_mutex_unlock(&f->db->mu.m);
    return v;
}

// ---- The life of a store -----------------------------------------------------------------------

void tm_db_ref(struct tamis_db *db)
{
    atomic_fetch_add_explicit(&db->refs, 1, memory_order_relaxed);
}

// Everything but files and threads, which tamis_close (or a failed open) has let go already.
static void db_free(struct tamis_db *db)
{
    for (uint32_t i = 0; i < db->family_count; i++) tm_family_unref(db->families[i]);
    tm_free(db->families);
    tm_epoch_synchronize(); // retired views of this store let go of their tables
    tm_db_clean_dead(db);
    tm_epoch_synchronize(); // blocks of those tables
    tm_table_cache_destroy(db->files);
    if (db->cache != NULL) tm_cache_destroy(db->cache);
    tm_snapshots_deinit(&db->snapshots);
    tm_notes_close(&db->notes);
    tm_notes_deinit(&db->notes);
    tm_mutex_deinit(&db->queue.m);
    tm_mutex_deinit(&db->mu.m);
    tm_cond_deinit(&db->mu.changed);
    tm_cond_deinit(&db->timer_wake);
    tm_stats_deinit(&db->stats);
    tm_buf_deinit(&db->path);
    tm_buf_deinit(&db->group);
    tm_buf_deinit(&db->mu.live_logs);
    tm_mutex_deinit(&db->log_m);
    tm_dir_close(db->dir);
    tm_free(db);
}

void tm_db_unref(struct tamis_db *db)
{
    if (atomic_fetch_sub_explicit(&db->refs, 1, memory_order_acq_rel) == 1) db_free(db);
}

int tm_db_check(struct tamis_db *db, tamis_error *err)
{
    if (TM_UNLIKELY(db == NULL)) return tm_fail(err, TAMIS_INVALID, "db is NULL");
    if (TM_UNLIKELY(atomic_load_explicit(&db->closed, memory_order_acquire))) {
        return tm_fail(err, TAMIS_CLOSED, "the store was closed");
    }
    if (TM_UNLIKELY(db->process != tm_process_id())) {
        return tm_fail(err, TAMIS_MISUSE,
                       "the store was opened by the parent process: a child of fork must open it "
                       "itself, after the parent has closed it");
    }
    return TAMIS_OK;
}
