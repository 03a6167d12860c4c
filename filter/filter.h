// SPDX-License-Identifier: BSD-2-Clause
//
// filter.h - filters over key hashes: built once from the keys of a partition, then asked.
//
// A filter says "no" (certainly absent) or "maybe". What is stored is an image: the contract, which
// says how the bits were made and what to expect of them, and the bits.
//
//   0                            64                                   64 * (1 + lines)
//   ┌────────────────────────────┬──────────────────────────────────────┐
//   │ contract                   │ bits, padded with zeros to 64 bytes  │
//   └────────────────────────────┴──────────────────────────────────────┘
//   0 kind 1 format 2 hash version 3 probes | 4 millibits | 8 seed | 16 keys expected
//   24 keys added | 32 bits | 40 set bits | 48 parameters of the kind (16, zero so far)
//
// INVARIANTS
//  F1  Never "no" for a key that was added. finish asks for every one of them before it returns.
//  F2  What is not understood says "maybe": an all-zero view, a view whose init failed, an unknown
//      kind.
//  F3  How an image is asked follows from its contract alone, never from options.
//  F4  An image has no checksum of its own; the block or the file around it has.
//
// filter knows hashes, not keys: all hashes of an image are tm_hash64 of a key with the contract's
// seed (hash version 1).
//
// Threads: a builder belongs to one thread; a view may be asked by any threads at once.
// Ownership: a view borrows the image. README.md specifies the bits; each kind has its own file.
#ifndef TM_FILTER_H
#define TM_FILTER_H

#include "base/buf.h"
#include "filter/blocked.h"

// The numbers stand in files. 3 and 4 are kept for Ribbon and binary fuse.
typedef enum tm_filter_kind {
    TM_FILTER_NONE = 0,
    TM_FILTER_BLOOM = 1,  // bloom.h: the textbook filter, k lines a lookup
    TM_FILTER_BLOCKED = 2 // blocked.h: one cache line a lookup
} tm_filter_kind;

#define TM_FILTER_HEADER        64 // bytes of the contract; an image's length is a multiple of it
#define TM_FILTER_FORMAT        1
#define TM_FILTER_HASH_XXH3     1
#define TM_FILTER_MIN_MILLIBITS 100u    // a tenth of a bit a key
#define TM_FILTER_MAX_MILLIBITS 100000u // 100 bits a key

typedef struct tm_filter_contract {
    uint8_t kind;         // tm_filter_kind
    uint8_t format;       // TM_FILTER_FORMAT
    uint8_t hash_version; // TM_FILTER_HASH_XXH3
    uint8_t probes;
    uint32_t millibits; // bits a key asked for, times 1,000; bits / keys is what it got
    uint64_t seed;
    uint64_t keys_expected; // that the size was chosen for
    uint64_t keys_added;    // distinct
    uint64_t bits;          // size of the bit array
    uint64_t set_bits;
} tm_filter_contract;

// "none", "bloom", "blocked"; "unknown" for a number that is none of them.
const char *tm_filter_kind_name(tm_filter_kind kind);
// INVALID, with the names there are, for anything else.
int tm_filter_kind_parse(const char *text, tm_filter_kind *out, tamis_error *err) TM_CHECK_RESULT;

// The false-positive rate to expect at keys_added keys, by the kind's exact formula. Takes some
// ten microseconds.
double tm_filter_expected_rate(const tm_filter_contract *c);

// ---- Building -----------------------------------------------------------------------------------

// Collects the hashes of one partition after another. Sizes are in whole 64-byte lines; what a
// partition's rounding left over goes to the next one, so that a table's average is exact.
typedef struct tm_filter_builder {
    tm_filter_kind kind;
    uint32_t millibits;
    uint64_t seed;
    uint64_t *hashes;
    size_t count, capacity;
    uint64_t carry_millibits; // left over by the partitions before
} tm_filter_builder;

// INVALID for an unknown kind, or millibits out of range. Of kind none, the builder collects
// nothing and its images are empty.
int tm_filter_builder_init(tm_filter_builder *b, tm_filter_kind kind, uint32_t millibits,
                           uint64_t seed, tamis_error *err) TM_CHECK_RESULT;
