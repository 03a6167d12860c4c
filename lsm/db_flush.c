// SPDX-License-Identifier: BSD-2-Clause
//
// db_flush.c - from a frozen memtable to a table of level 0.

#include "lsm/db.h"
#include "lsm/filename.h"
#include "lsm/output.h"

#include "base/mem.h"

bool tm_db_many_tombstones(const tm_family *f, uint32_t level, const tm_table_meta *m)
{
    return f->config.tombstone_percent > 0 && level > 0 && m->entries >= 1024 &&
           m->deletes * 100 >= m->entries * f->config.tombstone_percent;
}

// Opens the tables that were written and counts them as references for a version.
int tm_db_open_outputs(struct tamis_db *db, tm_family *f, const tm_output *out, uint32_t level,
                       tm_version_add *adds, tamis_error *err)
{
    for (size_t i = 0; i < out->count; i++) {
        tm_table *t = NULL;
        TM_TRY(tm_table_open(&db->table_env, &out->tables[i], &f->order, true, &t, err));
        TM_TRY(tm_file_ref_create(t, &db->dead, &adds[i].file, err));
        adds[i].level = level;
        const tm_table_meta *m = &out->tables[i];
        adds[i].file->marked = tm_db_many_tombstones(f, level, m);
        tamis_event e = {.kind = TAMIS_EVENT_TABLE_CREATED,
                         .level = (int32_t)level,
                         .file_number = m->number,
                         .bytes_out = m->file_bytes};
        tm_db_event(db, &e, "wrote %06llu.sst: level %u, %llu entries, %llu bytes",
                    (unsigned long long)m->number, level, (unsigned long long)m->entries,
                    (unsigned long long)m->file_bytes);
    }
    return TAMIS_OK;
}

static int build(struct tamis_db *db, tm_family *f, tm_memtable *mem, const tm_stripes *stripes,
                 tm_output *out, tamis_error *err)
{
    const tm_range_set *ranges = NULL;
    tm_iter *it = NULL;
    TM_TRY(tm_memtable_ranges(mem, &ranges, err));
    TM_TRY(tm_memtable_iter_create(mem, &it, err));
    tm_output_options o = {
        .db = db,
        .family = f,
        .level = 0,
        .stripes = stripes,
        .ranges = ranges,
        .table_bytes = UINT64_MAX,
    };
    int st = tm_output_run(&o, it, out, err);
    tm_iter_destroy(it);
    if (st == TAMIS_OK && out->count > 0) {
        st = tm_dir_sync(db->dir, err);
        if (st != TAMIS_OK) { // a failed sync of the folder: nothing can be relied on
            tamis_error detail = {.code = st, .message = "sync of the store's folder failed"};
            st = tm_db_poison(db, TAMIS_POISONED, err ? err : &detail);
        }
    }
    return st;
}

int tm_db_flush_family(struct tamis_db *db, tm_family *f, tamis_error *err)
{
    if (f->frozen_count == 0 || f->flushing || f->settling) return TAMIS_NOTFOUND;
    tm_memtable *mem = f->frozen[0].mem;
    tm_output out = {0};
    tm_stripes stripes = {0};
    tm_version_add *adds = NULL;
    bool alone = db->family_count == 1;
    uint64_t job = ++db->mu.job_number, begin = tm_db_now_ns(db);
    f->flushing = true;
    tm_memtable_ref(mem);
    tm_mutex_unlock(&db->mu.m);

    tamis_event e = {
        .kind = TAMIS_EVENT_FLUSH_BEGIN, .job = job, .bytes_in = tm_memtable_data(mem)};
    tm_db_event(db, &e, "flush %llu: %llu entries, %llu bytes", (unsigned long long)job,
                (unsigned long long)tm_memtable_entries(mem),
                (unsigned long long)tm_memtable_data(mem));
    int st = tm_snapshots_stripes(&db->snapshots, &stripes);
    if (st == TAMIS_OK)
        st = build(db, f, mem, &stripes, &out, err);
    else
        st = tm_fail_nomem(err);
    if (st == TAMIS_OK && out.count > 0) {
        adds = tm_calloc(out.count, sizeof *adds);
        st = adds ? tm_db_open_outputs(db, f, &out, 0, adds, err) : tm_fail_nomem(err);
    }
    // A batch over several families must not become durable in one of them alone: what is flushed
    // here, and all before it, is durable in the log first.
    if (st == TAMIS_OK && !alone) st = tm_db_sync_logs(db, err);
    tm_memtable_unref(mem);
    uint64_t min_log = 0;
    tm_mutex_lock(&db->mu.m);
    if (st == TAMIS_OK) {
        tm_change c = {.adds = adds, .add_count = out.count, .flushed = 1};
        st = tm_db_install(db, f, &c, err);
        if (st == TAMIS_OK) min_log = tm_db_min_log(db, NULL);
    }
    f->flushing = false;
    tm_mutex_unlock(&db->mu.m);

    for (size_t i = 0; adds != NULL && i < out.count; i++) tm_file_ref_put(adds[i].file);
    tm_free(adds);
    if (st == TAMIS_OK) {
        uint64_t us = (tm_db_now_ns(db) - begin) / 1000;
        tm_db_delete_logs(db, min_log);
        tm_stats_add(&db->stats, TM_STAT_flushes, 1);
        tm_stats_add(&db->stats, TM_STAT_flush_bytes, out.bytes_written);
        tm_stats_add(&db->stats, TM_STAT_flush_us, us);
        tm_stats_add(&db->stats, TM_STAT_compact_entries_dropped, out.entries_dropped);
        e = (tamis_event){.kind = TAMIS_EVENT_FLUSH_END,
                          .job = job,
                          .duration_us = us,
                          .bytes_out = out.bytes_written};
        tm_db_event(db, &e, "flush %llu done: %llu bytes in %llu us", (unsigned long long)job,
                    (unsigned long long)out.bytes_written, (unsigned long long)us);
    } else if (st != TAMIS_POISONED) {
        tm_output_remove_files(db, &out); // after POISONED an edit on disk may name them
    }
    tm_output_deinit(&out);
    tm_stripes_deinit(&stripes);
    tm_mutex_lock(&db->mu.m);
    return st;
}
