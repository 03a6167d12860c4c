// SPDX-License-Identifier: BSD-2-Clause
//
// crash.c - a crash at every file-system call.
//
// A workload of batches, syncs, flushes, compactions and reopens runs once to count its calls.
// Then, for each call i, it runs again and the machine stops at call i; what a crash leaves
// (nothing that was not synced, everything, any part of it, a torn page) is opened again, and
// crashes once more inside that recovery. Checked each time:
//
//   prefix    the content equals that after some batch, with none of the later ones
//   durable   and that batch is not before the last one whose sync was reported
//   monotone  what an open has shown, the next open shows too, or more
//   opens     a crash never makes a store that cannot be opened, and verify finds nothing
//
//   crash_crash [--seed N] [--seeds N]

#include "tests/support/store_model.h"

#include <time.h>

enum { BATCHES = 45, MOST_OPS = 12, HISTORY = 4096 };

typedef struct history { // batches submitted so far
    model m;
    uint64_t last[HISTORY]; // last sequence number of each
    size_t count;
    uint64_t durable; // promised so far
} history;

static uint64_t seed_now, call_now;
static int kind_now;
static uint64_t states, recoveries;

static void fail(const char *what, const tamis_error *e)
{
    printf(
        "crash: seed %llu, call %llu, kind %d: %s%s%s\nreplay: crash_crash --seeds 1 --seed %llu\n",
        (unsigned long long)seed_now, (unsigned long long)call_now, kind_now, what, e ? ": " : "",
        e ? e->message : "", (unsigned long long)seed_now);
    exit(1);
}

static tamis_options options_for(uint64_t seed, const tamis_vfs *vfs, char *extra, size_t cap)
{
    tm_random r = tm_random_seed(seed);
    tamis_options o = tamis_options_init();
    snprintf(extra, cap,
             "block_size=512; partition_size=1KiB; table_size=16KiB; write_buffer=8KiB; "
             "level0_compact=2; level0_slowdown=8; level0_stop=12; log_reserve=%dKiB; seed=9; "
             "compression=%s; readahead=4KiB",
             (int)tm_random_below(&r, 2) * 64, tm_random_below(&r, 2) ? "lz4" : "none");
    o.vfs = vfs;
    o.flags = TAMIS_OPEN_NO_BACKGROUND;
    o.memory_budget = 4u << 20;
    o.extra = extra;
    model_use_families(&o);
    return o;
}

// ---- The workload ------------------------------------------------------------------------------

// Families that come and go, in the middle of everything: a crash finds them there or not. False:
// the machine has stopped.
static bool change_families(tamis_db *db, tm_random *r)
{
    static const char *const names[] = {"guest", "other guest"};
    tamis_cf *cf = NULL;
    const char *name = names[tm_random_below(r, 2)];
    int st = TAMIS_OK;
    switch (tm_random_below(r, 3)) {
    case 0:
        st = tamis_cf_open(db, name, NULL, 1, &cf, NULL);
        if (st == TAMIS_OK) st = tamis_put(db, cf, NULL, "key", 3, "value", 5, NULL);
        tamis_cf_close(cf);
        break;
    case 1:
        st = tamis_cf_drop(db, name, NULL);
        break;
    default:
        st = tamis_cf_rename(db, names[0], names[1], NULL);
        break;
    }
    return st == TAMIS_OK || st == TAMIS_NOTFOUND || st == TAMIS_EXISTS;
}

static bool make_families(tamis_db *db)
{
    tamis_cf *cf[MODEL_FAMILIES];
    bool made = model_open_families(db, cf, 1, NULL) == TAMIS_OK;
    model_close_families(cf);
    return made;
}

