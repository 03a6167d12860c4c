// SPDX-License-Identifier: BSD-2-Clause
//
// faults.c - every file-system call fails, once or for good, with each error it may give.
//
// A workload runs once to count its calls. Then it runs again for each call and each fault, goes on
// after failures, and is checked:
//
//   answers   a read gives what the model says, or an error; never another value, never "not found"
//   outcome   a write that failed is not visible; one that was acknowledged is, also after
//   reopening poison    after a failed sync of log, manifest or folder no write is taken until
//             reopened, and the batch whose sync failed is there whole or not at all then
//   recovery  from anything else the store recovers by itself once the fault is gone
//
//   crash_faults [--seed N] [--seeds N]

#include "tests/support/store_model.h"

#include <errno.h>
#include <time.h>

enum { BATCHES = 40, MOST_OPS = 8 };

typedef struct outcome {
    model m;                    // acknowledged
    model_op unknown[MOST_OPS]; // the batch whose fate only a reopen tells
    size_t unknown_count;
    bool poisoned;
} outcome;

typedef struct fault {
    int error;
    int sticky;
    const char *name;
} fault;
static const fault faults[] = {
    {EIO, 0, "EIO"},       {EIO, 1, "EIO for good"},
    {ENOSPC, 0, "ENOSPC"}, {ENOSPC, 1, "ENOSPC for good"},
    {EMFILE, 0, "EMFILE"}, {0, 0, "short"},
};

static uint64_t seed_now, call_now, runs;
static const char *fault_now;

static void fail(const char *what, const tamis_error *e)
{
    printf("faults: seed %llu, call %llu, %s: %s%s%s\n", (unsigned long long)seed_now,
           (unsigned long long)call_now, fault_now, what, e ? ": " : "", e ? e->message : "");
    exit(1);
}

static tamis_options options_for(const tamis_vfs *vfs)
{
    tamis_options o = tamis_options_init();
    o.vfs = vfs;
    o.flags = TAMIS_OPEN_NO_BACKGROUND;
    o.memory_budget = 4u << 20;
    o.extra = "block_size=512; partition_size=1KiB; table_size=16KiB; write_buffer=8KiB; "
              "level0_compact=2; level0_slowdown=8; level0_stop=12; log_reserve=16KiB; seed=9; "
              "readahead=4KiB; max_open_files=8";
    model_use_families(&o);
    return o;
}

// Each key answers as the model says. errors: a failing read is allowed.
static void check_family(tamis_db *db, const model *m, size_t f, bool errors)
{
    static uint8_t buf[MODEL_MAX_VALUE];
    tamis_cf *cf = NULL;
    tamis_error open_error;
    int opened = tamis_cf_open(db, model_families[f], NULL, 0, &cf, &open_error);
    if (opened != TAMIS_OK && opened != TAMIS_NOTFOUND) {
        if (!errors) fail("open a family", &open_error);
        return;
    }
    for (size_t k = 0; k < MODEL_KEYS; k++) {
        tamis_error e;
        size_t len;
        tm_slice key = model_key_slice(m, k);
        uint64_t expected = model_at(m, f, k, UINT64_MAX);
        int st = TAMIS_NOTFOUND; // of a family that was never made
        if (opened == TAMIS_OK) {
            st = tamis_get_into(db, cf, NULL, key.data, key.len, buf, sizeof buf, &len, &e);
        }
        if (st == TAMIS_OK && (expected == 0 || !model_value_is(f, expected, buf, len))) {
            fail(expected ? "a read gives another value" : "a failed or deleted write shows", NULL);
        }
        if (st == TAMIS_NOTFOUND && expected != 0) fail("an acknowledged write is missing", NULL);
        if (st != TAMIS_OK && st != TAMIS_NOTFOUND && !errors) fail("read", &e);
    }
    tamis_cf_close(cf);
}

static void check_reads(tamis_db *db, const model *m, bool errors)
{
    model_avoid_tick();
    for (size_t f = 0; f < MODEL_FAMILIES; f++) check_family(db, m, f, errors);
}

