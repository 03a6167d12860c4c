// SPDX-License-Identifier: BSD-2-Clause
//
// stress.c - writers, readers, iterators, snapshots, flushes and compactions at once, on real
// threads. Readers check what a torn or stale read would break:
//
//   accounts  each writer moves amounts between its own accounts, a batch a move: in every view the
//             sum of its accounts is what it was at the start
//   counters  each writer counts its keys up, one after the other: a reader never sees a counter go
//             back, and never one ahead of the counter before it
//
//   stress [--ops N] [--writers N] [--readers N] [--path DIR]

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "lsm/tamis.h"

enum { ACCOUNTS = 64, COUNTERS = 16, START = 1000, MAX_THREADS = 16 };

static tamis_db *db;
static long ops = 20000;
static unsigned writers = 2, readers = 3;
static atomic_bool done;
static atomic_long checks;

static void must(int st, const tamis_error *e, const char *what)
{
    if (st == TAMIS_OK) return;
    fprintf(stderr, "stress: %s: %s: %s\n", what, tamis_status_name(st), e->message);
    exit(1);
}

static void broken(const char *what, long a, long b)
{
    fprintf(stderr, "stress: %s: %ld, %ld\n", what, a, b);
    exit(1);
}

// Accounts stand by turns in the default family and in another: a transfer between them is a batch
// over both.
static tamis_cf *halves, *totals;
static tamis_cf *family_of(unsigned account)
{
    return account % 2 ? halves : NULL;
}

static size_t account_key(char *out, unsigned writer, unsigned i)
{
    return (size_t)snprintf(out, 32, "account-%02u-%04u", writer, i);
}
static size_t counter_key(char *out, unsigned writer, unsigned i)
{
    return (size_t)snprintf(out, 32, "counter-%02u-%04u", writer, i);
}

static long read_number(const void *data, size_t len)
{
    long v = -1;
    if (len < sizeof v) broken("a value is cut", (long)len, (long)sizeof v);
    memcpy(&v, data, sizeof v);
    return v;
}

static long get_number(tamis_cf *cf, const tamis_read_options *ro, const char *key, size_t klen)
{
    char buf[512];
    size_t len;
    tamis_error e;
    must(tamis_get_into(db, cf, ro, key, klen, buf, sizeof buf, &len, &e), &e, key);
    return read_number(buf, len);
}

// A number, and padding so that flushes and compactions come often.
static void put_number(tamis_batch *b, tamis_cf *cf, const char *key, size_t klen, long v)
{
    char value[200];
    memset(value, 'p', sizeof value);
    memcpy(value, &v, sizeof v);
    must(tamis_batch_put(b, cf, key, klen, value, sizeof value), NULL, "batch");
}

static void *write_all(void *arg)
{
    unsigned me = (unsigned)(size_t)arg;
    tm_random r = tm_random_seed(me + 1);
    long balance[ACCOUNTS];
    tamis_batch *b = tamis_batch_create(db, 0);
    tamis_error e;
    char key[32];
    for (unsigned i = 0; i < ACCOUNTS; i++) balance[i] = START;
    for (long n = 0; n < ops; n++) {
        unsigned from = (unsigned)tm_random_below(&r, ACCOUNTS);
        unsigned to = (unsigned)tm_random_below(&r, ACCOUNTS);
        long amount = (long)tm_random_below(&r, 10);
        balance[from] -= amount;
        balance[to] += amount;
        tamis_batch_clear(b);
        put_number(b, family_of(from), key, account_key(key, me, from), balance[from]);
        put_number(b, family_of(to), key, account_key(key, me, to), balance[to]);
        if (from == to)
            put_number(b, family_of(from), key, account_key(key, me, from), balance[from]);
        must(tamis_commit(db, NULL, b, NULL, &e), &e, "commit");
        // Counter i is raised after counter i - 1, so no view shows it ahead of that.
        long round = n / COUNTERS + 1;
        size_t klen = counter_key(key, me, (unsigned)(n % COUNTERS));
        char value[64] = {0};
        memcpy(value, &round, sizeof round);
        must(tamis_put(db, NULL, NULL, key, klen, value, sizeof value, &e), &e, "put");
        uint8_t one[8] = {1};
        must(tamis_merge(db, totals, NULL, "total", 5, one, sizeof one, &e), &e, "merge");
        if (n % 97 == 0) { // keys that come and go
            klen = (size_t)snprintf(key, sizeof key, "gone-%02u-%04ld", me, n % 1000);
            must(tamis_put(db, NULL, NULL, key, klen, "x", 1, &e), &e, "put");
            must(tamis_delete(db, NULL, NULL, key, klen, &e), &e, "delete");
        }
    }
    tamis_batch_free(b);
    return NULL;
}