// Runs until the machine stops. Every call may fail then; what was promised before counts.
static void work(uint64_t seed, tamis_vfs *vfs, history *h)
{
    char extra[400];
    model_op ops[MOST_OPS];
    tm_random r = tm_random_seed(seed);
    tamis_options o = options_for(seed, vfs, extra, sizeof extra);
    tamis_db *db = NULL;
    tamis_batch batch, *b = &batch; // of whatever handle is open
    tm_batch_init(b);
    model_make_keys(&h->m, &r);
    o.sync = TAMIS_SYNC_NEVER;
    bool stopped = tamis_open("store", &o, &db, NULL) != TAMIS_OK || !make_families(db);
    for (int i = 0; i < BATCHES && !stopped; i++) {
        uint64_t dice = tm_random_below(&r, 20), seq = 0;
        tamis_write_options wo = {.size = sizeof wo};
        wo.sync = tm_random_below(&r, 4) == 0 ? TAMIS_SYNC_ALWAYS : TAMIS_SYNC_NEVER;
        size_t n = model_random_batch(&h->m, &r, MODEL_FAMILIES, MOST_OPS, ops, b);
        b->db = db;
        int st = tamis_commit(db, &wo, b, &seq, NULL);
        // Whether it succeeded or not, it may be found after the crash.
        if (st != TAMIS_OK) seq = h->m.last_seq + n;
        model_apply(&h->m, ops, n, seq);
        h->last[h->count++] = seq;
        if (st != TAMIS_OK) break;
        if (wo.sync == TAMIS_SYNC_ALWAYS) h->durable = seq;
        uint32_t did;
        if (dice < 8) {
            stopped = tamis_step(db, &did, NULL) != TAMIS_OK;
        } else if (dice < 10) {
            tamis_cf *cf = NULL;
            size_t f = (size_t)tm_random_below(&r, MODEL_FAMILIES);
            stopped = tamis_cf_open(db, model_families[f], NULL, 0, &cf, NULL) != TAMIS_OK ||
                      tamis_flush(db, cf, NULL) != TAMIS_OK;
            tamis_cf_close(cf);
        } else if (dice == 10) {
            stopped = tamis_compact(db, NULL, NULL, NULL) != TAMIS_OK;
        } else if (dice < 13) {
            stopped = tamis_sync_wal(db, NULL) != TAMIS_OK;
            if (!stopped) h->durable = seq;
        } else if (dice == 14) {
            stopped = !change_families(db, &r);
        } else if (dice == 13) {
            stopped = tamis_close(db, 0, NULL) != TAMIS_OK;
            db = NULL;
            if (!stopped) {
                h->durable = seq;
                stopped = tamis_open("store", &o, &db, NULL) != TAMIS_OK;
            }
        }
    }
    if (db != NULL && tamis_close(db, 0, NULL) == TAMIS_OK && !stopped) h->durable = h->m.last_seq;
    tm_batch_deinit(b);
}

// ---- What is left ------------------------------------------------------------------------------

static bool family_equals(tamis_db *db, const model *m, size_t f, uint64_t seq)
{
    tamis_iter *it;
    tamis_error e;
    tamis_cf *cf = NULL;
    bool same = true;
    int st = tamis_cf_open(db, model_families[f], NULL, 0, &cf, &e);
    if (st == TAMIS_NOTFOUND) { // not made yet
        for (size_t k = 0; k < MODEL_KEYS; k++) same = same && model_at(m, f, k, seq) == 0;
        return same;
    }
    if (st != TAMIS_OK) fail("open a family", &e);
    if (tamis_iter_create(db, cf, NULL, &it, &e) != TAMIS_OK) fail("iterator", &e);
    tamis_iter_first(it);
    for (size_t k = 0; k < MODEL_KEYS && same; k++) {
        uint64_t value = model_at(m, f, k, seq);
        if (value == 0) continue;
        size_t klen = 0, vlen = 0;
        const void *key = tamis_iter_key(it, &klen), *data = tamis_iter_value(it, &vlen);
        same = tamis_iter_valid(it) &&
               tm_slice_equal(tm_slice_of(key, klen), model_key_slice(m, k)) &&
               model_value_is(f, value, data, vlen);
        tamis_iter_next(it);
    }
    same = same && !tamis_iter_valid(it);
    if (tamis_iter_status(it, &e) != TAMIS_OK) fail("scan", &e);
    tamis_iter_free(it);
    tamis_cf_close(cf);
    return same;
}

static bool equals(tamis_db *db, const model *m, uint64_t seq)
{
    model_avoid_tick();
    bool same = true;
    for (size_t f = 0; f < MODEL_FAMILIES && same; f++) same = family_equals(db, m, f, seq);
    return same;
}

// The last sequence number of the batch whose state the store shows; least: the first that may be.
static uint64_t find_state(tamis_db *db, const history *h, uint64_t least)
{
    for (size_t i = h->count; i > 0; i--) {
        if (h->last[i - 1] < least) break;
        if (equals(db, &h->m, h->last[i - 1])) return h->last[i - 1];
    }
    if (least == 0 && equals(db, &h->m, 0)) return 0;
    fail(least ? "the content is that of no batch at or after the last promise"
               : "the content is that of no batch",
         NULL);
    return 0;
}

