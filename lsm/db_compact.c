// SPDX-License-Identifier: BSD-2-Clause
//
// db_compact.c - runs one compaction: picks it, merges its inputs into new tables, installs them.
//
// A compaction whose input cannot be read or ordered fails and keeps it.

#include "base/mem.h"
#include "lsm/compact_input.h"
#include "lsm/db.h"
#include "lsm/output.h"

enum {
    READ_LEAST = 32 << 10, // least readahead of an input
    MAX_PARTS = 8
};

// A compaction may be cut into parts by key, which run side by side on threads of their own.
typedef struct part {
    struct compaction *c;
    tm_compact_input in;
    bool has_start, has_limit;
    tm_slice start, limit; // [start, limit): inside the inputs' metadata
    tm_output out;
    int status;
    tamis_error error;
    tm_thread thread;
    bool threaded;
} part;

typedef struct compaction {
    struct tamis_db *db;
    tm_family *family;
    tm_pick pick;
    tm_version *version; // pinned
    tm_stripes stripes;
    tm_range_set ranges;
    part parts[MAX_PARTS];
    uint32_t part_count;
    tm_output out; // of all parts
    tm_version_add *adds;
    tm_version_drop *drops;
    uint64_t bytes_read;
} compaction;

static void set_busy(const tm_pick *p, bool busy) // mu held
{
    for (uint32_t i = 0; i < tm_pick_inputs(p); i++) tm_pick_input(p, i)->busy = busy;
}

// ---- Inputs ------------------------------------------------------------------------------------

static int gather_ranges(compaction *c, tamis_error *err)
{
    tm_range_builder b;
    bool any = false;
    int st = TAMIS_OK;
    tm_range_builder_init(&b);
    for (uint32_t i = 0; i < tm_pick_inputs(&c->pick); i++) {
        const tm_range_set *set = NULL;
        TM_GOTO(tm_table_ranges(tm_pick_input(&c->pick, i)->table, &set, err));
        if (set == NULL) continue;
        any = true;
        if (tm_range_builder_add_set(&b, set) != TAMIS_OK) {
            st = tm_fail_nomem(err);
            goto out;
        }
    }
    if (any && tm_range_builder_finish(&b, &c->family->order, &c->ranges) != TAMIS_OK) {
        st = tm_fail_nomem(err);
    }
out:
    tm_range_builder_deinit(&b);
    return st;
}

// ---- One compaction ----------------------------------------------------------------------------

static bool has_to_stop(tm_family *f)
{
    tm_mutex_lock(&f->db->mu.m);
    bool stop = f->db->mu.closing || f->settling;
    tm_mutex_unlock(&f->db->mu.m);
    return stop;
}

// Merges one part of the inputs into tables.
static void *run_part(void *arg)
{
    part *p = arg;
    compaction *c = p->c;
    tm_iter *merged = NULL;
    tm_output_options o = {
        .db = c->db,
        .family = c->family,
        .version = c->version,
        .level = c->pick.output_level,
        .stripes = &c->stripes,
        .ranges = c->ranges.n > 0 ? &c->ranges : NULL,
        .start = p->has_start ? &p->start : NULL,
        .limit = p->has_limit ? &p->limit : NULL,
        .table_bytes = c->family->config.table_size,
        .stop = has_to_stop,
    };
    p->status = tm_compact_input_open(&p->in, &c->pick, &merged, &p->error);
    if (p->status != TAMIS_OK) return NULL;
    p->status = tm_output_run(&o, merged, &p->out, &p->error);
    tm_iter_destroy(merged);
    return NULL;
}

// Cuts at smallest keys of the lower level's tables, so that each part reads about as much.
static void plan_parts(compaction *c)
{
    const tm_pick *p = &c->pick;
    uint64_t wanted = c->db->config.subcompactions;
    if (wanted == 0) wanted = c->db->compact_slots;
    wanted = TM_MIN(wanted, p->bytes / TM_MAX(c->family->config.table_size, (uint64_t)1) + 1);
    uint32_t parts =
        (uint32_t)TM_MIN(wanted, TM_MIN((uint64_t)MAX_PARTS, (uint64_t)p->count[1] + 1));
    c->part_count = TM_MAX(parts, 1u);
    for (uint32_t i = 0; i < c->part_count; i++) {
        part *x = &c->parts[i];
        x->c = c;
        if (i == 0) continue;
        const tm_buf *cut = &p->inputs[1][p->count[1] * i / c->part_count]->meta->smallest;
        x->start = tm_buf_slice(cut);
        x->has_start = true;
        c->parts[i - 1].limit = x->start;
        c->parts[i - 1].has_limit = true;
    }
}

