// SPDX-License-Identifier: BSD-2-Clause
//
// block.h - access to a decoded block of entries: data blocks, index blocks, the top level.
//
// The raw bytes (docs/format.md, "Entries") stand column-wise; nothing is rebuilt but the array of
// offsets, which the owner of the memory makes room for:
//
//   raw:  fixed 20 | prefix | pad | heads | suffix lengths | value lengths | seqs | kinds | entries
//                                                                                           ^ ^ ^
//   offsets: [0] [1] ... [n] ------------ where each entry's bytes begin, and the end of all -'-'-'
//
//   key i = prefix + head i (first 4 bytes of the suffix, as a number) + rest (in the entry)
//
// Entry i's value ends where entry i + 1 begins. A search compares 4-byte heads only, without a
// branch, and looks at whole keys where heads are equal.
//
// INVARIANTS
//  B1  After tm_block_init said OK, every accessor with i < n and every search stays inside raw,
//      whatever the bytes are. That entries are in order is not checked: a search in a block that
//      is out of order gives some position in 0..n.
//  B2  n may be 0.
//
// Ownership: raw and offsets are borrowed and must outlive the tm_block, which holds no memory of
// its own and may be moved. Threads: immutable after init.
#ifndef TM_BLOCK_H
#define TM_BLOCK_H

#include "base/ikey.h"
#include "sstable/format.h"

#define TM_BLOCK_FIXED 20u // bytes before the prefix

#define TM_ENTRIES_HEADS 1u
#define TM_ENTRIES_ONE_SUFFIX_LEN 2u
#define TM_ENTRIES_ONE_VALUE_LEN 4u
#define TM_ENTRIES_ONE_SEQ 8u
#define TM_ENTRIES_ONE_KIND 16u
#define TM_ENTRIES_WIDE_SEQ 32u    // deltas of 8 bytes, else 4
#define TM_ENTRIES_WIDE_SUFFIX 64u // suffix lengths of 2 bytes, else 1

typedef struct tm_block {
    const uint8_t *raw;
    const uint32_t *offsets;  // n + 1, from raw
    const uint8_t *prefix;
    const uint8_t *heads;     // NULL: none, a suffix is a whole key and stands in the entry
    const uint8_t *suffixes;  // column of suffix lengths; NULL: all are suffix_len
    const uint8_t *seqs;      // column of deltas; NULL: all are base_seq
    const uint8_t *kinds;     // NULL: all are kind
    uint64_t base_seq;
    uint32_t n;
    uint16_t prefix_len, suffix_len;
    uint8_t kind;
    uint8_t flags;            // TM_ENTRIES_*
} tm_block;

// entries: of the frame. bytewise: of the table (heads must be there exactly then). offsets: room
// for entries + 1 numbers. file_number, offset: for the message of CORRUPT.
int tm_block_init(tm_block *b, tm_slice raw, uint32_t entries, bool bytewise, uint32_t *offsets,
                  uint64_t file_number, uint64_t offset, tamis_error *err) TM_CHECK_RESULT;

// ---- Entries -----------------------------------------------------------------------------------

static inline uint32_t tm_block_head(const tm_block *b, uint32_t i) // with heads only
{
    return tm_get32(b->heads + (size_t)i * 4);
}
static inline uint32_t tm_block_suffix_len(const tm_block *b, uint32_t i)
{
    if (TM_LIKELY(b->suffixes == NULL)) return b->suffix_len;
    if (b->flags & TM_ENTRIES_WIDE_SUFFIX) return tm_get16(b->suffixes + (size_t)i * 2);
    return b->suffixes[i];
}
static inline uint32_t tm_block_key_len(const tm_block *b, uint32_t i)
{
    return b->prefix_len + tm_block_suffix_len(b, i);
}
// What stands in the entry of the key: the suffix behind its head, or all of it without heads.
static inline uint32_t tm_block_rest_len(const tm_block *b, uint32_t i)
{
    uint32_t s = tm_block_suffix_len(b, i);
    if (b->heads == NULL) return s;
    return s > 4 ? s - 4 : 0;
}
static inline tm_slice tm_block_rest(const tm_block *b, uint32_t i)
{
    return tm_slice_of(b->raw + b->offsets[i], tm_block_rest_len(b, i));
}
static inline tm_slice tm_block_value(const tm_block *b, uint32_t i)
{
    uint32_t from = b->offsets[i] + tm_block_rest_len(b, i);
    return tm_slice_of(b->raw + from, b->offsets[i + 1] - from);
}
static inline uint64_t tm_block_trailer(const tm_block *b, uint32_t i)
{
    uint64_t seq = b->base_seq;
    if (b->seqs != NULL) {
        seq += b->flags & TM_ENTRIES_WIDE_SEQ ? tm_get64(b->seqs + (size_t)i * 8)
                                              : tm_get32(b->seqs + (size_t)i * 4);
    }
    return seq << 8 | (b->kinds != NULL ? b->kinds[i] : b->kind);
}

// Room that tm_block_key needs behind the key it assembles.
#define TM_BLOCK_KEY_SLACK 8u
// The whole key into out, which has room for TM_MAX_KEY_BYTES + TM_BLOCK_KEY_SLACK bytes (or
// tm_block_key_len + TM_BLOCK_KEY_SLACK); bytes behind the key may be overwritten. Returns its
// length.
uint32_t tm_block_key(const tm_block *b, uint32_t i, uint8_t *out);
// The same where the prefix stands in out already, from an earlier call on the same block.
uint32_t tm_block_key_suffix(const tm_block *b, uint32_t i, uint8_t *out);

// Keys of entries i and j of one block: order as of tm_order_compare; trailers do not count.
int tm_block_compare_keys(const tm_block *b, const tm_order *order, uint32_t i, uint32_t j);
// Strictly ascending internal order from the first entry to the last. On false *at is the first
// entry that does not stand behind the one before it.
bool tm_block_is_sorted(const tm_block *b, const tm_order *order, uint32_t *at);

// ---- Search ------------------------------------------------------------------------------------

// The first entry at or behind (key, trailer) in internal order; n if there is none. In an index or
// top level: the block or partition that may hold (key, trailer).
uint32_t tm_block_lower_bound(const tm_block *b, const tm_order *order, tm_slice key,
                              uint64_t trailer);
// The same; true if that entry has the user key that was asked for.
bool tm_block_find(const tm_block *b, const tm_order *order, tm_slice key, uint64_t trailer,
                   uint32_t *i);

#endif // TM_BLOCK_H
