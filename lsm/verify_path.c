// SPDX-License-Identifier: BSD-2-Clause
//
// verify_path.c - checks the files of a store that is not open: CURRENT, manifest, every table that
// the manifest names, every live log. What one file says wrong does not keep the others from being
// read.

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "lsm/folder.h"
#include "lsm/manifest.h"
#include "lsm/options.h"
#include "lsm/version.h"
#include "sstable/table_verify.h"
#include "wal/wal_reader.h"

typedef struct known_order {
    uint32_t family;
    tm_order order;
} known_order;

typedef struct inspection {
    tm_config config;
    tamis_dir *dir;
    tamis_progress progress;
    void (*each)(void *ctx, const tamis_error *finding);
    void *ctx;
    tamis_report report;
    tamis_error first;
    uint64_t done, total;
    char name[TM_NAME_MAX];
    // From the manifest.
    tm_edit state;
    uint64_t manifest, manifest_end;
    tm_buf orders; // known_order: families whose comparator is at hand
} inspection;

static void finding(void *ctx, const tamis_error *e)
{
    inspection *v = ctx;
    if (e->code != TAMIS_UNSUPPORTED && v->report.damaged++ == 0) v->first = *e;
    if (v->each != NULL) v->each(v->ctx, e);
}

static int advance(void *ctx, uint64_t bytes)
{
    inspection *v = ctx;
    v->done += bytes;
    if (v->progress == NULL) return TAMIS_OK;
    int stop = v->progress(v->ctx, TM_MIN(v->done, v->total), v->total, v->name);
    return stop ? TAMIS_ABORTED : TAMIS_OK;
}

// ---- The manifest ------------------------------------------------------------------------------

static int take_edit(void *ctx, tm_edit *e, tamis_error *err)
{
    inspection *v = ctx;
    tamis_error found = {0};
    int st = tm_edit_merge(&v->state, e, v->manifest, &found);
    if (st == TAMIS_NOMEM) return tm_fail_copy(err, &found);
    if (st != TAMIS_OK) finding(v, &found);
    return TAMIS_OK;
}

// The order of a family, if its comparator is at hand: NULL if not.
static const tm_order *order_of(const inspection *v, uint32_t family)
{
    const known_order *known = (const known_order *)(const void *)v->orders.data;
    for (size_t i = 0; i < v->orders.len / sizeof *known; i++) {
        if (known[i].family == family) return &known[i].order;
    }
    return v->state.family_count == 0 ? &v->config.order : NULL;
}

static int find_order(inspection *v, const tm_edit_family *f, tamis_error *err)
{
    known_order k = {.family = f->id, .order = v->config.order};
    if (f->id != 0) {
        const tamis_comparator *given = NULL;
        for (size_t i = 0; i < v->config.given_count; i++) {
            const tamis_family *g = &v->config.given[i];
            if (g->name != NULL && tm_slice_equal(tm_buf_slice(&f->name), tm_slice_str(g->name))) {
                given = g->options.comparator;
            }
        }
        TM_TRY(tm_order_take(given, &k.order, err));
    }
    if (tm_slice_equal(tm_buf_slice(&f->comparator), tm_slice_str(tm_order_name(&k.order)))) {
        return tm_buf_append(&v->orders, &k, sizeof k) == TAMIS_OK ? TAMIS_OK : tm_fail_nomem(err);
    }
    tamis_error e = {0};
    (void)!tm_fail(
        &e, TAMIS_UNSUPPORTED,
        "family \"%.*s\": the comparator \"%.*s\" is not at hand: the order of keys is not "
        "checked",
        (int)TM_MIN(f->name.len, (size_t)60), (const char *)f->name.data,
        (int)TM_MIN(f->comparator.len, (size_t)100), (const char *)f->comparator.data);
    finding(v, &e);
    return TAMIS_OK;
}

static int read_manifest(inspection *v, tamis_error *err)
{
    tamis_error e = {0};
    tm_manifest_end end = {0};
    int st = tm_current_read(v->dir, &v->manifest, &e);
    if (st == TAMIS_NOTFOUND) st = tm_fail_corrupt(&e, 0, 0, "CURRENT is missing");
    v->report.files++;
    if (st == TAMIS_OK) {
        v->report.files++;
        st = tm_manifest_read(v->dir, v->manifest, 0, take_edit, v, &end, &e);
        if (st == TAMIS_NOTFOUND) {
            st = tm_fail_corrupt(&e, v->manifest, 0, "MANIFEST-%06llu is missing",
                                 (unsigned long long)v->manifest);
        }
    }
    if (st == TAMIS_NOMEM) return tm_fail_copy(err, &e);
    if (st != TAMIS_OK) finding(v, &e);
    v->manifest_end = end.logical_end;
    for (size_t i = 0; i < v->state.family_count; i++) {
        TM_TRY(find_order(v, &v->state.families[i], err));
    }
    return TAMIS_OK;
}

