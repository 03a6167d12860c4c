// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/stats.h"

#include "base/mem.h"

enum { READ_FIELDS = sizeof(tm_read_counts) / sizeof(uint64_t) };
_Static_assert(sizeof(tm_read_counts) % sizeof(uint64_t) == 0, "counts are 64-bit figures only");

void tm_stats_init(tm_stats *s)
{
    memset(s, 0, sizeof *s);
}

void tm_stats_deinit(tm_stats *s)
{
    for (size_t i = 0; i <= TM_STATS_SHARDS; i++) {
        tm_free(atomic_load_explicit(&s->shards[i], memory_order_relaxed));
    }
}

// The shard of this thread; *own tells whether nobody else writes to it.
static tm_stats_shard *shard_of(tm_stats *s, bool *own)
{
    uint32_t index = tm_epoch_thread_index();
    *own = index < TM_STATS_SHARDS;
    uint32_t i = *own ? index : TM_STATS_SHARDS;
    tm_stats_shard *shard = atomic_load_explicit(&s->shards[i], memory_order_acquire);
    if (TM_LIKELY(shard != NULL)) return shard;
    shard = tm_calloc(1, sizeof *shard);
    if (shard == NULL) {
        *own = false;
        return &s->spare;
    }
    tm_stats_shard *expected = NULL;
    // Release pairs with the acquire of readers that sum: they see zeros, not garbage.
    if (!atomic_compare_exchange_strong_explicit(&s->shards[i], &expected, shard,
                                                 memory_order_acq_rel, memory_order_acquire)) {
        tm_free(shard);
        shard = expected;
    }
    return shard;
}

static void add(_Atomic uint64_t *c, uint64_t n, bool own)
{
    if (own) {
        uint64_t v = atomic_load_explicit(c, memory_order_relaxed);
        atomic_store_explicit(c, v + n, memory_order_relaxed);
    } else {
        atomic_fetch_add_explicit(c, n, memory_order_relaxed);
    }
}

void tm_stats_add(tm_stats *s, tm_counter c, uint64_t n)
{
    bool own;
    tm_stats_shard *shard = shard_of(s, &own);
    add(&shard->counters[c], n, own);
}

void tm_stats_add_reads(tm_stats *s, uint32_t level, const tm_read_counts *counts)
{
    bool own;
    tm_stats_shard *shard = shard_of(s, &own);
    uint64_t fields[READ_FIELDS];
    memcpy(fields, counts, sizeof fields);
    for (size_t i = 0; i < READ_FIELDS; i++) {
        if (fields[i] != 0) add(&shard->reads[level][i], fields[i], own);
    }
}

static const tm_stats_shard *shard_at(const tm_stats *s, size_t i)
{
    if (i == TM_STATS_SHARDS + 1) return &s->spare;
    return atomic_load_explicit(&s->shards[i], memory_order_acquire);
}

uint64_t tm_stats_get(const tm_stats *s, tm_counter c)
{
    uint64_t sum = 0;
    for (size_t i = 0; i <= TM_STATS_SHARDS + 1; i++) {
        const tm_stats_shard *shard = shard_at(s, i);
        if (shard != NULL) sum += atomic_load_explicit(&shard->counters[c], memory_order_relaxed);
    }
    return sum;
}

void tm_stats_reads(const tm_stats *s, uint32_t level, tm_read_counts *out)
{
    uint64_t fields[READ_FIELDS] = {0};
    for (size_t i = 0; i <= TM_STATS_SHARDS + 1; i++) {
        const tm_stats_shard *shard = shard_at(s, i);
        for (size_t f = 0; shard != NULL && f < READ_FIELDS; f++) {
            fields[f] += atomic_load_explicit(&shard->reads[level][f], memory_order_relaxed);
        }
    }
    memcpy(out, fields, sizeof fields);
}

void tm_stats_merge(tm_stats *to, const tm_stats *from)
{
    for (int c = 0; c < TM_STAT_COUNT; c++) {
        tm_stats_add(to, (tm_counter)c, tm_stats_get(from, (tm_counter)c));
    }
    for (uint32_t l = 0; l < TM_LEVELS; l++) {
        tm_read_counts counts;
        tm_stats_reads(from, l, &counts);
        tm_stats_add_reads(to, l, &counts);
    }
}

const char *tm_counter_name(tm_counter c)
{
    static const char *const names[] = {
#define X(name, doc) #name,
        TM_COUNTERS(X)
#undef X
    };
    return names[c];
}

const char *tm_counter_doc(tm_counter c)
{
    static const char *const docs[] = {
#define X(name, doc) doc,
        TM_COUNTERS(X)
#undef X
    };
    return docs[c];
}
