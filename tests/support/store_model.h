// SPDX-License-Identifier: BSD-2-Clause
//
// store_model.h - what a store must hold: every version of every key of a small key space, by
// sequence number. For the model and crash tests, each of which is one program.
#ifndef TM_STORE_MODEL_H
#define TM_STORE_MODEL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "lsm/batch.h"
#include "lsm/tamis.h"

enum { MODEL_KEYS = 160, MODEL_MAX_KEY = 80, MODEL_MAX_VALUE = 24 << 10, MODEL_FAMILIES = 3 };

// The families: the default one, plain; one with a merger that folds operands by themselves; one
// with an order of its own and a merger that needs the value below. Their numbers are their ids.
static const char *const model_families[MODEL_FAMILIES] = {"default", "sums", "ordered"};

typedef enum model_kind { MODEL_PUT, MODEL_DELETE, MODEL_MERGE, MODEL_RANGE } model_kind;

typedef struct model_version {
    uint64_t seq;
    uint64_t value;   // seed of its bytes; of an operand: what it adds to the seed
    uint64_t expires; // ms; 0: never
    model_kind kind;
} model_version;

typedef struct model_key {
    uint8_t bytes[MODEL_MAX_KEY];
    size_t len;
} model_key;

typedef struct model_history { // of a key in one family, ascending
    model_version *versions;
    size_t count, cap;
} model_history;

typedef struct model {
    model_key keys[MODEL_KEYS]; // ascending
    model_history history[MODEL_FAMILIES][MODEL_KEYS];
    uint64_t last_seq;
} model;

// What values expire by: the clock of the files, or a moment that the caller has fixed.
static tamis_vfs *model_clock;
static uint64_t model_fixed_ms;
enum { MODEL_TICK = 100 }; // values end at multiples of it

static inline uint64_t model_now(void)
{
    return model_fixed_ms ? model_fixed_ms : model_clock->wall_ms(model_clock);
}

// Nothing ends while one answer is compared: goes on to just behind a tick where one is near.
static inline void model_avoid_tick(void)
{
    uint64_t at = model_now() % MODEL_TICK;
    if (at >= 2 && at <= 80) return;
    tamis_vfs_memory_advance_ms(model_clock, (MODEL_TICK - at) % MODEL_TICK + 5);
}

static inline int model_compare_keys(const void *a, const void *b)
{
    const model_key *x = a, *y = b;
    return tm_slice_compare(tm_slice_of(x->bytes, x->len), tm_slice_of(y->bytes, y->len));
}

// Keys that meet the edges: empty, one byte, zeros and 0xff, long common beginnings, neighbours.
static inline void model_make_keys(model *m, tm_random *r)
{
    memset(m, 0, sizeof *m);
    for (size_t i = 0; i < MODEL_KEYS; i++) {
        model_key *k = &m->keys[i];
        do {
            k->len = 0;
            if (i == 0) break; // the empty key
            switch (tm_random_below(r, 5)) {
            case 0: // short, any bytes
                k->len = 1 + (size_t)tm_random_below(r, 3);
                for (size_t c = 0; c < k->len; c++) {
                    uint64_t d = tm_random_below(r, 4);
                    k->bytes[c] = d == 0 ? 0 : d == 1 ? 0xff : (uint8_t)tm_random_next(r);
                }
                break;
            case 1: // a long common beginning
                memset(k->bytes, 'p', 40);
                k->len = 40 + (size_t)snprintf((char *)k->bytes + 40, 30, "%llu",
                                               (unsigned long long)tm_random_below(r, 10000));
                break;
            default:
                k->len = (size_t)snprintf((char *)k->bytes, 40, "key%05llu",
                                          (unsigned long long)tm_random_below(r, 2000));
                break;
            }
            qsort(m->keys, i, sizeof m->keys[0], model_compare_keys);
        } while (bsearch(k, m->keys, i, sizeof m->keys[0], model_compare_keys) != NULL);
    }
    qsort(m->keys, MODEL_KEYS, sizeof m->keys[0], model_compare_keys);
}

static inline void model_free(model *m)
{
    for (size_t f = 0; f < MODEL_FAMILIES; f++) {
        for (size_t i = 0; i < MODEL_KEYS; i++) free(m->history[f][i].versions);
    }
}

