// SPDX-License-Identifier: BSD-2-Clause
//
// insight.c - what the store tells about itself: memory, filters, counters, a lookup step by step.

#include "base/mem.h"
#include "lsm/db.h"
#include "lsm/overlay.h"
#include "lsm/search.h"

// ---- Memory ------------------------------------------------------------------------------------

int tamis_memory_usage(tamis_db *db, tamis_memory *out, tamis_error *err)
{
    TM_TRY(tm_db_check(db, err));
    if (out == NULL || out->size < sizeof(size_t)) {
        return tm_fail(err, TAMIS_INVALID, "out is NULL, or its size is not set");
    }
    tm_cache_usage u;
    tm_cache_usage_get(db->cache, &u);
    tamis_memory m = {.size = out->size, .budget = u.budget, .pinned = u.pinned};
    tm_mutex_lock(&db->mu.m);
    for (uint32_t i = 0; i < db->family_count; i++) {
        const tm_view *v = atomic_load_explicit(&db->families[i]->view, memory_order_relaxed);
        for (uint32_t k = 0; k < v->mem_count; k++) m.memtables += tm_memtable_bytes(v->mems[k]);
    }
    tm_mutex_unlock(&db->mu.m);
    m.memtables = TM_MIN(m.memtables, (uint64_t)u.charged); // one that is written to may have grown
    m.filters = u.bytes[TM_CACHED_FILTER];
    m.indexes = u.bytes[TM_CACHED_INDEX] + u.bytes[TM_CACHED_TOP] + u.bytes[TM_CACHED_RANGE];
    m.data_blocks = u.bytes[TM_CACHED_DATA];
    m.other = u.retired;
    // What is charged beyond the memtables of the view: buffers of compactions, and memtables that
    // only older views hold.
    m.buffers = u.charged - m.memtables;
    m.used = m.memtables + m.filters + m.indexes + m.data_blocks + m.buffers + m.other;
    memcpy(out, &m, TM_MIN(out->size, sizeof m));
    return TAMIS_OK;
}

// ---- Filters -----------------------------------------------------------------------------------

static int add_level(const tm_family *f, const tm_version *v, uint32_t l, tamis_filter_report *r,
                     double *weighted, tamis_error *err)
{
    tm_read_counts c;
    tm_stats_reads(&f->stats, l, &c);
    r->probes += c.filter_checks;
    r->negatives += c.filter_negatives;
    r->true_positives += c.filter_true_positives;
    r->false_positives += c.filter_false_positives;
    r->unavailable += c.filter_unavailable;
    r->partitions_read += c.read_blocks[TM_CACHED_FILTER];
    r->bytes_read += c.read_bytes[TM_CACHED_FILTER];
    for (uint32_t i = 0; i < v->levels[l].count; i++) {
        tm_table_filter_info info = {0};
        TM_TRY(tm_table_filter(v->levels[l].tables[i], &info, err));
        r->filter_bytes += info.bytes;
        r->keys += info.keys;
        *weighted += info.expected_rate * (double)info.keys;
    }
    return TAMIS_OK;
}

int tamis_filter_stats(tamis_db *db, tamis_cf *cf, int level, tamis_filter_report *out,
                       tamis_error *err)
{
    tm_family *f;
    TM_TRY(tm_db_check(db, err));
    TM_TRY(tm_db_family(db, cf, &f, err));
    if (out == NULL || out->size < sizeof(size_t)) {
        return tm_fail(err, TAMIS_INVALID, "out is NULL, or its size is not set");
    }
    if (level < -1 || level >= TM_LEVELS) {
        return tm_fail(err, TAMIS_INVALID, "level is %d; there are 0 to %d, and -1 for all", level,
                       TM_LEVELS - 1);
    }
    tamis_filter_report r = {.size = out->size};
    double weighted = 0;
    int st = TAMIS_OK;
    tm_view *v = tm_family_pin_view(f);
    for (uint32_t l = 0; st == TAMIS_OK && l < TM_LEVELS; l++) {
        if (level == -1 || (uint32_t)level == l)
            st = add_level(f, v->version, l, &r, &weighted, err);
    }
    tm_view_unref(v);
    TM_TRY(st);
    tm_cache_usage u;
    tm_cache_usage_get(db->cache, &u);
    r.memory = u.bytes[TM_CACHED_FILTER];
    if (r.keys > 0) {
        r.bits_per_key = (double)r.filter_bytes * 8 / (double)r.keys;
        r.expected_rate = weighted / (double)r.keys;
    }
    uint64_t absent = r.false_positives + r.negatives;
    if (absent > 0) r.observed_rate = (double)r.false_positives / (double)absent;
    memcpy(out, &r, TM_MIN(out->size, sizeof r));
    return TAMIS_OK;
}

// ---- Counters ----------------------------------------------------------------------------------

