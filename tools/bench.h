// SPDX-License-Identifier: BSD-2-Clause
//
// bench.h - the benchmark of the command: workloads (bench.c), the I/O that filters save
// (bench_misses.c), and what both need.
#ifndef TAMIS_BENCH_H
#define TAMIS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tamis.h"

int tamis_bench_main(int argc, char **argv); // argv[0] is "bench"; the exit code
int bench_misses_main(int argc, char **argv);

// ---- Figures of this process (bench_figures.c) --------------------------------------------------

typedef struct bench_sample {
    double wall_s, cpu_s;
    uint64_t read_calls, read_bytes, write_bytes; // system calls and bytes, 0 where unknown
} bench_sample;
bench_sample bench_now(void);
uint64_t bench_peak_memory(void); // bytes

typedef struct bench_histogram { // 16 buckets a power of two
    uint64_t count[61 * 16], total, max;
} bench_histogram;
void bench_record(bench_histogram *h, uint64_t ns);
void bench_merge(bench_histogram *to, const bench_histogram *from);
uint64_t bench_at(const bench_histogram *h, double share);
uint64_t bench_nanos(void);

uint64_t bench_random(uint64_t *state);
// A folder of its own below parent (NULL: $TMPDIR or /tmp); false: told.
bool bench_temp_folder(const char *parent, char *out, size_t cap);
void bench_remove_folder(const char *path); // a store, and the folder
uint64_t bench_counter(tamis_db *db, const char *name);
bool bench_check(const char *what, int status, const tamis_error *err); // false: told
int bench_code(bool ok); // exit code: also tells ^C, and INVALID options, from other failures
bool bench_number(const char *name, const char *typed, uint64_t *out); // with K, M, G; false: told

// ---- Plots (bench_svg.c) ------------------------------------------------------------------------

typedef struct svg_line {
    const char *name;
    const double *y; // as many as there are x; <= 0 is left out
} svg_line;
// A line plot with a logarithmic y axis. False: the file cannot be written.
bool bench_svg(const char *file, const char *title, const char *x_label, const char *y_label,
               const double *x, size_t n, const svg_line *lines, size_t line_count);

#endif // TAMIS_BENCH_H