void tm_filter_builder_deinit(tm_filter_builder *b); // an all-zero builder is fine
// Equal hashes one after the other count once. NOMEM: nothing changed.
int tm_filter_builder_add(tm_filter_builder *b, uint64_t hash) TM_CHECK_RESULT;
size_t tm_filter_builder_keys(const tm_filter_builder *b);
// Length of the image if finished now. Cheap.
size_t tm_filter_builder_bytes(const tm_filter_builder *b);
// Appends the image to out and starts the next partition. contract may be NULL. Every hash is
// looked up in the finished bits; a miss is CORRUPT (memory or processor at fault). On failure out
// and the builder are as before.
int tm_filter_builder_finish(tm_filter_builder *b, tm_buf *out, tm_filter_contract *contract,
                             tamis_error *err) TM_CHECK_RESULT;

// ---- Asking -------------------------------------------------------------------------------------

typedef struct tm_filter_view {
    tm_filter_kind kind;
    uint32_t probes;
    uint64_t lines; // blocked: lines; bloom: bits
    const uint8_t *bits;
} tm_filter_view;

// Checks everything that can be checked without looking at the bits. UNSUPPORTED: a kind, format or
// hash version this library does not know; CORRUPT: lengths or counts that do not fit. On failure
// *v says "maybe" to everything. contract may be NULL. image is used in place; bits that start at
// an address divisible by 64 are fastest.
int tm_filter_view_init(tm_filter_view *v, tm_slice image, tm_filter_contract *contract,
                        tamis_error *err) TM_CHECK_RESULT;

bool tm_filter_may_contain_slow(const tm_filter_view *v, uint64_t hash); // kinds not inlined
void tm_filter_prefetch_slow(const tm_filter_view *v, uint64_t hash);

static inline void tm_filter_prefetch(const tm_filter_view *v, uint64_t hash)
{
    if (TM_LIKELY(v->kind == TM_FILTER_BLOCKED)) {
        __builtin_prefetch(tm_blocked_line(v->bits, v->lines, hash));
    } else {
        tm_filter_prefetch_slow(v, hash);
    }
}

static inline bool tm_filter_may_contain(const tm_filter_view *v, uint64_t hash)
{
    if (TM_LIKELY(v->kind == TM_FILTER_BLOCKED)) {
        // One line, all probes, no early exit. Where there are vectors, a call is worth it.
        return TM_BLOCKED_VECTORS ? tm_blocked_ask(v->bits, v->lines, v->probes, hash)
                                  : tm_blocked_test(v->bits, v->lines, v->probes, hash);
    }
    return tm_filter_may_contain_slow(v, hash);
}

// out[i] = tm_filter_may_contain(v, hashes[i]). Overlaps the memory waits, and uses vector
// instructions where the processor has them.
void tm_filter_may_contain_many(const tm_filter_view *v, const uint64_t *hashes, size_t n,
                                bool *out);
// true if the filter says "maybe" to all; else *missing (may be NULL) gets the index of the first
// "no".
bool tm_filter_contains_all(const tm_filter_view *v, const uint64_t *hashes, size_t n,
                            size_t *missing);

// ---- What the bits tell -------------------------------------------------------------------------

// Counted from the bits as they are, whatever the contract says: a filter that was filled beyond
// its plan shows here.
typedef struct tm_filter_observed {
    uint64_t set_bits;
    double fill; // set bits / bits
    double rate; // false-positive rate by the fill (blocked: mean over the lines)
    double keys; // estimated number of distinct keys
} tm_filter_observed;
void tm_filter_observe(const tm_filter_view *v, tm_filter_observed *out);

// ---- Images -------------------------------------------------------------------------------------

void tm_filter_contract_encode(const tm_filter_contract *c, uint8_t out[TM_FILTER_HEADER]);
// Bytes of the bit array with its padding: a multiple of 64.
static inline uint64_t tm_filter_array_bytes(uint64_t bits)
{
    return (bits / TM_BLOCKED_LINE_BITS + (bits % TM_BLOCKED_LINE_BITS != 0)) *
           TM_BLOCKED_LINE_BYTES;
}

#endif // TM_FILTER_H
