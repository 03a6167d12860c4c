// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/output.h"

#include "base/mem.h"
#include "lsm/db.h"
#include "lsm/filename.h"

enum { STOP_EVERY = 4096, SYNC_WRITE_BACK = 1 << 20 };

typedef struct run {
    const tm_output_options *o;
    tm_output *out;
    tm_table_writer *writer;
    tamis_error *err;
    // The user key at hand.
    tm_buf key;
    bool has_key;
    size_t hidden_stripe; // O1: versions in this stripe go; SIZE_MAX: none
    // Where each level below stands, as keys ascend.
    uint32_t below[TM_LEVELS];
    // Range deletes: those before range_start are in finished tables.
    tm_buf range_start;
    bool has_range_start;
} run;

// ---- What may go -------------------------------------------------------------------------------

static bool is_last_level(const tm_output_options *o)
{
    if (o->version == NULL) return false;
    for (uint32_t l = o->level + 1; l < TM_LEVELS; l++) {
        if (o->version->levels[l].count > 0) return false;
    }
    return true;
}

// Whether no level below the output can hold key. Keys come in ascending order.
static bool nothing_below(run *r, tm_slice key)
{
    const tm_version *v = r->o->version;
    if (v == NULL) return false;
    for (uint32_t l = r->o->level + 1; l < TM_LEVELS; l++) {
        const tm_level *level = &v->levels[l];
        uint32_t *i = &r->below[l];
        int where = 1;
        while (*i < level->count &&
               (where = tm_file_locate(&v->order, level->files[*i]->meta, key)) > 0) {
            (*i)++;
        }
        if (*i < level->count && where == 0) return false;
    }
    return true;
}

// Whether no level below the output overlaps [start, limit).
static bool nothing_below_range(const run *r, tm_slice start, tm_slice limit, bool unbounded)
{
    const tm_version *v = r->o->version;
    if (v == NULL) return false;
    for (uint32_t l = r->o->level + 1; l < TM_LEVELS; l++) {
        uint32_t first, last;
        tm_version_overlap(v, l, &start, unbounded ? NULL : &limit, &first, &last);
        if (first < last) return false;
    }
    return true;
}

static bool covered(const run *r, tm_slice key, uint64_t seq, size_t stripe)
{
    const tm_stripes *s = r->o->stripes;
    if (r->o->ranges == NULL) return false;
    uint64_t end = stripe < s->count ? s->seqs[stripe] : TM_MAX_SEQ;
    return tm_range_set_cover(r->o->ranges, &r->o->family->order, key, end) > seq; // O2
}

static bool keep(run *r, const tm_iter *it, bool last_level, uint64_t *trailer)
{
    uint64_t seq = tm_trailer_seq(it->trailer);
    tm_kind kind = tm_trailer_kind(it->trailer);
    size_t stripe = tm_stripe_of(r->o->stripes, seq);
    if (r->hidden_stripe == stripe) return false; // O1
    if (covered(r, it->key, seq, stripe)) return false;
    bool tombstone = kind == TM_KIND_DELETE || kind == TM_KIND_SINGLE_DELETE;
    if (kind != TM_KIND_MERGE) r->hidden_stripe = stripe;
    if (tombstone && stripe == 0 && nothing_below(r, it->key)) return false; // O3
    *trailer = it->trailer;
    if (last_level && stripe == 0 && kind == TM_KIND_PUT && r->o->ranges == NULL) {
        *trailer = tm_trailer(0, kind); // O5
    }
    return true;
}

// ---- Tables ------------------------------------------------------------------------------------

