// SPDX-License-Identifier: BSD-2-Clause
//
// db_compact.c - runs one compaction: picks it, merges its inputs into new tables, installs them.
//
// A compaction whose input cannot be read or ordered fails and keeps it.

#include "lsm/db.h"
#include "lsm/level_iter.h"
#include "lsm/merge_iter.h"
#include "lsm/output.h"
#include "lsm/pick.h"

#include "base/mem.h"
#include "sstable/table_scan.h"

enum { READ_LEAST = 32 << 10 }; // least readahead of an input

typedef struct compaction {
    struct tamis_db *db;
    tm_family *family;
    tm_pick pick;
    tm_version *version; // pinned
    tm_stripes stripes;
    tm_range_set ranges;
    tm_open_table **places; // descriptors of the inputs, for as long as it runs
    tm_iter **children;
    uint32_t inputs;
    tm_output out;
    tm_version_add *adds;
    tm_version_drop *drops;
    uint64_t bytes_read;
    size_t readahead; // of each input
    size_t buffers;   // charged to the budget
} compaction;

static uint32_t input_count(const tm_pick *p)
{
    return p->count[0] + p->count[1];
}
static tm_file_ref *input_at(const tm_pick *p, uint32_t i)
{
    return i < p->count[0] ? p->inputs[0][i] : p->inputs[1][i - p->count[0]];
}

static void set_busy(const tm_pick *p, bool busy) // mu held
{
    for (uint32_t i = 0; i < input_count(p); i++) input_at(p, i)->busy = busy;
}

// ---- Inputs -------------------------------------------------------------------------------------

// One input table as a sequential scan that opens its file when first moved. The table's file is
// acquired for the scan's life.
typedef struct input_iter {
    tm_iter base;
    compaction *c;
    tm_file_ref *file;
    tm_open_table *place;
    tm_file *open;
    tm_iter *scan;
} input_iter;

static void on_read(void *ctx, uint64_t bytes)
{
    ((compaction *)ctx)->bytes_read += bytes;
}

static void mirror(input_iter *it)
{
    it->base.valid = it->scan->valid;
    it->base.status = it->scan->status;
    it->base.key = it->scan->key;
    it->base.trailer = it->scan->trailer;
    it->base.value = it->scan->value;
    if (!it->base.valid && it->base.status != TAMIS_OK) it->base.error = it->scan->error;
}

static void input_first(tm_iter *base)
{
    input_iter *it = TM_CONTAINER(base, input_iter, base);
    struct tamis_db *db = it->c->db;
    tm_table_scan_options o = {
        .readahead_bytes = it->c->readahead, .on_read = on_read, .on_read_ctx = it->c};
    int st = TAMIS_OK;
    base->valid = false;
    if (it->scan == NULL) {
        st = tm_table_cache_add(db->files, it->file->meta->number, &it->place, &base->error);
        if (st == TAMIS_OK) {
            st = tm_table_cache_acquire(db->files, it->place, &it->open, &base->error);
        }
        if (st == TAMIS_OK) {
            st = tm_table_scan_create(it->open, it->file->meta, &it->c->family->order, &o,
                                      &it->scan, &base->error);
        }
    }
    if (st != TAMIS_OK) {
        tm_iter_fail(base, st);
        return;
    }
    it->scan->ops->first(it->scan);
    mirror(it);
}

static void close_input(input_iter *it)
{
    struct tamis_db *db = it->c->db;
    tm_iter_destroy(it->scan);
    it->scan = NULL;
    if (it->open != NULL) tm_table_cache_release(db->files, it->place);
    it->open = NULL;
    tm_table_cache_remove(db->files, it->place);
    it->place = NULL;
}

static void input_next(tm_iter *base)
{
    input_iter *it = TM_CONTAINER(base, input_iter, base);
    it->scan->ops->next(it->scan);
    mirror(it);
}

