// SPDX-License-Identifier: BSD-2-Clause
//
// db_open.c - opening, closing and destroying a store.

#include <errno.h>

#include "base/mem.h"
#include "lsm/db.h"
#include "lsm/folder.h"

#define NOTES_BYTES (4u << 20)

// ---- Opening -----------------------------------------------------------------------------------

static int open_folder(struct tamis_db *db, bool *created, tamis_error *err)
{
    const char *path = (const char *)db->path.data;
    bool may_create = !(db->config.flags & (TAMIS_OPEN_EXISTING | TAMIS_OPEN_READONLY));
    int st = tm_dir_open(db->vfs, path, may_create ? TAMIS_DIR_CREATE : TAMIS_DIR_EXISTING,
                         &db->dir, created, err);
    if (st == TAMIS_NOTFOUND) {
        (void)!tm_fail(err, TAMIS_NOTFOUND,
                       may_create ? "%.180s: the parent folder does not exist"
                                  : "%.180s: no such folder",
                       path);
    }
    return st;
}

// The entry of a folder that was made has to be durable, too.
static int sync_parent(struct tamis_db *db, tamis_error *err)
{
    tm_buf parent;
    tm_buf_init(&parent);
    const char *path = (const char *)db->path.data;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    while (n > 0 && path[n - 1] != '/') n--;
    while (n > 1 && path[n - 1] == '/') n--;
    tamis_dir *dir = NULL;
    int st = tm_buf_set(&parent, n > 0 ? tm_slice_of(path, n) : tm_slice_str("."));
    if (st == TAMIS_OK) st = tm_buf_append(&parent, "", 1);
    if (st != TAMIS_OK) st = tm_fail_nomem(err);
    if (st == TAMIS_OK) {
        st = tm_dir_open(db->vfs, (const char *)parent.data, TAMIS_DIR_EXISTING, &dir, NULL, err);
    }
    if (st == TAMIS_OK) st = tm_dir_sync(dir, err);
    tm_dir_close(dir);
    tm_buf_deinit(&parent);
    return st;
}

// Tells a store from an empty folder, a half-made store and a folder of somebody else's.
static int judge_folder(struct tamis_db *db, const tm_folder *f, bool *create, tamis_error *err)
{
    uint32_t flags = db->config.flags;
    const char *path = (const char *)db->path.data;
    *create = !f->has_current;
    if (f->has_current) {
        if (flags & TAMIS_OPEN_NEW) {
            return tm_fail(err, TAMIS_EXISTS, "%.180s: there is a store already", path);
        }
        return TAMIS_OK;
    }
    size_t manifests = tm_folder_count(&f->manifests);
    bool begun = manifests == 0 || (manifests == 1 && tm_folder_at(&f->manifests, 0) == 1);
    if (tm_folder_count(&f->tables) > 0 || tm_folder_count(&f->logs) > 0 || !begun) {
        return tm_fail_corrupt(err, 0, 0, "%.160s: CURRENT is missing beside files of a store",
                               path);
    }
    if (f->has_other) {
        return tm_fail(err,
                       flags & (TAMIS_OPEN_EXISTING | TAMIS_OPEN_READONLY) ? TAMIS_NOTFOUND
                                                                           : TAMIS_INVALID,
                       "%.120s: not a store: the folder holds other files (%.60s)", path, f->other);
    }
    if (flags & (TAMIS_OPEN_EXISTING | TAMIS_OPEN_READONLY)) {
        return tm_fail(err, TAMIS_NOTFOUND, "%.180s: there is no store in this folder", path);
    }
    return TAMIS_OK;
}

static int take_lock(struct tamis_db *db, tamis_error *err)
{
    int sys = db->vfs->lock(db->dir, TM_NAME_LOCK,
                            db->readonly ? TAMIS_LOCK_SHARED : TAMIS_LOCK_EXCLUSIVE, &db->lock);
    if (sys == EWOULDBLOCK || sys == EAGAIN) {
        return tm_fail(err, TAMIS_LOCKED,
                       "%.180s: the store is open already, here or in another "
                       "process",
                       (const char *)db->path.data);
    }
    // A store on a medium that cannot be written may lack a lock file: nobody can write it.
    if (sys != 0 && db->readonly && (sys == ENOENT || sys == EROFS || sys == EACCES))
        return TAMIS_OK;
    return sys == 0 ? TAMIS_OK
                    : tm_fail_sys(err, sys, 0, 0, "lock %.160s", (const char *)db->path.data);
}

static int make_parts(struct tamis_db *db, tamis_error *err)
{
    const tm_config *c = &db->config;
    TM_TRY(tm_cache_create((size_t)c->memory_budget, &db->cache, err));
    TM_TRY(tm_table_cache_create(db->dir, (uint32_t)c->max_open_files, &db->files, err));
    db->table_env = (tm_table_env){db->vfs, db->cache, db->files, c->verify_filters != 0};
    return TAMIS_OK;
}

