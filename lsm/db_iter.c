// SPDX-License-Identifier: BSD-2-Clause
//
// db_iter.c - the public iterator: a counted view, the merged walk over its memtables and tables,
// and the user's walk on top (user_iter.c).

#include "base/mem.h"
#include "lsm/db.h"
#include "lsm/level_iter.h"
#include "lsm/merge_iter.h"
#include "lsm/overlay.h"
#include "lsm/user_iter.h"

struct tamis_iter {
    struct tamis_db *db;
    tm_family *family;
    tm_view *view;
    tm_user_iter *user;
    tm_read_counts *counts; // by level; what the walks point to, added up when it is freed
    uint64_t seeks, steps;
    int own_status; // CLOSED or MISUSE, before anything the walk says
    tm_buf many;    // what tamis_iter_next_many handed out
    bool plain;     // made with options that let it be used again
    tm_retired retired;
};

// ---- Sources -----------------------------------------------------------------------------------

typedef struct sources { // newest first
    tm_iter **children;
    size_t count;
    tm_buf ranges;         // const tm_range_set *
    tm_buf range_children; // uint32_t
    tm_buf scratch;
} sources;

// Range-delete sets of the sources, and the child that each belongs to.
static int add_sets(sources *s, tm_buf *found, tamis_error *err)
{
    uint32_t child = (uint32_t)(s->count - 1);
    size_t n = found->len / sizeof(const tm_range_set *);
    int st = tm_buf_append(&s->ranges, found->data, found->len);
    for (size_t i = 0; st == TAMIS_OK && i < n; i++) {
        st = tm_buf_append(&s->range_children, &child, sizeof child);
    }
    return st == TAMIS_OK ? st : tm_fail_nomem(err);
}

static int open_memtable(tm_memtable *m, sources *s, tamis_error *err)
{
    TM_TRY(tm_memtable_iter_create(m, &s->children[s->count], err));
    s->count++;
    tm_buf_clear(&s->scratch);
    TM_TRY(tm_memtable_range_sets(m, &s->scratch, err));
    return add_sets(s, &s->scratch, err);
}

static int open_memtables(tamis_iter *it, tm_memtable *overlay, sources *s, tamis_error *err)
{
    if (overlay != NULL) TM_TRY(open_memtable(overlay, s, err));
    for (uint32_t i = 0; i < it->view->mem_count; i++) {
        TM_TRY(open_memtable(it->view->mems[i], s, err));
    }
    return TAMIS_OK;
}

static int open_tables(tamis_iter *it, const tamis_read_options *ro, sources *s, tamis_error *err)
{
    const tm_version *v = it->view->version;
    for (uint32_t l = 0; l < v->levels_used; l++) {
        const tm_level *level = &v->levels[l];
        tm_table_iter_options o = {
            .no_fill = ro->no_cache_fill != 0,
            .cached_only = ro->cached_only != 0,
            .counts = &it->counts[l],
            .readahead_bytes = (size_t)it->db->config.readahead,
        };
        for (uint32_t i = 0; i < level->count; i++) {
            if (l == 0 || i == 0) { // a level from 1 on is one child
                TM_TRY(l == 0
                           ? tm_table_iter_create(level->tables[i], &o, &s->children[s->count], err)
                           : tm_level_iter_create(&v->order, level->tables, level->count, &o,
                                                  &s->children[s->count], err));
                s->count++;
            }
            const tm_range_set *set = NULL;
            if (level->files[i]->meta->range_deletes == 0) continue;
            TM_TRY(tm_table_ranges(level->tables[i], &set, err));
            tm_buf_clear(&s->scratch);
            if (set == NULL) continue;
            if (tm_buf_append(&s->scratch, &set, sizeof set) != 0) return tm_fail_nomem(err);
            TM_TRY(add_sets(s, &s->scratch, err));
        }
    }
    return TAMIS_OK;
}

typedef struct sight { // what of all versions the walk sees
    uint64_t seq;
    tm_memtable *overlay; // NULL: none
    uint64_t overlay_seq;
} sight;

static tm_user_iter_options user_options(const tamis_iter *it, const tamis_read_options *ro,
                                         const sight *see)
{
    return (tm_user_iter_options){
        .order = it->family->order,
        .seq = see->seq,
        .overlay_seq = see->overlay ? see->overlay_seq : 0,
        .now_ms = it->db->vfs->wall_ms(it->db->vfs),
        .merger = &it->family->merger,
        .has_lower = ro->lower.data != NULL,
        .has_upper = ro->upper.data != NULL,
        .lower = tm_slice_of(ro->lower.data, ro->lower.len),
        .upper = tm_slice_of(ro->upper.data, ro->upper.len),
        .has_prefix = ro->prefix.data != NULL,
        .prefix = tm_slice_of(ro->prefix.data, ro->prefix.len),
    };
}

