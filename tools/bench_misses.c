// SPDX-License-Identifier: BSD-2-Clause
//
// bench_misses.c - the I/O that filters save on lookups that find nothing.
//
// The same data is stored once with each kind of filter, and the same absent keys are looked up in
// each: first with memory for everything, then with budgets of 1 to 100 % of the data, where
// filters, indexes and data compete for the same bytes. All lookups run once before they are
// counted: what is measured is the steady state, not the first reads.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench.h"
#include "tools/cli.h"

enum { KINDS = 3, BUDGETS = 7, KEY = 16, LEAST_BUDGET = 64 << 10 };
static const char *const kinds[KINDS] = {"none", "bloom", "blocked"};
static const double shares[BUDGETS] = {1, 2, 5, 10, 25, 50, 100};

typedef struct key_list { // absent keys, one behind the other
    char *bytes;
    size_t *ends;
    size_t n, cap, len, room;
} key_list;

typedef struct misses {
    const char *store, *keys_file, *svg, *parent, *bits;
    uint64_t num, count, value_size, present; // present: keys that turned out to be there
    char extra[1024];                         // options of the user's, behind a semicolon
    bool json;
    key_list keys;
    uint64_t raw_bytes, entries;
    char paths[KINDS][4096];
} misses;

typedef struct row {
    double blocks, reads, read_bytes, cached, expected, observed_rate, expected_rate, ns;
    uint64_t filter_memory, filter_bytes;
} row;

// ---- Keys ---------------------------------------------------------------------------------------

static bool add_key(key_list *l, const void *key, size_t n)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 1024;
        size_t *ends = realloc(l->ends, cap * sizeof *ends);
        if (ends == NULL) return false;
        l->ends = ends;
        l->cap = cap;
    }
    if (l->room - l->len < n) {
        size_t room = (l->room + n) * 2 + 4096;
        char *bytes = realloc(l->bytes, room);
        if (bytes == NULL) return false;
        l->bytes = bytes;
        l->room = room;
    }
    if (n > 0) memcpy(l->bytes + l->len, key, n);
    l->len += n;
    l->ends[l->n++] = l->len;
    return true;
}

static tamis_slice key_at(const key_list *l, size_t i)
{
    size_t from = i ? l->ends[i - 1] : 0;
    return (tamis_slice){l->bytes + from, l->ends[i] - from};
}

static void hex_key(char *out, uint64_t v)
{
    for (int i = KEY - 1; i >= 0; i--, v >>= 4) out[i] = "0123456789abcdef"[v & 15];
}

static bool out_of_memory(void)
{
    fprintf(stderr, "tamis: out of memory\n");
    return false;
}

// One key a line.
static bool read_keys(misses *m)
{
    FILE *f = fopen(m->keys_file, "r");
    if (f == NULL) {
        fprintf(stderr, "tamis: cannot read %s\n", m->keys_file);
        return false;
    }
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    bool ok = true;
    while (ok && m->keys.n < m->count && (n = getline(&line, &cap, f)) > 0) {
        if (line[n - 1] == '\n') n--;
        ok = add_key(&m->keys, line, (size_t)n);
    }
    free(line);
    fclose(f);
    return ok || out_of_memory();
}

// Absent keys from present ones: evenly chosen keys with one more byte, each right behind its own.
static bool invent_keys(misses *m, tamis_db *db)
{
    tamis_iter *it;
    tamis_error e;
    if (!bench_check("scan", tamis_iter_create(db, NULL, NULL, &it, &e), &e)) return false;
    double share = m->entries > 0 ? (double)m->count / (double)m->entries : 0, due = 0;
    char buf[65536];
    bool ok = true;
    for (tamis_iter_first(it); ok && tamis_iter_valid(it) && m->keys.n < m->count; due += share) {
        size_t n;
        const void *key = tamis_iter_key(it, &n);
        if (due >= (double)m->keys.n && n < TAMIS_MAX_KEY) {
            if (n > 0) memcpy(buf, key, n);
            buf[n] = '~';
            ok = add_key(&m->keys, buf, n + 1);
        }
        tamis_iter_next(it);
    }
    tamis_iter_free(it);
    return ok || out_of_memory();
}

