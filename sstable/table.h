// SPDX-License-Identifier: BSD-2-Clause
//
// table.h - reading a table: point lookups through the partitioned filter, and iterators.
//
// A lookup has three steps, so that a read over many tables can overlap their memory waits:
//   route   find the partition (a search in the top level) and prefetch its filter line
//   probe   ask the filter (one cache line): "no" ends the search in this table
//   find    search the index partition and the data block
// Range deletes are asked before the filter's "no" ends anything (tm_table_range_cover).
//
// MODES. A read context says how blocks are held. TM_READ_EPOCH: the caller is inside an epoch for
// the whole read; blocks are used in place; one that is not in memory gives TAMIS_BUSY, and the
// caller starts again in the other mode. TM_READ_PINNED: outside epochs; each block is pinned, read
// from the file if need be, and let go by tm_read_ctx_reset. A comparator of the user's is called
// outside epochs only. TM_READ_CACHED is PINNED without I/O: BUSY where a block is not in memory.
// BUSY fills no error, and the counts of that attempt are the caller's to take back.
//
// Threads: a table may be used by any thread; a context belongs to one.
#ifndef TM_TABLE_H
#define TM_TABLE_H

#include "base/iter.h"
#include "filter/filter.h"
#include "sstable/block_cache.h"
#include "sstable/range_set.h"
#include "sstable/table_cache.h"
#include "sstable/table_meta.h"

typedef struct tm_table tm_table;

// What a store's tables share. Lives longer than they.
typedef struct tm_table_env {
    const tamis_vfs *vfs;
    tm_cache *cache;
    tm_table_cache *files;
    bool verify_filters; // check every "no" by a search (tests): a false negative is CORRUPT
} tm_table_env;

// ---- Counters of one read, or of many; the owner adds them up ----------------------------------

typedef struct tm_read_counts {
    uint64_t filter_checks, filter_negatives, filter_true_positives, filter_false_positives;
    uint64_t filter_unavailable; // damaged or unknown: answered "maybe"
    uint64_t cached_blocks[TM_CACHED_KINDS], cached_bytes[TM_CACHED_KINDS]; // found in memory
    uint64_t read_blocks[TM_CACHED_KINDS], read_bytes[TM_CACHED_KINDS];     // from files
} tm_read_counts;

typedef enum tm_read_mode { TM_READ_EPOCH, TM_READ_PINNED, TM_READ_CACHED } tm_read_mode;

typedef struct tm_read_step { // for explain
    const char *what, *outcome; // as in tamis_step_info
    bool cached;
    uint64_t file_number, offset, bytes, nanos;
} tm_read_step;

#define TM_READ_PINS 8
typedef struct tm_read_ctx { // zero but for what the caller sets
    tm_read_mode mode;
    bool no_fill;                 // insert what is read as cold
    tm_read_counts *counts;       // the table's level; never NULL; may be changed between tables
    void (*step)(void *ctx, const tm_read_step *s); // NULL but for explain; not in EPOCH mode
    void *step_ctx;
    tamis_error *err;             // may be NULL
    tm_cached *pins[TM_READ_PINS]; // PINNED: held until reset
    tm_cached **more;             // those that have no room in pins
    uint32_t pin_count, more_cap;
} tm_read_ctx;
void tm_read_ctx_reset(tm_read_ctx *rc); // lets go of the pins

// ---- Life --------------------------------------------------------------------------------------

// Reads nothing yet: the top level is read with the first lookup (one read of the file's tail).
// With load it is read, checked against meta and kept now. order and meta are copied.
int tm_table_open(const tm_table_env *env, const tm_table_meta *meta, const tm_order *order,
                  bool load, tm_table **out, tamis_error *err) TM_CHECK_RESULT;
// Drops its blocks and its descriptor. After the last reader has left (a version's reference).
void tm_table_close(tm_table *t);
const tm_table_meta *tm_table_get_meta(const tm_table *t);

// ---- Point lookups -----------------------------------------------------------------------------

typedef struct tm_probe {
    tm_table *table;
    uint64_t hash;        // of the key with this table's seed
    tm_cached *top;
    uint32_t partition;
    bool outside;         // the key lies beyond the last partition
    bool no_filter;       // no filter, or one that is unavailable
    bool filter_cached;   // for explain
    bool hides;           // verify_filters: the filter said "no", find must find nothing
    bool judged;          // find has counted whether the filter's "maybe" was right
    const tm_filter_view *filter; // NULL when no_filter
    tm_cached *filter_block;
    uint64_t filter_nanos; // for explain
} tm_probe;