static void check_sum_by_gets(const tamis_snapshot *s, unsigned writer)
{
    tamis_read_options ro = {.size = sizeof ro, .snapshot = s};
    char key[32];
    long sum = 0;
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        sum += get_number(family_of(i), &ro, key, account_key(key, writer, i));
    }
    if (sum != (long)ACCOUNTS * START) broken("a sum seen by gets", sum, (long)ACCOUNTS * START);
}

// Adds up the accounts of one family.
static void scan_family(tamis_cf *cf, const tamis_snapshot *s, unsigned writer, bool backward,
                        long *count, long *sum)
{
    char prefix[32];
    tamis_error e;
    tamis_iter *it;
    tamis_read_options ro = {.size = sizeof ro, .snapshot = s};
    ro.prefix.data = prefix;
    ro.prefix.len = (size_t)snprintf(prefix, sizeof prefix, "account-%02u-", writer);
    must(tamis_iter_create(db, cf, &ro, &it, &e), &e, "iterator");
    if (backward)
        tamis_iter_last(it);
    else
        tamis_iter_first(it);
    for (; tamis_iter_valid(it); ++*count) {
        size_t len;
        const void *v = tamis_iter_value(it, &len);
        *sum += read_number(v, len);
        if (backward)
            tamis_iter_prev(it);
        else
            tamis_iter_next(it);
    }
    must(tamis_iter_status(it, &e), &e, "scan");
    tamis_iter_free(it);
}

static void check_sum_by_scan(unsigned writer, bool backward)
{
    tamis_snapshot *s;
    tamis_error e;
    long sum = 0, count = 0;
    must(tamis_snapshot_create(db, &s, &e), &e, "snapshot");
    scan_family(NULL, s, writer, backward, &count, &sum);
    scan_family(halves, s, writer, !backward, &count, &sum);
    tamis_snapshot_release(s);
    if (count != ACCOUNTS) broken("accounts in a scan", count, ACCOUNTS);
    if (sum != (long)ACCOUNTS * START) broken("a sum in a scan", sum, (long)ACCOUNTS * START);
}

static void check_counters(unsigned writer, long *last)
{
    char key[32];
    long before = get_number(NULL, NULL, key, counter_key(key, writer, 0));
    if (before < last[0]) broken("a counter went back", before, last[0]);
    last[0] = before;
    // Read upwards: what is read later may only be newer, so compare in one view.
    tamis_snapshot *s;
    tamis_error e;
    must(tamis_snapshot_create(db, &s, &e), &e, "snapshot");
    tamis_read_options ro = {.size = sizeof ro, .snapshot = s};
    long above = get_number(NULL, &ro, key, counter_key(key, writer, 0));
    for (unsigned i = 1; i < COUNTERS; i++) {
        long v = get_number(NULL, &ro, key, counter_key(key, writer, i));
        if (v > above) broken("a counter is ahead of the one before", v, above);
        if (v < last[i]) broken("a counter went back", v, last[i]);
        last[i] = v;
        above = v;
    }
    tamis_snapshot_release(s);
}

