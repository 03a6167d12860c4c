// SPDX-License-Identifier: BSD-2-Clause
//
// bench.c - named workloads on a store of generated keys.
//
// Keys are 16 hexadecimal digits of even numbers spread over the 64-bit range; absent keys are the
// odd numbers between them, so that no range of a table can answer a miss. Half of a value is
// random bytes, half is one byte: it compresses about 2 to 1.

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench.h"
#include "tools/cli.h"

enum { KEY = 16, POOL = 1 << 20, MAX_THREADS = 64, BATCH = 100, GROUP = 64 };

typedef struct bench {
    tamis_db *db;
    tamis_options options;
    char extra[1024], folder[4096];
    const char *path, *list, *sync;
    uint64_t num, reads, value_size, threads;
    bool json, keep;
    unsigned char *pool;
    _Atomic uint64_t inserted;         // keys that YCSB D and E have put behind others
    double zeta_n, zeta_2, alpha, eta; // zipfian, theta 0.99 (Gray et al., SIGMOD 1994)
} bench;

typedef struct worker worker;
typedef bool (*operation)(worker *w, uint64_t i);
struct worker {
    bench *b;
    operation op;
    uint64_t first, last, seed, found, bytes;
    bench_histogram latency;
    tamis_batch *batch;
    tamis_iter *it;
    char *buf;
    bool failed;
    pthread_t thread;
};

// ---- Keys and values ----------------------------------------------------------------------------

static void hex_key(char *out, uint64_t v)
{
    for (int i = KEY - 1; i >= 0; i--, v >>= 4) out[i] = "0123456789abcdef"[v & 15];
}
static uint64_t stride(const bench *b)
{
    return UINT64_MAX / 2 / (b->num + 1) * 2;
}
static void present(const bench *b, char *out, uint64_t i)
{
    hex_key(out, i * stride(b));
}
static void absent(const bench *b, char *out, uint64_t i)
{
    hex_key(out, i * stride(b) + 1);
}
static const void *value(const bench *b, uint64_t i)
{
    uint64_t s = i;
    return b->pool + (bench_random(&s) & (POOL - 1));
}
// Each number below num once: a Feistel network that is walked until it falls into the range.
static uint64_t shuffled(const bench *b, uint64_t i)
{
    unsigned half = 1;
    while (half < 32 && (uint64_t)1 << (2 * half) < b->num) half++;
    uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t l = i >> half, r = i & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t s = r * 4 + round + 77, t = l ^ (bench_random(&s) & mask);
            l = r;
            r = t;
        }
        i = l << half | r;
    } while (i >= b->num);
    return i;
}
static void make_zipf(bench *b)
{
    b->zeta_n = 0;
    for (uint64_t i = 1; i <= b->num; i++) b->zeta_n += pow(1.0 / (double)i, 0.99);
    b->zeta_2 = 1 + pow(0.5, 0.99);
    b->alpha = 1 / (1 - 0.99);
    b->eta = (1 - pow(2.0 / (double)b->num, 1 - 0.99)) / (1 - b->zeta_2 / b->zeta_n);
}
static uint64_t zipf(const bench *b, uint64_t *seed)
{
    double u = (double)(bench_random(seed) >> 11) / 9007199254740992.0, uz = u * b->zeta_n;
    uint64_t rank = uz < 1 ? 0
                    : uz < b->zeta_2
                        ? 1
                        : (uint64_t)((double)b->num * pow(b->eta * u - b->eta + 1, b->alpha));
    return bench_random(&rank) % b->num; // the hot keys lie anywhere
}

// ---- Operations ---------------------------------------------------------------------------------

static bool put(worker *w, uint64_t i, uint64_t v)
{
    char key[KEY];
    tamis_error e;
    present(w->b, key, i);
    return bench_check(
        "put", tamis_put(w->b->db, NULL, NULL, key, KEY, value(w->b, v), w->b->value_size, &e), &e);
}
static bool get(worker *w, const char *key)
{
    tamis_error e;
    size_t len;
    int st = tamis_get_into(w->b->db, NULL, NULL, key, KEY, w->buf, w->b->value_size, &len, &e);
    if (st == TAMIS_OK) {
        w->found++;
        w->bytes += len;
    }
    return st == TAMIS_NOTFOUND || bench_check("get", st, &e);
}
static uint64_t any(worker *w)
{
    return bench_random(&w->seed) % w->b->num;
}