static int open_user_walk(tamis_iter *it, const tamis_read_options *ro, const sight *see,
                          const sources *s, tm_iter *merged, tamis_error *err)
{
    tm_user_iter_options o = user_options(it, ro, see);
    o.ranges = (const tm_range_set *const *)(const void *)s->ranges.data;
    o.range_count = s->ranges.len / sizeof(const tm_range_set *);
    o.range_children = (const uint32_t *)(const void *)s->range_children.data;
    return tm_user_iter_create(merged, &o, &it->user, err);
}

static int open_walk(tamis_iter *it, const tamis_read_options *ro, const sight *see,
                     tamis_error *err)
{
    const tm_version *v = it->view->version;
    tm_family *f = it->family;
    size_t most = 1 + it->view->mem_count + v->levels[0].count + TM_LEVELS;
    sources s = {.children = tm_calloc(most, sizeof *s.children)};
    int st = s.children ? TAMIS_OK : tm_fail_nomem(err);
    if (st == TAMIS_OK) st = open_memtables(it, see->overlay, &s, err);
    if (st == TAMIS_OK) st = open_tables(it, ro, &s, err);
    tm_iter *merged = NULL;
    if (st == TAMIS_OK) {
        st = tm_merge_iter_create(&f->order, s.children, s.count, &merged, err);
        s.count = 0; // taken
    }
    for (size_t i = 0; i < s.count; i++) tm_iter_destroy(s.children[i]);
    tm_free(s.children);
    if (st == TAMIS_OK) st = open_user_walk(it, ro, see, &s, merged, err);
    tm_buf_deinit(&s.ranges);
    tm_buf_deinit(&s.range_children);
    tm_buf_deinit(&s.scratch);
    return st;
}

// ---- Used again --------------------------------------------------------------------------------

// Making an iterator costs as much as a seek. One that is freed while its view is in force is kept
// for the next that is made: it holds the view, but no block. What replaces the view retires it.

static void destroy(tamis_iter *it)
{
    tm_user_iter_destroy(it->user);
    tm_view_unref(it->view);
    tm_buf_deinit(&it->many);
    tm_free(it->counts);
    tm_free(it);
}

static void idle_retired(tm_retired *r)
{
    destroy(TM_CONTAINER(r, tamis_iter, retired));
}

void tm_family_retire_idle(tm_family *f)
{
    for (size_t i = 0; i < TM_IDLE_ITERATORS; i++) {
        tamis_iter *it = atomic_exchange_explicit(&f->idle[i], NULL, memory_order_acq_rel);
        if (it != NULL) tm_epoch_retire(&it->retired, idle_retired);
    }
}

// What the walk was built on is all there is to see: the view is in force, and its memtables have
// no range deletes, which are taken when a walk is built.
static bool is_current(const tamis_iter *it)
{
    const tm_view *v = it->view;
    if (atomic_load_explicit(&it->family->view, memory_order_acquire) != v) return false;
    for (uint32_t i = 0; i < v->mem_count; i++) {
        if (tm_memtable_has_ranges(v->mems[i])) return false;
    }
    return true;
}

static tamis_iter *take_idle(tm_family *f)
{
    for (size_t i = 0; i < TM_IDLE_ITERATORS; i++) {
        if (atomic_load_explicit(&f->idle[i], memory_order_relaxed) == NULL) continue;
        tamis_iter *it = atomic_exchange_explicit(&f->idle[i], NULL, memory_order_acq_rel);
        if (it == NULL) continue;
        if (is_current(it)) return it;
        destroy(it);
    }
    return NULL;
}

static void keep_idle(tamis_iter *it)
{
    tm_family *f = it->family;
    const tm_view *mine = it->view; // once it is kept, somebody else may have it
    tm_user_iter_rest(it->user);
    for (size_t i = 0; i < TM_IDLE_ITERATORS; i++) {
        tamis_iter *none = NULL;
        if (!atomic_compare_exchange_strong_explicit(&f->idle[i], &none, it, memory_order_acq_rel,
                                                     memory_order_relaxed)) {
            continue;
        }
        if (TM_LIKELY(atomic_load_explicit(&f->view, memory_order_acquire) == mine)) return;
        // The view was replaced meanwhile, perhaps before this could be seen to be kept.
        tamis_iter *back = atomic_exchange_explicit(&f->idle[i], NULL, memory_order_acq_rel);
        if (back != NULL) destroy(back);
        return;
    }
    destroy(it);
}

// ---- Life --------------------------------------------------------------------------------------

