// SPDX-License-Identifier: BSD-2-Clause
//
// table_writer.h - writes one table, streaming: memory does not grow with the table, apart from the
// partition at hand (index and filter hashes) and the top level.
//
// INVARIANTS
//  W1  Entries come in strictly ascending internal order; anything else is refused (CORRUPT, as it
//      can only come from a damaged input) and the table is not finished.
//  W2  Partitions end between different user keys.
//  W3  Every user key added stands in its partition's filter, checked before it is written.
//  W4  The file is synced and closed when finish returns; the directory is the caller's to sync.
//
// Ownership: the writer owns its file until finish or destroy; destroy of an unfinished writer
// closes and unlinks it. Threads: one at a time.
#ifndef TM_TABLE_WRITER_H
#define TM_TABLE_WRITER_H

#include "base/file.h"
#include "filter/filter.h"
#include "sstable/table_meta.h"

typedef enum tm_compression { TM_COMPRESSION_NONE = 0, TM_COMPRESSION_LZ4 = 1 } tm_compression;

typedef struct tm_table_writer_options {
    tm_order order;
    uint32_t block_bytes;     // raw size at which a data block is closed
    uint32_t partition_bytes; // filter size at which a partition is cut
    uint32_t index_bytes;     // index size at which a partition is cut
    tm_compression compression;
    tm_filter_kind filter;
    uint32_t filter_millibits; // bits a key times 1,000
    uint64_t hash_seed;
    uint32_t family_id;
    tm_slice family_name; // borrowed until finish
    uint8_t id[16];       // random, the caller's
    uint64_t created_ms;
    uint64_t write_back_bytes; // start write-back each time so much was written; 0 = never
    // Called for each raw byte run handed to the file, for rate limits; may be NULL, may wait.
    void (*on_write)(void *ctx, uint64_t bytes);
    void *on_write_ctx;
} tm_table_writer_options;

typedef struct tm_table_writer tm_table_writer;

int tm_table_writer_create(tamis_dir *dir, uint64_t number, const tm_table_writer_options *options,
                           tm_table_writer **out, tamis_error *err) TM_CHECK_RESULT;
int tm_table_writer_add(tm_table_writer *w, tm_slice key, uint64_t trailer, tm_slice value,
                        tamis_error *err) TM_CHECK_RESULT;
// A range delete, in ascending order of start, at any time before finish. An empty limit is "to the
// end". Cut to the table's bounds by the caller.
int tm_table_writer_add_range(tm_table_writer *w, tm_slice start, tm_slice limit, uint64_t seq,
                              tamis_error *err) TM_CHECK_RESULT;
uint64_t tm_table_writer_bytes(const tm_table_writer *w);   // file size if finished now, nearly
uint64_t tm_table_writer_entries(const tm_table_writer *w); // point entries so far
size_t tm_table_writer_memory(const tm_table_writer *w);    // bytes it holds
// Writes what is left, syncs, closes. meta (empty before) gets everything, bounds with range
// deletes included. A table with no entry and no range delete is refused: MISUSE.
int tm_table_writer_finish(tm_table_writer *w, tm_table_meta *meta,
                           tamis_error *err) TM_CHECK_RESULT;
void tm_table_writer_destroy(tm_table_writer *w); // NULL is fine

#endif // TM_TABLE_WRITER_H