// An order for the n keys: as they are, or shuffled. NULL: out of memory, told.
static size_t *make_order(size_t n, bool shuffle)
{
    size_t *order = malloc((n + 1) * sizeof *order);
    uint64_t s = 1;
    if (order == NULL) {
        (void)out_of_memory();
        return NULL;
    }
    for (size_t i = 0; i < n; i++) order[i] = i;
    for (size_t i = n; shuffle && i > 1; i--) {
        size_t k = bench_random(&s) % i, t = order[i - 1];
        order[i - 1] = order[k];
        order[k] = t;
    }
    return order;
}

// Keys that were invented are shuffled, as lookups come; a file's keep their order. Keys that are
// there are left out, and counted.
static bool prepare_keys(misses *m, tamis_db *db)
{
    key_list absent = {0};
    size_t *order = make_order(m->keys.n, m->keys_file == NULL);
    bool ok = order != NULL;
    for (size_t i = 0; ok && i < m->keys.n; i++) {
        tamis_slice k = key_at(&m->keys, order[i]);
        tamis_error e;
        int st = tamis_has(db, NULL, NULL, k.data, k.len, &e);
        if (st == TAMIS_NOTFOUND)
            ok = add_key(&absent, k.data, k.len) || out_of_memory();
        else
            ok = bench_check("has", st, &e);
        m->present += st == TAMIS_OK;
    }
    free(order);
    free(m->keys.bytes);
    free(m->keys.ends);
    m->keys = absent;
    if (ok && absent.n == 0) {
        fprintf(stderr, "tamis: no absent keys to look up\n");
        return false;
    }
    return ok;
}

// ---- Data ---------------------------------------------------------------------------------------

static tamis_db *open_kind(const misses *m, int kind, uint64_t budget, bool create)
{
    char extra[1400];
    tamis_options o = tamis_options_init();
    tamis_db *db = NULL;
    tamis_error e;
    snprintf(extra, sizeof extra, "filter=%s; filter_bits=%s%s%s", kinds[kind], m->bits,
             create ? "; write_buffer=16MiB" : "", m->extra);
    o.sync = TAMIS_SYNC_NEVER;
    o.memory_budget = budget;
    o.flags = create ? TAMIS_OPEN_NEW : TAMIS_OPEN_EXISTING | TAMIS_OPEN_READONLY;
    o.extra = extra;
    bench_check("open", tamis_open(m->paths[kind], &o, &db, &e), &e);
    return db;
}

typedef struct filler {
    tamis_db *db;
    tamis_batch *batch;
} filler;

static bool fill_pair(filler *f, const void *key, size_t klen, const void *value, size_t vlen)
{
    tamis_error e = {0};
    int st = tamis_batch_put(f->batch, NULL, key, klen, value, vlen);
    if (st == TAMIS_OK &&
        (tamis_batch_count(f->batch) >= 1000 || tamis_batch_bytes(f->batch) >= 4u << 20)) {
        st = tamis_commit(f->db, NULL, f->batch, NULL, &e);
        tamis_batch_clear(f->batch);
    }
    return bench_check("fill", st, &e) && !cli_interrupted();
}

static bool copy_store(misses *m, filler *f)
{
    tamis_options o = tamis_options_init();
    tamis_db *from;
    tamis_iter *it;
    tamis_error e;
    o.flags = TAMIS_OPEN_EXISTING | TAMIS_OPEN_READONLY;
    if (!bench_check("open", tamis_open(m->store, &o, &from, &e), &e)) return false;
    bool ok = bench_check("scan", tamis_iter_create(from, NULL, NULL, &it, &e), &e);
    m->entries = m->raw_bytes = 0;
    for (ok ? tamis_iter_first(it) : (void)0; ok && tamis_iter_valid(it); tamis_iter_next(it)) {
        size_t klen, vlen;
        const void *key = tamis_iter_key(it, &klen), *value = tamis_iter_value(it, &vlen);
        m->entries++;
        m->raw_bytes += klen + vlen;
        ok = fill_pair(f, key, klen, value, vlen);
    }
    if (ok) ok = bench_check("scan", tamis_iter_status(it, &e), &e);
    tamis_iter_free(it);
    (void)tamis_close(from, 0, NULL);
    return ok;
}