// Figures of tm_read_counts, summed over all levels.
#define READ_COUNTERS(X)                                                                           \
    X("filter_checks", filter_checks, "filters asked")                                             \
    X("filter_negatives", filter_negatives, "filters that said no: reads avoided")                 \
    X("filter_true_positives", filter_true_positives, "filters that said maybe rightly")           \
    X("filter_false_positives", filter_false_positives, "filters that said maybe wrongly")         \
    X("filter_unavailable", filter_unavailable, "filters damaged or unknown: maybe")               \
    X("data_blocks_read", read_blocks[TM_CACHED_DATA], "data blocks read from files")              \
    X("data_bytes_read", read_bytes[TM_CACHED_DATA], "and their bytes")                            \
    X("index_blocks_read", read_blocks[TM_CACHED_INDEX], "index partitions read from files")       \
    X("index_bytes_read", read_bytes[TM_CACHED_INDEX], "and their bytes")                          \
    X("filter_blocks_read", read_blocks[TM_CACHED_FILTER], "filter partitions read from files")    \
    X("filter_bytes_read", read_bytes[TM_CACHED_FILTER], "and their bytes")                        \
    X("top_blocks_read", read_blocks[TM_CACHED_TOP], "top levels read from files")                 \
    X("top_bytes_read", read_bytes[TM_CACHED_TOP], "and their bytes")                              \
    X("range_blocks_read", read_blocks[TM_CACHED_RANGE], "range-delete blocks read from files")    \
    X("range_bytes_read", read_bytes[TM_CACHED_RANGE], "and their bytes")                          \
    X("data_blocks_cached", cached_blocks[TM_CACHED_DATA], "data blocks found in memory")          \
    X("index_blocks_cached", cached_blocks[TM_CACHED_INDEX], "index partitions found in memory")   \
    X("filter_blocks_cached", cached_blocks[TM_CACHED_FILTER],                                     \
      "filter partitions found in memory")                                                         \
    X("top_blocks_cached", cached_blocks[TM_CACHED_TOP], "top levels found in memory")

typedef struct read_counter {
    const char *name;
    size_t field;
    const char *doc;
} read_counter;
static const read_counter read_counters[] = {
#define X(name, field, doc) {name, offsetof(tm_read_counts, field), doc},
    READ_COUNTERS(X)
#undef X
};

int tamis_counter_at(size_t i, const char **name, const char **doc)
{
    if (name == NULL || doc == NULL) return TAMIS_INVALID;
    if (i < TM_STAT_COUNT) {
        *name = tm_counter_name((tm_counter)i);
        *doc = tm_counter_doc((tm_counter)i);
        return TAMIS_OK;
    }
    i -= TM_STAT_COUNT;
    if (i >= TM_COUNT(read_counters)) return TAMIS_NOTFOUND;
    *name = read_counters[i].name;
    *doc = read_counters[i].doc;
    return TAMIS_OK;
}

static uint64_t read_counter_of(const tm_stats *s, size_t i)
{
    uint64_t sum = 0;
    for (uint32_t l = 0; l < TM_LEVELS; l++) {
        tm_read_counts c;
        uint64_t v;
        tm_stats_reads(s, l, &c);
        memcpy(&v, (const char *)&c + read_counters[i].field, sizeof v);
        sum += v;
    }
    return sum;
}

static uint64_t count_of(const tm_stats *s, size_t i)
{
    return i < TM_STAT_COUNT ? tm_stats_get(s, (tm_counter)i)
                             : read_counter_of(s, i - TM_STAT_COUNT);
}

// Of the store and all families; i is a place of tamis_counter_at.
static uint64_t sum_of(tamis_db *db, size_t i)
{
    tm_mutex_lock(&db->mu.m);
    uint64_t sum = count_of(&db->stats, i);
    for (uint32_t k = 0; k < db->family_count; k++) sum += count_of(&db->families[k]->stats, i);
    for (const tm_family *f = db->mu.dropped; f != NULL; f = f->next_dropped) {
        sum += count_of(&f->stats, i);
    }
    tm_mutex_unlock(&db->mu.m);
    return sum;
}

int tamis_counter(tamis_db *db, const char *name, uint64_t *out, tamis_error *err)
{
    const char *at, *doc;
    TM_TRY(tm_db_check(db, err));
    if (name == NULL || out == NULL) return tm_fail(err, TAMIS_INVALID, "name or out is NULL");
    for (size_t i = 0; tamis_counter_at(i, &at, &doc) == TAMIS_OK; i++) {
        if (strcmp(name, at) != 0) continue;
        *out = sum_of(db, i);
        return TAMIS_OK;
    }
    return tm_fail(err, TAMIS_NOTFOUND, "no counter is called \"%.60s\"", name);
}

// ---- Sizes -------------------------------------------------------------------------------------

static int offset_of(const tm_version *v, const tm_file_ref *f, tm_slice key, bool end,
                     uint64_t *bytes, uint64_t *entries, tamis_error *err)
{
    int where = end && key.len == 0 ? 1 : tm_file_locate(&v->order, f->meta, key);
    *bytes = where < 0 ? 0 : f->meta->file_bytes;
    *entries = where < 0 ? 0 : f->meta->entries;
    return where == 0 ? tm_table_approximate_offset(f->table, key, bytes, entries, err) : TAMIS_OK;
}