static inline void model_add(model *m, size_t family, size_t key, model_version v)
{
    model_history *h = &m->history[family][key];
    if (h->count == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 8;
        h->versions = realloc(h->versions, h->cap * sizeof *h->versions);
        if (h->versions == NULL) abort();
    }
    h->versions[h->count++] = v;
    if (v.seq > m->last_seq) m->last_seq = v.seq;
}

// The value's seed at seq; 0: absent.
static inline uint64_t model_at(const model *m, size_t family, size_t key, uint64_t seq)
{
    const model_history *h = &m->history[family][key];
    uint64_t sum = 0;
    for (size_t i = h->count; i > 0; i--) {
        const model_version *v = &h->versions[i - 1];
        if (v->seq > seq) continue;
        if (v->kind == MODEL_MERGE) {
            sum += v->value;
            continue;
        }
        bool there = v->kind == MODEL_PUT && (v->expires == 0 || v->expires > model_now());
        return sum + (there ? v->value : 0);
    }
    return sum;
}

// Forgets everything behind seq: what a crash lost.
static inline void model_cut(model *m, uint64_t seq)
{
    for (size_t f = 0; f < MODEL_FAMILIES; f++) {
        for (size_t i = 0; i < MODEL_KEYS; i++) {
            model_history *h = &m->history[f][i];
            while (h->count > 0 && h->versions[h->count - 1].seq > seq) h->count--;
        }
    }
    m->last_seq = seq;
}

static inline tm_slice model_key_slice(const model *m, size_t key)
{
    return tm_slice_of(m->keys[key].bytes, m->keys[key].len);
}

// ---- Values ------------------------------------------------------------------------------------

// The bytes of a value follow from its seed. Mostly short, some longer than a block. Where there
// are merges the seed itself comes first.
static inline size_t model_value(size_t family, uint64_t seed, uint8_t *out)
{
    tm_random r = tm_random_seed(seed);
    uint64_t dice = tm_random_below(&r, 50);
    size_t len = dice == 0   ? (size_t)tm_random_below(&r, MODEL_MAX_VALUE)
                 : dice < 10 ? (size_t)tm_random_below(&r, 600)
                             : (size_t)tm_random_below(&r, 60);
    if (family > 0 && len < sizeof seed) len = sizeof seed;
    for (size_t i = 0; i < len; i++) out[i] = (uint8_t)(i % 3 ? seed : tm_random_next(&r));
    if (family > 0) tm_put64(out, seed);
    return len;
}

static inline bool model_value_is(size_t family, uint64_t seed, const void *data, size_t len)
{
    static uint8_t expected[MODEL_MAX_VALUE];
    size_t n = model_value(family, seed, expected);
    return n == len && (n == 0 || memcmp(expected, data, n) == 0);
}

// ---- Plug-ins ----------------------------------------------------------------------------------

static inline int model_merge(void *ctx, const void *key, size_t klen, const tamis_slice *base,
                              const tamis_slice *operands, size_t n,
                              int (*emit)(void *sink, const void *v, size_t vlen), void *sink)
{
    (void)ctx;
    (void)key;
    (void)klen;
    uint64_t sum = base ? tm_get64(base->data) : 0;
    for (size_t i = 0; i < n; i++) sum += tm_get64(operands[i].data);
    uint8_t *out = malloc(MODEL_MAX_VALUE);
    if (out == NULL) return TAMIS_NOMEM;
    int st = emit(sink, out, model_value(1, sum, out));
    free(out);
    return st;
}

static inline int model_order(void *ctx, const void *a, size_t alen, const void *b, size_t blen)
{
    (void)ctx;
    return tm_slice_compare(tm_slice_of(a, alen), tm_slice_of(b, blen));
}

// What the families are given: [0] and [1] of the array are of "sums" and "ordered".
static inline const tamis_family *model_given(void)
{
    static const tamis_merger sums = {sizeof sums, "model.sum", NULL, TAMIS_MERGER_ASSOCIATIVE,
                                      model_merge};
    static const tamis_merger full = {sizeof full, "model.full", NULL, 0, model_merge};
    static const tamis_comparator order = {
        .size = sizeof order, .name = "model.order", .compare = model_order};
    static const tamis_family given[2] = {
        {"sums", {.size = sizeof(tamis_cf_options), .merger = &sums}},
        {"ordered", {.size = sizeof(tamis_cf_options), .comparator = &order, .merger = &full}}};
    return given;
}

static inline void model_use_families(tamis_options *o)
{
    o->families = model_given();
    o->family_count = MODEL_FAMILIES - 1;
}

