// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/snapshot.h"

#include "base/mem.h"

int tm_snapshots_init(tm_snapshots *s, tamis_error *err)
{
    s->oldest = s->newest = NULL;
    s->count = 0;
    return tm_mutex_init(&s->m, err);
}

void tm_snapshots_deinit(tm_snapshots *s)
{
    tm_mutex_deinit(&s->m);
}

void tm_snapshots_add(tm_snapshots *s, tamis_snapshot *snap, const _Atomic uint64_t *last_seq)
{
    tm_mutex_lock(&s->m);
    // last_seq only grows, so the newest snapshot has the highest number.
    snap->seq = atomic_load_explicit(last_seq, memory_order_acquire);
    snap->next = NULL;
    snap->prev = s->newest;
    if (s->newest != NULL)
        s->newest->next = snap;
    else
        s->oldest = snap;
    s->newest = snap;
    s->count++;
    tm_mutex_unlock(&s->m);
}

void tm_snapshots_remove(tm_snapshots *s, tamis_snapshot *snap)
{
    tm_mutex_lock(&s->m);
    if (snap->prev != NULL)
        snap->prev->next = snap->next;
    else
        s->oldest = snap->next;
    if (snap->next != NULL)
        snap->next->prev = snap->prev;
    else
        s->newest = snap->prev;
    s->count--;
    tm_mutex_unlock(&s->m);
}

size_t tm_snapshots_count(tm_snapshots *s)
{
    tm_mutex_lock(&s->m);
    size_t n = s->count;
    tm_mutex_unlock(&s->m);
    return n;
}

uint64_t tm_snapshots_oldest(tm_snapshots *s, uint64_t *wall_ms)
{
    tm_mutex_lock(&s->m);
    uint64_t seq = s->oldest ? s->oldest->seq : 0;
    if (wall_ms != NULL) *wall_ms = s->oldest ? s->oldest->wall_ms : 0;
    tm_mutex_unlock(&s->m);
    return seq;
}

int tm_snapshots_stripes(tm_snapshots *s, tm_stripes *out)
{
    int st = TAMIS_OK;
    out->seqs = NULL;
    out->count = 0;
    tm_mutex_lock(&s->m);
    if (s->count > 0) {
        out->seqs = tm_alloc(s->count * sizeof *out->seqs);
        if (out->seqs == NULL) st = TAMIS_NOMEM;
    }
    for (tamis_snapshot *x = s->oldest; st == TAMIS_OK && x != NULL; x = x->next) {
        if (out->count == 0 || out->seqs[out->count - 1] != x->seq) {
            out->seqs[out->count++] = x->seq;
        }
    }
    tm_mutex_unlock(&s->m);
    return st;
}

void tm_stripes_deinit(tm_stripes *s)
{
    tm_free(s->seqs);
    s->seqs = NULL;
    s->count = 0;
}
