// SPDX-License-Identifier: BSD-2-Clause
//
// model.c - a store against a simple model: random operations, every answer compared.
//
// The store lives in memory, has tiny buffers, blocks and tables, and no threads: background work
// is stepped by the seed, so that a run replays from its number alone. Three families (one with an
// order of its own, two with mergers), values that expire, reopening, flushes, compactions,
// snapshots, long-lived iterators, reads through batches, and a family that comes and goes are
// mixed.
//
//   model_model [--seed N] [--seeds N] [--ops N]

#include "tests/support/store_model.h"

#include <stdarg.h>

enum { SNAPSHOTS = 4, ITERATORS = 4, MOST_OPS = 60, TRACE = 24 };

typedef struct walker { // an iterator, and where the model says it stands
    tamis_iter *it;
    size_t family;
    uint64_t seq, now_ms;
    long at;          // index of a key; -1 or beyond: not valid
    size_t low, high; // bounds as indexes
} walker;

typedef struct run {
    uint64_t seed;
    tm_random r;
    model m;
    tamis_vfs *vfs;
    tamis_db *db;
    tamis_cf *cf[MODEL_FAMILIES];
    tamis_options o;
    char extra[400];
    tamis_batch batch; // of whatever handle is open
    tamis_snapshot *snapshots[SNAPSHOTS];
    walker walkers[ITERATORS];
    char trace[TRACE][120];
    uint64_t op;
} run;

static void note(run *x, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(x->trace[x->op % TRACE], sizeof x->trace[0], fmt, args);
    va_end(args);
}

static void fail(run *x, const char *what, const tamis_error *e)
{
    printf("model: seed %llu, operation %llu: %s%s%s\n", (unsigned long long)x->seed,
           (unsigned long long)x->op, what, e ? ": " : "", e ? e->message : "");
    for (uint64_t i = x->op < TRACE ? 0 : x->op - TRACE + 1; i <= x->op; i++) {
        printf("  %llu %s\n", (unsigned long long)i, x->trace[i % TRACE]);
    }
    printf("  options: %s\nreplay: model_model --seeds 1 --seed %llu\n", x->extra,
           (unsigned long long)x->seed);
    exit(1);
}

static void must(run *x, int st, const tamis_error *e, const char *what)
{
    if (st != TAMIS_OK) fail(x, what, e);
}

static uint64_t below(run *x, uint64_t n)
{
    return tm_random_below(&x->r, n);
}

// ---- The store ---------------------------------------------------------------------------------

static void open_store(run *x)
{
    tamis_error e;
    must(x, tamis_open("store", &x->o, &x->db, &e), &e, "open");
    must(x, model_open_families(x->db, x->cf, 1, &e), &e, "families");
}

static void choose_options(run *x)
{
    static const char *const filters[] = {"none", "bloom", "blocked"};
    static const int blocks[] = {256, 700, 4096};
    x->o = tamis_options_init();
    x->o.vfs = x->vfs;
    x->o.flags = TAMIS_OPEN_NO_BACKGROUND;
    x->o.sync = TAMIS_SYNC_NEVER;
    x->o.memory_budget = 64u << (10 + below(x, 6));
    snprintf(x->extra, sizeof x->extra,
             "filter=%s; filter_bits=%d; block_size=%d; partition_size=1KiB; index_partition=1KiB; "
             "table_size=%dKiB; write_buffer=%dKiB; level0_compact=%d; level0_slowdown=8; "
             "level0_stop=12; level_base=%dKiB; level_ratio=%d; compression=%s; "
             "verify_filters=true; readahead=4KiB; max_open_files=8; seed=%llu; subcompactions=%d",
             filters[below(x, 3)], (int)(2 + below(x, 14)), blocks[below(x, 3)],
             (int)(4 + below(x, 30)), (int)(4 + below(x, 60)), (int)(1 + below(x, 4)),
             (int)(8 + below(x, 60)), (int)(2 + below(x, 8)), below(x, 3) ? "lz4" : "none",
             (unsigned long long)x->seed + 1, (int)(1 + below(x, 3)));
    x->o.extra = x->extra;
    model_use_families(&x->o);
}

