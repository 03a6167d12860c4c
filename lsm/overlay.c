// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/overlay.h"

#include "base/mem.h"
#include "lsm/db.h"

enum { ROOM = 64 << 10 }; // a memtable's size, for a start

typedef struct place {
    tm_family *family; // counted
    tm_memtable *mem;
} place;

struct tm_overlay {
    tm_buf places;     // place
    size_t indexed;    // bytes of the batch that are in
    uint64_t count;    // and operations
    uint32_t in_force; // family behind them
};

static size_t place_count(const tm_overlay *o)
{
    return o->places.len / sizeof(place);
}

static place *place_at(const tm_overlay *o, size_t i)
{
    return (place *)(void *)o->places.data + i;
}

void tm_overlay_free(tm_overlay *o)
{
    if (o == NULL) return;
    for (size_t i = 0; i < place_count(o); i++) {
        tm_memtable_unref(place_at(o, i)->mem);
        tm_family_unref(place_at(o, i)->family);
    }
    tm_buf_deinit(&o->places);
    tm_free(o);
}

static tm_family *find_family(struct tamis_db *db, uint32_t id, tamis_error *err)
{
    tm_mutex_lock(&db->mu.m);
    tm_family *f = tm_db_family_by_id(db, id);
    if (f != NULL) tm_family_ref(f);
    tm_mutex_unlock(&db->mu.m);
    if (f == NULL) {
        (void)!tm_fail(err, TAMIS_NOTFOUND, "the family (number %u) of the batch was dropped",
                       (unsigned)id);
    }
    return f;
}

static int place_of(tm_overlay *o, struct tamis_db *db, uint32_t id, place **out, tamis_error *err)
{
    for (size_t i = 0; i < place_count(o); i++) {
        *out = place_at(o, i);
        if ((*out)->family->id == id) return TAMIS_OK;
    }
    place p = {find_family(db, id, err), NULL};
    if (p.family == NULL) return TAMIS_NOTFOUND;
    int st = tm_memtable_create(&p.family->order, db->hash_seed, ROOM, &p.mem, err);
    if (st == TAMIS_OK && tm_buf_append(&o->places, &p, sizeof p) != TAMIS_OK) {
        st = tm_fail_nomem(err);
    }
    if (st != TAMIS_OK) {
        tm_memtable_unref(p.mem);
        tm_family_unref(p.family);
        return st;
    }
    *out = place_at(o, place_count(o) - 1);
    return TAMIS_OK;
}

static int index_op(tm_overlay *o, struct tamis_db *db, const tm_batch_op *op, tamis_error *err)
{
    place *p;
    uint64_t seq = TM_OVERLAY_SEQ + 1 + o->count, hash;
    tm_buf scratch = {0};
    TM_TRY(place_of(o, db, op->family, &p, err));
    TM_TRY(tm_memtable_reserve(p->mem, op->key.len + op->value.len, 1, err));
    if (op->kind == TM_KIND_RANGE_DELETE) {
        return tm_memtable_add_range(p->mem, op->key, op->value, seq, err);
    }
    int st = tm_order_hash(&p->family->order, op->key, db->hash_seed, &scratch, &hash);
    tm_buf_deinit(&scratch);
    if (st != TAMIS_OK) return tm_fail_nomem(err);
    return tm_memtable_add(p->mem, op->key, tm_trailer(seq, op->kind), op->value, hash, err);
}

static int catch_up(tm_overlay *o, const tamis_batch *b, tamis_error *err)
{
    tm_batch_reader r =
        tm_batch_reader_of(tm_slice_of(b->rep.data + o->indexed, b->rep.len - o->indexed));
    tm_batch_op op;
    r.family = o->in_force;
    while (tm_batch_reader_next(&r, &op) == TAMIS_OK) {
        TM_TRY(index_op(o, b->db, &op, err));
        o->indexed = b->rep.len - tm_cursor_left(&r.c);
        o->in_force = op.family;
        o->count++;
    }
    return TAMIS_OK;
}

int tm_overlay_get(const tamis_batch *b, tm_family *f, tm_memtable **mem, uint64_t *seq,
                   tamis_error *err)
{
    tamis_batch *own = (tamis_batch *)(uintptr_t)b; // the index is no part of what it says
    *mem = NULL;
    if (b->db != f->db) return tm_fail(err, TAMIS_INVALID, "the overlay is of another store");
    if (!(b->flags & TAMIS_BATCH_INDEXED)) {
        return tm_fail(err, TAMIS_INVALID, "the overlay was made without TAMIS_BATCH_INDEXED");
    }
    if (own->overlay == NULL) own->overlay = tm_calloc(1, sizeof *own->overlay);
    if (own->overlay == NULL) return tm_fail_nomem(err);
    TM_TRY(catch_up(own->overlay, b, err));
    *seq = TM_OVERLAY_SEQ + b->count;
    for (size_t i = 0; i < place_count(own->overlay); i++) {
        const place *p = place_at(own->overlay, i);
        if (p->family == f) *mem = p->mem;
    }
    return TAMIS_OK;
}
