// SPDX-License-Identifier: BSD-2-Clause
//
// db_get.c - the life of a point lookup.
//
// First try: inside an epoch, memory only. No lock, no reference count, no allocation; a hit copies
// or pins the value before it leaves. If a block is not in memory, or the comparator is the user's,
// second try: the view is counted, the epoch left, blocks are pinned and read.
//
// ORDER. The view is loaded first, then the sequence number. Whatever was dropped from the tables
// of that view was hidden already at that number, and what was written later stands in memtables
// that the view does not list: the answer is the state at one moment between call and return.

#include "lsm/overlay.h"
#include "lsm/search.h"

#include "base/mem.h"

typedef struct sink { // where a value goes
    tamis_value *pin; // pinned, or
    void *buf;        // copied
    size_t cap;
    size_t *len;
} sink;

// What a value's pin is, in its lowest bits.
enum { BLOCK = 0, MEMTABLE = 1, MADE = 2, PIN_BITS = 3 };

// ---- Arguments ---------------------------------------------------------------------------------

static int check_key(const void *key, size_t klen, tamis_error *err)
{
    if (TM_UNLIKELY(key == NULL && klen > 0)) {
        return tm_fail(err, TAMIS_INVALID, "key is NULL, its length %zu", klen);
    }
    if (TM_UNLIKELY(klen > TAMIS_MAX_KEY)) {
        return tm_fail(err, TAMIS_TOOLARGE, "the key has %zu bytes; %zu are allowed", klen,
                       TAMIS_MAX_KEY);
    }
    return TAMIS_OK;
}

int tm_read_options_check(struct tamis_db *db, const tamis_read_options *in,
                          tamis_read_options *out, tamis_error *err)
{
    memset(out, 0, sizeof *out);
    if (TM_LIKELY(in == NULL)) return TAMIS_OK;
    if (in->size < sizeof(size_t) || in->size > 4096) {
        return tm_fail(err, TAMIS_INVALID, "read options: size is %zu", in->size);
    }
    memcpy(out, in, TM_MIN(in->size, sizeof *out));
    if (out->snapshot != NULL && out->snapshot->db != db) {
        return tm_fail(err, TAMIS_INVALID, "the snapshot belongs to another store");
    }
    return TAMIS_OK;
}

// ---- The search --------------------------------------------------------------------------------

// Hands the value over while what holds it cannot go away.
static int deliver(tm_search *s, const sink *to)
{
    tm_stats_add(&s->family->stats, TM_STAT_get_bytes, s->value.len);
    if (to->pin != NULL) {
        uintptr_t pin;
        if (TM_UNLIKELY(s->fold != NULL)) {
            void *made = tm_alloc(s->value.len + 1);
            if (made == NULL) return tm_fail_nomem(s->rc.err);
            if (s->value.len > 0) memcpy(made, s->value.data, s->value.len);
            s->value.data = made;
            pin = (uintptr_t)made | MADE;
        } else if (s->mem != NULL) {
            tm_memtable_ref(s->mem);
            pin = (uintptr_t)s->mem | MEMTABLE;
        } else {
            tm_cached_ref(s->block);
            pin = (uintptr_t)s->block;
        }
        tm_db_ref(s->db);
        *to->pin = (tamis_value){s->value.data, s->value.len, (void *)pin, s->db};
        return TAMIS_OK;
    }
    if (to->len == NULL) return TAMIS_OK; // only asked whether it is there
    *to->len = s->value.len;
    if (s->value.len > to->cap) {
        return tm_fail(s->rc.err, TAMIS_TOOLARGE, "the value has %zu bytes, the buffer %zu",
                       s->value.len, to->cap);
    }
    if (s->value.len > 0) memcpy(to->buf, s->value.data, s->value.len);
    return TAMIS_OK;
}

static uint64_t seq_to_see(const struct tamis_db *db, const tamis_read_options *ro)
{
    return ro->snapshot ? ro->snapshot->seq
                        : atomic_load_explicit(&db->last_seq, memory_order_acquire);
}

static void account(tm_search *s, int st)
{
    tm_search_account(s);
    tm_stats_add(&s->family->stats, TM_STAT_gets, 1);
    if (st == TAMIS_OK) tm_stats_add(&s->family->stats, TM_STAT_gets_found, 1);
    if (s->mem != NULL) tm_stats_add(&s->family->stats, TM_STAT_memtable_hits, 1);
}

// In a view that is given (multi-get: counted by the caller), or in the newest.
static int try_in_memory(tm_search *s, const tamis_read_options *ro, const sink *to)
{
    if (!s->family->order.bytewise) return TAMIS_BUSY; // no callback inside an epoch
    tm_epoch_slot *slot = tm_epoch_enter();
    if (TM_UNLIKELY(slot == NULL)) return TAMIS_BUSY;
    bool own_view = s->view == NULL;
    if (own_view) {
        s->view = atomic_load_explicit(&s->family->view, memory_order_acquire);
        s->seq = seq_to_see(s->db, ro);
    }
    s->rc.mode = TM_READ_EPOCH;
    int st = tm_search_run(s);
    int delivered = st == TAMIS_OK ? deliver(s, to) : st;
    if (st != TAMIS_BUSY) account(s, st);
    if (own_view) s->view = NULL;
    tm_epoch_exit(slot);
    return delivered;
}