static void drop_children(run *x)
{
    for (int i = 0; i < SNAPSHOTS; i++) {
        tamis_snapshot_release(x->snapshots[i]);
        x->snapshots[i] = NULL;
    }
    for (int i = 0; i < ITERATORS; i++) {
        tamis_iter_free(x->walkers[i].it);
        x->walkers[i].it = NULL;
    }
}

static void reopen(run *x)
{
    tamis_error e;
    note(x, "reopen");
    drop_children(x);
    model_close_families(x->cf);
    must(x, tamis_close(x->db, below(x, 2) ? TAMIS_CLOSE_FLUSH : 0, &e), &e, "close");
    if (below(x, 4) == 0) { // also as a reader sees it, with the log in memory
        tamis_options o = x->o;
        o.flags = TAMIS_OPEN_READONLY;
        o.memory_budget = 64u << 20;
        tamis_db *db = NULL;
        must(x, tamis_open("store", &o, &db, &e), &e, "read-only open");
        must(x, model_open_families(db, x->cf, 0, &e), &e, "read-only families");
        for (size_t f = 0; f < MODEL_FAMILIES; f++) {
            for (size_t k = 0; k < MODEL_KEYS; k++) {
                uint64_t expected = model_at(&x->m, f, k, UINT64_MAX);
                tm_slice key = model_key_slice(&x->m, k);
                int st = tamis_has(db, x->cf[f], NULL, key.data, key.len, &e);
                if (st != (expected ? TAMIS_OK : TAMIS_NOTFOUND)) fail(x, "read-only has", &e);
            }
        }
        model_close_families(x->cf);
        must(x, tamis_close(db, 0, &e), &e, "read-only close");
    }
    open_store(x);
}

// ---- Writes ------------------------------------------------------------------------------------

static void write_some(run *x)
{
    model_op ops[MOST_OPS];
    tamis_error e;
    uint64_t seq = 0;
    size_t n = model_random_batch(&x->m, &x->r, MODEL_FAMILIES, below(x, 12) ? 3 : MOST_OPS, ops,
                                  &x->batch);
    static const char *const kinds[] = {"put", "delete", "merge", "range"};
    note(x, "write %zu, first %s key %zu of family %zu", n, kinds[ops[0].kind], ops[0].key,
         ops[0].family);
    x->batch.db = x->db;
    must(x, tamis_commit(x->db, NULL, &x->batch, &seq, &e), &e, "commit");
    if (seq != x->m.last_seq + n) fail(x, "commit gave an unexpected sequence number", NULL);
    model_apply(&x->m, ops, n, seq);
}

// ---- Reads -------------------------------------------------------------------------------------

static const tamis_snapshot *pick_view(run *x, tamis_read_options *ro, uint64_t *seq)
{
    const tamis_snapshot *s = x->snapshots[below(x, SNAPSHOTS)];
    *ro = (tamis_read_options){
        .size = sizeof *ro, .snapshot = s, .no_cache_fill = (uint32_t)below(x, 2)};
    *seq = s ? tamis_snapshot_seq(s) : x->m.last_seq;
    return s;
}

static void check_answer(run *x, int st, size_t f, uint64_t expected, const void *data, size_t len,
                         const tamis_error *e)
{
    if (st != TAMIS_OK && st != TAMIS_NOTFOUND) fail(x, "get", e);
    if ((st == TAMIS_OK) != (expected != 0)) {
        fail(x, expected ? "a key is missing" : "a key came back", NULL);
    }
    if (st == TAMIS_OK && !model_value_is(f, expected, data, len)) fail(x, "a wrong value", NULL);
}

