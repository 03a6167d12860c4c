// SPDX-License-Identifier: BSD-2-Clause
//
// hash.h - XXH3: checksums of what is stored, seeded hashes of keys, digests of files.
//
// Only byte buffers are hashed. (An inlined XXH3 over the address of an integer has been
// miscompiled into a constant; the functions here live in a file of their own and take void
// pointers.)
#ifndef TM_HASH_H
#define TM_HASH_H

#include "base/slice.h"

uint64_t tm_hash64(const void *data, size_t n, uint64_t seed); // XXH3-64 with seed
uint64_t tm_checksum(const void *data, size_t n);              // XXH3-64, seed 0
// XXH3-64, seed 0, of a and b standing one behind the other.
uint64_t tm_checksum2(const void *a, size_t an, const void *b, size_t bn);

// XXH3-128 over a stream of pieces.
typedef struct tm_digest tm_digest;
tm_digest *tm_digest_create(void); // NULL if out of memory
void tm_digest_update(tm_digest *d, const void *data, size_t n);
void tm_digest_final(const tm_digest *d, uint8_t out[16]); // the canonical (big-endian) 16 bytes
void tm_digest_destroy(tm_digest *d);

// A mixer of 64-bit values (the finaliser of SplitMix64); a bijection.
static inline uint64_t tm_mix64(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

#endif // TM_HASH_H
