// SPDX-License-Identifier: BSD-2-Clause
//
// filter_kinds.h - what a kind of filter must be able to do. Inside filter/ only; a new kind is a
// file with one such table, and a line in filter.c.
#ifndef TM_FILTER_KINDS_H
#define TM_FILTER_KINDS_H

#include "filter/filter.h"

typedef struct tm_filter_ops {
    const char *name;
    uint32_t max_probes;
    // The bit array is made of whole lines of 64 bytes.
    bool whole_lines;
    // Probes that give the lowest rate for so many keys in so many bits; keys > 0, bits > 0.
    uint32_t (*best_probes)(uint64_t keys, uint64_t bits);
    // Sets the bits of all hashes; returns how many of them changed a bit.
    size_t (*add_many)(uint8_t *bits, const tm_filter_contract *c, const uint64_t *hashes,
                       size_t n);
    // What a view keeps of the contract's bits.
    uint64_t (*view_lines)(uint64_t bits);
    bool (*test)(const tm_filter_view *v, uint64_t hash);
    void (*test_many)(const tm_filter_view *v, const uint64_t *hashes, size_t n, bool *out);
    void (*prefetch)(const tm_filter_view *v, uint64_t hash);
    double (*expected_rate)(uint64_t keys, uint64_t bits, uint32_t probes);
    // Of the bits of v, united with those of `also` (as many; or NULL).
    void (*observe)(const tm_filter_view *v, const uint8_t *also, tm_filter_observed *out);
} tm_filter_ops;

// NULL for none and for unknown kinds.
const tm_filter_ops *tm_filter_ops_of(uint32_t kind);

#endif // TM_FILTER_KINDS_H