// Where that fails for good, writes to families that are not there have to fail, too.
static void make_families(tamis_db *db)
{
    tamis_cf *cf[MODEL_FAMILIES];
    for (int tries = 0; tries < 3; tries++) {
        int st = model_open_families(db, cf, 1, NULL);
        model_close_families(cf);
        if (st == TAMIS_OK) return;
    }
}

static void work(uint64_t seed, tamis_vfs *vfs, outcome *x, tamis_db **db)
{
    model_op ops[MOST_OPS];
    tm_random r = tm_random_seed(seed);
    tamis_options o = options_for(vfs);
    tamis_batch batch, *b = &batch; // of whatever handle is open
    tm_batch_init(b);
    tamis_error e;
    model_make_keys(&x->m, &r);
    o.sync = TAMIS_SYNC_NEVER;
    int st = tamis_open("store", &o, db, &e);
    for (int tries = 0; st != TAMIS_OK && tries < 3; tries++) st = tamis_open("store", &o, db, &e);
    if (*db != NULL) make_families(*db);
    for (int i = 0; i < BATCHES; i++) {
        uint64_t dice = tm_random_below(&r, 12), seq = 0;
        tamis_write_options wo = {.size = sizeof wo};
        wo.sync = tm_random_below(&r, 4) == 0 ? TAMIS_SYNC_ALWAYS : TAMIS_SYNC_NEVER;
        size_t n = model_random_batch(&x->m, &r, MODEL_FAMILIES, MOST_OPS, ops, b);
        if (*db == NULL) continue; // a fault for good: it never opened
        b->db = *db;
        st = tamis_commit(*db, &wo, b, &seq, &e);
        if (st == TAMIS_OK) {
            if (x->poisoned) fail("a write is taken although a sync had failed", NULL);
            model_apply(&x->m, ops, n, seq);
        } else {
            int second = tamis_commit(*db, NULL, b, &seq, NULL); // does it still take writes?
            if (second == TAMIS_OK) {
                model_apply(&x->m, ops, n, seq);
            } else if (second == TAMIS_POISONED && !x->poisoned) {
                x->poisoned = true;
                memcpy(x->unknown, ops, n * sizeof ops[0]);
                x->unknown_count = n;
            }
        }
        uint32_t did;
        if (dice < 6)
            st = tamis_step(*db, &did, &e);
        else if (dice < 8)
            st = tamis_flush(*db, NULL, &e);
        else if (dice == 8)
            st = tamis_compact(*db, NULL, NULL, &e);
        else if (dice == 9)
            st = tamis_sync_wal(*db, &e);
        if (i % 8 == 0) check_reads(*db, &x->m, true);
        if (st == TAMIS_POISONED) x->poisoned = true;
    }
    tm_batch_deinit(b);
}

// Whether the store shows the unknown batch: some key reads as with it, and not as without it.
static bool has_unknown(tamis_db *db, const outcome *x)
{
    static uint8_t buf[MODEL_MAX_VALUE];
    static model with;
    bool there = false;
    memset(&with, 0, sizeof with);
    memcpy(with.keys, x->m.keys, sizeof with.keys);
    for (size_t f = 0; f < MODEL_FAMILIES; f++) {
        for (size_t k = 0; k < MODEL_KEYS; k++) { // what is there, as one version each
            uint64_t v = model_at(&x->m, f, k, UINT64_MAX);
            if (v != 0) model_add(&with, f, k, (model_version){1, v, 0, MODEL_PUT});
        }
    }
    model_apply(&with, x->unknown, x->unknown_count, 1000);
    for (size_t i = 0; i < x->unknown_count && !there; i++) {
        size_t f = x->unknown[i].family, len;
        tamis_cf *cf = NULL;
        if (tamis_cf_open(db, model_families[f], NULL, 0, &cf, NULL) != TAMIS_OK) continue;
        for (size_t k = 0; k < MODEL_KEYS && !there; k++) {
            uint64_t before = model_at(&x->m, f, k, UINT64_MAX);
            uint64_t after = model_at(&with, f, k, UINT64_MAX);
            tm_slice key = model_key_slice(&with, k);
            if (before == after) continue;
            int st = tamis_get_into(db, cf, NULL, key.data, key.len, buf, sizeof buf, &len, NULL);
            there =
                after ? st == TAMIS_OK && model_value_is(f, after, buf, len) : st == TAMIS_NOTFOUND;
        }
        tamis_cf_close(cf);
    }
    model_free(&with);
    return there;
}