static int init_locks(struct tamis_db *db, tamis_error *err)
{
    TM_TRY(tm_mutex_init(&db->queue.m, err));
    TM_TRY(tm_mutex_init(&db->log_m, err));
    TM_TRY(tm_mutex_init(&db->mu.m, err));
    TM_TRY(tm_cond_init(&db->mu.changed, err));
    TM_TRY(tm_cond_init(&db->timer_wake, err));
    TM_TRY(tm_snapshots_init(&db->snapshots, err));
    return tm_notes_init(&db->notes, err);
}

// Closes the files; memory is freed with the last reference.
static int close_files(struct tamis_db *db, bool clean, tamis_error *err)
{
    int st = TAMIS_OK;
    if (db->log != NULL) {
        bool usable = !atomic_load_explicit(&db->poisoned, memory_order_acquire);
        if (clean && usable) st = tm_db_sync_logs(db, err);
        if (clean && usable && st == TAMIS_OK && !tm_wal_writer_broken(db->log)) {
            st = tm_wal_writer_seal(db->log, err);
        }
        for (uint32_t i = 0; i < db->old_log_count; i++) {
            (void)!tm_wal_writer_close(db->old_logs[i], NULL);
        }
        db->old_log_count = 0;
        int closed = tm_wal_writer_close(db->log, st == TAMIS_OK ? err : NULL);
        if (st == TAMIS_OK && clean && usable) st = closed;
        db->log = NULL;
    }
    int sealed =
        tm_manifest_close(db->mu.manifest, clean && st == TAMIS_OK, st == TAMIS_OK ? err : NULL);
    db->mu.manifest = NULL;
    if (st == TAMIS_OK && clean) st = sealed;
    return st;
}

static void release_lock(struct tamis_db *db)
{
    if (db->lock != NULL) (void)db->vfs->unlock(db->lock);
    db->lock = NULL;
}

// After a failed open: what was made is undone, down to a folder that was empty before.
static void abandon(struct tamis_db *db, bool created_folder, bool created_store)
{
    tm_db_stop_background(db);
    (void)!close_files(db, false, NULL);
    tm_notes_close(&db->notes);
    if (created_store && db->dir != NULL) {
        tm_folder f;
        if (tm_folder_list(db->dir, &f, NULL) == TAMIS_OK) {
            char name[TM_NAME_MAX];
            for (size_t i = 0; i < tm_folder_count(&f.logs); i++) {
                tm_filename(name, TM_FILE_LOG, tm_folder_at(&f.logs, i));
                (void)!tm_dir_unlink(db->dir, name, NULL);
            }
            (void)!tm_dir_unlink(db->dir, TM_NAME_CURRENT, NULL);
            (void)!tm_dir_unlink(db->dir, TM_NAME_CURRENT_TMP, NULL);
            for (size_t i = 0; i < tm_folder_count(&f.manifests); i++) {
                tm_filename(name, TM_FILE_MANIFEST, tm_folder_at(&f.manifests, i));
                (void)!tm_dir_unlink(db->dir, name, NULL);
            }
            (void)!tm_dir_unlink(db->dir, TM_NAME_NOTES, NULL);
            (void)!tm_dir_unlink(db->dir, TM_NAME_LOCK, NULL);
            tm_folder_deinit(&f);
        }
    }
    release_lock(db);
    if (created_folder) (void)db->vfs->dir_remove(db->vfs, (const char *)db->path.data);
    tm_db_unref(db);
}

static int open_store(struct tamis_db *db, bool *created_folder, bool *created_store,
                      tamis_error *err)
{
    tm_folder files = {0};
    int st = open_folder(db, created_folder, err);
    if (st != TAMIS_OK) return st;
    if (*created_folder) TM_TRY(sync_parent(db, err));
    bool create = false;
    TM_GOTO(tm_folder_list(db->dir, &files, err));
    TM_GOTO(judge_folder(db, &files, &create, err)); // before anything is made in it
    TM_GOTO(take_lock(db, err));
    tm_folder_deinit(&files);
    TM_GOTO(tm_folder_list(db->dir, &files, err)); // what stood there when nobody could change it
    TM_GOTO(judge_folder(db, &files, &create, err));
    if (!db->readonly) tm_notes_open(&db->notes, db->dir, NOTES_BYTES);
    TM_GOTO(make_parts(db, err));
    *created_store = create;
    if (create && tm_folder_count(&files.manifests) > 0) { // of a creation that was cut short
        char name[TM_NAME_MAX];
        tm_filename(name, TM_FILE_MANIFEST, 1);
        TM_GOTO(tm_dir_unlink(db->dir, name, err));
    }
    st = create ? tm_db_create(db, err) : tm_db_recover(db, &files, err);
    if (st != TAMIS_OK) goto out;
    if (!db->readonly) TM_GOTO(tm_db_start_background(db, err));
out:
    tm_folder_deinit(&files);
    return st;
}

