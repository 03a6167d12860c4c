// SPDX-License-Identifier: BSD-2-Clause
//
// table_internal.h - what the files behind table.h share: a table, the forms of its blocks in
// memory, and how they come from the file. For table.c, table_load.c, table_lookup.c, table_iter.c
// and table_insight.c alone.
//
// Each block is one allocation:
//
//   data    tm_cached | tm_block | raw bytes | offsets
//   index   tm_cached | tm_block | place of the data | raw bytes | offsets | slot per data block
//   top     tm_cached | tm_block | footer | raw bytes | offsets | partitions | 2 slots a partition
//   filter  tm_cached | view | (frame) | image, from a multiple of 64
//
// INVARIANTS
//  T1  A block in memory was verified: its checksum, its kind, its place in this table, its inner
//      form. What stands in it is bounded but not believed further: searches end inside it.
//  T2  slots[2 p] of the top is the filter of partition p, slots[2 p + 1] its index.
//  T3  ranges is set at most once, and lives as long as the table.
#ifndef TM_TABLE_INTERNAL_H
#define TM_TABLE_INTERNAL_H

#include "sstable/block.h"
#include "sstable/table.h"

struct tm_table {
    tm_cache_slot top;
    _Atomic(tm_range_set *) ranges;       // NULL: not loaded, or there are none
    tm_order order;                       // this and what follows: constant after open
    tm_table_env env;
    tm_open_table *file;
    tm_table_meta meta;
    _Atomic(tm_table_filter_info *) info; // of tm_table_filter; set at most once
};

// ---- Blocks in memory --------------------------------------------------------------------------

typedef struct tm_data_block {
    tm_cached head;
    tm_block block;
} tm_data_block;

typedef struct tm_index_block {
    tm_cached head;
    tm_block block;
    uint64_t data_begin, data_end; // where the partition's data blocks stand in the file
    uint64_t offset;               // of this block in it
} tm_index_block;

typedef struct tm_partition {
    uint64_t data_offset, index_offset;
    uint64_t entries_before; // in the partitions before this one
    uint32_t index_length, filter_length;
} tm_partition;

typedef struct tm_top_block {
    tm_cached head;
    tm_block block;
    const tm_partition *partitions;
    tm_footer footer;
} tm_top_block;

typedef struct tm_filter_block {
    tm_cached head;
    tm_filter_view view; // bits NULL: damaged or not understood, "maybe" to everything
} tm_filter_block;

static inline tm_cache_slot *tm_table_filter_slot(tm_top_block *top, uint32_t p)
{
    return &top->head.slots[(size_t)p * 2];
}
static inline tm_cache_slot *tm_table_index_slot(tm_top_block *top, uint32_t p)
{
    return &top->head.slots[(size_t)p * 2 + 1];
}
static inline uint64_t tm_partition_filter_offset(const tm_partition *p) // where the data ends, too
{
    return p->index_offset - p->filter_length;
}

// ---- From the file (table_load.c) --------------------------------------------------------------

// A stretch of the file that was read in one go, for a walk to take frames from.
typedef struct tm_readahead {
    uint8_t *bytes;
    size_t cap, len;
    uint64_t from; // offset of bytes[0] in the file
} tm_readahead;

// The bytes of the file at [offset, offset + n), if they stand there; else NULL.
static inline const uint8_t *tm_readahead_find(const tm_readahead *a, uint64_t offset, size_t n)
{
    if (a == NULL || offset < a->from || a->len < n || offset - a->from > a->len - n) return NULL;
    return a->bytes + (offset - a->from);
}

// How to load: what counts it, where frames may be at hand already.
typedef struct tm_load {
    tm_read_counts *counts;
    const tm_readahead *ahead; // may be NULL
    bool cold;                 // insert where eviction looks next
} tm_load;

// Each reads one block, gives it to the cache and returns it pinned. They do not look whether it is
// in memory. Not inside an epoch. The block above must be pinned.
int tm_table_load_top(tm_table *t, const tm_load *how, tm_top_block **out,
                      tamis_error *err) TM_CHECK_RESULT;
int tm_table_load_index(tm_table *t, const tm_load *how, tm_top_block *top, uint32_t p,
                        tm_index_block **out, tamis_error *err) TM_CHECK_RESULT;
int tm_table_load_data(tm_table *t, const tm_load *how, tm_index_block *index, uint32_t i,
                       tm_data_block **out, tamis_error *err) TM_CHECK_RESULT;
// A damaged filter, or one that this version does not understand, gives a block with an empty view.
// NULL: it could not be read now.
tm_filter_block *tm_table_load_filter(tm_table *t, const tm_load *how, tm_top_block *top,
                                      uint32_t p);

// Reads the range deletes, which the table then keeps; it must have some.
int tm_table_load_ranges(tm_table *t, const tm_load *how, tamis_error *err) TM_CHECK_RESULT;

// Where data block i of the index stands in the file: its frame.
int tm_table_data_place(const tm_table *t, const tm_index_block *index, uint32_t i,
                        uint64_t *offset, uint32_t *length, tamis_error *err) TM_CHECK_RESULT;
// Exactly these bytes of the file.
int tm_table_read(tm_table *t, uint64_t offset, void *buf, size_t n,
                  tamis_error *err) TM_CHECK_RESULT;
// Checks the frame of the expected kind and length that stands in bytes, as they are in the file at
// offset.
int tm_table_check_frame(const tm_table *t, tm_block_kind kind, const uint8_t *bytes,
                         uint64_t offset, uint32_t length, tm_frame *f,
                         tamis_error *err) TM_CHECK_RESULT;

// In memory or loaded; pinned.
int tm_table_pin_top(tm_table *t, const tm_load *how, tm_top_block **out,
                     tamis_error *err) TM_CHECK_RESULT;
int tm_table_pin_index(tm_table *t, const tm_load *how, tm_top_block *top, uint32_t p,
                       tm_index_block **out, tamis_error *err) TM_CHECK_RESULT;

static inline void tm_table_count_cached(tm_read_counts *counts, const tm_cached *b)
{
    counts->cached_blocks[b->kind]++;
    counts->cached_bytes[b->kind] += b->charge;
}

#endif // TM_TABLE_INTERNAL_H
