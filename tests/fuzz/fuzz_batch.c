// SPDX-License-Identifier: BSD-2-Clause
//
// Any bytes as the payload of a log record. What reads whole is written again, and must give the
// same operations.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "lsm/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) abort();
}

static void check_same(tm_slice a, tm_slice b)
{
    tm_batch_reader x = tm_batch_reader_of(a), y = tm_batch_reader_of(b);
    tm_batch_op p, q;
    for (;;) {
        int st = tm_batch_reader_next(&x, &p);
        require(tm_batch_reader_next(&y, &q) == st);
        if (st != TAMIS_OK) break;
        require(p.family == q.family && p.kind == q.kind);
        require(tm_slice_equal(p.key, q.key) && tm_slice_equal(p.value, q.value));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tm_batch_reader r = tm_batch_reader_of(tm_slice_of(data, size));
    tamis_batch again;
    tm_batch_op op;
    int st;
    tm_batch_init(&again);
    while ((st = tm_batch_reader_next(&r, &op)) == TAMIS_OK) {
        require(op.key.len <= size && op.value.len <= size);
        require(tm_batch_add(&again, op.family, op.kind, op.key, op.value) == TAMIS_OK);
    }
    if (st == TAMIS_NOTFOUND) {
        require(again.rep.len <= size); // a batch spells nothing out that it need not
        check_same(tm_slice_of(data, size), tm_buf_slice(&again.rep));
    } else {
        require(st == TAMIS_CORRUPT);
    }
    tm_batch_deinit(&again);
    return 0;
}
