// SPDX-License-Identifier: BSD-2-Clause
//
// table_meta.h - what is known of a table without opening it: the table record of the manifest
// (docs/format.md).
#ifndef TM_TABLE_META_H
#define TM_TABLE_META_H

#include "base/ikey.h"

#define TM_TABLE_LARGEST_EXCLUSIVE 1u // the largest key is the end of a range delete
#define TM_TABLE_UNBOUNDED         2u // a range delete goes to the end

typedef struct tm_table_meta {
    uint64_t number;
    uint8_t id[16];
    uint64_t file_bytes;
    uint64_t tail_offset; // of the first of range block, properties, top level, footer
    uint8_t digest[16];   // XXH3-128 of the file
    uint64_t entries, deletes, range_deletes;
    uint64_t raw_bytes; // keys and values as given
    uint64_t min_seq, max_seq;
    tm_buf smallest, largest; // user keys
    uint32_t flags;
    uint64_t created_ms;
    uint64_t filter_bytes, filter_keys;
    uint64_t hash_seed;
    uint64_t expires_ms; // when the last of its entries is gone by itself; 0: some never is
    uint64_t half_ms;    // when at least half of them are; 0: never
} tm_table_meta;

void tm_table_meta_init(tm_table_meta *m);
void tm_table_meta_deinit(tm_table_meta *m);
int tm_table_meta_copy(tm_table_meta *to, const tm_table_meta *from) TM_CHECK_RESULT; // to is empty
int tm_table_meta_encode(const tm_table_meta *m, tm_buf *out) TM_CHECK_RESULT;        // appended
// A record that does not parse: CORRUPT (file and offset are the caller's to fill).
int tm_table_meta_decode(tm_table_meta *m, tm_slice record, tamis_error *err) TM_CHECK_RESULT;

#endif // TM_TABLE_META_H
