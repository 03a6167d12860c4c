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

enum { MODEL_KEYS = 160, MODEL_MAX_KEY = 80, MODEL_MAX_VALUE = 24 << 10 };

typedef struct model_version {
    uint64_t seq;
    uint64_t value; // seed of its bytes; 0: deleted
} model_version;

typedef struct model_key {
    uint8_t bytes[MODEL_MAX_KEY];
    size_t len;
    model_version *versions; // ascending
    size_t count, cap;
} model_key;

typedef struct model {
    model_key keys[MODEL_KEYS]; // ascending
    uint64_t last_seq;
} model;

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
    for (size_t i = 0; i < MODEL_KEYS; i++) free(m->keys[i].versions);
}

static inline void model_add(model *m, size_t key, uint64_t seq, uint64_t value)
{
    model_key *k = &m->keys[key];
    if (k->count == k->cap) {
        k->cap = k->cap ? k->cap * 2 : 8;
        k->versions = realloc(k->versions, k->cap * sizeof *k->versions);
        if (k->versions == NULL) abort();
    }
    k->versions[k->count++] = (model_version){seq, value};
    if (seq > m->last_seq) m->last_seq = seq;
}

// The value's seed at seq; 0: absent.
static inline uint64_t model_at(const model *m, size_t key, uint64_t seq)
{
    const model_key *k = &m->keys[key];
    for (size_t i = k->count; i > 0; i--) {
        if (k->versions[i - 1].seq <= seq) return k->versions[i - 1].value;
    }
    return 0;
}

// Forgets everything behind seq: what a crash lost.
static inline void model_cut(model *m, uint64_t seq)
{
    for (size_t i = 0; i < MODEL_KEYS; i++) {
        model_key *k = &m->keys[i];
        while (k->count > 0 && k->versions[k->count - 1].seq > seq) k->count--;
    }
    m->last_seq = seq;
}

static inline tm_slice model_key_slice(const model *m, size_t key)
{
    return tm_slice_of(m->keys[key].bytes, m->keys[key].len);
}

// The bytes of a value follow from its seed. Mostly short, some longer than a block.
static inline size_t model_value(uint64_t seed, uint8_t *out)
{
    tm_random r = tm_random_seed(seed);
    uint64_t dice = tm_random_below(&r, 50);
    size_t len = dice == 0   ? (size_t)tm_random_below(&r, MODEL_MAX_VALUE)
                 : dice < 10 ? (size_t)tm_random_below(&r, 600)
                             : (size_t)tm_random_below(&r, 60);
    for (size_t i = 0; i < len; i++) out[i] = (uint8_t)(i % 3 ? seed : tm_random_next(&r));
    return len;
}

static inline bool model_value_is(uint64_t seed, const void *data, size_t len)
{
    static uint8_t expected[MODEL_MAX_VALUE];
    size_t n = model_value(seed, expected);
    return n == len && (n == 0 || memcmp(expected, data, n) == 0);
}

// A batch of 1 to most operations, put into b; the model gets them when the commit succeeded.
typedef struct model_op {
    size_t key, limit; // range deletes: [key, limit)
    uint64_t value;    // 0: delete
    bool range;
} model_op;

static inline size_t model_random_batch(const model *m, tm_random *r, size_t most, model_op *ops,
                                        tamis_batch *b)
{
    static uint8_t value[MODEL_MAX_VALUE];
    size_t n = 1 + (size_t)tm_random_below(r, most);
    tamis_batch_clear(b);
    for (size_t i = 0; i < n; i++) {
        model_op *op = &ops[i];
        int st;
        *op = (model_op){.key = (size_t)tm_random_below(r, MODEL_KEYS)};
        tm_slice key = model_key_slice(m, op->key);
        uint64_t dice = tm_random_below(r, 100);
        if (dice < 4) {
            op->range = true;
            op->limit = op->key + 1 + (size_t)tm_random_below(r, 12);
            tm_slice limit = {0};
            if (op->limit < MODEL_KEYS)
                limit = model_key_slice(m, op->limit);
            else
                op->limit = MODEL_KEYS;
            st = tm_batch_add(b, 0, TM_KIND_RANGE_DELETE, key, limit);
        } else if (dice < 30) {
            st = tamis_batch_delete(b, NULL, key.data, key.len);
        } else {
            op->value = tm_random_next(r) | 1;
            size_t len = model_value(op->value, value);
            st = tamis_batch_put(b, NULL, key.data, key.len, value, len);
        }
        if (st != TAMIS_OK) abort();
    }
    return n;
}

static inline void model_apply(model *m, const model_op *ops, size_t n, uint64_t last_seq)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t seq = last_seq - (n - 1 - i);
        if (!ops[i].range) {
            model_add(m, ops[i].key, seq, ops[i].value);
            continue;
        }
        for (size_t k = ops[i].key; k < ops[i].limit; k++) {
            if (model_at(m, k, seq) != 0) model_add(m, k, seq, 0);
        }
    }
    m->last_seq = last_seq;
}

#endif // TM_STORE_MODEL_H
