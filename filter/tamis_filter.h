// SPDX-License-Identifier: BSD-2-Clause
//
// tamis_filter.h - approximate sets of keys, usable without a store: to guard a slow lookup, or to
// learn how filters behave. A filter answers "certainly not added" or "maybe added"; never wrongly
// "not".
//
//     tamis_filter_params p = tamis_filter_params_init();
//     p.expected_keys = 1000000;
//     p.rate = 0.01;
//     tamis_filter *f;
//     if (tamis_filter_create(&p, &f, &err) != TAMIS_OK) ...
//     tamis_filter_add(f, "key", 3);
//     if (tamis_filter_may_contain(f, key, len)) look_it_up();
//     tamis_filter_free(f);
//
// RULES
//  Status    Functions that can fail return int: TAMIS_OK (0) or a negative tamis_status. The last
//            argument err may be NULL.
//  Bytes     Keys are (pointer, length): any bytes, empty allowed, NULL allowed where the length
//            is 0. The encoding of keys is the caller's, and must stay the same.
//  Options   A struct starts with its own size; new fields are only appended.
//  Threads   One thread may change a filter; or any number may ask it at once.
//  Trust     The hash is seeded, which keeps ordinary users from crafting keys that hit; it is no
//            cryptographic guarantee.
#ifndef TAMIS_FILTER_H
#define TAMIS_FILTER_H

#include "tamis_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tamis_filter tamis_filter;

// The numbers stand in images.
typedef enum tamis_filter_kind {
    TAMIS_FILTER_DEFAULT = 0, // blocked
    TAMIS_FILTER_BLOOM = 1,   // the textbook Bloom filter: fewest bits of the two
    TAMIS_FILTER_BLOCKED = 2  // all probes of a key in one cache line: fastest; 4 % larger at 1 %
} tamis_filter_kind;

// ---- Create -------------------------------------------------------------------------------------

typedef struct tamis_filter_params {
    size_t size;            // sizeof(tamis_filter_params)
    int32_t kind;           // tamis_filter_kind
    uint32_t probes;        // bits set for a key; 0 = the best number. Changes no size
    uint64_t expected_keys; // > 0; more may be added, at a rising rate
    // How large: one of the two, the other 0. Both 0 is 10 bits a key.
    double rate;         // false-positive rate at expected_keys, above 0 and below 1
    double bits_per_key; // 0.1 to 100, fractions allowed
    uint64_t seed;       // of the hash; filters that are to be united need the same
} tamis_filter_params;
static inline tamis_filter_params tamis_filter_params_init(void)
{
    tamis_filter_params p = {sizeof(tamis_filter_params), 0, 0, 0, 0, 0, 0};
    return p;
}

// *out is NULL on failure. INVALID names the parameter that is out of range; TOOLARGE if the bits
// do not fit into the address space; NOMEM.
TAMIS_API TAMIS_CHECK_RESULT int tamis_filter_create(const tamis_filter_params *params,
                                                     tamis_filter **out, tamis_error *err);
TAMIS_API void tamis_filter_free(tamis_filter *f); // NULL is fine
// Takes all keys out again.
TAMIS_API void tamis_filter_clear(tamis_filter *f);

// ---- Add and ask --------------------------------------------------------------------------------

// 1 if the key changed the filter; 0 if it may have been there before: adding a key again changes
// nothing. Never fails.
TAMIS_API int tamis_filter_add(tamis_filter *f, const void *key, size_t len);
// 0: certainly not added. 1: maybe.
TAMIS_API int tamis_filter_may_contain(const tamis_filter *f, const void *key, size_t len);

// The hash that the two above make of a key: XXH3-64 with the filter's seed. Made once, it serves
// any number of filters of one seed. Hashes of another origin are fine too, if all their 64 bits
// are evenly spread.
TAMIS_API uint64_t tamis_filter_hash(const tamis_filter *f, const void *key, size_t len);
TAMIS_API int tamis_filter_add_hash(tamis_filter *f, uint64_t hash);
TAMIS_API int tamis_filter_may_contain_hash(const tamis_filter *f, uint64_t hash);