static int size_of(const tm_version *v, const tamis_range *r, uint64_t *bytes, uint64_t *entries,
                   tamis_error *err)
{
    tm_slice start = tm_slice_of(r->start.data, r->start.len);
    tm_slice limit = tm_slice_of(r->limit.data, r->limit.len);
    for (uint32_t l = 0; l < v->levels_used; l++) {
        for (uint32_t i = 0; i < v->levels[l].count; i++) {
            uint64_t b0, b1, e0, e1;
            TM_TRY(offset_of(v, v->levels[l].files[i], start, false, &b0, &e0, err));
            TM_TRY(offset_of(v, v->levels[l].files[i], limit, true, &b1, &e1, err));
            if (b1 > b0) *bytes += b1 - b0;
            if (e1 > e0) *entries += e1 - e0;
        }
    }
    return TAMIS_OK;
}

int tamis_approximate_size(tamis_db *db, tamis_cf *cf, const tamis_range *ranges, size_t n,
                           uint64_t *bytes, uint64_t *entries, tamis_error *err)
{
    tm_family *f;
    TM_TRY(tm_db_check(db, err));
    TM_TRY(tm_db_family(db, cf, &f, err));
    if (n > 0 && ranges == NULL) return tm_fail(err, TAMIS_INVALID, "ranges is NULL");
    tm_view *v = tm_family_pin_view(f);
    int st = TAMIS_OK;
    for (size_t i = 0; st == TAMIS_OK && i < n; i++) {
        uint64_t b = 0, e = 0;
        st = size_of(v->version, &ranges[i], &b, &e, err);
        if (bytes != NULL) bytes[i] = b;
        if (entries != NULL) entries[i] = e;
    }
    tm_view_unref(v);
    return st;
}

// ---- Explain -----------------------------------------------------------------------------------

typedef struct explanation {
    void (*step)(void *ctx, const tamis_step_info *s);
    void *ctx;
    tm_search *search;
} explanation;

// The level of a step is that of the table at hand.
static int level_of(const tm_search *s, uint64_t number)
{
    const tm_version *v = s->view->version;
    for (uint32_t l = 0; number != 0 && l < v->levels_used; l++) {
        for (uint32_t i = 0; i < v->levels[l].count; i++) {
            if (v->levels[l].files[i]->meta->number == number) return (int)l;
        }
    }
    return -1;
}

static void forward(void *ctx, const tm_read_step *s)
{
    explanation *e = ctx;
    tamis_step_info info = {.size = sizeof info,
                            .what = s->what,
                            .outcome = s->outcome,
                            .level = level_of(e->search, s->file_number),
                            .cached = s->cached,
                            .file_number = s->file_number,
                            .offset = s->offset,
                            .bytes = s->bytes,
                            .nanos = s->nanos};
    e->step(e->ctx, &info);
}

int tamis_explain(tamis_db *db, tamis_cf *cf, const tamis_read_options *ro, const void *key,
                  size_t klen, void (*step)(void *ctx, const tamis_step_info *s), void *ctx,
                  tamis_error *err)
{
    tm_search s = {.db = db, .key = tm_slice_of(key, klen)};
    tamis_read_options o;
    tm_buf scratch;
    TM_TRY(tm_db_check(db, err));
    if (step == NULL) return tm_fail(err, TAMIS_INVALID, "step is NULL");
    if (key == NULL && klen > 0) return tm_fail(err, TAMIS_INVALID, "key is NULL");
    if (klen > TAMIS_MAX_KEY) return tm_fail(err, TAMIS_TOOLARGE, "the key has %zu bytes", klen);
    TM_TRY(tm_read_options_check(db, ro, &o, err));
    TM_TRY(tm_db_family(db, cf, &s.family, err));
    tm_buf_init(&scratch);
    int st = tm_order_hash(&s.family->order, s.key, db->hash_seed, &scratch, &s.hash);
    tm_buf_deinit(&scratch);
    if (st != TAMIS_OK) return tm_fail_nomem(err);
    explanation e = {step, ctx, &s};
    tm_view *v = tm_family_pin_view(s.family);
    s.view = v;
    s.seq =
        o.snapshot ? o.snapshot->seq : atomic_load_explicit(&db->last_seq, memory_order_acquire);
    s.rc.mode = o.cached_only ? TM_READ_CACHED : TM_READ_PINNED;
    s.rc.no_fill = o.no_cache_fill != 0;
    s.rc.step = forward;
    s.rc.step_ctx = &e;
    s.rc.err = err;
    if (o.overlay != NULL)
        st = tm_overlay_get(o.overlay, s.family, &s.overlay, &s.overlay_seq, err);
    if (st == TAMIS_OK) {
        st = tm_search_run(&s);
        tm_search_account(&s);
        tm_search_done(&s);
    }
    tm_view_unref(v);
    return st;
}
