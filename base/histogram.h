// SPDX-License-Identifier: BSD-2-Clause
//
// histogram.h - log-linear counts of latencies or sizes: 16 buckets a power of two, so that every
// figure is right within 1/16.
//
// Threads: add is a relaxed atomic and may run beside others; reading gives a close picture.
#ifndef TM_HISTOGRAM_H
#define TM_HISTOGRAM_H

#include "base/base.h"

enum { TM_HISTOGRAM_BUCKETS = 61 * 16 };

typedef struct tm_histogram {
    _Atomic uint64_t count[TM_HISTOGRAM_BUCKETS];
    _Atomic uint64_t total, sum, max;
} tm_histogram;

void tm_histogram_init(tm_histogram *h);
void tm_histogram_add(tm_histogram *h, uint64_t v);
void tm_histogram_merge(tm_histogram *to, const tm_histogram *from);
// The value below which a share q (0 to 1) of all lies, as its bucket's lower bound; 0 if empty.
uint64_t tm_histogram_at(const tm_histogram *h, double q);
size_t tm_histogram_bucket(uint64_t v);
uint64_t tm_histogram_lower(size_t bucket);

#endif // TM_HISTOGRAM_H