// After the fault: the store recovers by itself, or says that it was poisoned.
static void check_after(tamis_vfs *vfs, outcome *x, tamis_db *db)
{
    tamis_error e;
    tamis_options o = options_for(vfs);
    if (db != NULL) {
        check_reads(db, &x->m, false);
        uint64_t seq = x->m.last_seq;
        int st = tamis_put(db, NULL, NULL, "key-after", 9, "x", 1, &e);
        if (st == TAMIS_POISONED)
            x->poisoned = true;
        else if (st != TAMIS_OK || x->poisoned)
            fail("a write after the fault", &e);
        (void)seq;
        if (!x->poisoned) {
            if ((st = tamis_delete(db, NULL, NULL, "key-after", 9, &e)) != TAMIS_OK)
                fail("delete", &e);
            if ((st = tamis_flush(db, NULL, &e)) != TAMIS_OK) fail("a flush after the fault", &e);
            if ((st = tamis_wait_idle(db, 0, &e)) != TAMIS_OK) fail("work after the fault", &e);
            check_reads(db, &x->m, false);
        }
        st = tamis_close(db, 0, &e);
        if (st != TAMIS_OK && !x->poisoned) fail("close", &e);
    }
    if (tamis_open("store", &o, &db, &e) != TAMIS_OK) fail("reopen", &e);
    // The batch whose fate was unknown is there whole or not at all.
    if (x->unknown_count > 0 && has_unknown(db, x)) {
        model_apply(&x->m, x->unknown, x->unknown_count, x->m.last_seq + x->unknown_count);
    }
    check_reads(db, &x->m, false);
    tamis_report report = {.size = sizeof report};
    if (tamis_verify(db, NULL, NULL, NULL, &report, &e) != TAMIS_OK) fail("verify", &e);
    if (tamis_close(db, 0, &e) != TAMIS_OK) fail("close", &e);
}

static uint64_t one_run(uint64_t seed, uint64_t call, const fault *f)
{
    static outcome x;
    tamis_vfs *vfs;
    tamis_db *db = NULL;
    memset(&x, 0, sizeof x);
    seed_now = seed;
    call_now = call;
    fault_now = f ? f->name : "none";
    if (tamis_vfs_memory(&vfs, NULL) != TAMIS_OK) abort();
    model_clock = vfs;
    if (f != NULL) tamis_vfs_memory_fail(vfs, call, f->error, f->sticky);
    work(seed, vfs, &x, &db);
    uint64_t calls = tamis_vfs_memory_calls(vfs);
    tamis_vfs_memory_fail(vfs, 0, 0, 0);
    check_after(vfs, &x, db);
    tamis_vfs_free(vfs);
    model_free(&x.m);
    runs++;
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
            return fprintf(stderr, "faults: unknown option %s\n", argv[i]), 2;
    }
    time_t begin = time(NULL);
    for (uint64_t s = seed; s < seed + seeds; s++) {
        uint64_t calls = one_run(s, 0, NULL);
        for (uint64_t call = 1; call <= calls; call++, points++) {
            for (size_t f = 0; f < sizeof faults / sizeof faults[0]; f++)
                one_run(s, call, &faults[f]);
        }
    }
    printf("faults: %llu calls of %llu workloads, %llu runs, %ld s: every outcome as promised\n",
           (unsigned long long)points, (unsigned long long)seeds, (unsigned long long)runs,
           (long)(time(NULL) - begin));
    return 0;
}