static int begin_table(run *r)
{
    struct tamis_db *db = r->o->db;
    const tm_config *c = &db->config;
    uint64_t number = atomic_fetch_add_explicit(&db->next_file, 1, memory_order_relaxed);
    tm_table_writer_options w = {
        .order = r->o->family->order,
        .block_bytes = (uint32_t)c->block_size,
        .partition_bytes = (uint32_t)c->partition_size,
        .index_bytes = (uint32_t)c->index_size,
        .compression = (tm_compression)c->compression,
        .filter = (tm_filter_kind)c->filter,
        .filter_millibits = (uint32_t)c->filter_millibits,
        .hash_seed = db->hash_seed,
        .family_id = r->o->family->id,
        .family_name = tm_buf_slice(&r->o->family->name),
        .created_ms = db->vfs->wall_ms(db->vfs),
        .write_back_bytes = SYNC_WRITE_BACK,
        .on_write = tm_db_throttle,
        .on_write_ctx = db,
    };
    int sys = db->vfs->random(db->vfs, w.id, sizeof w.id);
    if (sys != 0) return tm_fail_sys(r->err, sys, number, 0, "read random bytes for a table id");
    return tm_table_writer_create(db->dir, number, &w, &r->writer, r->err);
}

static int keep_meta(run *r, tm_table_meta *meta)
{
    tm_output *out = r->out;
    if (out->count == out->cap) {
        size_t cap = out->cap ? out->cap * 2 : 8;
        void *p = tm_realloc(out->tables, cap * sizeof *out->tables);
        if (p == NULL) return tm_fail_nomem(r->err);
        out->tables = p;
        out->cap = cap;
    }
    out->tables[out->count++] = *meta;
    out->bytes_written += meta->file_bytes;
    return TAMIS_OK;
}

// Adds the part [start, limit) of fragment i that must be kept.
static int add_fragment(run *r, uint32_t i, tm_slice start, tm_slice limit, bool unbounded)
{
    const tm_range_set *set = r->o->ranges;
    const tm_range_fragment *f = &set->fragments[i];
    size_t last_stripe = SIZE_MAX;
    for (uint32_t k = 0; k < f->count; k++) {
        uint64_t seq = set->seqs[f->first + k];
        size_t stripe = tm_stripe_of(r->o->stripes, seq);
        if (stripe == last_stripe) continue; // the newer one in this stripe does its work
        last_stripe = stripe;
        if (stripe == 0 && nothing_below_range(r, start, limit, unbounded)) continue; // O4
        if (r->writer == NULL) TM_TRY(begin_table(r));
        tm_slice open = {0};
        TM_TRY(tm_table_writer_add_range(r->writer, start, unbounded ? open : limit, seq, r->err));
    }
    return TAMIS_OK;
}

// Adds the range deletes from where the last table ended up to limit (NULL: to the end).
static int add_ranges(run *r, const tm_slice *limit)
{
    const tm_range_set *set = r->o->ranges;
    const tm_order *order = &r->o->family->order;
    if (set == NULL) return TAMIS_OK;
    tm_slice from = tm_buf_slice(&r->range_start);
    uint32_t i = r->has_range_start ? tm_range_set_find(set, order, from) : 0;
    for (; i < set->n; i++) {
        const tm_range_fragment *f = &set->fragments[i];
        tm_slice start = f->start, end = f->limit;
        bool unbounded = f->unbounded;
        if (r->has_range_start && tm_order_compare(order, start, from) < 0) start = from;
        if (limit != NULL) {
            if (tm_order_compare(order, start, *limit) >= 0) break;
            if (unbounded || tm_order_compare(order, end, *limit) > 0) {
                end = *limit;
                unbounded = false;
            }
        }
        TM_TRY(add_fragment(r, i, start, end, unbounded));
    }
    return TAMIS_OK;
}

// next: the key with which the next table begins, NULL at the end.
static int end_table(run *r, const tm_slice *next)
{
    TM_TRY(add_ranges(r, next));
    if (next != NULL) {
        if (tm_buf_set(&r->range_start, *next) != TAMIS_OK) return tm_fail_nomem(r->err);
        r->has_range_start = true;
    }
    if (r->writer == NULL) return TAMIS_OK;
    tm_table_meta meta;
    tm_table_meta_init(&meta);
    int st = tm_table_writer_finish(r->writer, &meta, r->err);
    if (st == TAMIS_OK) {
        tm_table_writer_destroy(r->writer);
        r->writer = NULL;
        st = keep_meta(r, &meta);
    }
    if (st != TAMIS_OK) tm_table_meta_deinit(&meta);
    return st;
}

