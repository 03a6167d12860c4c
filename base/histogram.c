// SPDX-License-Identifier: BSD-2-Clause
#include "base/histogram.h"

#include <stdatomic.h>

// Values below 16 have a bucket each. Above, a value with its highest bit at e (4 to 63) falls into
// one of 16 buckets by the four bits that follow:
//
//     bucket = (e - 3) * 16 + next four bits,    lower bound = (16 + next four bits) << (e - 4)
//
// All accesses are relaxed: the figures are read by nobody who needs them to agree to the last one.
#define RELAXED memory_order_relaxed

void tm_histogram_init(tm_histogram *h)
{
    for (size_t i = 0; i < TM_HISTOGRAM_BUCKETS; i++) atomic_init(&h->count[i], 0);
    atomic_init(&h->total, 0);
    atomic_init(&h->sum, 0);
    atomic_init(&h->max, 0);
}

size_t tm_histogram_bucket(uint64_t v)
{
    if (v < 16) return (size_t)v;
    unsigned e = 63u - (unsigned)__builtin_clzll(v);
    return (size_t)(e - 3) * 16 + (size_t)((v >> (e - 4)) & 15);
}

uint64_t tm_histogram_lower(size_t bucket)
{
    if (bucket < 16) return bucket;
    if (bucket >= TM_HISTOGRAM_BUCKETS) return UINT64_MAX;
    return (uint64_t)(16 + bucket % 16) << (bucket / 16 - 1);
}

static void raise_max(tm_histogram *h, uint64_t v)
{
    uint64_t max = atomic_load_explicit(&h->max, RELAXED);
    while (v > max && !atomic_compare_exchange_weak_explicit(&h->max, &max, v, RELAXED, RELAXED)) {}
}

void tm_histogram_add(tm_histogram *h, uint64_t v)
{
    atomic_fetch_add_explicit(&h->count[tm_histogram_bucket(v)], 1, RELAXED);
    atomic_fetch_add_explicit(&h->total, 1, RELAXED);
    atomic_fetch_add_explicit(&h->sum, v, RELAXED);
    raise_max(h, v);
}

void tm_histogram_merge(tm_histogram *to, const tm_histogram *from)
{
    for (size_t i = 0; i < TM_HISTOGRAM_BUCKETS; i++) {
        uint64_t n = atomic_load_explicit(&from->count[i], RELAXED);
        if (n != 0) atomic_fetch_add_explicit(&to->count[i], n, RELAXED);
    }
    atomic_fetch_add_explicit(&to->total, atomic_load_explicit(&from->total, RELAXED), RELAXED);
    atomic_fetch_add_explicit(&to->sum, atomic_load_explicit(&from->sum, RELAXED), RELAXED);
    raise_max(to, atomic_load_explicit(&from->max, RELAXED));
}

uint64_t tm_histogram_at(const tm_histogram *h, double q)
{
    uint64_t all = 0; // not total: what is counted below must add up even while others add
    for (size_t i = 0; i < TM_HISTOGRAM_BUCKETS; i++) {
        all += atomic_load_explicit(&h->count[i], RELAXED);
    }
    if (all == 0) return 0;
    double exact = q * (double)all;
    uint64_t rank = 1; // the rank-th smallest value is asked for; 1 too for a q that is no number
    if (exact >= (double)all) {
        rank = all;
    } else if (exact > 1) {
        rank = (uint64_t)exact;
        if ((double)rank < exact * (1 - 1e-12)) rank++; // 0.029 * 10000 is a hair above 290
    }
    uint64_t seen = 0, lower = 0;
    for (size_t i = 0; i < TM_HISTOGRAM_BUCKETS; i++) {
        uint64_t n = atomic_load_explicit(&h->count[i], RELAXED);
        if (n == 0) continue;
        lower = tm_histogram_lower(i);
        seen += n;
        if (seen >= rank) break;
    }
    return lower;
}
