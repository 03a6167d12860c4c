// SPDX-License-Identifier: BSD-2-Clause
//
// bloom.h - kind "bloom": the textbook Bloom filter (Bloom, "Space/time trade-offs in hash coding
// with allowable errors", 1970). k probes anywhere in m bits; the fewest bits of the Bloom family,
// and k cache misses a positive.
//
// Positions come from one 64-bit hash h by double hashing (Kirsch, Mitzenmacher, "Less hashing,
// same performance", 2006) with a quadratic and a cubic term (Dillinger, Manolios, "Bloom filters
// in probabilistic verification", 2004), all modulo 2^64:
//
//   a = h                 position of a probe: floor(a * m / 2^64)
//   b = mix(h * G, 32)    after each probe: a += b; b += c; c += G
//   c = mix(h * P, 29)    mix(x, s) = x XOR (x >> s)
//
// The plain a + i * b has only about m^2 patterns: with m = 512 and k = 14 its false-positive rate
// is 8 times that of independent probes; with both terms it is the same within 1 %.
//
// Bit p of the array is bit p % 8 of byte p / 8.
// Threads: tests may run at once on bits that nobody changes.
#ifndef TM_BLOOM_H
#define TM_BLOOM_H

#include "base/base.h"

#define TM_BLOOM_MAX_PROBES 30
#define TM_BLOOM_G          UINT64_C(0x9e3779b97f4a7c15)
#define TM_BLOOM_P          UINT64_C(0xc2b2ae3d27d4eb4f)

struct tm_filter_ops; // filter_kinds.h
extern const struct tm_filter_ops tm_bloom_ops;

// Sets the bits of hash; true if one of them was clear.
bool tm_bloom_add(uint8_t *bits, uint64_t m, uint32_t probes, uint64_t hash);
bool tm_bloom_test(const uint8_t *bits, uint64_t m, uint32_t probes, uint64_t hash);
// The best number of probes for keys keys in m bits: 1 to 30.
uint32_t tm_bloom_best_probes(uint64_t keys, uint64_t m);

#endif // TM_BLOOM_H