static int open_anew(tm_family *f, const tamis_read_options *o, tamis_iter **out, tamis_error *err)
{
    struct tamis_db *db = f->db;
    tamis_iter *it = tm_calloc(1, sizeof *it);
    if (it != NULL) it->counts = tm_calloc(TM_LEVELS, sizeof *it->counts);
    if (it == NULL || it->counts == NULL) {
        tm_free(it);
        return tm_fail_nomem(err);
    }
    it->db = db;
    it->family = f;
    it->plain = !o->no_cache_fill && !o->cached_only && o->overlay == NULL;
    it->view = tm_family_pin_view(f); // before the sequence number: see db_get.c
    sight see = {.seq = o->snapshot ? o->snapshot->seq
                                    : atomic_load_explicit(&db->last_seq, memory_order_acquire)};
    int st = TAMIS_OK;
    if (o->overlay != NULL) {
        st = tm_overlay_get(o->overlay, f, &see.overlay, &see.overlay_seq, err);
    }
    if (st == TAMIS_OK) st = open_walk(it, o, &see, err);
    if (st != TAMIS_OK) {
        destroy(it);
        return st;
    }
    *out = it;
    return TAMIS_OK;
}

static int open_again(tamis_iter *it, const tamis_read_options *o, tamis_iter **out,
                      tamis_error *err)
{
    sight see = {.seq = o->snapshot
                            ? o->snapshot->seq
                            : atomic_load_explicit(&it->db->last_seq, memory_order_acquire)};
    tm_user_iter_options u = user_options(it, o, &see);
    int st = tm_user_iter_restart(it->user, &u, err);
    if (st != TAMIS_OK) {
        destroy(it);
        return st;
    }
    *out = it;
    return TAMIS_OK;
}

int tamis_iter_create(tamis_db *db, tamis_cf *cf, const tamis_read_options *ro, tamis_iter **out,
                      tamis_error *err)
{
    tm_family *f;
    tamis_read_options o;
    tamis_iter *it = NULL;
    if (out == NULL) return tm_fail(err, TAMIS_INVALID, "out is NULL");
    *out = NULL;
    TM_TRY(tm_db_check(db, err));
    TM_TRY(tm_db_family(db, cf, &f, err));
    TM_TRY(tm_read_options_check(db, ro, &o, err));
    if (o.prefix.data != NULL && !f->order.bytewise) {
        return tm_fail(err, TAMIS_INVALID, "prefix needs the bytewise order; the store's is \"%s\"",
                       tm_order_name(&f->order));
    }
    if (!o.no_cache_fill && !o.cached_only && o.overlay == NULL) it = take_idle(f);
    TM_TRY(it ? open_again(it, &o, &it, err) : open_anew(f, &o, &it, err));
    tm_db_ref(db);
    tm_family_ref(f);
    atomic_fetch_add_explicit(&db->iterators, 1, memory_order_relaxed);
    tm_stats_add(&f->stats, TM_STAT_iterators, 1);
    *out = it;
    return TAMIS_OK;
}

static void account(tamis_iter *it)
{
    static const tm_read_counts none;
    tm_stats *stats = &it->family->stats;
    for (uint32_t l = 0; l < it->view->version->levels_used; l++) {
        if (memcmp(&it->counts[l], &none, sizeof none) == 0) continue;
        tm_stats_add_reads(stats, l, &it->counts[l]);
        it->counts[l] = none;
    }
    uint64_t hidden = tm_user_iter_skipped(it->user);
    if (hidden > 0) tm_stats_add(stats, TM_STAT_hidden, hidden);
    if (it->seeks > 0) tm_stats_add(stats, TM_STAT_seeks, it->seeks);
    if (it->steps > 0) tm_stats_add(stats, TM_STAT_steps, it->steps);
    it->seeks = it->steps = 0;
}

void tamis_iter_free(tamis_iter *it)
{
    if (it == NULL) return;
    struct tamis_db *db = it->db;
    tm_family *f = it->family;
    account(it);
    it->own_status = TAMIS_OK;
    if (it->plain && is_current(it) && tm_db_check(db, NULL) == TAMIS_OK)
        keep_idle(it);
    else
        destroy(it);
    tm_family_unref(f);
    atomic_fetch_sub_explicit(&db->iterators, 1, memory_order_relaxed);
    if (atomic_load_explicit(&db->clean_due, memory_order_relaxed)) {
        tm_mutex_lock(&db->mu.m); // tables that only this iterator held can go now
        tm_db_schedule(db);
        tm_mutex_unlock(&db->mu.m);
    }
    tm_db_unref(db);
}