static void check_multi_get(unsigned writer)
{
    char keys[ACCOUNTS][32];
    tamis_slice slices[ACCOUNTS];
    tamis_value values[ACCOUNTS];
    int statuses[ACCOUNTS];
    tamis_snapshot *s;
    tamis_error e;
    long sum = 0;
    must(tamis_snapshot_create(db, &s, &e), &e, "snapshot");
    tamis_read_options ro = {.size = sizeof ro, .snapshot = s};
    for (unsigned half = 0; half < 2; half++) {
        size_t n = 0;
        for (unsigned i = half; i < ACCOUNTS; i += 2, n++) {
            slices[n].data = keys[n];
            slices[n].len = account_key(keys[n], writer, i);
        }
        must(tamis_multi_get(db, family_of(half), &ro, n, slices, values, statuses, &e), &e,
             "multi_get");
        for (size_t i = 0; i < n; i++) {
            must(statuses[i], &e, "multi_get");
            sum += read_number(values[i].data, values[i].len);
            tamis_value_release(&values[i]);
        }
    }
    tamis_snapshot_release(s);
    if (sum != (long)ACCOUNTS * START) broken("a sum by multi_get", sum, (long)ACCOUNTS * START);
}

// Operands of all writers, folded now and then: the total only grows.
static void check_total(long *last)
{
    uint8_t buf[8];
    size_t len;
    tamis_error e;
    int st = tamis_get_into(db, totals, NULL, "total", 5, buf, sizeof buf, &len, &e);
    if (st == TAMIS_NOTFOUND && *last == 0) return;
    must(st, &e, "total");
    long now = read_number(buf, len);
    if (now < *last) broken("the total went back", now, *last);
    *last = now;
}

static void *read_all(void *arg)
{
    long total = 0;
    tm_random r = tm_random_seed((uint64_t)(size_t)arg + 100);
    long last[MAX_THREADS][COUNTERS];
    tamis_error e;
    memset(last, 0, sizeof last);
    while (!atomic_load(&done)) {
        unsigned writer = (unsigned)tm_random_below(&r, writers);
        switch (tm_random_below(&r, 6)) {
        case 0: {
            tamis_snapshot *s;
            must(tamis_snapshot_create(db, &s, &e), &e, "snapshot");
            check_sum_by_gets(s, writer);
            tamis_snapshot_release(s);
            break;
        }
        case 1:
            check_sum_by_scan(writer, false);
            break;
        case 2:
            check_sum_by_scan(writer, true);
            break;
        case 3:
            check_multi_get(writer);
            break;
        case 4:
            check_total(&total);
            break;
        default:
            check_counters(writer, last[writer]);
            break;
        }
        atomic_fetch_add(&checks, 1);
    }
    return NULL;
}

static void *disturb(void *arg)
{
    tm_random r = tm_random_seed(7);
    tamis_error e;
    (void)arg;
    while (!atomic_load(&done)) {
        tamis_cf *cf = tm_random_below(&r, 2) ? halves : NULL, *guest;
        if (tm_random_below(&r, 3) == 0)
            must(tamis_compact(db, cf, NULL, &e), &e, "compact");
        else
            must(tamis_flush(db, cf, &e), &e, "flush");
        must(tamis_cf_open(db, "guest", NULL, 1, &guest, &e), &e, "guest");
        int st = tamis_put(db, guest, NULL, "k", 1, "v", 1, &e);
        if (st != TAMIS_OK && st != TAMIS_NOTFOUND) must(st, &e, "put to a guest");
        st = tm_random_below(&r, 2) ? tamis_compact(db, guest, NULL, &e)
                                    : tamis_flush(db, guest, &e);
        if (st != TAMIS_OK && st != TAMIS_NOTFOUND) must(st, &e, "work on a guest");
        tamis_cf_close(guest);
        tamis_memory m = {.size = sizeof m};
        must(tamis_memory_usage(db, &m, &e), &e, "memory");
    }
    return NULL;
}

