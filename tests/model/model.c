// SPDX-License-Identifier: BSD-2-Clause
//
// model.c - a store against a simple model: random operations, every answer compared.
//
// The store lives in memory, has tiny buffers, blocks and tables, and no threads: background work
// is stepped by the seed, so that a run replays from its number alone. Reopening, flushes,
// compactions, snapshots and long-lived iterators come in between.
//
//   model_model [--seed N] [--seeds N] [--ops N]

#include "tests/support/store_model.h"

#include <stdarg.h>

enum { SNAPSHOTS = 4, ITERATORS = 4, MOST_OPS = 60, TRACE = 24 };

typedef struct walker { // an iterator, and where the model says it stands
    tamis_iter *it;
    uint64_t seq;
    long at;          // index of a key; -1 or beyond: not valid
    size_t low, high; // bounds as indexes
} walker;

typedef struct run {
    uint64_t seed;
    tm_random r;
    model m;
    tamis_vfs *vfs;
    tamis_db *db;
    tamis_options o;
    char extra[400];
    tamis_batch *batch;
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
    must(x, tamis_close(x->db, below(x, 2) ? TAMIS_CLOSE_FLUSH : 0, &e), &e, "close");
    if (below(x, 4) == 0) { // also as a reader sees it, with the log in memory
        tamis_options o = x->o;
        o.flags = TAMIS_OPEN_READONLY;
        o.memory_budget = 64u << 20;
        tamis_db *db = NULL;
        must(x, tamis_open("store", &o, &db, &e), &e, "read-only open");
        for (size_t k = 0; k < MODEL_KEYS; k++) {
            uint64_t expected = model_at(&x->m, k, UINT64_MAX);
            tm_slice key = model_key_slice(&x->m, k);
            int st = tamis_has(db, NULL, NULL, key.data, key.len, &e);
            if (st != (expected ? TAMIS_OK : TAMIS_NOTFOUND)) fail(x, "read-only has", &e);
        }
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
    size_t n = model_random_batch(&x->m, &x->r, below(x, 12) ? 3 : MOST_OPS, ops, x->batch);
    note(x, "write %zu, first key %zu %s", n, ops[0].key,
         ops[0].range   ? "range"
         : ops[0].value ? "put"
                        : "delete");
    must(x, tamis_commit(x->db, NULL, x->batch, &seq, &e), &e, "commit");
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

static void check_answer(run *x, int st, uint64_t expected, const void *data, size_t len,
                         const tamis_error *e)
{
    if (st != TAMIS_OK && st != TAMIS_NOTFOUND) fail(x, "get", e);
    if ((st == TAMIS_OK) != (expected != 0)) {
        fail(x, expected ? "a key is missing" : "a key came back", NULL);
    }
    if (st == TAMIS_OK && !model_value_is(expected, data, len)) fail(x, "a wrong value", NULL);
}

static void read_one(run *x)
{
    static uint8_t buf[MODEL_MAX_VALUE];
    tamis_read_options ro;
    tamis_error e;
    uint64_t seq;
    size_t k = (size_t)below(x, MODEL_KEYS), len = 0;
    pick_view(x, &ro, &seq);
    tm_slice key = model_key_slice(&x->m, k);
    uint64_t expected = model_at(&x->m, k, seq);
    note(x, "read key %zu at %llu", k, (unsigned long long)seq);
    switch (below(x, 4)) {
    case 0: {
        tamis_value v;
        int st = tamis_get(x->db, NULL, &ro, key.data, key.len, &v, &e);
        check_answer(x, st, expected, v.data, v.len, &e);
        tamis_value_release(&v);
        break;
    }
    case 1: {
        int st = tamis_get_into(x->db, NULL, &ro, key.data, key.len, buf, sizeof buf, &len, &e);
        check_answer(x, st, expected, buf, len, &e);
        break;
    }
    case 2: {
        int st = tamis_has(x->db, NULL, &ro, key.data, key.len, &e);
        if (st != (expected ? TAMIS_OK : TAMIS_NOTFOUND)) fail(x, "has", &e);
        break;
    }
    default:
        if (tamis_may_contain(x->db, NULL, key.data, key.len, &e) == TAMIS_NOTFOUND &&
            model_at(&x->m, k, x->m.last_seq) != 0) {
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
    pick_view(x, &ro, &seq);
    note(x, "multi_get at %llu", (unsigned long long)seq);
    for (size_t i = 0; i < MANY; i++) {
        which[i] = (size_t)below(x, MODEL_KEYS);
        tm_slice key = model_key_slice(&x->m, which[i]);
        keys[i] = (tamis_slice){key.data, key.len};
    }
    must(x, tamis_multi_get(x->db, NULL, &ro, MANY, keys, values, statuses, &e), &e, "multi_get");
    for (size_t i = 0; i < MANY; i++) {
        check_answer(x, statuses[i], model_at(&x->m, which[i], seq), values[i].data, values[i].len,
                     &e);
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

static long step(const run *x, const walker *w, long from, int direction)
{
    for (long i = from; i >= (long)w->low && i < (long)w->high; i += direction) {
        if (model_at(&x->m, (size_t)i, w->seq) != 0) return i;
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
    if (!model_value_is(model_at(&x->m, (size_t)w->at, w->seq), value, vlen)) {
        fail(x, "an iterator has a wrong value", NULL);
    }
}

static void new_walker(run *x, walker *w)
{
    tamis_read_options ro;
    tamis_error e;
    tamis_iter_free(w->it);
    pick_view(x, &ro, &w->seq);
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
    if (below(x, 5) == 0) { // a prefix is a range, too
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
    must(x, tamis_iter_create(x->db, NULL, &ro, &w->it, &e), &e, "iterator");
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
        } else if (w->at >= 0) {
            if (dice < 6)
                tamis_iter_next(w->it);
            else
                tamis_iter_prev(w->it);
            w->at = step(x, w, w->at + (dice < 6 ? 1 : -1), dice < 6 ? 1 : -1);
        }
        note(x, "walk: move %d, key %zu: at %ld of [%zu, %zu), seq %llu", (int)dice, k, w->at,
             w->low, w->high, (unsigned long long)w->seq);
        check_walker(x, w);
    }
}

// ---- Upkeep ------------------------------------------------------------------------------------

static void upkeep(run *x)
{
    tamis_error e;
    uint64_t dice = below(x, 20);
    if (dice < 12) {
        uint32_t did;
        note(x, "step");
        must(x, tamis_step(x->db, &did, &e), &e, "step");
    } else if (dice < 16) {
        note(x, "flush");
        must(x, tamis_flush(x->db, NULL, &e), &e, "flush");
    } else if (dice < 18) {
        tm_slice a = model_key_slice(&x->m, (size_t)below(x, MODEL_KEYS));
        tm_slice b = model_key_slice(&x->m, (size_t)below(x, MODEL_KEYS));
        tamis_range range = {{a.data, a.len}, {b.data, b.len}};
        note(x, "compact a range");
        must(x, tamis_compact(x->db, NULL, &range, &e), &e, "compact");
    } else if (dice == 18) {
        note(x, "compact all");
        must(x, tamis_compact(x->db, NULL, NULL, &e), &e, "compact");
    } else {
        tamis_report report = {.size = sizeof report};
        note(x, "verify");
        must(x, tamis_verify(x->db, NULL, NULL, NULL, &report, &e), &e, "verify");
    }
}

static void check_all(run *x)
{
    walker w = {0};
    tamis_error e;
    w.seq = x->m.last_seq;
    w.high = MODEL_KEYS;
    note(x, "check everything");
    must(x, tamis_iter_create(x->db, NULL, NULL, &w.it, &e), &e, "iterator");
    tamis_iter_first(w.it);
    for (w.at = step(x, &w, 0, 1); w.at >= 0; w.at = step(x, &w, w.at + 1, 1)) {
        check_walker(x, &w);
        tamis_iter_next(w.it);
    }
    check_walker(x, &w);
    tamis_iter_free(w.it);
}

static void one_run(uint64_t seed, uint64_t ops)
{
    static run x;
    tamis_error e;
    memset(&x, 0, sizeof x);
    x.seed = seed;
    x.r = tm_random_seed(seed * 0x9e3779b97f4a7c15u + 1);
    must(&x, tamis_vfs_memory(&x.vfs, &e), &e, "vfs");
    model_make_keys(&x.m, &x.r);
    choose_options(&x);
    x.batch = tamis_batch_create();
    open_store(&x);
    for (x.op = 0; x.op < ops; x.op++) {
        uint64_t dice = below(&x, 1000);
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
        else if (dice < 995)
            upkeep(&x);
        else if (below(&x, 2))
            check_all(&x);
        else
            reopen(&x);
    }
    check_all(&x);
    drop_children(&x);
    must(&x, tamis_close(x.db, 0, &e), &e, "close");
    tamis_vfs_free(x.vfs);
    tamis_batch_free(x.batch);
    model_free(&x.m);
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, seeds = 200, ops = 4000;
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