static void read_one(run *x)
{
    static uint8_t buf[MODEL_MAX_VALUE];
    tamis_read_options ro;
    tamis_error e;
    uint64_t seq;
    size_t k = (size_t)below(x, MODEL_KEYS), f = (size_t)below(x, MODEL_FAMILIES), len = 0;
    tamis_cf *cf = x->cf[f];
    pick_view(x, &ro, &seq);
    tm_slice key = model_key_slice(&x->m, k);
    uint64_t expected = model_at(&x->m, f, k, seq);
    note(x, "read key %zu of family %zu at %llu", k, f, (unsigned long long)seq);
    switch (below(x, 4)) {
    case 0: {
        tamis_value v;
        int st = tamis_get(x->db, cf, &ro, key.data, key.len, &v, &e);
        check_answer(x, st, f, expected, v.data, v.len, &e);
        tamis_value_release(&v);
        break;
    }
    case 1: {
        int st = tamis_get_into(x->db, cf, &ro, key.data, key.len, buf, sizeof buf, &len, &e);
        check_answer(x, st, f, expected, buf, len, &e);
        break;
    }
    case 2: {
        int st = tamis_has(x->db, cf, &ro, key.data, key.len, &e);
        if (st != (expected ? TAMIS_OK : TAMIS_NOTFOUND)) fail(x, "has", &e);
        break;
    }
    default:
        if (tamis_may_contain(x->db, cf, key.data, key.len, &e) == TAMIS_NOTFOUND &&
            model_at(&x->m, f, k, x->m.last_seq) != 0) {
            fail(x, "may_contain says no to a key that is there", NULL);
        }
        break;
    }
}

static void read_many(run *x)
{
    enum { MANY = 20 };
    tamis_slice keys[MANY];
    tamis_value values[MANY];
    int statuses[MANY];
    size_t which[MANY];
    tamis_read_options ro;
    tamis_error e;
    uint64_t seq;
    size_t f = (size_t)below(x, MODEL_FAMILIES);
    pick_view(x, &ro, &seq);
    note(x, "multi_get of family %zu at %llu", f, (unsigned long long)seq);
    for (size_t i = 0; i < MANY; i++) {
        which[i] = (size_t)below(x, MODEL_KEYS);
        tm_slice key = model_key_slice(&x->m, which[i]);
        keys[i] = (tamis_slice){key.data, key.len};
    }
    must(x, tamis_multi_get(x->db, x->cf[f], &ro, MANY, keys, values, statuses, &e), &e,
         "multi_get");
    for (size_t i = 0; i < MANY; i++) {
        check_answer(x, statuses[i], f, model_at(&x->m, f, which[i], seq), values[i].data,
                     values[i].len, &e);
        tamis_value_release(&values[i]);
    }
}

static void change_snapshot(run *x)
{
    tamis_snapshot **s = &x->snapshots[below(x, SNAPSHOTS)];
    tamis_error e;
    note(x, *s ? "release a snapshot" : "take a snapshot");
    if (*s != NULL) {
        tamis_snapshot_release(*s);
        *s = NULL;
        return;
    }
    must(x, tamis_snapshot_create(x->db, s, &e), &e, "snapshot");
    if (tamis_snapshot_seq(*s) != x->m.last_seq) fail(x, "a snapshot of another moment", NULL);
}

// ---- Iterators ---------------------------------------------------------------------------------

// An iterator keeps the time at which it was made.
static uint64_t seen_by(const run *x, const walker *w, size_t key)
{
    model_fixed_ms = w->now_ms;
    uint64_t value = model_at(&x->m, w->family, key, w->seq);
    model_fixed_ms = 0;
    return value;
}

static long step(const run *x, const walker *w, long from, int direction)
{
    for (long i = from; i >= (long)w->low && i < (long)w->high; i += direction) {
        if (seen_by(x, w, (size_t)i) != 0) return i;
    }
    return -1;
}