static bool generate(misses *m, filler *f)
{
    char key[KEY], *value = malloc(m->value_size + 1);
    uint64_t stride = UINT64_MAX / 2 / (m->num + 1) * 2;
    bool ok = value != NULL || out_of_memory();
    // A multiplier that shares no factor with num visits every key once, in no order.
    uint64_t step = 2654435761u % m->num | 1, a, b;
    do {
        step += 2;
        for (a = step % m->num, b = m->num; a != 0;) {
            uint64_t t = b % a;
            b = a;
            a = t;
        }
    } while (b != 1);
    for (uint64_t i = 0; ok && i < m->num; i++) {
        uint64_t s = i;
        hex_key(key, i * step % m->num * stride);
        for (size_t k = 0; k < m->value_size; k++) {
            value[k] = k % 100 < 50 ? (char)bench_random(&s) : 'x';
        }
        ok = fill_pair(f, key, KEY, value, m->value_size);
    }
    free(value);
    m->entries = m->num;
    m->raw_bytes = m->num * (KEY + m->value_size);
    return ok;
}

static bool build(misses *m, int kind)
{
    filler f = {.db = open_kind(m, kind, 256u << 20, true)};
    if (f.db != NULL) f.batch = tamis_batch_create(f.db, 0);
    tamis_error e;
    bool ok = f.db != NULL && f.batch != NULL;
    if (ok) ok = m->store ? copy_store(m, &f) : generate(m, &f);
    if (ok && tamis_batch_count(f.batch) > 0) {
        ok = bench_check("fill", tamis_commit(f.db, NULL, f.batch, NULL, &e), &e);
    }
    if (ok) {
        ok = bench_check("flush", tamis_flush(f.db, NULL, &e), &e) &&
             bench_check("settle", tamis_wait_idle(f.db, 0, &e), &e);
    }
    if (f.db != NULL) ok = bench_check("close", tamis_close(f.db, 0, &e), &e) && ok;
    tamis_batch_free(f.batch);
    return ok;
}

// ---- Measuring ----------------------------------------------------------------------------------

static uint64_t sum_counters(tamis_db *db, const char *ending)
{
    static const char *const parts[] = {"data", "index", "filter", "top"};
    uint64_t sum = 0;
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_%s", parts[i], ending);
        sum += bench_counter(db, name);
    }
    return sum;
}

static bool look_up_all(const misses *m, tamis_db *db)
{
    for (size_t i = 0; i < m->keys.n; i++) {
        tamis_slice k = key_at(&m->keys, i);
        tamis_error e;
        int st = tamis_has(db, NULL, NULL, k.data, k.len, &e);
        if (st != TAMIS_NOTFOUND) {
            if (st == TAMIS_OK)
                fprintf(stderr, "tamis: an absent key was found\n");
            else
                bench_check("lookup", st, &e);
            return false;
        }
        if (cli_interrupted()) return false;
    }
    return true;
}

// The steady state: everything is looked up once before it counts.
static bool measure(const misses *m, int kind, uint64_t budget, row *r)
{
    tamis_db *db = open_kind(m, kind, budget, false);
    tamis_filter_report f = {.size = sizeof f}, before = {.size = sizeof before};
    tamis_error e;
    if (db == NULL) return false;
    bool ok = look_up_all(m, db);
    (void)tamis_filter_stats(db, NULL, -1, &before, NULL);
    uint64_t blocks = sum_counters(db, "blocks_read"), bytes = sum_counters(db, "bytes_read");
    uint64_t cached = bench_counter(db, "data_blocks_cached"),
             data = bench_counter(db, "data_blocks_read");
    uint64_t begin = bench_nanos();
    ok = ok && look_up_all(m, db);
    double n = (double)m->keys.n;
    r->ns = (double)(bench_nanos() - begin) / n;
    data = bench_counter(db, "data_blocks_read") - data;
    cached = bench_counter(db, "data_blocks_cached") - cached;
    r->blocks = (double)(data + cached) / n; // data blocks met, whether read or found in memory
    r->reads = (double)(sum_counters(db, "blocks_read") - blocks) / n; // of every kind
    r->read_bytes = (double)(sum_counters(db, "bytes_read") - bytes) / n;
    r->cached = (double)cached / n;
    ok = ok && bench_check("filters", tamis_filter_stats(db, NULL, -1, &f, &e), &e);
    double probes = (double)(f.probes - before.probes);
    double wrong = (double)(f.false_positives - before.false_positives);
    double right = (double)(f.negatives - before.negatives);
    r->expected_rate = f.expected_rate;
    r->observed_rate = wrong + right > 0 ? wrong / (wrong + right) : 0;
    r->expected = kind == 0 ? 0 : f.expected_rate * probes / n;
    r->filter_memory = f.memory;
    r->filter_bytes = f.filter_bytes;
    (void)tamis_close(db, 0, NULL);
    return ok;
}

