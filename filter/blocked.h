// SPDX-License-Identifier: BSD-2-Clause
//
// blocked.h - kind "blocked": a Bloom filter whose probes for one key fall in one 64-byte line, so
// that a lookup costs one cache miss (Putze, Sanders, Singler, "Cache-, hash- and space-efficient
// Bloom filters", 2007).
//
//   hash ──► line = floor(hash * lines / 2^64)          64 bytes, bits 0 to 511
//        ──► g = hash * TM_BLOCKED_MUL_1 mod 2^64
//
//            63       55 54       46 45                 9 8         1 0
//           ┌───────────┬───────────┬──── ... ──┬───────────┬───┐
//         g │  probe 0  │  probe 1  │           │  probe 6  │   │
//           └───────────┴───────────┴───────────┴───────────┴───┘
//
// Probes 7 to 13 are cut in the same way from (g XOR (g >> 32)) * TM_BLOCKED_MUL_2. (From hash
// times another constant, probes 6 and 13 would both depend on the low 10 bits of hash alone.)
// Bit p of a line is bit p % 8 of its byte p / 8. This is the specification; the vector forms in
// blocked_simd.c give the same answers.
//
// Threads: tests may run at once on bits that nobody changes.
#ifndef TM_BLOCKED_H
#define TM_BLOCKED_H

#include "base/coding.h"

#define TM_BLOCKED_LINE_BYTES     64
#define TM_BLOCKED_LINE_BITS      512
#define TM_BLOCKED_MAX_PROBES     14
#define TM_BLOCKED_PROBES_PER_MUL 7
#define TM_BLOCKED_MUL_1          UINT64_C(0x9e3779b97f4a7c15)
#define TM_BLOCKED_MUL_2          UINT64_C(0xc2b2ae3d27d4eb4f)

struct tm_filter_ops; // filter_kinds.h
extern const struct tm_filter_ops tm_blocked_ops;

// The number that probes 7 to 13 are cut from.
static inline uint64_t tm_blocked_second(uint64_t g)
{
    return (g ^ g >> 32) * TM_BLOCKED_MUL_2;
}

static inline const uint8_t *tm_blocked_line(const uint8_t *bits, uint64_t lines, uint64_t hash)
{
    return bits + tm_mulhi64(hash, lines) * TM_BLOCKED_LINE_BYTES;
}

// Bit 0 of the result: the first count probes cut from g are all set. One line is in the cache or
// it is not, so leaving early would save nothing and cost a mispredicted branch for each negative.
static inline uint64_t tm_blocked_test_fields(const uint8_t *line, uint64_t g, uint32_t count)
{
    uint64_t all = 1;
    for (uint32_t i = 0; i < count; i++) {
        all &= tm_get64(line + 8 * (g >> 61)) >> (g >> 55 & 63);
        g <<= 9;
    }
    return all;
}

static inline bool tm_blocked_test(const uint8_t *bits, uint64_t lines, uint32_t probes,
                                   uint64_t hash)
{
    const uint8_t *line = tm_blocked_line(bits, lines, hash);
    uint64_t g = hash * TM_BLOCKED_MUL_1;
    if (TM_LIKELY(probes <= TM_BLOCKED_PROBES_PER_MUL)) {
        return (tm_blocked_test_fields(line, g, probes) & 1) != 0;
    }
    uint64_t all = tm_blocked_test_fields(line, g, TM_BLOCKED_PROBES_PER_MUL);
    all &= tm_blocked_test_fields(line, tm_blocked_second(g), probes - TM_BLOCKED_PROBES_PER_MUL);
    return (all & 1) != 0;
}

// Sets the bits of hash; true if one of them was clear.
bool tm_blocked_add(uint8_t *bits, uint64_t lines, uint32_t probes, uint64_t hash);

// The best number of probes at bits bits a key, in thousandths: 1 to 14.
uint32_t tm_blocked_best_probes(uint64_t millibits);

// ---- By the fastest form this processor has -----------------------------------------------------

// 0: there are only the plain forms. A build may say so (-DTM_BLOCKED_VECTORS=0).
#ifndef TM_BLOCKED_VECTORS
#if defined(__x86_64__) && defined(__GNUC__)
#define TM_BLOCKED_VECTORS 1
#else
#define TM_BLOCKED_VECTORS 0
#endif
#endif

// = tm_blocked_test
bool tm_blocked_ask(const uint8_t *bits, uint64_t lines, uint32_t probes, uint64_t hash);
// out[i] = tm_blocked_test(bits, lines, probes, hashes[i]), with the lines fetched ahead.
void tm_blocked_ask_many(const uint8_t *bits, uint64_t lines, uint32_t probes,
                         const uint64_t *hashes, size_t n, bool *out);

// The forms there are, for tests and benchmarks. Form 0 is the plain C one.
typedef struct tm_blocked_form {
    const char *name;
    bool supported; // by this processor
    bool (*test)(const uint8_t *bits, uint64_t lines, uint32_t probes, uint64_t hash);
    void (*test_many)(const uint8_t *bits, uint64_t lines, uint32_t probes, const uint64_t *hashes,
                      size_t n, bool *out);
} tm_blocked_form;
#define TM_BLOCKED_FORMS 3
// i < TM_BLOCKED_FORMS; forms that this build lacks are not supported and have NULL functions.
tm_blocked_form tm_blocked_form_at(size_t i);

#endif // TM_BLOCKED_H