static void check_walker(run *x, const walker *w)
{
    tamis_error e;
    bool valid = tamis_iter_valid(w->it);
    must(x, tamis_iter_status(w->it, &e), &e, "iterator");
    if (valid != (w->at >= 0)) fail(x, valid ? "an iterator goes on" : "an iterator ended", NULL);
    if (!valid) return;
    size_t klen, vlen;
    const void *key = tamis_iter_key(w->it, &klen), *value = tamis_iter_value(w->it, &vlen);
    if (!tm_slice_equal(tm_slice_of(key, klen), model_key_slice(&x->m, (size_t)w->at))) {
        fail(x, "an iterator stands at another key", NULL);
    }
    if (!model_value_is(w->family, seen_by(x, w, (size_t)w->at), value, vlen)) {
        fail(x, "an iterator has a wrong value", NULL);
    }
}

static void new_walker(run *x, walker *w)
{
    tamis_read_options ro;
    tamis_error e;
    tamis_iter *old = w->it;
    bool refresh = old != NULL && below(x, 2);
    pick_view(x, &ro, &w->seq);
    if (!refresh) w->family = (size_t)below(x, MODEL_FAMILIES);
    w->low = 0;
    w->high = MODEL_KEYS;
    tm_slice low, high;
    if (below(x, 3) == 0) {
        w->low = (size_t)below(x, MODEL_KEYS);
        low = model_key_slice(&x->m, w->low);
        ro.lower = (tamis_slice){low.len ? (const void *)low.data : "", low.len};
    }
    if (below(x, 3) == 0) {
        w->high = (size_t)below(x, MODEL_KEYS);
        high = model_key_slice(&x->m, w->high);
        ro.upper = (tamis_slice){high.len ? (const void *)high.data : "", high.len};
    }
    if (w->family != 2 && below(x, 5) == 0) { // a prefix is a range, too
        ro.prefix = (tamis_slice){"key0", 4};
        while (w->low < MODEL_KEYS &&
               tm_slice_compare(model_key_slice(&x->m, w->low), tm_slice_str("key0")) < 0) {
            w->low++;
        }
        size_t end = w->low;
        while (end < MODEL_KEYS &&
               tm_slice_starts_with(model_key_slice(&x->m, end), tm_slice_str("key0"))) {
            end++;
        }
        if (end < w->high) w->high = end;
    }
    w->at = -1;
    note(x, "iterator at %llu in [%zu, %zu)", (unsigned long long)w->seq, w->low, w->high);
    w->now_ms = model_now();
    if (refresh) {
        must(x, tamis_iter_refresh(old, &ro, &e), &e, "refresh");
        return;
    }
    tamis_iter_free(old);
    must(x, tamis_iter_create(x->db, x->cf[w->family], &ro, &w->it, &e), &e, "iterator");
}

// The entries from here on in one call; then it stands behind them.
static void walk_many(run *x, walker *w)
{
    enum { MANY = 9 };
    tamis_slice keys[MANY], values[MANY];
    size_t limit = below(x, 2) ? (size_t)below(x, 500) : 0;
    size_t n = tamis_iter_next_many(w->it, (size_t)below(x, MANY), limit, keys, values);
    for (size_t i = 0; i < n; i++) {
        if (w->at < 0) fail(x, "next_many goes on", NULL);
        tm_slice key = model_key_slice(&x->m, (size_t)w->at);
        if (!tm_slice_equal(tm_slice_of(keys[i].data, keys[i].len), key) ||
            !model_value_is(w->family, seen_by(x, w, (size_t)w->at), values[i].data,
                            values[i].len)) {
            fail(x, "next_many has another entry", NULL);
        }
        w->at = step(x, w, w->at + 1, 1);
    }
}