static void no_wake(void *ctx)
{
    (void)ctx;
}

int tamis_open(const char *path, const tamis_options *opt, tamis_db **out, tamis_error *err)
{
    if (out == NULL) return tm_fail(err, TAMIS_INVALID, "out is NULL");
    *out = NULL;
    if (path == NULL || path[0] == '\0') {
        return tm_fail(err, TAMIS_INVALID, "path is %s", path ? "empty" : "NULL");
    }
    struct tamis_db *db = tm_calloc(1, sizeof *db);
    if (db == NULL) return tm_fail_nomem(err);
    atomic_init(&db->refs, 1);
    tm_stats_init(&db->stats);
    db->process = tm_process_id_first();
    db->dead.wake = no_wake;
    bool created_folder = false, created_store = false;
    int st = tm_config_init(&db->config, opt, err);
    if (st != TAMIS_OK) {
        tm_free(db);
        return st;
    }
    db->vfs = db->config.vfs;
    db->readonly = (db->config.flags & TAMIS_OPEN_READONLY) != 0;
    st = init_locks(db, err);
    if (st == TAMIS_OK && tm_buf_append(&db->path, path, strlen(path) + 1) != TAMIS_OK) {
        st = tm_fail_nomem(err);
    }
    if (st == TAMIS_OK) st = open_store(db, &created_folder, &created_store, err);
    if (st != TAMIS_OK) {
        abandon(db, created_folder, created_store);
        return st;
    }
    if (!db->readonly) {
        tm_mutex_lock(&db->mu.m);
        tm_db_update_pressure(db, NULL);
        tm_db_schedule(db);
        tm_mutex_unlock(&db->mu.m);
    }
    db->config.given = NULL; // the opener's
    db->config.given_count = 0;
    *out = db;
    return TAMIS_OK;
}

// ---- Closing -----------------------------------------------------------------------------------

static int count_children(struct tamis_db *db, tamis_error *err)
{
    unsigned long long all = atomic_load(&db->refs) - 1;
    unsigned long long iterators = TM_MIN(all, (unsigned long long)atomic_load(&db->iterators));
    unsigned long long snapshots = tm_snapshots_count(&db->snapshots);
    unsigned long long handles = atomic_load(&db->handles); // may outlive the store
    unsigned long long values = all - TM_MIN(all, iterators + snapshots + handles);
    if (iterators + values + snapshots == 0) return TAMIS_OK;
    return tm_fail(err, TAMIS_BUSY,
                   "the store has %llu iterators, %llu snapshots and %llu values that live: free "
                   "them, or close with TAMIS_CLOSE_DETACH",
                   iterators, snapshots, values);
}

int tamis_close(tamis_db *db, uint32_t flags, tamis_error *err)
{
    if (db == NULL) return TAMIS_OK;
    if (flags & ~(TAMIS_CLOSE_DETACH | TAMIS_CLOSE_FLUSH)) {
        return tm_fail(err, TAMIS_INVALID, "close flags %u are unknown", flags);
    }
    TM_TRY(tm_db_check(db, err));
    if (!(flags & TAMIS_CLOSE_DETACH)) TM_TRY(count_children(db, err));
    int flushed = TAMIS_OK;
    if ((flags & TAMIS_CLOSE_FLUSH) && !db->readonly) flushed = tm_db_flush_all(db, err);
    atomic_store_explicit(&db->closed, true, memory_order_release);
    tm_db_stop_background(db);
    int st = close_files(db, true, flushed == TAMIS_OK ? err : NULL);
    int poison = db->readonly ? TAMIS_OK : tm_db_check_poison(db, NULL);
    if (flushed == TAMIS_OK && st == TAMIS_OK && poison != TAMIS_OK) {
        st =
            tm_db_check_poison(db, err); // writes that were acknowledged without a sync may be lost
    }
    tm_db_note(db, 0, "closed");
    tm_notes_close(&db->notes);
    release_lock(db);
    tm_db_unref(db);
    return flushed != TAMIS_OK ? flushed : st;
}

// ---- Destroying --------------------------------------------------------------------------------

static void unlink_all(tamis_dir *dir, tm_file_kind kind, const tm_buf *numbers, int *st,
                       tamis_error *err)
{
    char name[TM_NAME_MAX];
    for (size_t i = 0; i < tm_folder_count(numbers); i++) {
        tm_filename(name, kind, tm_folder_at(numbers, i));
        int one = tm_dir_unlink(dir, name, *st == TAMIS_OK ? err : NULL);
        if (one != TAMIS_OK && one != TAMIS_NOTFOUND && *st == TAMIS_OK) *st = one;
    }
}