static int collect_parts(compaction *c, tamis_error *err)
{
    size_t total = 0;
    int st = TAMIS_OK;
    for (uint32_t i = 0; i < c->part_count; i++) {
        part *p = &c->parts[i];
        if (p->status != TAMIS_OK && st == TAMIS_OK) st = tm_fail_copy(err, &p->error);
        total += p->out.count;
        c->bytes_read += p->in.bytes_read;
        c->out.entries_in += p->out.entries_in;
        c->out.entries_dropped += p->out.entries_dropped;
        c->out.bytes_written += p->out.bytes_written;
    }
    if (st == TAMIS_OK && total > 0) {
        c->out.tables = tm_calloc(total, sizeof *c->out.tables);
        if (c->out.tables == NULL) st = tm_fail_nomem(err);
    }
    for (uint32_t i = 0; i < c->part_count; i++) {
        part *p = &c->parts[i];
        if (st != TAMIS_OK) {
            tm_output_remove_files(c->db, &p->out);
            tm_output_deinit(&p->out);
            continue;
        }
        for (size_t k = 0; k < p->out.count; k++) {
            c->out.tables[c->out.count++] = p->out.tables[k];
        }
        tm_free(p->out.tables); // the records moved
    }
    return st;
}

// The parts on threads of their own, the last one on this one; all here where there are no threads.
static int run_parts(compaction *c, tamis_error *err)
{
    struct tamis_db *db = c->db;
    uint32_t open = tm_pick_runs(&c->pick) * c->part_count;
    // Many inputs share a sixteenth of the budget.
    size_t share = (size_t)db->config.memory_budget / 16 / TM_MAX(open, 1u);
    size_t readahead = TM_MIN((size_t)db->config.readahead, TM_MAX(share, (size_t)READ_LEAST));
    int64_t buffers = (int64_t)(open * (readahead + (size_t)c->family->config.block_size * 2));
    tm_cache_charge(db->cache, buffers);
    for (uint32_t i = 0; i < c->part_count; i++) {
        part *p = &c->parts[i];
        p->in = (tm_compact_input){db->files, c->family->order, readahead, 0};
        p->threaded = i + 1 < c->part_count && tm_sched_threads(db->sched) > 0 &&
                      tm_thread_start(&p->thread, run_part, p, "tamis-part", NULL) == TAMIS_OK;
        if (!p->threaded) (void)run_part(p);
    }
    for (uint32_t i = 0; i < c->part_count; i++) {
        if (c->parts[i].threaded) tm_thread_join(&c->parts[i].thread);
    }
    tm_cache_charge(db->cache, -buffers);
    return collect_parts(c, err);
}

static int merge_inputs(compaction *c, tamis_error *err)
{
    struct tamis_db *db = c->db;
    if (tm_snapshots_stripes(&db->snapshots, &c->stripes) != TAMIS_OK) return tm_fail_nomem(err);
    TM_TRY(gather_ranges(c, err));
    plan_parts(c);
    TM_TRY(run_parts(c, err));
    if (c->out.count == 0) return TAMIS_OK;
    int st = tm_dir_sync(db->dir, err);
    if (st != TAMIS_OK) {
        tamis_error detail = {.code = st, .message = "sync of the store's folder failed"};
        return tm_db_poison(db, TAMIS_POISONED, err ? err : &detail);
    }
    c->adds = tm_calloc(c->out.count, sizeof *c->adds);
    if (c->adds == NULL) return tm_fail_nomem(err);
    return tm_db_open_outputs(db, c->family, &c->out, c->pick.output_level, c->adds, err);
}

// A move changes the level of the one input; no byte is read.
static int move_input(compaction *c, tamis_error *err)
{
    c->adds = tm_calloc(1, sizeof *c->adds);
    if (c->adds == NULL) return tm_fail_nomem(err);
    c->adds[0] = (tm_version_add){c->pick.output_level, c->pick.inputs[0][0]};
    tm_file_ref_get(c->adds[0].file);
    return TAMIS_OK;
}

static int install(compaction *c, tamis_error *err) // mu held
{
    uint32_t n = tm_pick_inputs(&c->pick);
    c->drops = tm_calloc(n, sizeof *c->drops);
    if (c->drops == NULL) return tm_fail_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t level = i < c->pick.count[0] ? c->pick.level : c->pick.output_level;
        c->drops[i] = (tm_version_drop){level, tm_pick_input(&c->pick, i)->meta->number};
    }
    tm_change change = {
        .drops = c->drops,
        .drop_count = n,
        .adds = c->adds,
        .add_count = c->pick.move ? 1 : c->out.count,
    };
    return tm_db_install(c->db, c->family, &change, err);
}

static void report(compaction *c, uint64_t job, uint64_t us)
{
    struct tamis_db *db = c->db;
    if (c->pick.move) {
        tm_stats_add(&db->stats, TM_STAT_moves, 1);
    } else {
        tm_stats_add(&db->stats, TM_STAT_compactions, 1);
        tm_stats_add(&db->stats, TM_STAT_compact_bytes_read, c->bytes_read);
        tm_stats_add(&db->stats, TM_STAT_compact_bytes_written, c->out.bytes_written);
        tm_stats_add(&db->stats, TM_STAT_compact_entries_dropped, c->out.entries_dropped);
        tm_stats_add(&db->stats, TM_STAT_compact_us, us);
    }
    tamis_event e = {.kind = TAMIS_EVENT_COMPACT_END,
                     .job = job,
                     .duration_us = us,
                     .level = (int32_t)c->pick.output_level,
                     .bytes_in = c->bytes_read,
                     .bytes_out = c->out.bytes_written};
    tm_db_event(db, &e,
                "compaction %llu done: %llu bytes in, %llu out, %llu of %llu entries "
                "dropped, %llu us",
                (unsigned long long)job, (unsigned long long)c->bytes_read,
                (unsigned long long)c->out.bytes_written,
                (unsigned long long)c->out.entries_dropped, (unsigned long long)c->out.entries_in,
                (unsigned long long)us);
}

