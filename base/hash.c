// SPDX-License-Identifier: BSD-2-Clause
//
// The functions are called in the library, never inlined (see hash.h). The streaming state is laid
// out by the header, which xxHash keeps fixed within 0.8.
#include "base/hash.h"

#include "base/mem.h"

#define XXH_STATIC_LINKING_ONLY // the type XXH3_state_t
#include <xxhash.h>

uint64_t tm_hash64(const void *data, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, n, seed);
}

uint64_t tm_checksum(const void *data, size_t n)
{
    return XXH3_64bits(data, n);
}

uint64_t tm_checksum2(const void *a, size_t an, const void *b, size_t bn)
{
    if (bn == 0) return tm_checksum(a, an);
    if (an == 0) return tm_checksum(b, bn);
    uint8_t both[256]; // short inputs: cheaper than setting up a state
    if (an <= sizeof(both) && bn <= sizeof(both) - an) {
        memcpy(both, a, an);
        memcpy(both + an, b, bn);
        return tm_checksum(both, an + bn);
    }
    XXH3_state_t state; // aligned to 64 by its type
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, a, an);
    XXH3_64bits_update(&state, b, bn);
    return XXH3_64bits_digest(&state);
}

struct tm_digest {
    XXH3_state_t state;
};

tm_digest *tm_digest_create(void)
{
    tm_digest *d = tm_alloc_aligned(_Alignof(tm_digest), sizeof(*d));
    if (d != NULL) XXH3_128bits_reset(&d->state);
    return d;
}

void tm_digest_update(tm_digest *d, const void *data, size_t n)
{
    if (n != 0) XXH3_128bits_update(&d->state, data, n);
}

void tm_digest_final(const tm_digest *d, uint8_t out[16])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&d->state));
    memcpy(out, canonical.digest, 16);
}

void tm_digest_destroy(tm_digest *d)
{
    tm_free(d);
}