static bool op_fillseq(worker *w, uint64_t i)
{
    return put(w, i, i);
}
static bool op_fillrandom(worker *w, uint64_t i)
{
    return put(w, shuffled(w->b, i), i);
}
static bool op_overwrite(worker *w, uint64_t i)
{
    return put(w, any(w), i + 1);
}

static bool op_fillbatch(worker *w, uint64_t i)
{
    tamis_error e = {0};
    tamis_batch_clear(w->batch);
    for (uint64_t k = 0; k < BATCH; k++) {
        char key[KEY];
        present(w->b, key, shuffled(w->b, (i * BATCH + k) % w->b->num));
        int st = tamis_batch_put(w->batch, NULL, key, KEY, value(w->b, k), w->b->value_size);
        if (st != TAMIS_OK) return bench_check("batch", st, &e);
    }
    return bench_check("commit", tamis_commit(w->b->db, NULL, w->batch, NULL, &e), &e);
}
static bool op_read(worker *w, uint64_t i)
{
    char key[KEY];
    (void)i;
    present(w->b, key, any(w));
    return get(w, key);
}
static bool op_missing(worker *w, uint64_t i)
{
    char key[KEY];
    (void)i;
    absent(w->b, key, any(w));
    return get(w, key);
}
static bool op_multiget(worker *w, uint64_t i)
{
    char keys[GROUP][KEY];
    tamis_slice slices[GROUP];
    tamis_value values[GROUP];
    int statuses[GROUP];
    tamis_error e;
    (void)i;
    for (int k = 0; k < GROUP; k++) {
        present(w->b, keys[k], any(w));
        slices[k] = (tamis_slice){keys[k], KEY};
    }
    if (!bench_check("multi_get",
                     tamis_multi_get(w->b->db, NULL, NULL, GROUP, slices, values, statuses, &e),
                     &e)) {
        return false;
    }
    for (int k = 0; k < GROUP; k++) {
        w->found += statuses[k] == TAMIS_OK;
        w->bytes += values[k].len;
        tamis_value_release(&values[k]);
    }
    return true;
}
static bool walk(worker *w, const char *from, uint64_t steps, bool back)
{
    tamis_error e;
    tamis_iter *it;
    if (!bench_check("iterator", tamis_iter_create(w->b->db, NULL, NULL, &it, &e), &e))
        return false;
    if (from != NULL)
        tamis_iter_seek(it, from, KEY);
    else if (back)
        tamis_iter_last(it);
    else
        tamis_iter_first(it);
    for (uint64_t n = 0; n < steps && tamis_iter_valid(it); n++) {
        size_t klen, vlen;
        (void)tamis_iter_key(it, &klen);
        (void)tamis_iter_value(it, &vlen);
        w->bytes += klen + vlen;
        w->found++;
        if (back)
            tamis_iter_prev(it);
        else
            tamis_iter_next(it);
    }
    bool ok = bench_check("scan", tamis_iter_status(it, &e), &e);
    tamis_iter_free(it);
    return ok;
}
static bool op_seek(worker *w, uint64_t i)
{
    char key[KEY];
    (void)i;
    present(w->b, key, any(w));
    return walk(w, key, 100, false);
}
static bool op_scan(worker *w, uint64_t i)
{
    (void)i;
    return walk(w, NULL, UINT64_MAX, false);
}
static bool op_scanback(worker *w, uint64_t i)
{
    (void)i;
    return walk(w, NULL, UINT64_MAX, true);
}