static void compaction_deinit(compaction *c)
{
    size_t adds = c->pick.move ? 1 : c->out.count;
    for (size_t i = 0; c->adds != NULL && i < adds; i++) tm_file_ref_put(c->adds[i].file);
    tm_free(c->adds);
    tm_free(c->drops);
    tm_output_deinit(&c->out);
    tm_stripes_deinit(&c->stripes);
    tm_range_set_deinit(&c->ranges);
    tm_version_unref(c->version);
    tm_pick_deinit(&c->pick);
}

static int run_pick(compaction *c, tamis_error *err) // mu held
{
    struct tamis_db *db = c->db;
    tm_family *f = c->family;
    const tm_pick *p = &c->pick;
    uint64_t job = ++db->mu.job_number, begin = tm_db_now_ns(db);
    set_busy(p, true);
    f->compacting++;
    tm_db_update_pressure(db, f);
    c->version = f->version;
    tm_version_ref(c->version);
    tm_mutex_unlock(&db->mu.m);
    tamis_event e = {.kind = TAMIS_EVENT_COMPACT_BEGIN,
                     .job = job,
                     .level = (int32_t)p->output_level,
                     .bytes_in = p->bytes};
    tm_db_event(db, &e,
                "compaction %llu (%s%s): %u tables of level %u and %u of level %u, "
                "%llu bytes",
                (unsigned long long)job, tm_pick_reason_name(p->reason), p->move ? ", moved" : "",
                p->count[0], p->level, p->count[1], p->output_level, (unsigned long long)p->bytes);
    int st = p->move ? move_input(c, err) : merge_inputs(c, err);
    tm_mutex_lock(&db->mu.m);
    if (st == TAMIS_OK) st = install(c, err);
    set_busy(p, false);
    f->compacting--;
    if (st == TAMIS_OK && p->reason == TM_PICK_TOMBSTONES && p->level == p->output_level) {
        // Rewritten where it was: what tombstones are left cannot go now. Marked again by the next.
        for (size_t i = 0; i < c->out.count; i++) c->adds[i].file->marked = false;
    }
    tm_db_update_pressure(db, f);
    tm_mutex_unlock(&db->mu.m);
    if (st == TAMIS_OK)
        report(c, job, (tm_db_now_ns(db) - begin) / 1000);
    else if (st != TAMIS_POISONED)
        tm_output_remove_files(db, &c->out);
    compaction_deinit(c);
    tm_mutex_lock(&db->mu.m);
    return st;
}

static int run_manual(compaction *c, tm_manual *m, tamis_error *err) // mu held
{
    tm_family *f = c->family;
    for (;;) {
        if (m->level >= f->version->levels_used || m->level >= TM_LEVELS) {
            m->done = true;
            break;
        }
        int st = tm_pick_manual(f->version, &f->config, m->level, m->smallest, m->largest,
                                m->before, &c->pick);
        if (st == TAMIS_NOTFOUND) { // nothing of the range in this level
            m->level++;
            continue;
        }
        if (st == TAMIS_BUSY) return TAMIS_NOTFOUND; // what runs now schedules again at its end
        if (st != TAMIS_OK) return tm_fail_nomem(err);
        bool in_place = c->pick.level == c->pick.output_level;
        m->running = true;
        st = run_pick(c, err);
        m->running = false;
        if (st == TAMIS_ABORTED && !c->db->mu.closing)
            return TAMIS_NOTFOUND; // settled: later again
        m->status = st;
        if (st != TAMIS_OK) {
            if (err != NULL) m->error = *err;
            m->done = true;
        } else if (!in_place) {
            m->level++; // in place there may be another run of tables: picked until none is left
        }
        break;
    }
    if (m->done) {
        f->manual = m->next;
        tm_cond_broadcast(&c->db->mu.changed);
    }
    return m->status;
}

int tm_db_compact_family(struct tamis_db *db, tm_family *f, tamis_error *err)
{
    compaction c = {.db = db, .family = f};
    if (f->settling) return TAMIS_NOTFOUND;
    int trimmed = tm_db_trim_family(db, f, err);
    if (trimmed != TAMIS_NOTFOUND) return trimmed;
    if (f->settling) return TAMIS_NOTFOUND; // it was free meanwhile
    if (f->manual != NULL && !f->manual->running) return run_manual(&c, f->manual, err);
    int st = tm_pick_next(f->version, &f->config, &c.pick);
    if (st == TAMIS_NOMEM) return tm_fail_nomem(err);
    if (st == TAMIS_NOTFOUND) f->compact_due = false; // all that is due is busy
    if (st != TAMIS_OK) return st;
    return run_pick(&c, err);
}
