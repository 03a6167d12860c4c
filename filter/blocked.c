// SPDX-License-Identifier: BSD-2-Clause
#include "filter/blocked.h"

#include "filter/filter_kinds.h"
#include "filter/filter_math.h"

static inline uint64_t add_fields(uint8_t *line, uint64_t g, uint32_t count)
{
    uint64_t clear = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *byte = line + (g >> 58);
        unsigned bit = 1u << (g >> 55 & 7);
        clear |= ~*byte & bit;
        *byte = (uint8_t)(*byte | bit);
        g <<= 9;
    }
    return clear;
}

bool tm_blocked_add(uint8_t *bits, uint64_t lines, uint32_t probes, uint64_t hash)
{
    uint8_t *line = bits + tm_mulhi64(hash, lines) * TM_BLOCKED_LINE_BYTES;
    uint32_t first = TM_MIN(probes, TM_BLOCKED_PROBES_PER_MUL);
    uint64_t g = hash * TM_BLOCKED_MUL_1;
    uint64_t clear = add_fields(line, g, first);
    clear |= add_fields(line, tm_blocked_second(g), probes - first);
    return clear != 0;
}

// from[k] is the number of thousandths of bits a key from which k + 1 probes err less often than k,
// by tm_filter_rate_blocked at 256 lines. It is the bits there are after rounding that count, not
// those asked for.
uint32_t tm_blocked_best_probes(uint64_t millibits)
{
    static const uint32_t from[TM_BLOCKED_MAX_PROBES] = {
        0, 2082, 3585, 5104, 6673, 8316, 10055, 11916, 13925, 16113, 18511, 21162, 24108, 27398};
    uint32_t k = 1;
    while (k < TM_BLOCKED_MAX_PROBES && millibits >= from[k]) k++;
    return k;
}

// ---- As a kind ----------------------------------------------------------------------------------

static uint32_t best_probes(uint64_t keys, uint64_t bits)
{
    uint64_t whole = bits / keys, rest = bits % keys;
    if (whole >= 1000) return TM_BLOCKED_MAX_PROBES;
    uint64_t thousandths = rest < UINT64_MAX / 1000 ? rest * 1000 / keys : 0;
    return tm_blocked_best_probes(whole * 1000 + thousandths);
}

static size_t add_many(uint8_t *bits, const tm_filter_contract *c, const uint64_t *hashes, size_t n)
{
    enum { AHEAD = 8 };
    uint64_t lines = c->bits / TM_BLOCKED_LINE_BITS;
    size_t changed = 0;
    for (size_t i = 0; i < n; i++) {
        if (n - i > AHEAD) {
            __builtin_prefetch(tm_blocked_line(bits, lines, hashes[i + AHEAD]), 1);
        }
        changed += tm_blocked_add(bits, lines, c->probes, hashes[i]);
    }
    return changed;
}

static uint64_t view_lines(uint64_t bits)
{
    return bits / TM_BLOCKED_LINE_BITS;
}

static bool test(const tm_filter_view *v, uint64_t hash)
{
    return tm_blocked_ask(v->bits, v->lines, v->probes, hash);
}

static void test_many(const tm_filter_view *v, const uint64_t *hashes, size_t n, bool *out)
{
    tm_blocked_ask_many(v->bits, v->lines, v->probes, hashes, n, out);
}

static void prefetch(const tm_filter_view *v, uint64_t hash)
{
    __builtin_prefetch(tm_blocked_line(v->bits, v->lines, hash));
}

static double expected_rate(uint64_t keys, uint64_t bits, uint32_t probes)
{
    return tm_filter_rate_blocked(keys, bits / TM_BLOCKED_LINE_BITS, probes);
}

// Line by line: a whole-array fill would hide that full lines err more than empty ones save.
static void observe(const tm_filter_view *v, const uint8_t *also, tm_filter_observed *out)
{
    // Both depend only on how many bits of a line are set.
    uint64_t lines_with[TM_BLOCKED_LINE_BITS + 1] = {0};
    for (uint64_t line = 0; line < v->lines; line++) {
        uint64_t begin = line * TM_BLOCKED_LINE_BYTES;
        unsigned set = 0;
        for (uint64_t at = begin; at < begin + TM_BLOCKED_LINE_BYTES; at += 8) {
            uint64_t word = tm_get64(v->bits + at) | (also != NULL ? tm_get64(also + at) : 0);
            set += (unsigned)__builtin_popcountll(word);
        }
        lines_with[set]++;
    }
    *out = (tm_filter_observed){0};
    for (uint32_t set = 1; set <= TM_BLOCKED_LINE_BITS; set++) {
        if (lines_with[set] == 0) continue;
        double count = (double)lines_with[set];
        out->set_bits += set * lines_with[set];
        out->rate += count * tm_filter_rate_of_fill(set, TM_BLOCKED_LINE_BITS, v->probes);
        out->keys += count * tm_filter_keys_of_fill(set, TM_BLOCKED_LINE_BITS, v->probes);
    }
    out->rate /= (double)v->lines;
    out->fill = (double)out->set_bits / ((double)v->lines * TM_BLOCKED_LINE_BITS);
}

const tm_filter_ops tm_blocked_ops = {
    .name = "blocked",
    .max_probes = TM_BLOCKED_MAX_PROBES,
    .whole_lines = true,
    .best_probes = best_probes,
    .add_many = add_many,
    .view_lines = view_lines,
    .test = test,
    .test_many = test_many,
    .prefetch = prefetch,
    .expected_rate = expected_rate,
    .observe = observe,
};