static void walk(run *x)
{
    walker *w = &x->walkers[below(x, ITERATORS)];
    if (w->it == NULL || below(x, 20) == 0) new_walker(x, w);
    for (uint64_t moves = 1 + below(x, 6); moves > 0; moves--) {
        size_t k = (size_t)below(x, MODEL_KEYS);
        tm_slice key = model_key_slice(&x->m, k);
        uint64_t dice = below(x, 8);
        if (dice == 0) {
            tamis_iter_first(w->it);
            w->at = step(x, w, (long)w->low, 1);
        } else if (dice == 1) {
            tamis_iter_last(w->it);
            w->at = step(x, w, (long)w->high - 1, -1);
        } else if (dice == 2) {
            tamis_iter_seek(w->it, key.data, key.len);
            w->at = step(x, w, (long)TM_MAX(k, w->low), 1);
        } else if (dice == 3) {
            tamis_iter_seek_for_prev(w->it, key.data, key.len);
            w->at = step(x, w, TM_MIN((long)k, (long)w->high - 1), -1);
        } else if (dice == 4 && w->at >= 0) {
            walk_many(x, w);
        } else if (w->at >= 0) {
            if (dice < 6)
                tamis_iter_next(w->it);
            else
                tamis_iter_prev(w->it);
            w->at = step(x, w, w->at + (dice < 6 ? 1 : -1), dice < 6 ? 1 : -1);
        }
        note(x, "walk: move %d, key %zu: family %zu, at %ld of [%zu, %zu), seq %llu", (int)dice, k,
             w->family, w->at, w->low, w->high, (unsigned long long)w->seq);
        check_walker(x, w);
    }
}

// ---- Upkeep ------------------------------------------------------------------------------------

static void upkeep(run *x)
{
    tamis_error e;
    uint64_t dice = below(x, 22);
    tamis_cf *cf = x->cf[below(x, MODEL_FAMILIES)];
    if (dice >= 20) {
        uint64_t ms = below(x, 2000);
        note(x, "%llu ms pass", (unsigned long long)ms);
        tamis_vfs_memory_advance_ms(x->vfs, ms);
    } else if (dice < 12) {
        uint32_t did;
        note(x, "step");
        must(x, tamis_step(x->db, &did, &e), &e, "step");
    } else if (dice < 16) {
        note(x, "flush");
        must(x, tamis_flush(x->db, cf, &e), &e, "flush");
    } else if (dice < 18) {
        tm_slice a = model_key_slice(&x->m, (size_t)below(x, MODEL_KEYS));
        tm_slice b = model_key_slice(&x->m, (size_t)below(x, MODEL_KEYS));
        tamis_range range = {{a.data, a.len}, {b.data, b.len}};
        note(x, "compact a range");
        must(x, tamis_compact(x->db, cf, &range, &e), &e, "compact");
    } else if (dice == 18) {
        note(x, "compact all");
        must(x, tamis_compact(x->db, cf, NULL, &e), &e, "compact");
    } else {
        tamis_report report = {.size = sizeof report};
        note(x, "verify");
        must(x, tamis_verify(x->db, NULL, NULL, NULL, &report, &e), &e, "verify");
    }
}

static void check_family(run *x, size_t f)
{
    walker w = {.family = f, .now_ms = model_now()};
    tamis_error e;
    w.seq = x->m.last_seq;
    w.high = MODEL_KEYS;
    note(x, "check everything");
    must(x, tamis_iter_create(x->db, x->cf[f], NULL, &w.it, &e), &e, "iterator");
    tamis_iter_first(w.it);
    for (w.at = step(x, &w, 0, 1); w.at >= 0; w.at = step(x, &w, w.at + 1, 1)) {
        check_walker(x, &w);
        tamis_iter_next(w.it);
    }
    check_walker(x, &w);
    tamis_iter_free(w.it);
}

static void check_all(run *x)
{
    for (size_t f = 0; f < MODEL_FAMILIES; f++) check_family(x, f);
}

// ---- Reads through a batch ---------------------------------------------------------------------