static int try_with_files(tm_search *s, const tamis_read_options *ro, const sink *to)
{
    tm_view *pinned = NULL;
    if (s->view == NULL) {
        pinned = tm_family_pin_view(s->family);
        s->view = pinned;
        s->seq = seq_to_see(s->db, ro);
    }
    s->rc.mode = ro->cached_only ? TM_READ_CACHED : TM_READ_PINNED;
    int st = tm_search_run(s);
    int delivered = st == TAMIS_OK ? deliver(s, to) : st;
    tm_search_done(s);
    account(s, st);
    tm_stats_add(&s->family->stats, TM_STAT_reads_retried, 1);
    if (pinned != NULL) s->view = NULL;
    tm_view_unref(pinned);
    if (st == TAMIS_BUSY) {
        (void)!tm_fail(s->rc.err, TAMIS_BUSY, "the key's blocks are not in memory");
    }
    return delivered;
}

static int lookup(tm_search *s, const tamis_read_options *ro, const sink *to, tamis_error *err)
{
    tm_buf scratch;
    tm_buf_init(&scratch);
    memset(&s->rc, 0, sizeof s->rc);
    s->rc.no_fill = ro->no_cache_fill != 0;
    s->rc.err = err;
    int st = tm_order_hash(&s->family->order, s->key, s->db->hash_seed, &scratch, &s->hash);
    tm_buf_deinit(&scratch);
    if (TM_UNLIKELY(st != TAMIS_OK)) return tm_fail_nomem(err);
    s->overlay = NULL;
    if (TM_UNLIKELY(ro->overlay != NULL)) {
        TM_TRY(tm_overlay_get(ro->overlay, s->family, &s->overlay, &s->overlay_seq, err));
    }
    st = try_in_memory(s, ro, to);
    return st == TAMIS_BUSY ? try_with_files(s, ro, to) : st;
}

static int get(tamis_db *db, tamis_cf *cf, const tamis_read_options *ro, const void *key,
               size_t klen, const sink *to, tamis_error *err)
{
    tm_search s;
    tamis_read_options o;
    TM_TRY(tm_db_check(db, err));
    TM_TRY(check_key(key, klen, err));
    TM_TRY(tm_read_options_check(db, ro, &o, err));
    s.db = db;
    TM_TRY(tm_db_family(db, cf, &s.family, err));
    s.key = tm_slice_of(key, klen);
    s.view = NULL;
    return lookup(&s, &o, to, err);
}

// ---- Public ------------------------------------------------------------------------------------

int tamis_get(tamis_db *db, tamis_cf *cf, const tamis_read_options *ro, const void *key,
              size_t klen, tamis_value *out, tamis_error *err)
{
    if (out == NULL) return tm_fail(err, TAMIS_INVALID, "out is NULL");
    *out = (tamis_value){NULL, 0, NULL, NULL};
    sink to = {.pin = out};
    return get(db, cf, ro, key, klen, &to, err);
}

int tamis_get_into(tamis_db *db, tamis_cf *cf, const tamis_read_options *ro, const void *key,
                   size_t klen, void *buf, size_t cap, size_t *len, tamis_error *err)
{
    if (len == NULL) return tm_fail(err, TAMIS_INVALID, "len is NULL");
    if (buf == NULL && cap > 0) return tm_fail(err, TAMIS_INVALID, "buf is NULL, cap %zu", cap);
    *len = 0;
    sink to = {.buf = buf, .cap = cap, .len = len};
    return get(db, cf, ro, key, klen, &to, err);
}

int tamis_has(tamis_db *db, tamis_cf *cf, const tamis_read_options *ro, const void *key,
              size_t klen, tamis_error *err)
{
    sink to = {0};
    return get(db, cf, ro, key, klen, &to, err);
}

void tamis_value_release(tamis_value *v)
{
    if (v == NULL || v->owner == NULL) return;
    struct tamis_db *db = v->owner;
    uintptr_t pin = (uintptr_t)v->pin;
    void *held = (void *)(pin & ~(uintptr_t)PIN_BITS);
    switch (pin & PIN_BITS) {
    case MEMTABLE:
        tm_memtable_unref(held);
        break;
    case MADE:
        tm_free(held);
        break;
    default:
        tm_cached_unref(held);
        break;
    }
    *v = (tamis_value){NULL, 0, NULL, NULL};
    tm_db_unref(db);
}

