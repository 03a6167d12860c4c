// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/output.h"

#include "base/mem.h"
#include "lsm/db.h"
#include "lsm/filename.h"
#include "lsm/fold.h"

enum { STOP_EVERY = 4096, SYNC_WRITE_BACK = 1 << 20, FOLD_BYTES = 16 << 20 };

typedef struct run {
    const tm_output_options *o;
    tm_output *out;
    tm_table_writer *writer;
    tamis_error *err;
    // The user key at hand.
    tm_buf key;
    bool has_key;
    size_t hidden_stripe; // O1: versions in this stripe go; SIZE_MAX: none
    bool first_of_key;    // nothing of the key has been written yet
    // O6: operands of the key in one stripe, and the value below them.
    tm_fold fold;
    tm_buf trailers; // uint64_t: of the operands, newest first
    size_t fold_stripe;
    bool fold_off;   // there are too many, or the merger has failed: they stay as they are
    tm_buf filtered; // what the compaction filter replaced a value by
    uint64_t now_ms;
    bool last_level;
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

// The stripe of the newest entries: no snapshot sees them.
static bool is_newest_stripe(const run *r, size_t stripe)
{
    return stripe == r->o->stripes->count;
}

static bool is_tombstone(tm_kind kind)
{
    return kind == TM_KIND_DELETE || kind == TM_KIND_SINGLE_DELETE;
}

// ---- Tables ------------------------------------------------------------------------------------

static int begin_table(run *r)
{
    struct tamis_db *db = r->o->db;
    const tm_config *c = &r->o->family->config;
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
        .family_name = tm_family_name(r->o->family),
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

// ---- Writing entries ---------------------------------------------------------------------------

static int write_entry(run *r, uint64_t trailer, tm_slice value)
{
    tm_slice key = tm_buf_slice(&r->key);
    uint64_t bytes = r->writer ? tm_table_writer_bytes(r->writer) : 0;
    if (r->first_of_key && r->writer != NULL && bytes >= r->o->table_bytes) {
        TM_TRY(end_table(r, &key));
    }
    if (r->writer == NULL) TM_TRY(begin_table(r));
    r->first_of_key = false;
    return tm_table_writer_add(r->writer, key, trailer, value, r->err);
}

// A deletion, or what has become one.
static int write_tombstone(run *r, uint64_t seq, size_t stripe, tm_kind kind)
{
    if (stripe == 0 && nothing_below(r, tm_buf_slice(&r->key))) { // O3
        r->out->entries_dropped++;
        return TAMIS_OK;
    }
    return write_entry(r, tm_trailer(seq, kind), tm_slice_of(NULL, 0));
}

static int replace(void *ctx, const void *value, size_t vlen)
{
    if (vlen > TAMIS_MAX_VALUE) return TAMIS_TOOLARGE;
    return tm_buf_append(ctx, value, vlen);
}

// Asks the compaction filter; *value may be changed. KEEP where it is not to be asked.
static int ask_filter(run *r, size_t stripe, tm_slice *value, tamis_verdict *verdict)
{
    const tamis_compaction_filter *f = &r->o->family->plugins.filter;
    tm_slice key = tm_buf_slice(&r->key);
    size_t before = r->filtered.len;
    *verdict = TAMIS_KEEP;
    if (TM_LIKELY(f->size == 0) || !is_newest_stripe(r, stripe) || !r->first_of_key) {
        return TAMIS_OK;
    }
    int v = f->filter(f->ctx, (int)r->o->level, key.data, key.len, value->data, value->len, replace,
                      &r->filtered);
    if (v != TAMIS_KEEP && v != TAMIS_DROP && v != TAMIS_REPLACE) {
        return tm_fail(r->err, TAMIS_INVALID, "the compaction filter \"%.100s\" answered %d",
                       f->name, v);
    }
    *verdict = (tamis_verdict)v;
    if (v == TAMIS_REPLACE) {
        *value = tm_slice_of(r->filtered.data + before, r->filtered.len - before);
    }
    return TAMIS_OK;
}

// A value that lives on. expires_ms 0: for ever.
static int write_value(run *r, uint64_t seq, size_t stripe, tm_slice value, uint64_t expires_ms)
{
    tamis_verdict verdict;
    uint8_t head[8];
    tm_buf_clear(&r->filtered);
    if (expires_ms != 0) { // room for it in front of what may replace the value
        tm_put64(head, expires_ms);
        if (tm_buf_append(&r->filtered, head, sizeof head) != TAMIS_OK)
            return tm_fail_nomem(r->err);
    }
    TM_TRY(ask_filter(r, stripe, &value, &verdict));
    if (verdict == TAMIS_DROP) return write_tombstone(r, seq, stripe, TM_KIND_DELETE);
    if (expires_ms != 0) {
        if (verdict == TAMIS_KEEP &&
            tm_buf_append(&r->filtered, value.data, value.len) != TAMIS_OK) {
            return tm_fail_nomem(r->err);
        }
        return write_entry(r, tm_trailer(seq, TM_KIND_PUT_EXPIRY), tm_buf_slice(&r->filtered));
    }
    bool zero = r->last_level && stripe == 0 && r->o->ranges == NULL; // O5
    return write_entry(r, tm_trailer(zero ? 0 : seq, TM_KIND_PUT), value);
}

// ---- Merge operands (O6) -----------------------------------------------------------------------

static size_t operand_count(const run *r)
{
    return r->trailers.len / sizeof(uint64_t);
}

static uint64_t operand_trailer(const run *r, size_t i)
{
    return ((const uint64_t *)(const void *)r->trailers.data)[i];
}

static void forget_operands(run *r)
{
    tm_fold_clear(&r->fold);
    tm_buf_clear(&r->trailers);
}

static int write_operands(run *r)
{
    const size_t *ends = (const size_t *)(const void *)r->fold.ends.data;
    for (size_t i = 0, begin = 0; i < operand_count(r); begin = ends[i++]) {
        tm_slice operand = tm_slice_of(r->fold.bytes.data + begin, ends[i] - begin);
        TM_TRY(write_entry(r, operand_trailer(r, i), operand));
    }
    forget_operands(r);
    return TAMIS_OK;
}

// The operands have met what is below them in their stripe: a value, or (NULL) none. *folded: they
// are one value now; else they have been written as they were, and what is below has to stay.
static int fold_onto(run *r, const tm_slice *base, bool *folded)
{
    const tamis_merger *m = atomic_load_explicit(&r->o->family->merger, memory_order_acquire);
    uint64_t seq = tm_trailer_seq(operand_trailer(r, 0));
    *folded = tm_fold_finish(&r->fold, m, tm_buf_slice(&r->key), base, NULL) == TAMIS_OK;
    if (!*folded) {
        r->fold_off = true;
        return write_operands(r);
    }
    r->out->entries_dropped += operand_count(r) - 1;
    forget_operands(r);
    return write_value(r, seq, r->fold_stripe, tm_buf_slice(&r->fold.out), 0);
}

// Nothing more of the key is in their stripe.
static int end_operands(run *r, bool key_ends)
{
    const tamis_merger *m = atomic_load_explicit(&r->o->family->merger, memory_order_acquire);
    bool folded;
    if (operand_count(r) == 0) return TAMIS_OK;
    if (key_ends && r->fold_stripe == 0 && nothing_below(r, tm_buf_slice(&r->key))) {
        return fold_onto(r, NULL, &folded);
    }
    bool associative = m != NULL && (m->flags & TAMIS_MERGER_ASSOCIATIVE) != 0;
    if (operand_count(r) == 1 || !associative ||
        tm_fold_operands(&r->fold, m, tm_buf_slice(&r->key), NULL) != TAMIS_OK) {
        return write_operands(r);
    }
    uint64_t newest = operand_trailer(r, 0);
    r->out->entries_dropped += operand_count(r) - 1;
    forget_operands(r);
    return write_entry(r, newest, tm_buf_slice(&r->fold.out));
}

static int take_operand(run *r, uint64_t trailer, tm_slice operand, size_t stripe)
{
    if (r->fold_off) return write_entry(r, trailer, operand);
    r->fold_stripe = stripe;
    if (tm_fold_add(&r->fold, operand) != TAMIS_OK ||
        tm_buf_append(&r->trailers, &trailer, sizeof trailer) != TAMIS_OK) {
        return tm_fail_nomem(r->err);
    }
    if (r->fold.bytes.len <= FOLD_BYTES) return TAMIS_OK;
    r->fold_off = true; // a reader has to take them together: this one need not
    return write_operands(r);
}

// ---- The walk ----------------------------------------------------------------------------------

// Whether operands wait for what is below them in this stripe.
static bool operands_wait(const run *r, size_t stripe)
{
    return operand_count(r) > 0 && r->fold_stripe == stripe;
}

static int take_value(run *r, const tm_iter *it, size_t stripe)
{
    uint64_t seq = tm_trailer_seq(it->trailer), expires_ms = 0;
    tm_slice value = it->value;
    if (tm_trailer_kind(it->trailer) == TM_KIND_PUT_EXPIRY) {
        if (!tm_expiry_take(&value, &expires_ms)) {
            return tm_fail_corrupt(r->err, 0, 0, "an expiring entry has no time of expiry");
        }
        if (expires_ms <= r->now_ms) { // O7
            bool folded = false;
            if (operands_wait(r, stripe)) TM_TRY(fold_onto(r, NULL, &folded));
            if (!folded) return write_tombstone(r, seq, stripe, TM_KIND_DELETE);
            r->out->entries_dropped++;
            return TAMIS_OK;
        }
    }
    if (operands_wait(r, stripe)) {
        bool folded = false;
        // Operands outlive an expiring value: they stay apart from it until it is gone.
        if (expires_ms == 0)
            TM_TRY(fold_onto(r, &value, &folded));
        else
            TM_TRY(end_operands(r, false));
        if (folded) {
            r->out->entries_dropped++;
            return TAMIS_OK;
        }
    }
    return write_value(r, seq, stripe, value, expires_ms);
}

static int take_deletion(run *r, const tm_iter *it, size_t stripe)
{
    bool folded = false;
    if (operands_wait(r, stripe)) TM_TRY(fold_onto(r, NULL, &folded));
    if (!folded) {
        return write_tombstone(r, tm_trailer_seq(it->trailer), stripe,
                               tm_trailer_kind(it->trailer));
    }
    r->out->entries_dropped++;
    return TAMIS_OK;
}

// What the key's entries so far leave to do, before the next key or the end.
static int end_key(run *r)
{
    return operand_count(r) > 0 ? end_operands(r, true) : TAMIS_OK;
}

static int begin_key(run *r, tm_slice key)
{
    TM_TRY(end_key(r));
    if (tm_buf_set(&r->key, key) != TAMIS_OK) return tm_fail_nomem(r->err);
    r->has_key = r->first_of_key = true;
    r->fold_off = false;
    r->hidden_stripe = SIZE_MAX;
    return TAMIS_OK;
}

static int take_entry(run *r, const tm_iter *it)
{
    const tm_order *order = &r->o->family->order;
    if (!r->has_key || tm_order_compare(order, tm_buf_slice(&r->key), it->key) != 0) {
        TM_TRY(begin_key(r, it->key));
    }
    uint64_t seq = tm_trailer_seq(it->trailer);
    tm_kind kind = tm_trailer_kind(it->trailer);
    size_t stripe = tm_stripe_of(r->o->stripes, seq);
    r->out->entries_in++;
    if (r->hidden_stripe == stripe) { // O1
        r->out->entries_dropped++;
        return TAMIS_OK;
    }
    if (operand_count(r) > 0 && r->fold_stripe != stripe) {
        TM_TRY(end_operands(r, false));
        r->fold_off = false;
    }
    if (covered(r, it->key, seq, stripe)) { // O2: and so is all that is older in the stripe
        bool folded;
        if (operands_wait(r, stripe)) TM_TRY(fold_onto(r, NULL, &folded));
        r->hidden_stripe = stripe;
        r->out->entries_dropped++;
        return TAMIS_OK;
    }
    if (kind == TM_KIND_MERGE) return take_operand(r, it->trailer, it->value, stripe);
    r->hidden_stripe = stripe;
    if (is_tombstone(kind)) return take_deletion(r, it, stripe);
    if (kind == TM_KIND_PUT || kind == TM_KIND_PUT_EXPIRY) return take_value(r, it, stripe);
    return write_entry(r, it->trailer, it->value); // of a later version
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
    r.last_level = is_last_level(options);
    r.now_ms = options->db->vfs->wall_ms(options->db->vfs);
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
        TM_GOTO(take_entry(&r, merged));
        if (--until_stop == 0) {
            until_stop = STOP_EVERY;
            if (options->stop != NULL && options->stop(options->family)) {
                st = tm_fail(err, TAMIS_ABORTED,
                             "stopped: the store is being closed, or the family changed");
                goto out;
            }
        }
    }
    if (!merged->valid && merged->status != TAMIS_OK) {
        st = tm_fail_copy(err, &merged->error);
        goto out;
    }
    TM_GOTO(end_key(&r));
    TM_GOTO(end_table(&r, options->limit));
out:
    tm_table_writer_destroy(r.writer);
    tm_buf_deinit(&r.key);
    tm_fold_deinit(&r.fold);
    tm_buf_deinit(&r.trailers);
    tm_buf_deinit(&r.filtered);
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