// What a family is with the first n operations on top of the state at seq, read both ways.
static void walk_through(run *x, const tamis_read_options *ro, size_t f, uint64_t seq,
                         const model_op *ops, size_t n)
{
    static model top;
    static uint8_t buf[MODEL_MAX_VALUE];
    tamis_error e;
    memset(&top, 0, sizeof top);
    memcpy(top.keys, x->m.keys, sizeof top.keys);
    for (size_t k = 0; k < MODEL_KEYS; k++) {
        const model_history *h = &x->m.history[f][k];
        for (size_t v = 0; v < h->count; v++) {
            if (h->versions[v].seq <= seq) model_add(&top, f, k, h->versions[v]);
        }
    }
    model_apply(&top, ops, n, UINT64_MAX - 1);
    tamis_iter *it;
    must(x, tamis_iter_create(x->db, x->cf[f], ro, &it, &e), &e, "iterator over a batch");
    for (int back = 0; back < 2; back++) {
        if (back)
            tamis_iter_last(it);
        else
            tamis_iter_first(it);
        for (size_t i = 0; i < MODEL_KEYS; i++) {
            size_t k = back ? MODEL_KEYS - 1 - i : i, klen, vlen;
            uint64_t expected = model_at(&top, f, k, UINT64_MAX);
            if (expected == 0) continue;
            const void *key = tamis_iter_key(it, &klen), *value = tamis_iter_value(it, &vlen);
            if (!tamis_iter_valid(it) ||
                !tm_slice_equal(tm_slice_of(key, klen), model_key_slice(&top, k)) ||
                !model_value_is(f, expected, value, vlen)) {
                must(x, tamis_iter_status(it, &e), &e, "iterator over a batch");
                fail(x, "an iterator over a batch stands elsewhere", NULL);
            }
            if (back)
                tamis_iter_prev(it);
            else
                tamis_iter_next(it);
        }
        if (tamis_iter_valid(it)) fail(x, "an iterator over a batch goes on", NULL);
    }
    tamis_iter_free(it);
    for (size_t i = 0; i < 8; i++) {
        size_t k = (size_t)below(x, MODEL_KEYS), len = 0;
        tm_slice key = model_key_slice(&top, k);
        int st = tamis_get_into(x->db, x->cf[f], ro, key.data, key.len, buf, sizeof buf, &len, &e);
        check_answer(x, st, f, model_at(&top, f, k, UINT64_MAX), buf, len, &e);
    }
    model_free(&top);
}

// A batch is read through, rolled back to a savepoint, read through again, packed and unpacked.
static void read_through(run *x)
{
    model_op ops[MOST_OPS];
    tamis_read_options ro;
    tamis_error e;
    uint64_t seq;
    pick_view(x, &ro, &seq);
    tamis_batch *b = tamis_batch_create(x->db, TAMIS_BATCH_INDEXED);
    size_t n = 1 + (size_t)below(x, 20), kept = (size_t)below(x, n);
    note(x, "read through a batch of %zu, then of %zu, at %llu", n, kept, (unsigned long long)seq);
    ro.overlay = b;
    for (size_t i = 0; i < n; i++) {
        if (i == kept) must(x, tamis_batch_savepoint(b), NULL, "savepoint");
        ops[i] = model_random_op(&x->r, MODEL_FAMILIES);
        must(x, model_batch_add(b, &x->m, &ops[i]), &b->error, "batch");
        if (below(x, 6) == 0)
            walk_through(x, &ro, (size_t)below(x, MODEL_FAMILIES), seq, ops, i + 1);
    }
    must(x, tamis_batch_rollback(b), NULL, "rollback");
    if (tamis_batch_count(b) != kept) fail(x, "a rollback went elsewhere", NULL);
    walk_through(x, &ro, (size_t)below(x, MODEL_FAMILIES), seq, ops, kept);
    tamis_slice packed;
    must(x, tamis_batch_data(b, &packed, &e), &e, "batch data");
    tamis_batch *copy = tamis_batch_create(x->db, 0);
    must(x, tamis_batch_load(copy, packed.data, packed.len, &e), &e, "batch load");
    if (kept > 0) {
        must(x, tamis_commit(x->db, NULL, copy, &seq, &e), &e, "commit");
        model_apply(&x->m, ops, kept, seq);
    }
    tamis_batch_free(copy);
    tamis_batch_free(b);
}

