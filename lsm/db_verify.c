// SPDX-License-Identifier: BSD-2-Clause
//
// db_verify.c - reads everything and says what is wrong: tables, levels, manifest, logs, folder.

#include <stdio.h>

#include "lsm/db.h"
#include "lsm/folder.h"
#include "wal/wal_reader.h"

typedef struct verification {
    struct tamis_db *db;
    tm_view *view;
    tamis_progress progress;
    void (*each)(void *ctx, const tamis_error *finding);
    void *ctx;
    tamis_report report;
    tamis_error first;
    uint64_t done, total;
    char name[TM_NAME_MAX]; // of the file at hand
} verification;

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

static int verify_tables(verification *v, tamis_error *err)
{
    const tm_version *version = v->view->version;
    for (uint32_t l = 0; l < version->levels_used; l++) {
        for (uint32_t i = 0; i < version->levels[l].count; i++) {
            tm_table_check check = {0};
            tm_table *t = version->levels[l].tables[i];
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
    }
    return TAMIS_OK;
}

// ---- The manifest against the tables in use ----------------------------------------------------

typedef struct listing {
    verification *v;
    tm_buf numbers; // live tables by the manifest
    int status;
} listing;

static int take_edit(void *ctx, tm_edit *e, tamis_error *err)
{
    listing *l = ctx;
    for (size_t i = 0; i < e->table_count; i++) {
        uint64_t number = e->tables[i].number;
        if (e->tables[i].add) {
            if (tm_buf_append(&l->numbers, &number, sizeof number) != 0) return tm_fail_nomem(err);
            continue;
        }
        for (size_t k = 0; k < tm_folder_count(&l->numbers); k++) {
            if (tm_folder_at(&l->numbers, k) != number) continue;
            uint64_t last = tm_folder_at(&l->numbers, tm_folder_count(&l->numbers) - 1);
            memcpy(l->numbers.data + k * sizeof last, &last, sizeof last);
            l->numbers.len -= sizeof last;
            break;
        }
    }
    return TAMIS_OK;
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
    uint64_t number;
    tm_manifest_end end = {0};
    listing l = {.v = v};
    tamis_error e = {0};
    // The number is read again: an open store may have begun a new manifest meanwhile.
    int st = tm_current_read(db->dir, &number, &e);
    if (st == TAMIS_OK) st = tm_manifest_read(db->dir, number, 0, take_edit, &l, &end, &e);
    v->report.files += 2;
    if (st == TAMIS_NOTFOUND) st = tm_fail_corrupt(&e, 0, 0, "CURRENT or its manifest is missing");
    if (st == TAMIS_NOMEM)
        st = tm_fail_copy(err, &e);
    else if (st != TAMIS_OK)
        finding(v, &e);
    const tm_version *version = v->view->version;
    for (uint32_t lv = 0; st == TAMIS_OK && lv < version->levels_used; lv++) {
        for (uint32_t i = 0; i < version->levels[lv].count; i++) {
            const tm_file_ref *f = version->levels[lv].files[i];
            bool gone = atomic_load_explicit(&f->dropped, memory_order_acquire);
            if (!gone && !tm_folder_has(&l.numbers, f->meta->number)) {
                missing(v, f->meta->number, "in use, but not in the manifest");
            }
        }
    }
    tm_buf_deinit(&l.numbers);
    return st == TAMIS_NOMEM ? st : TAMIS_OK;
}

// ---- The folder --------------------------------------------------------------------------------

static int count_lost(verification *v, const tm_folder *f)
{
    const tm_version *version = v->view->version;
    uint64_t next = atomic_load_explicit(&v->db->next_file, memory_order_relaxed);
    for (size_t i = 0; i < tm_folder_count(&f->tables); i++) {
        uint64_t number = tm_folder_at(&f->tables, i);
        bool used = false;
        for (uint32_t l = 0; !used && l < version->levels_used; l++) {
            for (uint32_t k = 0; !used && k < version->levels[l].count; k++) {
                used = version->levels[l].files[k]->meta->number == number;
            }
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
    v.view = tm_family_pin_view(db->families[0]);
    v.total = tm_version_bytes(v.view->version);
    int st = verify_tables(&v, err);
    if (st == TAMIS_OK) st = verify_manifest(&v, err);
    if (st == TAMIS_OK) st = tm_folder_list(db->dir, &files, err);
    if (st == TAMIS_OK && db->readonly) st = verify_logs(&v, &files);
    if (st == TAMIS_OK) st = count_lost(&v, &files);
    tm_folder_deinit(&files);
    tm_view_unref(v.view);
    if (out != NULL) {
        v.report.size = out->size;
        memcpy(out, &v.report, TM_MIN(out->size, sizeof v.report));
    }
    if (st == TAMIS_OK && v.report.damaged > 0) return tm_fail_copy(err, &v.first);
    return st;
}