// YCSB (Cooper et al., SoCC 2010): shares of reads, updates, scans and read-modify-writes. D reads
// the newest keys, D and E insert: a new key stands right behind one of those that were filled.
static void inserted_key(const bench *b, char *out, uint64_t n)
{
    absent(b, out, shuffled(b, n % b->num));
}
static bool insert(worker *w)
{
    char key[KEY];
    tamis_error e;
    uint64_t n = atomic_fetch_add_explicit(&w->b->inserted, 1, memory_order_relaxed);
    inserted_key(w->b, key, n);
    return bench_check(
        "put", tamis_put(w->b->db, NULL, NULL, key, KEY, value(w->b, n), w->b->value_size, &e), &e);
}
// The newest are read most; before there are any, those that were filled.
static bool read_latest(worker *w)
{
    char key[KEY];
    uint64_t n = atomic_load_explicit(&w->b->inserted, memory_order_relaxed);
    double u = (double)(bench_random(&w->seed) >> 11) / 9007199254740992.0;
    uint64_t age = (uint64_t)(pow((double)w->b->num, u) - 1); // as often in 1..10 as in 10..100
    if (age < n)
        inserted_key(w->b, key, n - 1 - age);
    else
        present(w->b, key, (age - n) % w->b->num);
    return get(w, key);
}
static bool ycsb(worker *w, unsigned reads, unsigned updates, unsigned scans)
{
    char key[KEY];
    uint64_t i = zipf(w->b, &w->seed), dice = bench_random(&w->seed) % 100;
    present(w->b, key, i);
    if (dice < reads) return get(w, key);
    if (dice < reads + updates) return put(w, i, bench_random(&w->seed));
    if (dice < reads + updates + scans)
        return walk(w, key, 1 + bench_random(&w->seed) % 100, false);
    return get(w, key) && put(w, i, bench_random(&w->seed));
}
static bool op_a(worker *w, uint64_t i)
{
    return (void)i, ycsb(w, 50, 50, 0);
}
static bool op_b(worker *w, uint64_t i)
{
    return (void)i, ycsb(w, 95, 5, 0);
}
static bool op_c(worker *w, uint64_t i)
{
    return (void)i, ycsb(w, 100, 0, 0);
}
static bool op_d(worker *w, uint64_t i)
{
    (void)i;
    return bench_random(&w->seed) % 100 < 5 ? insert(w) : read_latest(w);
}
static bool op_e(worker *w, uint64_t i)
{
    (void)i;
    return bench_random(&w->seed) % 100 < 5 ? insert(w) : ycsb(w, 0, 0, 100);
}
static bool op_f(worker *w, uint64_t i)
{
    return (void)i, ycsb(w, 50, 0, 0);
}
static bool op_mixed(worker *w, uint64_t i)
{
    switch (bench_random(&w->seed) % 4) {
    case 0:
        return op_overwrite(w, i);
    case 1:
        return op_missing(w, i);
    default:
        return op_read(w, i);
    }
}

static const struct workload {
    const char *name;
    operation op;
    double share; // of --num (writes) or --reads (reads) operations; 0: one
    bool writes, fill;
    uint64_t keys; // of one operation: ops are counted by key
} workloads[] = {
    {"fillseq", op_fillseq, 1, true, true, 1},
    {"fillrandom", op_fillrandom, 1, true, true, 1},
    {"fillbatch", op_fillbatch, 1.0 / BATCH, true, true, BATCH},
    {"overwrite", op_overwrite, 1, true, false, 1},
    {"readrandom", op_read, 1, false, false, 1},
    {"readmissing", op_missing, 1, false, false, 1},
    {"multiget", op_multiget, 1.0 / GROUP, false, false, GROUP},
    {"seek", op_seek, 0.05, false, false, 1},
    {"scan", op_scan, 0, false, false, 1},
    {"scanback", op_scanback, 0, false, false, 1},
    {"ycsb-a", op_a, 1, false, false, 1},
    {"ycsb-b", op_b, 1, false, false, 1},
    {"ycsb-c", op_c, 1, false, false, 1},
    {"ycsb-d", op_d, 1, false, false, 1},
    {"ycsb-e", op_e, 0.05, false, false, 1},
    {"ycsb-f", op_f, 1, false, false, 1},
    {"mixed", op_mixed, 1, false, false, 1},
};
enum { WORKLOADS = sizeof workloads / sizeof workloads[0] };