static bool show_kinds(misses *m)
{
    if (!m->json) {
        printf(
            "%zu lookups of absent keys; %llu keys, %.1f MB of data; memory for all of it\n"
            "%s%llu%s\n"
            "filter     data blocks   expected  bytes read   observed    expected     filter      "
            "ns  blocks a lookup\n"
            "           a lookup      a lookup  a lookup     FPR         FPR          MB     a "
            "lookup  from files  cached\n",
            m->keys.n, (unsigned long long)m->entries, (double)m->raw_bytes / 1e6,
            m->keys_file ? "of the file's keys " : "", (unsigned long long)m->present,
            m->keys_file ? " are there, and were left out\n" : " keys to look up were there\n");
    }
    for (int k = 0; k < KINDS; k++) {
        row r = {0};
        if (!measure(m, k, m->raw_bytes * 4 + (64u << 20), &r)) return false;
        if (m->json) {
            printf("{\"filter\":\"%s\",\"blocks_per_lookup\":%.6f,\"expected_blocks\":%.6f,"
                   "\"read_bytes_per_lookup\":%.1f,\"observed_rate\":%.8f,\"expected_rate\":%.8f,"
                   "\"filter_bytes\":%llu,\"filter_memory\":%llu,\"ns\":%.0f,"
                   "\"reads_per_lookup\":%.6f,\"cached_per_lookup\":%.6f,\"lookups\":%zu,"
                   "\"present\":%llu}\n",
                   kinds[k], r.blocks, r.expected, r.read_bytes, r.observed_rate, r.expected_rate,
                   (unsigned long long)r.filter_bytes, (unsigned long long)r.filter_memory, r.ns,
                   r.reads, r.cached, m->keys.n, (unsigned long long)m->present);
        } else {
            char expected[32] = "        -";
            if (k > 0) snprintf(expected, sizeof expected, "%9.5f", r.expected);
            printf("%-8s %13.5f  %s %11.1f  %8.4f %%  %8.4f %%  %9.2f %9.0f %11.5f %7.4f\n",
                   kinds[k], r.blocks, expected, r.read_bytes, r.observed_rate * 100,
                   r.expected_rate * 100, (double)r.filter_bytes / 1e6, r.ns, r.reads, r.cached);
        }
        fflush(stdout);
    }
    return true;
}

static bool show_budgets(misses *m)
{
    static const int shown[] = {0, 2};
    double bytes[2][BUDGETS];
    if (!m->json) {
        printf("\nmemory budget         none: reads    bytes     blocked: reads    bytes   "
               "a lookup\n");
    }
    for (int b = 0; b < BUDGETS; b++) {
        row r[2];
        memset(r, 0, sizeof r);
        uint64_t budget = (uint64_t)((double)m->raw_bytes * shares[b] / 100);
        if (budget < LEAST_BUDGET) budget = LEAST_BUDGET;
        for (int i = 0; i < 2; i++) {
            if (!measure(m, shown[i], budget, &r[i])) return false;
            bytes[i][b] = r[i].read_bytes;
        }
        if (m->json) {
            printf("{\"budget\":%llu,\"share\":%g,\"none_reads\":%.5f,\"none_bytes\":%.1f,"
                   "\"blocked_reads\":%.5f,\"blocked_bytes\":%.1f}\n",
                   (unsigned long long)budget, shares[b], r[0].reads, r[0].read_bytes, r[1].reads,
                   r[1].read_bytes);
        } else {
            printf("%4.0f %% %10.2f MB %10.4f %10.1f %16.4f %10.1f\n", shares[b],
                   (double)budget / 1e6, r[0].reads, r[0].read_bytes, r[1].reads, r[1].read_bytes);
        }
        fflush(stdout);
    }
    if (m->svg == NULL) return true;
    svg_line lines[] = {{"no filter", bytes[0]}, {"blocked Bloom", bytes[1]}};
    if (bench_svg(m->svg, "Bytes read from files by a lookup that finds nothing",
                  "memory budget, % of the data", "bytes a lookup", shares, BUDGETS, lines, 2)) {
        return true;
    }
    fprintf(stderr, "tamis: cannot write %s\n", m->svg);
    return false;
}

