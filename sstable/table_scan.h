// SPDX-License-Identifier: BSD-2-Clause
//
// table_scan.h - reads the entries of a table once, forward, in large sequential reads that pass
// the block cache by: for compaction, verify and salvage.
//
// It walks the frames of the file from the header on (or from the partition that holds a key), each
// checked, decompressed into the scan's own memory. As a tm_iter it offers first, seek (which uses
// the index), next and destroy; last, seek_before and prev make it fail with MISUSE.
#ifndef TM_TABLE_SCAN_H
#define TM_TABLE_SCAN_H

#include "base/file.h"
#include "base/iter.h"
#include "sstable/table_meta.h"

typedef struct tm_table_scan_options {
    size_t readahead_bytes;                     // one read; at least one block
    void (*on_read)(void *ctx, uint64_t bytes); // may be NULL; for rate limits and statistics
    void *on_read_ctx;
} tm_table_scan_options;

// file is borrowed and must stay open; meta is read during the call only.
int tm_table_scan_create(tm_file *file, const tm_table_meta *meta, const tm_order *order,
                         const tm_table_scan_options *options, tm_iter **out,
                         tamis_error *err) TM_CHECK_RESULT;

#endif // TM_TABLE_SCAN_H