// ---- Tables ------------------------------------------------------------------------------------

static int verify_table(inspection *v, const tm_edit_table *t, tamis_error *err)
{
    const tm_table_meta *m = &t->meta;
    tm_file file = {0};
    tamis_error e = {0};
    tm_table_check check = {0};
    uint64_t before = v->report.damaged;
    tm_filename(v->name, TM_FILE_TABLE, m->number);
    v->report.files++;
    int st = tm_file_open(v->dir, v->name, m->number, TAMIS_FILE_READ, &file, &e);
    if (st == TAMIS_NOTFOUND) {
        st = tm_fail_corrupt(&e, m->number, 0, "table %s is missing", v->name);
    } else if (st == TAMIS_OK) {
        st =
            tm_table_verify_file(&file, m, order_of(v, t->family), finding, advance, v, &check, &e);
        (void)!tm_file_close(&file, NULL);
    }
    v->report.blocks += check.blocks;
    v->report.entries += check.entries;
    if (st == TAMIS_NOMEM || st == TAMIS_ABORTED) return tm_fail_copy(err, &e);
    if (st != TAMIS_OK && v->report.damaged == before) finding(v, &e);
    return TAMIS_OK;
}

// The levels as an open would build them: overlaps and doubles show here.
static int verify_levels(inspection *v)
{
    const tm_edit *s = &v->state;
    for (size_t i = 0; i < s->table_count; i++) {
        const tm_order *order = order_of(v, s->tables[i].family);
        for (size_t k = 0; k < i; k++) {
            const tm_table_meta *a = &s->tables[i].meta, *b = &s->tables[k].meta;
            bool apart = order == NULL || s->tables[i].family != s->tables[k].family ||
                         s->tables[i].level != s->tables[k].level || s->tables[i].level == 0 ||
                         tm_file_locate(order, a, tm_buf_slice(&b->smallest)) > 0 ||
                         tm_file_locate(order, b, tm_buf_slice(&a->smallest)) > 0;
            if (apart && a->number != b->number) continue;
            tamis_error e = {0};
            (void)!tm_fail_corrupt(&e, a->number, 0, "tables %06llu and %06llu overlap in level %u",
                                   (unsigned long long)a->number, (unsigned long long)b->number,
                                   s->tables[i].level);
            finding(v, &e);
        }
    }
    return TAMIS_OK;
}

// ---- Logs --------------------------------------------------------------------------------------

static int count_record(void *ctx, const tm_wal_record *rec, tamis_error *err)
{
    inspection *v = ctx;
    (void)err;
    if (!rec->seal) {
        v->report.blocks++;
        v->report.entries += rec->count;
    }
    return TAMIS_OK;
}

static void verify_log(inspection *v, uint64_t number, const tm_wal_header *next)
{
    tm_wal_reader *r = NULL;
    tm_wal_end end = {0};
    tamis_error e = {0};
    bool begun = true, follows = next != NULL && next->previous == number;
    tm_filename(v->name, TM_FILE_LOG, number);
    v->report.files++;
    int st = tm_wal_reader_open(v->dir, v->name, number, TM_WAL_LOG, v->state.store_id, &r, &e);
    if (st == TAMIS_OK) {
        st = tm_wal_reader_scan(r, follows ? next->previous_synced : 0,
                                follows ? next->previous_end : UINT64_MAX, count_record, v, &end,
                                &e);
    } else if (st == TAMIS_CORRUPT && next == NULL) {
        tamis_error ignored;
        int known = tm_wal_was_begun(v->dir, v->name, number, v->state.store_id, &begun, &ignored);
        if (known == TAMIS_OK && !begun) st = TAMIS_OK; // a crash's beginning of a log
    }
    tm_wal_reader_close(r);
    if (st == TAMIS_OK && end.manifest == v->manifest && end.manifest_synced > v->manifest_end) {
        st = tm_fail_corrupt(&e, v->manifest, v->manifest_end,
                             "MANIFEST-%06llu is shorter than %s says",
                             (unsigned long long)v->manifest, v->name);
    }
    if (st != TAMIS_OK) finding(v, &e);
}