// ---- The whole ----------------------------------------------------------------------------------

static bool add_option(misses *m, const char *v)
{
    size_t len = strlen(m->extra);
    int n = snprintf(m->extra + len, sizeof m->extra - len, "; %s", v);
    if (n > 0 && (size_t)n < sizeof m->extra - len) return true;
    return cli_usage("too many options"), false;
}

static bool parse(misses *m, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            m->json = true;
            continue;
        }
        const char *v = i + 1 < argc ? argv[i + 1] : NULL;
        bool ok = v != NULL;
        if (!ok)
            cli_usage("bench misses: %s needs a value, or is unknown", argv[i]);
        else if (strcmp(argv[i], "--store") == 0)
            m->store = v;
        else if (strcmp(argv[i], "--keys") == 0)
            m->keys_file = v;
        else if (strcmp(argv[i], "--svg") == 0)
            m->svg = v;
        else if (strcmp(argv[i], "--path") == 0)
            m->parent = v;
        else if (strcmp(argv[i], "--bits") == 0)
            m->bits = v;
        else if (strcmp(argv[i], "--option") == 0)
            ok = add_option(m, v);
        else if (strcmp(argv[i], "--num") == 0)
            ok = bench_number(argv[i], v, &m->num);
        else if (strcmp(argv[i], "--count") == 0)
            ok = bench_number(argv[i], v, &m->count);
        else if (strcmp(argv[i], "--value-size") == 0)
            ok = bench_number(argv[i], v, &m->value_size);
        else
            ok = (fprintf(stderr, "tamis: bench misses: unknown option %s\n", argv[i]), false);
        if (!ok) return false;
        i++;
    }
    if (m->svg != NULL) { // a name that is no good is told now, not after minutes
        FILE *f = fopen(m->svg, "a");
        if (f == NULL) return cli_usage("cannot write %s: %s", m->svg, strerror(errno)), false;
        fclose(f);
    }
    if (m->num < 2 || m->count < 1 || m->value_size > (1u << 20)) {
        fprintf(stderr, "tamis: bench misses: --num, --count or --value-size is out of range\n");
        return false;
    }
    return true;
}

static bool measure_all(misses *m)
{
    for (int k = 0; k < KINDS; k++) {
        if (!bench_temp_folder(m->parent, m->paths[k], sizeof m->paths[k])) return false;
        if (!build(m, k)) return false;
    }
    tamis_db *db = open_kind(m, 2, m->raw_bytes * 4 + (64u << 20), false);
    if (db == NULL) return false;
    bool ok = m->keys_file ? read_keys(m) : invent_keys(m, db);
    ok = ok && prepare_keys(m, db);
    (void)tamis_close(db, 0, NULL);
    return ok && show_kinds(m) && show_budgets(m);
}

int bench_misses_main(int argc, char **argv)
{
    static misses m;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(
            "usage: tamis bench misses [--store STORE | --num N] [--keys FILE] [--count N]\n"
            "                          [--value-size N] [--bits B] [--svg FILE] [--path DIR]\n"
            "                          [--option NAME=VALUE] [--json]\n\n"
            "The I/O that filters save on lookups that find nothing: the data of STORE (or N\n"
            "generated keys, default 1,000,000) is copied into temporary stores with no filter,\n"
            "a standard Bloom filter and a blocked one; the absent keys of FILE (one a line), or\n"
            "keys made between the present ones, are looked up in each: once to warm up, then\n"
            "counted. In the second table filters, indexes and data share the budget.\n",
            stdout);
        return cli_finish_output(stdout, EXIT_OK);
    }
    m = (misses){.num = 1000000, .count = 100000, .value_size = 100, .bits = "10"};
    if (!parse(&m, argc, argv)) return EXIT_USAGE;
    cli_watch_interrupt(); // so that the temporary stores are removed
    bool ok = measure_all(&m);
    for (int k = 0; k < KINDS; k++) {
        if (m.paths[k][0] != '\0') bench_remove_folder(m.paths[k]);
    }
    free(m.keys.bytes);
    free(m.keys.ends);
    return cli_finish_output(stdout, bench_code(ok));
}