static void input_destroy(tm_iter *base)
{
    input_iter *it = TM_CONTAINER(base, input_iter, base);
    close_input(it);
    tm_free(it);
}

// Compactions only walk forward.
static const tm_iter_ops input_ops = {
    .first = input_first, .next = input_next, .destroy = input_destroy};

// The tables of a sorted level as one child, so that only one of them holds a buffer at a time.
typedef struct chain_iter {
    tm_iter base;
    tm_iter **parts;
    uint32_t count, at;
} chain_iter;

static void chain_settle(chain_iter *it)
{
    for (;;) {
        tm_iter *p = it->parts[it->at];
        it->base.valid = p->valid;
        it->base.status = p->status;
        if (p->valid) {
            it->base.key = p->key;
            it->base.trailer = p->trailer;
            it->base.value = p->value;
            return;
        }
        if (p->status != TAMIS_OK) {
            it->base.error = p->error;
            return;
        }
        if (it->at + 1 == it->count) return;
        close_input(TM_CONTAINER(p, input_iter, base));
        it->at++;
        it->parts[it->at]->ops->first(it->parts[it->at]);
    }
}
static void chain_first(tm_iter *base)
{
    chain_iter *it = TM_CONTAINER(base, chain_iter, base);
    it->at = 0;
    it->parts[0]->ops->first(it->parts[0]);
    chain_settle(it);
}
static void chain_next(tm_iter *base)
{
    chain_iter *it = TM_CONTAINER(base, chain_iter, base);
    it->parts[it->at]->ops->next(it->parts[it->at]);
    chain_settle(it);
}
static void chain_destroy(tm_iter *base)
{
    chain_iter *it = TM_CONTAINER(base, chain_iter, base);
    for (uint32_t i = 0; i < it->count; i++) tm_iter_destroy(it->parts[i]);
    tm_free(it->parts);
    tm_free(it);
}
static const tm_iter_ops chain_ops = {
    .first = chain_first, .next = chain_next, .destroy = chain_destroy};

static int make_input(compaction *c, tm_file_ref *f, tm_iter **out, tamis_error *err)
{
    input_iter *it = tm_calloc(1, sizeof *it);
    if (it == NULL) return tm_fail_nomem(err);
    it->base.ops = &input_ops;
    it->c = c;
    it->file = f;
    *out = &it->base;
    return TAMIS_OK;
}

static int make_chain(compaction *c, tm_file_ref *const *files, uint32_t n, tm_iter **out,
                      tamis_error *err)
{
    chain_iter *it = tm_calloc(1, sizeof *it);
    if (it == NULL) return tm_fail_nomem(err);
    it->base.ops = &chain_ops;
    it->parts = tm_calloc(n, sizeof *it->parts);
    int st = it->parts ? TAMIS_OK : tm_fail_nomem(err);
    for (uint32_t i = 0; st == TAMIS_OK && i < n; i++) {
        st = make_input(c, files[i], &it->parts[i], err);
        if (st == TAMIS_OK) it->count++;
    }
    if (st != TAMIS_OK) {
        chain_destroy(&it->base);
        return st;
    }
    *out = &it->base;
    return TAMIS_OK;
}