// ---- Running ------------------------------------------------------------------------------------

static void *work(void *arg)
{
    worker *w = arg;
    w->batch = tamis_batch_create(w->b->db, 0);
    w->buf = malloc(w->b->value_size + 1);
    w->failed = w->batch == NULL || w->buf == NULL;
    for (uint64_t i = w->first; i < w->last && !w->failed && !cli_interrupted(); i++) {
        bool timed = i % 4 == 0;
        uint64_t begin = timed ? bench_nanos() : 0;
        w->failed = !w->op(w, i);
        if (timed) bench_record(&w->latency, bench_nanos() - begin);
    }
    tamis_batch_free(w->batch);
    free(w->buf);
    return NULL;
}

static void print_row(const bench *b, const char *name, uint64_t threads, uint64_t ops,
                      const bench_sample *d, const bench_histogram *h, uint64_t found,
                      uint64_t bytes)
{
    double n = (double)(ops ? ops : 1), mb = (double)bytes / d->wall_s / 1e6;
    const char *format =
        b->json ? "{\"workload\":\"%s\",\"threads\":%llu,\"ops\":%llu,\"ops_per_s\":%.0f,"
                  "\"cpu_ns\":%.0f,\"p50_ns\":%llu,\"p99_ns\":%llu,\"p999_ns\":%llu,"
                  "\"max_ns\":%llu,\"reads_per_op\":%.4f,\"read_bytes_per_op\":%.1f,"
                  "\"write_bytes_per_op\":%.1f,\"found\":%llu,\"mb_per_s\":%.1f,"
                  "\"peak_memory\":%llu,\"sync\":\"%s\"}\n"
                : "%s\t%llu\t%llu\t%.0f\t%.0f\t%llu\t%llu\t%llu\t%llu\t%.4f\t%.1f\t%.1f\t%llu\t"
                  "%.1f\t%llu\t%s\n";
    printf(format, name, (unsigned long long)threads, (unsigned long long)ops, n / d->wall_s,
           d->cpu_s * 1e9 / n, (unsigned long long)bench_at(h, 0.5),
           (unsigned long long)bench_at(h, 0.99), (unsigned long long)bench_at(h, 0.999),
           (unsigned long long)h->max, (double)d->read_calls / n, (double)d->read_bytes / n,
           (double)d->write_bytes / n, (unsigned long long)found, mb,
           (unsigned long long)bench_peak_memory(), b->sync);
    fflush(stdout);
}

static bench_sample since(const bench_sample *before)
{
    bench_sample after = bench_now();
    return (bench_sample){after.wall_s - before->wall_s, after.cpu_s - before->cpu_s,
                          after.read_calls - before->read_calls,
                          after.read_bytes - before->read_bytes,
                          after.write_bytes - before->write_bytes};
}

static bool run(bench *b, const struct workload *wl)
{
    static worker workers[MAX_THREADS];
    static bench_histogram sum;
    uint64_t threads = b->threads, found = 0, bytes = 0;
    uint64_t base = wl->writes ? b->num : b->reads;
    uint64_t ops = wl->share > 0 ? (uint64_t)((double)base * wl->share) : threads;
    if (ops < threads) ops = threads;
    memset(workers, 0, sizeof workers);
    memset(&sum, 0, sizeof sum);
    bench_sample before = bench_now();
    uint64_t started = 0;
    for (; started < threads; started++) {
        uint64_t t = started;
        worker *w = &workers[t];
        *w = (worker){.b = b,
                      .op = wl->op,
                      .first = ops * t / threads,
                      .last = ops * (t + 1) / threads,
                      .seed = (uint64_t)(wl - workloads + 1) * 1000 + t};
        if (pthread_create(&w->thread, NULL, work, w) != 0) break;
    }
    bool ok = started == threads;
    if (!ok) fprintf(stderr, "tamis: cannot start %llu threads\n", (unsigned long long)threads);
    for (uint64_t t = 0; t < started; t++) {
        pthread_join(workers[t].thread, NULL);
        bench_merge(&sum, &workers[t].latency);
        found += workers[t].found;
        bytes += workers[t].bytes;
        ok = ok && !workers[t].failed;
    }
    if (cli_interrupted() || !ok) return false;
    bench_sample d = since(&before);
    print_row(b, wl->name, threads, ops * wl->keys, &d, &sum, found, bytes);
    if (!wl->fill) return true;
    // What a reader meets is the settled tree.
    tamis_error e;
    before = bench_now();
    ok = bench_check("flush", tamis_flush(b->db, NULL, &e), &e) &&
         bench_check("settle", tamis_wait_idle(b->db, 0, &e), &e);
    d = since(&before);
    memset(&sum, 0, sizeof sum);
    if (ok) print_row(b, "settle", 1, 1, &d, &sum, 0, 0);
    return ok;
}