int tamis_iter_refresh(tamis_iter *it, const tamis_read_options *ro, tamis_error *err)
{
    tamis_iter *fresh;
    if (it == NULL) return tm_fail(err, TAMIS_INVALID, "it is NULL");
    TM_TRY(tamis_iter_create(it->db, it->family, ro, &fresh, err));
    tamis_iter old = *it;
    *it = *fresh;
    *fresh = old;
    tamis_iter_free(fresh);
    return TAMIS_OK;
}

// False: the iterator answers CLOSED or MISUSE, and is not valid.
static bool may_move(tamis_iter *it)
{
    it->own_status = tm_db_check(it->db, NULL);
    return it->own_status == TAMIS_OK;
}

// ---- Movement ----------------------------------------------------------------------------------

int tamis_iter_valid(const tamis_iter *it)
{
    return it != NULL && it->own_status == TAMIS_OK && tm_user_iter_valid(it->user);
}

void tamis_iter_first(tamis_iter *it)
{
    if (!may_move(it)) return;
    it->seeks++;
    tm_user_iter_first(it->user);
}

void tamis_iter_last(tamis_iter *it)
{
    if (!may_move(it)) return;
    it->seeks++;
    tm_user_iter_last(it->user);
}

// A key that cannot be: the iterator is not valid and says why until it is moved again.
static bool seekable(tamis_iter *it, const void *key, size_t klen)
{
    if (!may_move(it)) return false;
    if (key == NULL && klen > 0) it->own_status = TAMIS_INVALID;
    it->seeks++;
    return it->own_status == TAMIS_OK;
}

void tamis_iter_seek(tamis_iter *it, const void *key, size_t klen)
{
    if (seekable(it, key, klen)) tm_user_iter_seek(it->user, tm_slice_of(key, klen));
}

void tamis_iter_seek_for_prev(tamis_iter *it, const void *key, size_t klen)
{
    if (seekable(it, key, klen)) tm_user_iter_seek_for_prev(it->user, tm_slice_of(key, klen));
}

void tamis_iter_next(tamis_iter *it)
{
    if (!may_move(it) || !tm_user_iter_valid(it->user)) return;
    it->steps++;
    tm_user_iter_next(it->user);
}

void tamis_iter_prev(tamis_iter *it)
{
    if (!may_move(it) || !tm_user_iter_valid(it->user)) return;
    it->steps++;
    tm_user_iter_prev(it->user);
}

const void *tamis_iter_key(const tamis_iter *it, size_t *len)
{
    tm_slice s = {NULL, 0};
    if (tamis_iter_valid(it)) s = tm_user_iter_key(it->user);
    if (len != NULL) *len = s.len;
    return s.data;
}

const void *tamis_iter_value(const tamis_iter *it, size_t *len)
{
    tm_slice s = {NULL, 0};
    if (tamis_iter_valid(it)) s = tm_user_iter_value(it->user);
    if (len != NULL) *len = s.len;
    return s.data;
}

int tamis_iter_status(const tamis_iter *it, tamis_error *err)
{
    if (it == NULL) return tm_fail(err, TAMIS_INVALID, "it is NULL");
    switch (it->own_status) {
    case TAMIS_OK:
        return tm_user_iter_status(it->user, err);
    case TAMIS_NOMEM:
        return tm_fail_nomem(err);
    case TAMIS_INVALID:
        return tm_fail(err, TAMIS_INVALID, "the key to seek is NULL, its length is not 0");
    default:
        return tm_db_check(it->db, err);
    }
}

// ---- Many at once ------------------------------------------------------------------------------

size_t tamis_iter_next_many(tamis_iter *it, size_t n, size_t max_bytes, tamis_slice *keys,
                            tamis_slice *values)
{
    size_t count = 0;
    if (it == NULL || keys == NULL || values == NULL) return 0;
    tm_buf *b = &it->many;
    tm_buf_clear(b);
    while (count < n && tamis_iter_valid(it)) {
        tm_slice k = tm_user_iter_key(it->user), v = tm_user_iter_value(it->user);
        if (count > 0 && max_bytes > 0 && k.len + v.len > max_bytes - TM_MIN(b->len, max_bytes)) {
            break;
        }
        if (tm_buf_reserve(b, k.len + v.len) != TAMIS_OK) {
            if (count == 0) it->own_status = TAMIS_NOMEM; // else the next call meets it again
            break;
        }
        (void)!tm_buf_append(b, k.data, k.len); // room was made
        (void)!tm_buf_append(b, v.data, v.len);
        keys[count].len = k.len;
        values[count++].len = v.len;
        tamis_iter_next(it);
    }
    const uint8_t *p = b->data;
    for (size_t i = 0; i < count; i++) { // the buffer has stopped moving
        keys[i].data = p;
        values[i].data = p + keys[i].len;
        p += keys[i].len + values[i].len;
    }
    return count;
}