int tamis_multi_get(tamis_db *db, tamis_cf *cf, const tamis_read_options *ro, size_t n,
                    const tamis_slice *keys, tamis_value *values, int *statuses, tamis_error *err)
{
    tm_search s;
    tamis_read_options o;
    TM_TRY(tm_db_check(db, err));
    if (n > 0 && (keys == NULL || values == NULL || statuses == NULL)) {
        return tm_fail(err, TAMIS_INVALID, "keys, values or statuses is NULL");
    }
    for (size_t i = 0; i < n; i++) TM_TRY(check_key(keys[i].data, keys[i].len, err));
    TM_TRY(tm_read_options_check(db, ro, &o, err));
    s.db = db;
    TM_TRY(tm_db_family(db, cf, &s.family, err));
    tm_view *view = tm_family_pin_view(s.family);
    bool failed = false;
    s.view = view;
    s.seq = seq_to_see(db, &o);
    for (size_t i = 0; i < n; i++) {
        values[i] = (tamis_value){NULL, 0, NULL, NULL};
        sink to = {.pin = &values[i]};
        s.key = tm_slice_of(keys[i].data, keys[i].len);
        statuses[i] = lookup(&s, &o, &to, failed ? NULL : err);
        failed = failed || (statuses[i] != TAMIS_OK && statuses[i] != TAMIS_NOTFOUND);
    }
    tm_view_unref(view);
    return TAMIS_OK;
}

// Inside an epoch: NOTFOUND if memory proves the key absent, else OK.
static int ask_filters(tm_search *s)
{
    const tm_version *v = s->view->version;
    uint64_t trailer;
    tm_slice value;
    for (uint32_t i = 0; i < s->view->mem_count; i++) { // an operand or expiry: "may be there"
        if (!tm_memtable_get(s->view->mems[i], s->key, tm_trailer_seek(s->seq), s->hash, &trailer,
                             &value)) {
            continue;
        }
        tm_kind kind = tm_trailer_kind(trailer);
        return kind == TM_KIND_DELETE || kind == TM_KIND_SINGLE_DELETE ? TAMIS_NOTFOUND : TAMIS_OK;
    }
    tm_read_counts counts = {0};
    s->rc.counts = &counts;
    s->rc.mode = TM_READ_EPOCH;
    for (uint32_t l = 0; l < v->levels_used; l++) {
        int64_t found = l > 0 ? tm_version_find(v, l, s->key) : 0;
        uint32_t first = l > 0 ? (uint32_t)TM_MAX(found, (int64_t)0) : 0;
        uint32_t last = l > 0 ? (found < 0 ? 0 : first + 1) : v->levels[0].count;
        for (uint32_t i = first; i < last; i++) {
            tm_probe p;
            tm_table *t = v->levels[l].tables[i];
            if (tm_file_locate(&s->family->order, v->levels[l].files[i]->meta, s->key) != 0)
                continue;
            if (tm_table_get_meta(t)->hash_seed != s->db->hash_seed) return TAMIS_OK;
            if (tm_table_route(t, &s->rc, s->key, tm_trailer_seek(s->seq), s->hash, &p) != 0) {
                return TAMIS_OK; // not in memory
            }
            if (tm_table_probe(&p, &s->rc)) return TAMIS_OK;
        }
    }
    return TAMIS_NOTFOUND;
}

int tamis_may_contain(tamis_db *db, tamis_cf *cf, const void *key, size_t klen, tamis_error *err)
{
    tm_search s = {.db = db};
    tm_buf scratch;
    TM_TRY(tm_db_check(db, err));
    TM_TRY(check_key(key, klen, err));
    TM_TRY(tm_db_family(db, cf, &s.family, err));
    s.key = tm_slice_of(key, klen);
    tm_buf_init(&scratch);
    int st = tm_order_hash(&s.family->order, s.key, db->hash_seed, &scratch, &s.hash);
    tm_buf_deinit(&scratch);
    if (st != TAMIS_OK) return tm_fail_nomem(err);
    // A comparator of the user's cannot route inside an epoch: only memory-free answers are left.
    tm_epoch_slot *slot = s.family->order.bytewise ? tm_epoch_enter() : NULL;
    if (slot == NULL) return TAMIS_OK;
    s.view = atomic_load_explicit(&s.family->view, memory_order_acquire);
    s.seq = atomic_load_explicit(&db->last_seq, memory_order_acquire);
    st = ask_filters(&s);
    tm_epoch_exit(slot);
    return st;
}

// ---- Snapshots ---------------------------------------------------------------------------------

int tamis_snapshot_create(tamis_db *db, tamis_snapshot **out, tamis_error *err)
{
    if (out == NULL) return tm_fail(err, TAMIS_INVALID, "out is NULL");
    *out = NULL;
    TM_TRY(tm_db_check(db, err));
    tamis_snapshot *s = tm_calloc(1, sizeof *s);
    if (s == NULL) return tm_fail_nomem(err);
    s->db = db;
    s->wall_ms = db->vfs->wall_ms(db->vfs);
    tm_db_ref(db);
    tm_snapshots_add(&db->snapshots, s, &db->last_seq);
    *out = s;
    return TAMIS_OK;
}

void tamis_snapshot_release(tamis_snapshot *s)
{
    if (s == NULL) return;
    struct tamis_db *db = s->db;
    tm_snapshots_remove(&db->snapshots, s);
    tm_free(s);
    tm_db_unref(db);
}

uint64_t tamis_snapshot_seq(const tamis_snapshot *s)
{
    return s ? s->seq : 0;
}