static void summary(const bench *b)
{
    uint64_t user = bench_counter(b->db, "write_bytes"), disk = 0, entries = 0;
    uint64_t written = bench_counter(b->db, "log_bytes") + bench_counter(b->db, "flush_bytes") +
                       bench_counter(b->db, "compact_bytes_written");
    tamis_range all = {{NULL, 0}, {NULL, 0}};
    (void)tamis_approximate_size(b->db, NULL, &all, 1, &disk, &entries, NULL);
    double raw = (double)b->num * (double)(KEY + b->value_size);
    fprintf(b->json ? stdout : stderr,
            b->json ? "{\"write_amplification\":%.3f,\"space_amplification\":%.3f,"
                      "\"table_bytes\":%llu,\"stall_us\":%llu}\n"
                    : "# write amplification %.2f, space amplification %.2f (tables %llu bytes), "
                      "writers waited %llu us\n",
            user ? (double)written / (double)user : 0, (double)disk / raw, (unsigned long long)disk,
            (unsigned long long)bench_counter(b->db, "stall_us"));
}

// ---- Arguments ----------------------------------------------------------------------------------

static void usage(FILE *f)
{
    fputs("usage: tamis bench [WORKLOAD,...] [--num N] [--reads N] [--value-size N] [--threads N]\n"
          "                   [--path DIR] [--budget SIZE] [--sync MODE] [--option NAME=VALUE]\n"
          "                   [--json]\n"
          "       tamis bench misses ...   (see: tamis bench misses --help)\n\n"
          "Workloads:",
          f);
    for (size_t i = 0; i < WORKLOADS; i++) fprintf(f, " %s", workloads[i].name);
    fputs(
        "\nDefault: fillrandom,readrandom,readmissing,seek,scan. A fill comes first unless --path\n"
        "holds a store already. Without --path a temporary store is used and removed.\n"
        "Columns: workload threads ops ops/s cpu_ns/op p50 p99 p99.9 max (ns) system-reads/op\n"
        "read-bytes/op written-bytes/op found MB/s peak-memory sync\n",
        f);
}

static bool set(bench *b, const char *name, const char *v)
{
    if (strcmp(name, "--num") == 0) return bench_number(name, v, &b->num);
    if (strcmp(name, "--reads") == 0) return bench_number(name, v, &b->reads);
    if (strcmp(name, "--value-size") == 0) return bench_number(name, v, &b->value_size);
    if (strcmp(name, "--threads") == 0) return bench_number(name, v, &b->threads);
    if (strcmp(name, "--budget") == 0) return bench_number(name, v, &b->options.memory_budget);
    if (strcmp(name, "--path") == 0) return b->path = v, true;
    if (strcmp(name, "--option") == 0) {
        size_t len = strlen(b->extra);
        int n = snprintf(b->extra + len, sizeof b->extra - len, "%s; ", v);
        if (n >= 0 && (size_t)n < sizeof b->extra - len) return true;
        return cli_usage("bench: too many options"), false;
    }
    if (strcmp(name, "--sync") == 0) {
        static const char *const names[] = {"always", "interval", "never"};
        for (int i = 0; i < 3; i++) {
            if (strcmp(v, names[i]) != 0) continue;
            b->options.sync = TAMIS_SYNC_ALWAYS + i;
            b->sync = names[i];
            return true;
        }
        return cli_usage("--sync takes always, interval or never, not \"%s\"", v), false;
    }
    return cli_usage("bench: unknown option %s; see: tamis bench --help", name), false;
}

