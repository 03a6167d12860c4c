// SPDX-License-Identifier: BSD-2-Clause
//
// block_builder.h - makes the raw bytes of a block of entries (docs/format.md, "Entries").
//
// Keys and values are gathered behind each other, with one small record an entry; finish knows the
// common prefix and which columns are constant, and lays the block out once. The memory is kept
// from block to block, so that in the steady state nothing is allocated.
//
// INVARIANTS
//  BB1 prefix_len is the length of the common prefix of all keys added (0 without heads).
//  BB2 A failed add (NOMEM, TOOLARGE) leaves the builder as it was.
//
// Entries are laid out in the order they are added; that it is internal order is the caller's duty.
// Threads: one at a time.
#ifndef TM_BLOCK_BUILDER_H
#define TM_BLOCK_BUILDER_H

#include "sstable/block.h"

typedef struct tm_block_item { // an entry that was added
    uint64_t trailer;
    uint32_t at; // of the key in bytes; the value stands behind it
    uint32_t key_len, value_len;
} tm_block_item;

typedef struct tm_block_builder {
    tm_buf bytes;          // keys and values
    tm_block_item *items;
    uint32_t n, cap;
    bool heads;            // bytewise order
    uint32_t prefix_len;
    uint32_t key_min, key_max, value_min, value_max;
    uint64_t seq_min, seq_max;
    uint64_t key_bytes;
    uint8_t kind_or, kind_and; // equal where all kinds are
} tm_block_builder;

void tm_block_builder_init(tm_block_builder *b, bool bytewise);
void tm_block_builder_deinit(tm_block_builder *b);
void tm_block_builder_reset(tm_block_builder *b); // empty; keeps the memory, unless it grew large
int tm_block_builder_add(tm_block_builder *b, tm_slice key, uint64_t trailer, tm_slice value,
                         tamis_error *err) TM_CHECK_RESULT;

// Bytes of the block if finished now: exact but for keys that are shorter than their head (never
// too little).
size_t tm_block_builder_estimate(const tm_block_builder *b);
// Appends the raw bytes to out. The builder stays as it is until reset.
int tm_block_builder_finish(tm_block_builder *b, tm_buf *out, tamis_error *err) TM_CHECK_RESULT;

static inline uint32_t tm_block_builder_count(const tm_block_builder *b) { return b->n; }
// The key added last; the builder must not be empty. Valid until the next add or reset.
static inline tm_slice tm_block_builder_last_key(const tm_block_builder *b)
{
    const tm_block_item *it = &b->items[b->n - 1];
    return tm_slice_of(b->bytes.data + it->at, it->key_len);
}
static inline uint64_t tm_block_builder_last_trailer(const tm_block_builder *b)
{
    return b->items[b->n - 1].trailer;
}
static inline size_t tm_block_builder_memory(const tm_block_builder *b)
{
    return b->bytes.cap + (size_t)b->cap * sizeof(tm_block_item);
}

#endif // TM_BLOCK_BUILDER_H