static int unlink_named(tamis_dir *dir, const char *name, int st, tamis_error *err)
{
    int one = tm_dir_unlink(dir, name, st == TAMIS_OK ? err : NULL);
    return st == TAMIS_OK && one != TAMIS_NOTFOUND ? one : st;
}

// The lost files of a store are files of the store; anything else in lost/ stays, and the folder.
static int destroy_lost(const tamis_vfs *vfs, tamis_dir *dir, const char *path, tamis_error *err)
{
    tamis_dir *lost = NULL;
    if (vfs->dir_open_at(dir, TM_NAME_LOST, TAMIS_DIR_EXISTING, &lost, NULL) != 0) return TAMIS_OK;
    tm_folder f;
    tm_buf name;
    tm_buf_init(&name);
    int st = tm_folder_list(lost, &f, err);
    if (st == TAMIS_OK) {
        unlink_all(lost, TM_FILE_TABLE, &f.tables, &st, err);
        unlink_all(lost, TM_FILE_LOG, &f.logs, &st, err);
        unlink_all(lost, TM_FILE_MANIFEST, &f.manifests, &st, err);
        tm_folder_deinit(&f);
    }
    tm_dir_close(lost);
    if (st == TAMIS_OK && tm_buf_append(&name, path, strlen(path)) == TAMIS_OK &&
        tm_buf_append(&name, "/" TM_NAME_LOST, sizeof "/" TM_NAME_LOST) == TAMIS_OK) {
        (void)vfs->dir_remove(vfs, (const char *)name.data);
    }
    tm_buf_deinit(&name);
    return st;
}

static int destroy_files(const tamis_vfs *vfs, tamis_dir *dir, const char *path, const tm_folder *f,
                         tamis_error *err)
{
    int st = TAMIS_OK;
    // CURRENT goes last of what opens need: an interrupted destroy can be repeated.
    unlink_all(dir, TM_FILE_TABLE, &f->tables, &st, err);
    unlink_all(dir, TM_FILE_LOG, &f->logs, &st, err);
    unlink_all(dir, TM_FILE_MANIFEST, &f->manifests, &st, err);
    st = unlink_named(dir, TM_NAME_CURRENT_TMP, st, err);
    st = unlink_named(dir, TM_NAME_NOTES, st, err);
    st = unlink_named(dir, TM_NAME_NOTES_OLD, st, err);
    if (st == TAMIS_OK && f->has_lost) st = destroy_lost(vfs, dir, path, err);
    if (st == TAMIS_OK) st = unlink_named(dir, TM_NAME_CURRENT, st, err);
    return st;
}

int tamis_destroy(const char *path, const tamis_options *opt, tamis_error *err)
{
    if (path == NULL || path[0] == '\0') {
        return tm_fail(err, TAMIS_INVALID, "path is %s", path ? "empty" : "NULL");
    }
    const tamis_vfs *vfs =
        opt && opt->size >= offsetof(tamis_options, vfs) + sizeof opt->vfs && opt->vfs
            ? opt->vfs
            : tamis_vfs_default();
    tamis_dir *dir = NULL;
    tamis_file *lock = NULL;
    tm_folder f = {0};
    int st = tm_dir_open(vfs, path, TAMIS_DIR_EXISTING, &dir, NULL, err);
    if (st != TAMIS_OK) {
        if (st == TAMIS_NOTFOUND) (void)!tm_fail(err, st, "%.180s: no such folder", path);
        return st;
    }
    TM_GOTO(tm_folder_list(dir, &f, err));
    if (!f.has_current && tm_folder_count(&f.manifests) == 0) {
        st = tm_fail(err, TAMIS_NOTFOUND, "%.180s: there is no store in this folder", path);
        goto out;
    }
    int sys = vfs->lock(dir, TM_NAME_LOCK, TAMIS_LOCK_EXCLUSIVE, &lock);
    if (sys != 0) {
        st = sys == EWOULDBLOCK || sys == EAGAIN
                 ? tm_fail(err, TAMIS_LOCKED, "%.180s: the store is open", path)
                 : tm_fail_sys(err, sys, 0, 0, "lock %.160s", path);
        goto out;
    }
    tm_folder_deinit(&f);
    TM_GOTO(tm_folder_list(dir, &f, err));
    TM_GOTO(destroy_files(vfs, dir, path, &f, err));
    st = unlink_named(dir, TM_NAME_LOCK, st, err);
    if (st == TAMIS_OK && !f.has_other) (void)vfs->dir_remove(vfs, path);
out:
    if (lock != NULL) (void)vfs->unlock(lock);
    tm_folder_deinit(&f);
    tm_dir_close(dir);
    return st;
}