// ---- The walk ----------------------------------------------------------------------------------

static int take_entry(run *r, const tm_iter *it, bool last_level)
{
    bool new_key =
        !r->has_key || tm_order_compare(&r->o->family->order, tm_buf_slice(&r->key), it->key) != 0;
    if (new_key) {
        if (tm_buf_set(&r->key, it->key) != TAMIS_OK) return tm_fail_nomem(r->err);
        r->has_key = true;
        r->hidden_stripe = SIZE_MAX;
    }
    uint64_t trailer = 0;
    r->out->entries_in++;
    if (!keep(r, it, last_level, &trailer)) {
        r->out->entries_dropped++;
        return TAMIS_OK;
    }
    if (new_key && r->writer != NULL && tm_table_writer_bytes(r->writer) >= r->o->table_bytes) {
        TM_TRY(end_table(r, &it->key));
    }
    if (r->writer == NULL) TM_TRY(begin_table(r));
    return tm_table_writer_add(r->writer, it->key, trailer, it->value, r->err);
}

// Range deletes before start belong to another part.
static int start_at(run *r, tm_slice start)
{
    if (tm_buf_set(&r->range_start, start) != TAMIS_OK) return tm_fail_nomem(r->err);
    r->has_range_start = true;
    return TAMIS_OK;
}

int tm_output_run(const tm_output_options *options, tm_iter *merged, tm_output *out,
                  tamis_error *err)
{
    run r = {.o = options, .out = out, .err = err, .hidden_stripe = SIZE_MAX};
    memset(out, 0, sizeof *out);
    bool last_level = is_last_level(options);
    int st = TAMIS_OK;
    uint32_t until_stop = STOP_EVERY;
    if (options->start != NULL) {
        TM_GOTO(start_at(&r, *options->start));
        merged->ops->seek(merged, *options->start, UINT64_MAX);
    } else {
        merged->ops->first(merged);
    }
    for (; merged->valid; merged->ops->next(merged)) {
        if (options->limit != NULL &&
            tm_order_compare(&options->family->order, merged->key, *options->limit) >= 0) {
            break;
        }
        TM_GOTO(take_entry(&r, merged, last_level));
        if (--until_stop == 0) {
            until_stop = STOP_EVERY;
            if (options->stop != NULL && options->stop(options->db)) {
                st = tm_fail(err, TAMIS_ABORTED, "stopped because the store is being closed");
                goto out;
            }
        }
    }
    if (!merged->valid && merged->status != TAMIS_OK) {
        st = tm_fail_copy(err, &merged->error);
        goto out;
    }
    TM_GOTO(end_table(&r, options->limit));
out:
    tm_table_writer_destroy(r.writer);
    tm_buf_deinit(&r.key);
    tm_buf_deinit(&r.range_start);
    if (st != TAMIS_OK) {
        tm_output_remove_files(options->db, out);
        tm_output_deinit(out);
    }
    return st;
}

void tm_output_remove_files(struct tamis_db *db, const tm_output *out)
{
    char name[TM_NAME_MAX];
    for (size_t i = 0; i < out->count; i++) {
        tm_filename(name, TM_FILE_TABLE, out->tables[i].number);
        (void)!tm_dir_unlink(db->dir, name, NULL); // a leftover is removed at the next open
    }
}

void tm_output_deinit(tm_output *out)
{
    for (size_t i = 0; i < out->count; i++) tm_table_meta_deinit(&out->tables[i]);
    tm_free(out->tables);
    memset(out, 0, sizeof *out);
}
