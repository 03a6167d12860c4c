// SPDX-License-Identifier: BSD-2-Clause
//
// db_verify.c - reads everything and says what is wrong: tables, levels, manifest, logs, folder.

#include <stdio.h>

#include "lsm/db.h"
#include "lsm/folder.h"
#include "wal/wal_reader.h"

typedef struct verification {
    struct tamis_db *db;
    tm_buf views; // tm_view *: of all families, counted
    tm_buf files; // tm_file_ref *: their tables
    tamis_progress progress;
    void (*each)(void *ctx, const tamis_error *finding);
    void *ctx;
    tamis_report report;
    tamis_error first;
    uint64_t done, total;
    char name[TM_NAME_MAX]; // of the file at hand
} verification;

static size_t file_count(const verification *v)
{
    return v->files.len / sizeof(tm_file_ref *);
}

static tm_file_ref *file_at(const verification *v, size_t i)
{
    return ((tm_file_ref **)(void *)v->files.data)[i];
}

static void finding(void *ctx, const tamis_error *e)
{
    verification *v = ctx;
    if (v->report.damaged++ == 0) v->first = *e;
    if (v->each != NULL) v->each(v->ctx, e);
}

static int advance(void *ctx, uint64_t bytes)
{
    verification *v = ctx;
    v->done += bytes;
    if (v->progress == NULL) return TAMIS_OK;
    return v->progress(v->ctx, TM_MIN(v->done, v->total), v->total, v->name) ? TAMIS_ABORTED
                                                                             : TAMIS_OK;
}

static int add_files(verification *v, const tm_version *version)
{
    v->total += tm_version_bytes(version);
    for (uint32_t l = 0; l < version->levels_used; l++) {
        const tm_level *level = &version->levels[l];
        TM_TRY(tm_buf_append(&v->files, level->files, level->count * sizeof(tm_file_ref *)));
    }
    return TAMIS_OK;
}

static int pin_families(verification *v, tamis_error *err)
{
    struct tamis_db *db = v->db;
    int st = TAMIS_OK;
    tm_mutex_lock(&db->mu.m); // views are replaced under mu
    for (uint32_t i = 0; st == TAMIS_OK && i < db->family_count; i++) {
        tm_view *view = atomic_load_explicit(&db->families[i]->view, memory_order_relaxed);
        st = tm_buf_append(&v->views, &view, sizeof(tm_view *));
        if (st == TAMIS_OK) atomic_fetch_add_explicit(&view->refs, 1, memory_order_relaxed);
        if (st == TAMIS_OK) st = add_files(v, view->version);
    }
    tm_mutex_unlock(&db->mu.m);
    return st == TAMIS_OK ? st : tm_fail_nomem(err);
}

static void unpin_families(verification *v)
{
    tm_view **views = (tm_view **)(void *)v->views.data;
    for (size_t i = 0; i < v->views.len / sizeof(tm_view *); i++) tm_view_unref(views[i]);
    tm_buf_deinit(&v->views);
    tm_buf_deinit(&v->files);
}

static int verify_tables(verification *v, tamis_error *err)
{
    for (size_t i = 0; i < file_count(v); i++) {
        tm_table_check check = {0};
        tm_table *t = file_at(v, i)->table;
        uint64_t before = v->report.damaged;
        tamis_error e = {0};
        tm_filename(v->name, TM_FILE_TABLE, tm_table_get_meta(t)->number);
        int st = tm_table_verify(t, finding, advance, v, &check, &e);
        v->report.files++;
        v->report.blocks += check.blocks;
        v->report.entries += check.entries;
        if (st == TAMIS_ABORTED || st == TAMIS_NOMEM) return tm_fail_copy(err, &e);
        // What was not told yet: the file is missing or cannot be read.
        if (st != TAMIS_OK && v->report.damaged == before) finding(v, &e);
    }
    return TAMIS_OK;
}

// ---- The manifest against the tables in use ----------------------------------------------------

typedef struct listing {
    tm_edit state; // what the manifest says
    uint64_t manifest;
} listing;

static int take_edit(void *ctx, tm_edit *e, tamis_error *err)
{
    listing *l = ctx;
    return tm_edit_merge(&l->state, e, l->manifest, err);
}

static bool is_listed(const listing *l, uint64_t number)
{
    for (size_t i = 0; i < l->state.table_count; i++) {
        if (l->state.tables[i].number == number) return true;
    }
    return false;
}

