// SPDX-License-Identifier: BSD-2-Clause
//
// random.h - a small seeded generator (SplitMix64) for tests, skip-list heights and choices that
// need no secrecy. Secrets come from tamis_vfs.random.
#ifndef TM_RANDOM_H
#define TM_RANDOM_H

#include "base/hash.h"

typedef struct tm_random {
    uint64_t state;
} tm_random;

static inline tm_random tm_random_seed(uint64_t seed)
{
    return (tm_random){seed};
}
static inline uint64_t tm_random_next(tm_random *r)
{
    r->state += 0x9e3779b97f4a7c15u;
    return tm_mix64(r->state);
}
// Even over [0, n); n > 0.
static inline uint64_t tm_random_below(tm_random *r, uint64_t n)
{
    return tm_mulhi64(tm_random_next(r), n);
}

#endif // TM_RANDOM_H