static const struct workload *find(const char *name, size_t len)
{
    for (size_t i = 0; i < WORKLOADS; i++) {
        if (strlen(workloads[i].name) != len) continue;
        if (strncmp(workloads[i].name, name, len) == 0) return &workloads[i];
    }
    return NULL;
}

// All of a list is looked at before anything runs.
static bool known_list(const char *list)
{
    for (const char *p = list;; p++) {
        size_t n = strcspn(p, ",");
        if (find(p, n) == NULL) {
            return cli_usage("bench: no workload is called \"%.*s\"", (int)n, p), false;
        }
        p += n;
        if (*p == '\0') return true;
    }
}

static bool parse(bench *b, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            b->json = true;
        else if (argv[i][0] != '-')
            b->list = argv[i];
        else if (!set(b, argv[i], i + 1 < argc ? argv[i + 1] : ""))
            return false;
        else
            i++;
    }
    if (b->num < 1 || b->num > (uint64_t)1 << 40 || b->threads < 1 || b->threads > MAX_THREADS ||
        b->value_size > POOL) {
        fprintf(stderr,
                "tamis: bench: --num, --threads (1 to 64) or --value-size (to 1 MiB) is out "
                "of range\n");
        return false;
    }
    if (b->reads == 0) b->reads = b->num;
    return known_list(b->list);
}

static bool run_list(bench *b)
{
    bool filled = false;
    tamis_iter *it;
    if (tamis_iter_create(b->db, NULL, NULL, &it, NULL) == TAMIS_OK) {
        tamis_iter_first(it);
        filled = tamis_iter_valid(it);
        tamis_iter_free(it);
    }
    if (!b->json) {
        printf("workload\tthreads\tops\tops/s\tcpu_ns\tp50\tp99\tp99.9\tmax\treads/op\tread_B/op\t"
               "write_B/op\tfound\tMB/s\tpeak_B\tsync\n");
    }
    for (const char *p = b->list; *p != '\0'; p += *p == ',') {
        size_t n = strcspn(p, ",");
        const struct workload *wl = find(p, n);
        if (!filled && !wl->fill && !run(b, find("fillrandom", strlen("fillrandom")))) return false;
        filled = true;
        if (!run(b, wl)) return false;
        p += n;
    }
    summary(b);
    return true;
}

int tamis_bench_main(int argc, char **argv)
{
    static bench b;
    if (argc > 1 && strcmp(argv[1], "misses") == 0) return bench_misses_main(argc - 1, argv + 1);
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        usage(stdout);
        return cli_finish_output(stdout, EXIT_OK);
    }
    b = (bench){.list = "fillrandom,readrandom,readmissing,seek,scan",
                .num = 1000000,
                .value_size = 100,
                .threads = 1,
                .sync = "never",
                .options = tamis_options_init()};
    b.options.sync = TAMIS_SYNC_NEVER;
    if (!parse(&b, argc, argv)) return EXIT_USAGE;
    cli_watch_interrupt(); // so that a temporary store is removed
    b.options.extra = b.extra;
    b.pool = malloc(2 * POOL);
    if (b.pool == NULL) return 3;
    uint64_t s = 42;
    for (size_t i = 0; i < 2 * POOL; i++)
        b.pool[i] = i / 50 % 2 ? 'x' : (unsigned char)bench_random(&s);
    make_zipf(&b);
    bool temporary = b.path == NULL;
    if (temporary && !bench_temp_folder(NULL, b.folder, sizeof b.folder)) return 3;
    if (temporary) b.path = b.folder;
    tamis_error e;
    bool ok = bench_check("open", tamis_open(b.path, &b.options, &b.db, &e), &e);
    if (ok) {
        ok = run_list(&b);
        ok = bench_check("close", tamis_close(b.db, 0, &e), &e) && ok;
    }
    if (temporary) bench_remove_folder(b.folder);
    free(b.pool);
    return cli_finish_output(stdout, bench_code(ok));
}