static void verify_logs(inspection *v, const tm_folder *f)
{
    size_t n = tm_folder_count(&f->logs);
    for (size_t i = 0; i < n; i++) {
        uint64_t number = tm_folder_at(&f->logs, i);
        if (number < v->state.min_log) continue;
        tm_wal_header next = {0};
        bool has_next = false;
        if (i + 1 < n) {
            char name[TM_NAME_MAX];
            tm_wal_reader *r = NULL;
            uint64_t following = tm_folder_at(&f->logs, i + 1);
            tm_filename(name, TM_FILE_LOG, following);
            if (tm_wal_reader_open(v->dir, name, following, TM_WAL_LOG, v->state.store_id, &r,
                                   NULL) == TAMIS_OK) {
                next = *tm_wal_reader_header(r);
                has_next = true;
                tm_wal_reader_close(r);
            }
        }
        verify_log(v, number, has_next ? &next : NULL);
    }
}

// ---- The whole ---------------------------------------------------------------------------------

static void count_lost(inspection *v, const tm_folder *f)
{
    for (size_t i = 0; i < tm_folder_count(&f->tables); i++) {
        bool named = false;
        for (size_t k = 0; !named && k < v->state.table_count; k++) {
            named = v->state.tables[k].number == tm_folder_at(&f->tables, i);
        }
        if (!named) v->report.lost_files++;
    }
}

static int inspect(inspection *v, const tm_folder *files, tamis_error *err)
{
    TM_TRY(read_manifest(v, err));
    for (size_t i = 0; i < v->state.table_count; i++) {
        v->total += v->state.tables[i].meta.file_bytes;
    }
    for (size_t i = 0; i < v->state.table_count; i++) {
        TM_TRY(verify_table(v, &v->state.tables[i], err));
    }
    (void)verify_levels(v);
    verify_logs(v, files);
    count_lost(v, files);
    return TAMIS_OK;
}

// A store's folder, locked where it has a lock file: nothing is made in it.
static int enter(inspection *v, const char *path, tm_folder *files, tamis_file **lock,
                 tamis_error *err)
{
    int st = tm_dir_open(v->config.vfs, path, TAMIS_DIR_EXISTING, &v->dir, NULL, err);
    if (st == TAMIS_NOTFOUND) return tm_fail(err, st, "%.180s: no such folder", path);
    TM_TRY(st);
    TM_TRY(tm_folder_list(v->dir, files, err));
    if (!files->has_current && tm_folder_count(&files->manifests) == 0) {
        return tm_fail(err, TAMIS_NOTFOUND, "%.180s: there is no store in this folder", path);
    }
    if (!files->has_lock) return TAMIS_OK;
    int sys = v->config.vfs->lock(v->dir, TM_NAME_LOCK, TAMIS_LOCK_SHARED, lock);
    if (sys == EWOULDBLOCK || sys == EAGAIN) {
        return tm_fail(err, TAMIS_LOCKED, "%.180s: the store is open", path);
    }
    tm_folder_deinit(files); // what stands there now that nobody changes it
    return tm_folder_list(v->dir, files, err);
}

int tamis_verify_path(const char *path, const tamis_options *opt, tamis_progress progress,
                      void (*each)(void *ctx, const tamis_error *finding), void *ctx,
                      tamis_report *out, tamis_error *err)
{
    if (path == NULL || path[0] == '\0') {
        return tm_fail(err, TAMIS_INVALID, "path is %s", path ? "empty" : "NULL");
    }
    inspection v = {.progress = progress, .each = each, .ctx = ctx};
    TM_TRY(tm_config_init(&v.config, opt, err));
    tamis_file *lock = NULL;
    tm_folder files = {0};
    tm_edit_init(&v.state);
    int st = enter(&v, path, &files, &lock, err);
    if (st == TAMIS_OK) st = inspect(&v, &files, err);
    tm_folder_deinit(&files);
    if (lock != NULL) (void)v.config.vfs->unlock(lock);
    tm_dir_close(v.dir);
    tm_edit_deinit(&v.state);
    tm_buf_deinit(&v.orders);
    if (out != NULL) {
        v.report.size = out->size;
        memcpy(out, &v.report, TM_MIN(out->size, sizeof v.report));
    }
    if (st == TAMIS_OK && v.report.damaged > 0) return tm_fail_copy(err, &v.first);
    return st;
}