static void check_state(uint64_t seed, tamis_vfs *vfs, const history *h, tm_random *r)
{
    char extra[400];
    tamis_options o = options_for(seed, vfs, extra, sizeof extra);
    uint64_t least = h->durable;
    tamis_db *db;
    tamis_error e;
    // Half of the time the first recovery is cut short at some call, and crashes, too.
    if (tm_random_below(r, 2) == 0) {
        uint64_t at = tamis_vfs_memory_calls(vfs) + 1 + tm_random_below(r, 60);
        tamis_vfs_memory_fail(vfs, at, -1, 0);
        bool opened = tamis_open("store", &o, &db, &e) == TAMIS_OK;
        tamis_vfs_memory_fail(vfs, 0, 0, 0); // where the call was not reached, the machine goes on
        if (opened) {                        // what it shows is durable from now on
            uint64_t shown = find_state(db, h, least);
            if (shown > least) least = shown;
            (void)tamis_close(db, 0, NULL);
        }
        tamis_vfs_memory_crash(vfs, (tamis_crash)tm_random_below(r, 4), tm_random_next(r));
        recoveries++;
    }
    if (tamis_open("store", &o, &db, &e) != TAMIS_OK) {
        if (h->durable == 0 && h->count == 0 && e.code == TAMIS_NOTFOUND) return;
        fail("open", &e);
    }
    uint64_t shown = find_state(db, h, least);
    tamis_report report = {.size = sizeof report};
    if (tamis_verify(db, NULL, NULL, NULL, &report, &e) != TAMIS_OK) fail("verify", &e);
    // A crash right after the open: the same state, as nothing was written.
    tamis_vfs_memory_crash(vfs, TAMIS_CRASH_LOSE_ALL, 1);
    (void)tamis_close(db, TAMIS_CLOSE_DETACH, NULL);
    if (tamis_open("store", &o, &db, &e) != TAMIS_OK) fail("open again", &e);
    if (!equals(db, &h->m, shown)) fail("the next open shows another state", NULL);
    // And it can be written to.
    tamis_write_options wo = {.size = sizeof wo, .sync = TAMIS_SYNC_ALWAYS};
    if (tamis_put(db, NULL, &wo, "after", 5, "x", 1, &e) != TAMIS_OK) fail("put after", &e);
    if (tamis_close(db, 0, &e) != TAMIS_OK) fail("close after", &e);
    states++;
}

static void one_point(uint64_t seed, uint64_t call, int kind)
{
    static history h;
    tamis_vfs *vfs;
    tm_random r = tm_random_seed(seed * 1000003 + call * 7 + (uint64_t)kind);
    seed_now = seed;
    call_now = call;
    kind_now = kind;
    memset(&h, 0, sizeof h);
    if (tamis_vfs_memory(&vfs, NULL) != TAMIS_OK) abort();
    model_clock = vfs;
    tamis_vfs_memory_fail(vfs, call, -1, 0);
    work(seed, vfs, &h);
    tamis_vfs_memory_fail(vfs, 0, 0, 0);
    tamis_vfs_memory_crash(vfs, (tamis_crash)kind, tm_random_next(&r));
    check_state(seed, vfs, &h, &r);
    tamis_vfs_free(vfs);
    model_free(&h.m);
}

static uint64_t count_calls(uint64_t seed)
{
    static history h;
    tamis_vfs *vfs;
    memset(&h, 0, sizeof h);
    if (tamis_vfs_memory(&vfs, NULL) != TAMIS_OK) abort();
    model_clock = vfs;
    work(seed, vfs, &h);
    uint64_t calls = tamis_vfs_memory_calls(vfs);
    tamis_vfs_free(vfs);
    model_free(&h.m);
    return calls;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, seeds = 1, points = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--seed"))
            seed = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--seeds"))
            seeds = strtoull(argv[i + 1], NULL, 10);
        else
            return fprintf(stderr, "crash: unknown option %s\n", argv[i]), 2;
    }
    time_t begin = time(NULL);
    for (uint64_t s = seed; s < seed + seeds; s++) {
        uint64_t calls = count_calls(s);
        for (uint64_t call = 1; call <= calls; call++, points++) {
            for (int kind = 0; kind < 4; kind++) one_point(s, call, kind);
        }
    }
    printf("crash: %llu calls of %llu workloads, %llu states, %llu crashes inside recovery, %ld s: "
           "all as promised\n",
           (unsigned long long)points, (unsigned long long)seeds, (unsigned long long)states,
           (unsigned long long)recoveries, (long)(time(NULL) - begin));
    return 0;
}
