// SPDX-License-Identifier: BSD-2-Clause

#include <stdatomic.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tools/bench.h"
#include "tools/cli.h"

uint64_t bench_nanos(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bench_sample bench_now(void)
{
    bench_sample s = {0};
    struct rusage r;
    char line[128];
    s.wall_s = (double)bench_nanos() / 1e9;
    getrusage(RUSAGE_SELF, &r);
    s.cpu_s = (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
              (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
    FILE *f = fopen("/proc/self/io", "r"); // Linux; elsewhere the figures stay 0
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        unsigned long long v;
        if (sscanf(line, "syscr: %llu", &v) == 1) s.read_calls = v;
        if (sscanf(line, "rchar: %llu", &v) == 1) s.read_bytes = v;
        if (sscanf(line, "wchar: %llu", &v) == 1) s.write_bytes = v;
    }
    if (f != NULL) fclose(f);
    return s;
}

uint64_t bench_peak_memory(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (uint64_t)r.ru_maxrss * 1024;
}

static size_t bucket(uint64_t v)
{
    if (v < 16) return (size_t)v;
    unsigned e = 63u - (unsigned)__builtin_clzll(v);
    return (size_t)(e - 3) * 16 + (size_t)(v >> (e - 4) & 15);
}

static uint64_t lower(size_t b)
{
    if (b < 16) return b;
    unsigned e = (unsigned)(b / 16) + 3;
    return ((uint64_t)1 << e) + ((uint64_t)(b % 16) << (e - 4));
}

void bench_record(bench_histogram *h, uint64_t ns)
{
    h->count[bucket(ns)]++;
    h->total++;
    if (ns > h->max) h->max = ns;
}

void bench_merge(bench_histogram *to, const bench_histogram *from)
{
    for (size_t i = 0; i < sizeof to->count / sizeof to->count[0]; i++) {
        to->count[i] += from->count[i];
    }
    to->total += from->total;
    if (from->max > to->max) to->max = from->max;
}

uint64_t bench_at(const bench_histogram *h, double share)
{
    uint64_t want = (uint64_t)(share * (double)h->total), seen = 0;
    for (size_t i = 0; i < sizeof h->count / sizeof h->count[0]; i++) {
        seen += h->count[i];
        if (seen > want) return lower(i);
    }
    return h->max;
}

uint64_t bench_random(uint64_t *state) // SplitMix64
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

bool bench_temp_folder(const char *parent, char *out, size_t cap)
{
    if (parent == NULL) parent = getenv("TMPDIR");
    if (parent == NULL || *parent == '\0') parent = "/tmp";
    int n = snprintf(out, cap, "%s/tamis-bench-XXXXXX", parent);
    if (n > 0 && (size_t)n < cap && mkdtemp(out) != NULL) return true;
    fprintf(stderr, "tamis: cannot make a folder in %s: %s\n", parent, strerror(errno));
    return false;
}

void bench_remove_folder(const char *path)
{
    tamis_error err;
    int st = tamis_destroy(path, NULL, &err);
    if (st == TAMIS_NOTFOUND)
        (void)rmdir(path);
    else if (st != TAMIS_OK)
        fprintf(stderr, "tamis: %s is left: %s\n", path, err.message);
}

uint64_t bench_counter(tamis_db *db, const char *name)
{
    uint64_t v = 0;
    (void)tamis_counter(db, name, &v, NULL);
    return v;
}

static atomic_bool mistyped; // set by any thread, read when they are done

bool bench_check(const char *what, int status, const tamis_error *err)
{
    if (status == TAMIS_OK) return true;
    if (status == TAMIS_INVALID) atomic_store_explicit(&mistyped, true, memory_order_relaxed);
    fprintf(stderr, "tamis: %s: %s: %s\n", what, tamis_status_name(status), err->message);
    return false;
}

int bench_code(bool ok)
{
    if (cli_interrupted()) return EXIT_STOPPED;
    if (ok) return EXIT_OK;
    return atomic_load_explicit(&mistyped, memory_order_relaxed) ? EXIT_USAGE : EXIT_FAILED;
}

bool bench_number(const char *name, const char *typed, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long n = typed[0] >= '0' && typed[0] <= '9' ? strtoull(typed, &end, 10) : 0;
    unsigned shift = 0;
    if (typed[0] >= '0' && typed[0] <= '9' && errno == 0) {
        if (*end == 'K') shift = 10;
        if (*end == 'M') shift = 20;
        if (*end == 'G') shift = 30;
        if (shift != 0) end++;
        if (shift != 0 && end[0] == 'i' && end[1] == 'B') end += 2;
        if (*end == '\0' && n <= UINT64_MAX >> shift) {
            *out = (uint64_t)n << shift;
            return true;
        }
    }
    fprintf(stderr, "tamis: %s takes a number, not \"%s\"\n", name, typed);
    return false;
}
