// SPDX-License-Identifier: BSD-2-Clause
//
// options.h - from tamis_options to figures that have been checked. One table in options.c names
// every fine option with its type, range, default and meaning; parsing, checking, printing and
// tamis_option_at are made from it.
#ifndef TM_OPTIONS_H
#define TM_OPTIONS_H

#include "lsm/tamis.h"
#include "sstable/table_writer.h"

typedef struct tm_plugins { // copied; a size of 0 means there is none
    tamis_merger merger;
    tamis_compaction_filter filter;
} tm_plugins;

typedef struct tm_config {
    uint32_t flags;  // tamis_open_flags
    tamis_sync sync; // never DEFAULT
    uint64_t memory_budget;
    uint64_t background_threads; // 0 with TAMIS_OPEN_NO_BACKGROUND
    uint64_t sync_interval_ms;
    tm_order order;
    tm_plugins plugins; // of the default family
    const tamis_vfs *vfs;
    void (*on_event)(void *ctx, const tamis_event *event);
    void *on_event_ctx;
    // From the table; sizes in bytes.
    uint64_t write_buffer;  // 0 in the table = from the budget; resolved here
    uint64_t write_buffers; // memtables in all before writers wait
    uint64_t block_size;
    uint64_t partition_size;
    uint64_t index_size;
    uint64_t filter; // tm_filter_kind
    uint64_t filter_millibits;
    uint64_t compression; // tm_compression
    uint64_t table_size;  // target
    uint64_t level_base;  // least target of a level
    uint64_t level_ratio;
    uint64_t level0_compact, level0_slowdown, level0_stop; // tables
    uint64_t tombstone_percent; // a table with more deletes is compacted; 0 = off
    uint64_t rate_limit;        // bytes a second of flush and compaction writes; 0 = none
    uint64_t max_open_files;
    uint64_t readahead;
    uint64_t log_reserve; // preallocation step of a log
    uint64_t subcompactions;
    uint64_t seed;           // hash seed of a new store; 0 = random. Step order with NO_BACKGROUND
    uint64_t verify_filters; // tests
    uint64_t ttl_ms;         // values of plain puts are gone after so long; 0 = never
    const tamis_family *given; // the opener's, during tamis_open only
    size_t given_count;
    bool level_base_given; // level_base was not derived
    uint64_t log_size;     // unflushed log that families may hold back; 0 in the table, resolved
} tm_config;

// Checks everything; INVALID names the option (and the nearest name for an unknown one).
int tm_config_init(tm_config *c, const tamis_options *opt, tamis_error *err) TM_CHECK_RESULT;
// The options of a family: those of the store, with extra (may be NULL; scope "family" only) on
// top. given gets the pairs of extra, normalised: "name=value; name=value".
int tm_config_family(const tm_config *store, const char *extra, tm_config *out, tm_buf *given,
                     tamis_error *err) TM_CHECK_RESULT;
// Checks the plug-ins and copies those that are there onto out.
int tm_plugins_take(tm_plugins *out, const tamis_merger *merger,
                    const tamis_compaction_filter *filter, tamis_error *err) TM_CHECK_RESULT;
// The comparator of a family: checked, and turned into an order.
int tm_order_take(const tamis_comparator *c, tm_order *out, tamis_error *err) TM_CHECK_RESULT;
// The value in force of option i, as text that parses back; NOTFOUND past the end.
int tm_config_print(const tm_config *c, size_t i, char *buf, size_t cap,
                    size_t *len) TM_CHECK_RESULT;
// The place of a named option; NOTFOUND with the nearest name in err.
int tm_config_find(tm_slice name, size_t *i, tamis_error *err) TM_CHECK_RESULT;

#endif // TM_OPTIONS_H