// Families that go while others write to them, flush and compact them.
static void *drop_guests(void *arg)
{
    tamis_error e;
    (void)arg;
    while (!atomic_load(&done)) {
        int st = tamis_cf_drop(db, "guest", &e);
        if (st != TAMIS_OK && st != TAMIS_NOTFOUND) must(st, &e, "drop");
        st = tamis_cf_rename(db, "other", "guest", &e);
        if (st != TAMIS_OK && st != TAMIS_NOTFOUND && st != TAMIS_EXISTS) must(st, &e, "rename");
        st = tamis_cf_rename(db, "guest", "other", &e);
        if (st != TAMIS_OK && st != TAMIS_NOTFOUND && st != TAMIS_EXISTS) must(st, &e, "rename");
    }
    return NULL;
}

static void fill(void)
{
    tamis_batch *b = tamis_batch_create(db, 0);
    char key[32];
    tamis_error e;
    for (unsigned w = 0; w < writers; w++) {
        for (unsigned i = 0; i < ACCOUNTS; i++) {
            put_number(b, family_of(i), key, account_key(key, w, i), START);
        }
        for (unsigned i = 0; i < COUNTERS; i++) put_number(b, NULL, key, counter_key(key, w, i), 0);
    }
    must(tamis_commit(db, NULL, b, NULL, &e), &e, "fill");
    tamis_batch_free(b);
}

static void run(void)
{
    pthread_t w[MAX_THREADS], r[MAX_THREADS], d, g;
    fill();
    for (size_t i = 0; i < readers; i++) pthread_create(&r[i], NULL, read_all, (void *)i);
    for (size_t i = 0; i < writers; i++) pthread_create(&w[i], NULL, write_all, (void *)i);
    pthread_create(&d, NULL, disturb, NULL);
    pthread_create(&g, NULL, drop_guests, NULL);
    for (size_t i = 0; i < writers; i++) pthread_join(w[i], NULL);
    atomic_store(&done, true);
    for (size_t i = 0; i < readers; i++) pthread_join(r[i], NULL);
    pthread_join(d, NULL);
    pthread_join(g, NULL);
}

int main(int argc, char **argv)
{
    const char *path = "stress-store";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--ops"))
            ops = atol(argv[i + 1]);
        else if (!strcmp(argv[i], "--writers"))
            writers = (unsigned)atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--readers"))
            readers = (unsigned)atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--path"))
            path = argv[i + 1];
        else {
            fprintf(stderr, "stress: unknown option %s\n", argv[i]);
            return 2;
        }
    }
    if (writers < 1 || writers > MAX_THREADS || readers > MAX_THREADS) return 2;
    tamis_vfs *vfs;
    tamis_error e;
    tamis_options o = tamis_options_init();
    must(tamis_vfs_memory(&vfs, &e), &e, "vfs");
    o.vfs = vfs;
    o.sync = TAMIS_SYNC_NEVER;
    o.memory_budget = 2u << 20;
    o.background_threads = 3;
    o.extra = "write_buffer=64KiB; table_size=64KiB; block_size=512; partition_size=1KiB; "
              "level0_compact=2; level0_slowdown=12; level0_stop=24; verify_filters=true";
    must(tamis_open(path, &o, &db, &e), &e, "open");
    tamis_cf_options adds = {.size = sizeof adds, .merger = tamis_merger_add()};
    must(tamis_cf_open(db, "halves", NULL, 1, &halves, &e), &e, "family");
    must(tamis_cf_open(db, "totals", &adds, 1, &totals, &e), &e, "family");
    run();
    must(tamis_wait_idle(db, 0, &e), &e, "idle");
    long total = get_number(totals, NULL, "total", 5);
    if (total != (long)writers * ops) broken("the total", total, (long)writers * ops);
    tamis_cf_close(halves);
    tamis_cf_close(totals);
    tamis_report report = {.size = sizeof report};
    must(tamis_verify(db, NULL, NULL, NULL, &report, &e), &e, "verify");
    must(tamis_close(db, 0, &e), &e, "close");
    tamis_vfs_free(vfs);
    printf("stress: %u writers, %ld operations each, %ld checks by %u readers: ok\n", writers, ops,
           atomic_load(&checks), readers);
    return 0;
}
