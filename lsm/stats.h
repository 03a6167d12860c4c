// SPDX-License-Identifier: BSD-2-Clause
//
// stats.h - what the engine counts, always: sharded by thread, summed when somebody asks.
//
// A thread whose index is below TM_STATS_SHARDS has a shard of its own and adds with plain loads
// and stores; the others share the last one and add atomically.
#ifndef TM_STATS_H
#define TM_STATS_H

#include <stdatomic.h>

#include "lsm/edit.h"
#include "sstable/table.h"

// name, and what it counts. The order is that of tamis_counter_at.
#define TM_COUNTERS(X)                                                                             \
    X(gets, "point lookups, each key of a multi-get counted")                                      \
    X(gets_found, "point lookups that found a value")                                              \
    X(get_bytes, "bytes of values returned by point lookups")                                      \
    X(memtable_hits, "point lookups answered by a memtable")                                       \
    X(iterators, "iterators created")                                                              \
    X(seeks, "iterator seeks, firsts and lasts")                                                   \
    X(steps, "iterator steps")                                                                     \
    X(hidden, "old versions and deletes that iterators passed over")                               \
    X(writes, "operations committed")                                                              \
    X(write_groups, "groups written to the log with one write")                                    \
    X(write_bytes, "bytes of keys and values committed")                                           \
    X(log_bytes, "bytes appended to logs")                                                         \
    X(log_syncs, "syncs of logs")                                                                  \
    X(manifest_syncs, "syncs of manifests")                                                        \
    X(flushes, "memtables flushed")                                                                \
    X(flush_bytes, "bytes of tables written by flushes")                                           \
    X(compactions, "compactions that rewrote tables")                                              \
    X(moves, "tables moved down without rewriting")                                                \
    X(compact_bytes_read, "bytes of tables read by compactions")                                   \
    X(compact_bytes_written, "bytes of tables written by compactions")                             \
    X(tables_trimmed, "tables dropped without being read: covered or expired")                     \
    X(compact_entries_dropped, "entries that compactions and flushes dropped")                     \
    X(flush_us, "microseconds spent in flushes")                                                   \
    X(compact_us, "microseconds spent in compactions")                                             \
    X(stalls, "times that writers had to wait")                                                    \
    X(stall_us, "microseconds that writers waited")                                                \
    X(background_errors, "flushes and compactions that failed")                                    \
    X(reads_retried, "point lookups that went to a file after the memory-only attempt")

typedef enum tm_counter {
#define X(name, doc) TM_STAT_##name,
    TM_COUNTERS(X)
#undef X
        TM_STAT_COUNT
} tm_counter;

#define TM_STATS_SHARDS 64
typedef struct tm_stats_shard {
    _Atomic uint64_t counters[TM_STAT_COUNT];
    _Atomic uint64_t reads[TM_LEVELS][sizeof(tm_read_counts) / sizeof(uint64_t)];
} tm_stats_shard;

typedef struct tm_stats {
    _Atomic(tm_stats_shard *) shards[TM_STATS_SHARDS + 1]; // made at first use
    tm_stats_shard spare;                                  // where memory ended: shared
} tm_stats;

void tm_stats_init(tm_stats *s);
void tm_stats_deinit(tm_stats *s);
void tm_stats_merge(tm_stats *to, const tm_stats *from); // adds all that from counted
void tm_stats_add(tm_stats *s, tm_counter c, uint64_t n);
// Adds what one read counted in a level.
void tm_stats_add_reads(tm_stats *s, uint32_t level, const tm_read_counts *counts);
uint64_t tm_stats_get(const tm_stats *s, tm_counter c);
void tm_stats_reads(const tm_stats *s, uint32_t level, tm_read_counts *out);
const char *tm_counter_name(tm_counter c);
const char *tm_counter_doc(tm_counter c);

#endif // TM_STATS_H
