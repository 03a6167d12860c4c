// SPDX-License-Identifier: BSD-2-Clause
#include "filter/bloom.h"

#include "filter/filter_kinds.h"
#include "filter/filter_math.h"

// The sequence of one key's positions; see bloom.h.
typedef struct probe_seq {
    uint64_t a, b, c;
} probe_seq;

static inline probe_seq probe_seq_of(uint64_t hash)
{
    uint64_t b = hash * TM_BLOOM_G, c = hash * TM_BLOOM_P;
    return (probe_seq){hash, b ^ b >> 32, c ^ c >> 29};
}

static inline uint64_t probe_next(probe_seq *s, uint64_t m)
{
    uint64_t position = tm_mulhi64(s->a, m);
    s->a += s->b;
    s->b += s->c;
    s->c += TM_BLOOM_G;
    return position;
}

bool tm_bloom_add(uint8_t *bits, uint64_t m, uint32_t probes, uint64_t hash)
{
    probe_seq s = probe_seq_of(hash);
    unsigned clear = 0;
    for (uint32_t i = 0; i < probes; i++) {
        uint64_t p = probe_next(&s, m);
        unsigned bit = 1u << (p & 7);
        clear |= ~bits[p >> 3] & bit;
        bits[p >> 3] = (uint8_t)(bits[p >> 3] | bit);
    }
    return clear != 0;
}

bool tm_bloom_test(const uint8_t *bits, uint64_t m, uint32_t probes, uint64_t hash)
{
    probe_seq s = probe_seq_of(hash);
    for (uint32_t i = 0; i < probes; i++) {
        uint64_t p = probe_next(&s, m);
        if ((bits[p >> 3] >> (p & 7) & 1) == 0) return false;
    }
    return true;
}

uint32_t tm_bloom_best_probes(uint64_t keys, uint64_t m)
{
    uint32_t k = tm_filter_probes_standard((double)m / (double)TM_MAX(keys, 1));
    return TM_MIN(k, TM_BLOOM_MAX_PROBES);
}

// ---- As a kind ----------------------------------------------------------------------------------

static size_t add_many(uint8_t *bits, const tm_filter_contract *c, const uint64_t *hashes, size_t n)
{
    size_t changed = 0;
    for (size_t i = 0; i < n; i++) changed += tm_bloom_add(bits, c->bits, c->probes, hashes[i]);
    return changed;
}

static uint64_t view_lines(uint64_t bits)
{
    return bits;
}

static bool test(const tm_filter_view *v, uint64_t hash)
{
    return tm_bloom_test(v->bits, v->lines, v->probes, hash);
}

static void prefetch(const tm_filter_view *v, uint64_t hash)
{
    // The first probe alone: half of the absent keys end there.
    __builtin_prefetch(v->bits + (tm_mulhi64(hash, v->lines) >> 3));
}

static void test_many(const tm_filter_view *v, const uint64_t *hashes, size_t n, bool *out)
{
    enum { AHEAD = 8 };
    for (size_t i = 0; i < n && i < AHEAD; i++) prefetch(v, hashes[i]);
    for (size_t i = 0; i < n; i++) {
        if (n - i > AHEAD) prefetch(v, hashes[i + AHEAD]);
        out[i] = test(v, hashes[i]);
    }
}

static double expected_rate(uint64_t keys, uint64_t bits, uint32_t probes)
{
    return tm_filter_rate_standard((double)keys, (double)bits, probes);
}

static void observe(const tm_filter_view *v, const uint8_t *also, tm_filter_observed *out)
{
    uint64_t set = 0;
    for (uint64_t at = 0; at < tm_filter_array_bytes(v->lines); at += 8) {
        uint64_t word = tm_get64(v->bits + at) | (also != NULL ? tm_get64(also + at) : 0);
        set += (uint64_t)__builtin_popcountll(word);
    }
    out->set_bits = set;
    out->fill = (double)set / (double)v->lines;
    out->rate = tm_filter_rate_of_fill(set, v->lines, v->probes);
    out->keys = tm_filter_keys_of_fill(set, v->lines, v->probes);
}

const tm_filter_ops tm_bloom_ops = {
    .name = "bloom",
    .max_probes = TM_BLOOM_MAX_PROBES,
    .whole_lines = false,
    .best_probes = tm_bloom_best_probes,
    .add_many = add_many,
    .view_lines = view_lines,
    .test = test,
    .test_many = test_many,
    .prefetch = prefetch,
    .expected_rate = expected_rate,
    .observe = observe,
};