static int open_inputs(compaction *c, tm_iter **merged, tamis_error *err)
{
    const tm_pick *p = &c->pick;
    uint32_t n = 0, lone = p->level == 0 ? p->count[0] : 0;
    tm_iter **children = tm_calloc((size_t)lone + 2, sizeof *children);
    if (children == NULL) return tm_fail_nomem(err);
    int st = TAMIS_OK;
    for (uint32_t i = 0; st == TAMIS_OK && i < lone; i++) {
        st = make_input(c, p->inputs[0][i], &children[n], err);
        if (st == TAMIS_OK) n++;
    }
    for (int w = 0; st == TAMIS_OK && w < 2; w++) {
        if (p->count[w] == 0 || (w == 0 && lone > 0)) continue;
        st = make_chain(c, p->inputs[w], p->count[w], &children[n], err);
        if (st == TAMIS_OK) n++;
    }
    if (st == TAMIS_OK) {
        // Many inputs share a sixteenth of the budget.
        size_t share = (size_t)c->db->config.memory_budget / 16 / n;
        c->readahead = TM_MIN((size_t)c->db->config.readahead, TM_MAX(share, (size_t)READ_LEAST));
        c->buffers = n * (c->readahead + c->db->config.block_size * 2);
        tm_cache_charge(c->db->cache, (int64_t)c->buffers);
        st = tm_merge_iter_create(&c->family->order, children, n, merged, err);
    } else {
        for (uint32_t i = 0; i < n; i++) tm_iter_destroy(children[i]);
    }
    tm_free(children);
    return st;
}

static int gather_ranges(compaction *c, tamis_error *err)
{
    tm_range_builder b;
    bool any = false;
    int st = TAMIS_OK;
    tm_range_builder_init(&b);
    for (uint32_t i = 0; i < input_count(&c->pick); i++) {
        const tm_range_set *set = NULL;
        TM_GOTO(tm_table_ranges(input_at(&c->pick, i)->table, &set, err));
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

// ---- One compaction -------------------------------------------------------------------------------

static bool is_closing(struct tamis_db *db)
{
    tm_mutex_lock(&db->mu.m);
    bool closing = db->mu.closing;
    tm_mutex_unlock(&db->mu.m);
    return closing;
}

static int merge_inputs(compaction *c, tamis_error *err)
{
    struct tamis_db *db = c->db;
    tm_iter *merged = NULL;
    if (tm_snapshots_stripes(&db->snapshots, &c->stripes) != TAMIS_OK) return tm_fail_nomem(err);
    TM_TRY(gather_ranges(c, err));
    TM_TRY(open_inputs(c, &merged, err));
    tm_output_options o = {
        .db = db,
        .family = c->family,
        .version = c->version,
        .level = c->pick.output_level,
        .stripes = &c->stripes,
        .ranges = c->ranges.n > 0 ? &c->ranges : NULL,
        .table_bytes = db->config.table_size,
        .stop = is_closing,
    };
    int st = tm_output_run(&o, merged, &c->out, err);
    tm_iter_destroy(merged);
    tm_cache_charge(db->cache, -(int64_t)c->buffers);
    if (st != TAMIS_OK || c->out.count == 0) return st;
    st = tm_dir_sync(db->dir, err);
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
    uint32_t n = input_count(&c->pick);
    c->drops = tm_calloc(n, sizeof *c->drops);
    if (c->drops == NULL) return tm_fail_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t level = i < c->pick.count[0] ? c->pick.level : c->pick.output_level;
        c->drops[i] = (tm_version_drop){level, input_at(&c->pick, i)->meta->number};
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
    tm_db_update_pressure(db);
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
    tm_db_update_pressure(db);
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
        int st = tm_pick_manual(f->version, &c->db->config, m->level, m->smallest, m->largest,
                                m->before, &c->pick);
        if (st == TAMIS_NOTFOUND) { // nothing of the range in this level
            m->level++;
            continue;
        }
        if (st == TAMIS_BUSY) return TAMIS_NOTFOUND; // what runs now schedules again at its end
        if (st != TAMIS_OK) return tm_fail_nomem(err);
        m->running = true;
        st = run_pick(c, err);
        m->running = false;
        m->status = st;
        if (st != TAMIS_OK) {
            if (err != NULL) m->error = *err;
            m->done = true;
        } else {
            m->level++;
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
    if (f->manual != NULL && !f->manual->running) return run_manual(&c, f->manual, err);
    int st = tm_pick_next(f->version, &db->config, &c.pick);
    if (st == TAMIS_NOMEM) return tm_fail_nomem(err);
    if (st != TAMIS_OK) return st;
    return run_pick(&c, err);
}