static void missing(verification *v, uint64_t number, const char *what)
{
    tamis_error e = {0};
    (void)!tm_fail_corrupt(&e, number, 0, "table %06llu: %s", (unsigned long long)number, what);
    finding(v, &e);
}

static int verify_manifest(verification *v, tamis_error *err)
{
    struct tamis_db *db = v->db;
    tm_manifest_end end = {0};
    listing l = {.manifest = 0};
    tamis_error e = {0};
    tm_edit_init(&l.state);
    // The number is read again: an open store may have begun a new manifest meanwhile.
    int st = tm_current_read(db->dir, &l.manifest, &e);
    if (st == TAMIS_OK) st = tm_manifest_read(db->dir, l.manifest, 0, take_edit, &l, &end, &e);
    v->report.files += 2;
    if (st == TAMIS_NOTFOUND) st = tm_fail_corrupt(&e, 0, 0, "CURRENT or its manifest is missing");
    if (st == TAMIS_NOMEM)
        st = tm_fail_copy(err, &e);
    else if (st != TAMIS_OK)
        finding(v, &e);
    for (size_t i = 0; st == TAMIS_OK && i < file_count(v); i++) {
        const tm_file_ref *f = file_at(v, i);
        bool gone = atomic_load_explicit(&f->dropped, memory_order_acquire);
        if (!gone && !is_listed(&l, f->meta->number)) {
            missing(v, f->meta->number, "in use, but not in the manifest");
        }
    }
    tm_edit_deinit(&l.state);
    return st == TAMIS_NOMEM ? st : TAMIS_OK;
}

// ---- The folder --------------------------------------------------------------------------------

static int count_lost(verification *v, const tm_folder *f)
{
    uint64_t next = atomic_load_explicit(&v->db->next_file, memory_order_relaxed);
    for (size_t i = 0; i < tm_folder_count(&f->tables); i++) {
        uint64_t number = tm_folder_at(&f->tables, i);
        bool used = false;
        for (size_t k = 0; !used && k < file_count(v); k++) {
            used = file_at(v, k)->meta->number == number;
        }
        if (!used && number < next) v->report.lost_files++;
    }
    return TAMIS_OK;
}

static int no_record(void *ctx, const tm_wal_record *rec, tamis_error *err)
{
    (void)ctx;
    (void)rec;
    (void)err;
    return TAMIS_OK;
}

// Logs that nobody appends to while they are read: of a read-only store.
static int verify_logs(verification *v, const tm_folder *f)
{
    for (size_t i = 0; i < tm_folder_count(&f->logs); i++) {
        uint64_t number = tm_folder_at(&f->logs, i);
        tm_wal_reader *r = NULL;
        tm_wal_end end = {0};
        tamis_error e = {0};
        tm_filename(v->name, TM_FILE_LOG, number);
        int st =
            tm_wal_reader_open(v->db->dir, v->name, number, TM_WAL_LOG, v->db->store_id, &r, &e);
        if (st == TAMIS_OK) {
            st = tm_wal_reader_scan(r, 0, UINT64_MAX, no_record, NULL, &end, &e);
            tm_wal_reader_close(r);
        }
        v->report.files++;
        if (st != TAMIS_OK && st != TAMIS_NOTFOUND) finding(v, &e);
    }
    return TAMIS_OK;
}

int tamis_verify(tamis_db *db, tamis_progress progress,
                 void (*each)(void *ctx, const tamis_error *finding), void *ctx, tamis_report *out,
                 tamis_error *err)
{
    TM_TRY(tm_db_check(db, err));
    verification v = {.db = db, .progress = progress, .each = each, .ctx = ctx};
    tm_folder files = {0};
    int st = pin_families(&v, err);
    if (st == TAMIS_OK) st = verify_tables(&v, err);
    if (st == TAMIS_OK) st = verify_manifest(&v, err);
    if (st == TAMIS_OK) st = tm_folder_list(db->dir, &files, err);
    if (st == TAMIS_OK && db->readonly) st = verify_logs(&v, &files);
    if (st == TAMIS_OK) st = count_lost(&v, &files);
    tm_folder_deinit(&files);
    unpin_families(&v);
    if (out != NULL) {
        v.report.size = out->size;
        memcpy(out, &v.report, TM_MIN(out->size, sizeof v.report));
    }
    if (st == TAMIS_OK && v.report.damaged > 0) return tm_fail_copy(err, &v.first);
    return st;
}