// ---- A family that comes and goes --------------------------------------------------------------

static void change_guest(run *x)
{
    tamis_cf *cf;
    tamis_error e;
    size_t len;
    char buf[8];
    note(x, "a guest family");
    must(x, tamis_cf_open(x->db, "guest", NULL, 1, &cf, &e), &e, "guest");
    int st = tamis_get_into(x->db, cf, NULL, "k", 1, buf, sizeof buf, &len, &e);
    if (st != TAMIS_OK && st != TAMIS_NOTFOUND) fail(x, "guest", &e);
    must(x, tamis_put(x->db, cf, NULL, "k", 1, "v", 1, &e), &e, "put to a guest");
    x->m.last_seq++;
    tamis_iter *it;
    must(x, tamis_iter_create(x->db, cf, NULL, &it, &e), &e, "guest");
    if (below(x, 2)) must(x, tamis_flush(x->db, cf, &e), &e, "flush a guest");
    if (below(x, 2)) {
        must(x, tamis_cf_drop(x->db, "guest", &e), &e, "drop");
        if (tamis_put(x->db, cf, NULL, "k", 1, "v", 1, &e) != TAMIS_NOTFOUND) {
            fail(x, "a dropped family takes writes", NULL);
        }
    }
    tamis_iter_first(it); // what it sees is there still
    if (!tamis_iter_valid(it)) fail(x, "a guest's iterator", NULL);
    tamis_iter_free(it);
    tamis_cf_close(cf);
}

static void one_run(uint64_t seed, uint64_t ops)
{
    static run x;
    tamis_error e;
    memset(&x, 0, sizeof x);
    x.seed = seed;
    x.r = tm_random_seed(seed * 0x9e3779b97f4a7c15u + 1);
    must(&x, tamis_vfs_memory(&x.vfs, &e), &e, "vfs");
    model_clock = x.vfs;
    model_make_keys(&x.m, &x.r);
    choose_options(&x);
    tm_batch_init(&x.batch);
    open_store(&x);
    for (x.op = 0; x.op < ops; x.op++) {
        uint64_t dice = below(&x, 1000);
        model_avoid_tick();
        if (dice < 450)
            write_some(&x);
        else if (dice < 650)
            read_one(&x);
        else if (dice < 680)
            read_many(&x);
        else if (dice < 880)
            walk(&x);
        else if (dice < 930)
            change_snapshot(&x);
        else if (dice < 985)
            upkeep(&x);
        else if (dice < 993)
            read_through(&x);
        else if (dice < 995)
            change_guest(&x);
        else if (below(&x, 2))
            check_all(&x);
        else
            reopen(&x);
    }
    check_all(&x);
    drop_children(&x);
    model_close_families(x.cf);
    must(&x, tamis_close(x.db, 0, &e), &e, "close");
    tamis_vfs_free(x.vfs);
    tm_batch_deinit(&x.batch);
    model_free(&x.m);
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, seeds = 40, ops = 4000;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--seed"))
            seed = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--seeds"))
            seeds = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--ops"))
            ops = strtoull(argv[i + 1], NULL, 10);
        else
            return fprintf(stderr, "model: unknown option %s\n", argv[i]), 2;
    }
    for (uint64_t s = 0; s < seeds; s++) one_run(seed + s, ops);
    printf("model: %llu operations over %llu seeds from %llu: all as the model says\n",
           (unsigned long long)(seeds * ops), (unsigned long long)seeds, (unsigned long long)seed);
    return 0;
}