// Handles of all families, which are made if they are not there; cf[0] is NULL.
static inline int model_open_families(tamis_db *db, tamis_cf **cf, uint32_t create, tamis_error *e)
{
    for (size_t f = 0; f < MODEL_FAMILIES; f++) cf[f] = NULL;
    for (size_t f = 1; f < MODEL_FAMILIES; f++) {
        int st =
            tamis_cf_open(db, model_families[f], &model_given()[f - 1].options, create, &cf[f], e);
        if (st != TAMIS_OK) return st;
    }
    return TAMIS_OK;
}

static inline void model_close_families(tamis_cf **cf)
{
    for (size_t f = 1; f < MODEL_FAMILIES; f++) {
        tamis_cf_close(cf[f]);
        cf[f] = NULL;
    }
}

// ---- Batches -----------------------------------------------------------------------------------

// A batch of 1 to most operations, put into b; the model gets them when the commit succeeded.
typedef struct model_op {
    model_kind kind;
    size_t family;
    size_t key, limit; // ranges: [key, limit)
    uint64_t value, expires;
} model_op;

static inline model_op model_random_op(tm_random *r, size_t families)
{
    model_op op = {.key = (size_t)tm_random_below(r, MODEL_KEYS),
                   .family = (size_t)tm_random_below(r, families)};
    uint64_t dice = tm_random_below(r, 100);
    if (dice < 4) {
        op.kind = MODEL_RANGE;
        op.limit = op.key + 1 + (size_t)tm_random_below(r, 12);
        if (op.limit > MODEL_KEYS) op.limit = MODEL_KEYS;
        return op;
    }
    op.kind = dice < 30 ? MODEL_DELETE : MODEL_PUT;
    if (op.kind == MODEL_DELETE) return op;
    op.value = tm_random_next(r) | 1;
    if (op.family > 0 && dice < 65) op.kind = MODEL_MERGE;
    if (op.kind == MODEL_PUT && families > 1 && dice > 90) {
        uint64_t ticks = tm_random_below(r, 50); // 0: gone from the start
        op.expires = (model_now() / MODEL_TICK + ticks) * MODEL_TICK;
    }
    return op;
}

static inline int model_batch_add(tamis_batch *b, const model *m, const model_op *op)
{
    static uint8_t value[8 + MODEL_MAX_VALUE];
    tm_slice key = model_key_slice(m, op->key), limit = {0};
    uint32_t id = (uint32_t)op->family;
    size_t len = model_value(op->family, op->value, value + 8);
    switch (op->kind) {
    case MODEL_RANGE:
        if (op->limit < MODEL_KEYS) limit = model_key_slice(m, op->limit);
        return tm_batch_add(b, id, TM_KIND_RANGE_DELETE, key, limit);
    case MODEL_DELETE:
        return tm_batch_add(b, id, TM_KIND_DELETE, key, limit);
    case MODEL_MERGE:
        return tm_batch_add(b, id, TM_KIND_MERGE, key, tm_slice_of(value + 8, len));
    default:
        if (op->expires == 0)
            return tm_batch_add(b, id, TM_KIND_PUT, key, tm_slice_of(value + 8, len));
        tm_put64(value, op->expires);
        return tm_batch_add(b, id, TM_KIND_PUT_EXPIRY, key, tm_slice_of(value, 8 + len));
    }
}

static inline size_t model_random_batch(const model *m, tm_random *r, size_t families, size_t most,
                                        model_op *ops, tamis_batch *b)
{
    size_t n = 1 + (size_t)tm_random_below(r, most);
    tamis_batch_clear(b);
    for (size_t i = 0; i < n; i++) {
        ops[i] = model_random_op(r, families);
        if (model_batch_add(b, m, &ops[i]) != TAMIS_OK) abort();
    }
    return n;
}

static inline void model_apply(model *m, const model_op *ops, size_t n, uint64_t last_seq)
{
    for (size_t i = 0; i < n; i++) {
        const model_op *op = &ops[i];
        uint64_t seq = last_seq - (n - 1 - i);
        model_version v = {seq, op->value, op->expires, op->kind};
        if (op->kind != MODEL_RANGE) {
            model_add(m, op->family, op->key, v);
            continue;
        }
        v = (model_version){.seq = seq, .kind = MODEL_DELETE};
        for (size_t k = op->key; k < op->limit; k++) model_add(m, op->family, k, v);
        if (seq > m->last_seq) m->last_seq = seq;
    }
}

#endif // TM_STORE_MODEL_H