typedef struct tm_found {
    uint64_t trailer;     // of the newest visible entry
    tm_slice value;       // inside block
    tm_cached *block;     // EPOCH: valid inside it (tm_cached_ref keeps it); else pinned by rc
} tm_found;

// hash: tm_order_hash with the table's seed (tm_table_get_meta()->hash_seed). OK, BUSY or a
// failure. With a comparator of the user's TM_READ_EPOCH is always BUSY.
int tm_table_route(tm_table *t, tm_read_ctx *rc, tm_slice key, uint64_t trailer, uint64_t hash,
                   tm_probe *out) TM_CHECK_RESULT;
// false: the key is certainly not in the table. Counts the check and a negative; nothing where the
// key lies outside, or there is no filter to ask. With verify_filters true all the same, and find
// will tell.
bool tm_table_probe(tm_probe *p, tm_read_ctx *rc);
// The newest entry of key at or behind trailer. OK, NOTFOUND, BUSY or a failure. Counts a false
// positive where a filter had said "maybe" and the table has no entry of the key at any sequence
// number, else a true positive; once for each route, however often it is called after it (for the
// older versions of a key).
int tm_table_find(tm_probe *p, tm_read_ctx *rc, tm_slice key, uint64_t trailer,
                  tm_found *out) TM_CHECK_RESULT;
// The newest range delete <= seq over key, 0 if none. A table without range deletes costs nothing.
int tm_table_range_cover(tm_table *t, tm_read_ctx *rc, tm_slice key, uint64_t seq,
                         uint64_t *cover) TM_CHECK_RESULT;
// Its range deletes, loaded and kept, owned by the table; *out NULL if it has none. Not in an
// epoch.
int tm_table_ranges(tm_table *t, const tm_range_set **out, tamis_error *err) TM_CHECK_RESULT;

// ---- Iterators ---------------------------------------------------------------------------------

typedef struct tm_table_iter_options {
    bool no_fill;           // insert what is read as cold
    bool cached_only;       // BUSY where a file would be read
    tm_read_counts *counts; // added to; never NULL; used by the iterator's thread
    size_t readahead_bytes; // longest read ahead of a sequential walk; 0 = default
} tm_table_iter_options;
// The table must outlive it. All movements of tm_iter. Blocks are held by counted pins.
int tm_table_iter_create(tm_table *t, const tm_table_iter_options *options, tm_iter **out,
                         tamis_error *err) TM_CHECK_RESULT;

// ---- Insight -----------------------------------------------------------------------------------

// Bytes of the file that stand before key, from the index (read if need be), and entries before it,
// to a partition.
int tm_table_approximate_offset(tm_table *t, tm_slice key, uint64_t *offset, uint64_t *entries,
                                tamis_error *err) TM_CHECK_RESULT;
// The filter as built: kind, keys, bits and the expected false-positive rate over all partitions
// (from the properties block, read at the first call).
typedef struct tm_table_filter_info {
    tm_filter_kind kind;
    uint32_t millibits;
    uint64_t keys, bytes;
    double expected_rate;
} tm_table_filter_info;
int tm_table_filter(tm_table *t, tm_table_filter_info *out, tamis_error *err) TM_CHECK_RESULT;
// Name and value of each property, numbers as decimal text.
int tm_table_properties(tm_table *t, void (*each)(void *ctx, const char *name, tm_slice value),
                        void *ctx, tamis_error *err) TM_CHECK_RESULT;

typedef struct tm_table_check {
    uint64_t blocks, entries, damaged;
} tm_table_check;
// Reads the whole file past the cache: header, every frame's checksum, order of keys, every key in
// its partition's filter and index, counts and bounds against footer, properties and meta, digest
// of the file. Goes on after damage; each finding is reported. OK or CORRUPT or an I/O failure.
int tm_table_verify(tm_table *t, void (*finding)(void *ctx, const tamis_error *e),
                    int (*progress)(void *ctx, uint64_t bytes), void *ctx, tm_table_check *out,
                    tamis_error *err) TM_CHECK_RESULT;

#endif // TM_TABLE_H
