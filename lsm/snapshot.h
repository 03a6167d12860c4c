// SPDX-License-Identifier: BSD-2-Clause
//
// snapshot.h - the sequence numbers that readers hold on to, in order. A snapshot pins no file: it
// keeps compactions and flushes from dropping the versions it sees.
#ifndef TM_SNAPSHOT_H
#define TM_SNAPSHOT_H

#include "base/buf.h"
#include "base/sync.h"
#include "lsm/tamis.h"

struct tamis_snapshot {
    struct tamis_snapshot *prev, *next; // ascending by seq; the list's mutex
    struct tamis_db *db;
    uint64_t seq;
    uint64_t wall_ms; // when it was taken
};

typedef struct tm_snapshots {
    tm_mutex m;
    tamis_snapshot *oldest, *newest;
    size_t count;
} tm_snapshots;

int tm_snapshots_init(tm_snapshots *s, tamis_error *err) TM_CHECK_RESULT;
void tm_snapshots_deinit(tm_snapshots *s);
// Reads *last_seq inside the lock, so that no flush can miss the new snapshot.
void tm_snapshots_add(tm_snapshots *s, tamis_snapshot *snap, const _Atomic uint64_t *last_seq);
void tm_snapshots_remove(tm_snapshots *s, tamis_snapshot *snap);
size_t tm_snapshots_count(tm_snapshots *s);
uint64_t tm_snapshots_oldest(tm_snapshots *s, uint64_t *wall_ms); // its number; 0 if none

// What a flush or compaction must keep apart: the snapshots, ascending.
typedef struct tm_stripes {
    uint64_t *seqs;
    size_t count;
} tm_stripes;
int tm_snapshots_stripes(tm_snapshots *s, tm_stripes *out) TM_CHECK_RESULT;
void tm_stripes_deinit(tm_stripes *s);
// Snapshots older than seq: entries with the same figure look alike to every reader.
static inline size_t tm_stripe_of(const tm_stripes *s, uint64_t seq)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (s->seqs[mid] < seq)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

#endif // TM_SNAPSHOT_H