// Batches: memory waits overlap, and vector instructions are used where the processor has them.
// add returns how many keys changed the filter. may_contain sets out[i] to 0 or 1, and returns how
// many are 1.
TAMIS_API size_t tamis_filter_add_many(tamis_filter *f, const tamis_slice *keys, size_t n);
TAMIS_API size_t tamis_filter_add_hashes(tamis_filter *f, const uint64_t *hashes, size_t n);
TAMIS_API size_t tamis_filter_may_contain_many(const tamis_filter *f, const tamis_slice *keys,
                                               size_t n, uint8_t *out);
TAMIS_API size_t tamis_filter_may_contain_hashes(const tamis_filter *f, const uint64_t *hashes,
                                                 size_t n, uint8_t *out);

// ---- Describe -----------------------------------------------------------------------------------

typedef struct tamis_filter_info {
    size_t size;      // sizeof(tamis_filter_info), set by the caller
    int32_t kind;     // tamis_filter_kind
    uint32_t probes;  // bits set for a key
    const char *name; // of the kind; static
    uint64_t seed;
    uint64_t bits;  // size of the bit array
    uint64_t bytes; // memory used
    uint64_t expected_keys;
    uint64_t added_keys;  // adds that changed the filter: distinct keys, nearly
    double bits_per_key;  // bits / expected_keys
    double expected_rate; // false-positive rate at expected_keys, by the kind's exact formula
    double rate_at_added; // the same at added_keys
    // Counted from the bits; 0 from tamis_filter_plan.
    uint64_t set_bits;
    double fill;           // set_bits / bits; about 0.5 at expected_keys
    double rate_from_fill; // false-positive rate that the bits as they are must give
    double estimated_keys; // distinct keys that the bits speak of; a lower limit when all are set
} tamis_filter_info;

// What tamis_filter_create would build, without building it.
TAMIS_API TAMIS_CHECK_RESULT int tamis_filter_plan(const tamis_filter_params *params,
                                                   tamis_filter_info *out, tamis_error *err);
// Looks at every bit: time grows with the filter.
TAMIS_API TAMIS_CHECK_RESULT int tamis_filter_describe(const tamis_filter *f,
                                                       tamis_filter_info *out, tamis_error *err);

// ---- Unite --------------------------------------------------------------------------------------

// dst then holds the keys of both. INVALID, with what differs, unless kind, bits, probes and seed
// are equal; dst is unchanged then.
TAMIS_API TAMIS_CHECK_RESULT int tamis_filter_union(tamis_filter *dst, const tamis_filter *src,
                                                    tamis_error *err);
// How many distinct keys are in a or b, and how many in both, by the bits. Either pointer may be
// NULL. INVALID as for the union.
TAMIS_API TAMIS_CHECK_RESULT int tamis_filter_overlap(const tamis_filter *a, const tamis_filter *b,
                                                      double *either, double *both,
                                                      tamis_error *err);

// ---- Store and load -----------------------------------------------------------------------------

// An image is the same on every machine, says its own version, and ends with nothing: its length is
// part of what is checked.
TAMIS_API uint64_t tamis_filter_image_size(const tamis_filter *f);
// Writes the image to buf. *len (may be NULL) gets its length; TOOLARGE if that is above cap, with
// nothing written.
TAMIS_API TAMIS_CHECK_RESULT int tamis_filter_store(const tamis_filter *f, void *buf, size_t cap,
                                                    size_t *len, tamis_error *err);
// A copy is made; buf may go. UNSUPPORTED: a newer format, or a kind or hash that this library does
// not know. CORRUPT: not an image, or damaged; every changed byte is noticed.
TAMIS_API TAMIS_CHECK_RESULT int tamis_filter_load(const void *buf, size_t len, tamis_filter **out,
                                                   tamis_error *err);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // TAMIS_FILTER_H
