// SPDX-License-Identifier: BSD-2-Clause
//
// fold.h - the operands of one key, gathered on the way from newer to older entries, and the value
// that the family's merger makes of them.
#ifndef TM_FOLD_H
#define TM_FOLD_H

#include "base/coding.h"
#include "lsm/tamis.h"

typedef struct tm_fold { // all-zero is empty
    tm_buf bytes;        // operands, copied, newest first
    tm_buf ends;         // size_t: where each ends
    tm_buf slices;       // scratch: tamis_slice, oldest first
    tm_buf out;          // the value made
} tm_fold;

void tm_fold_deinit(tm_fold *f);
void tm_fold_clear(tm_fold *f); // keeps the memory
static inline size_t tm_fold_count(const tm_fold *f)
{
    return f->ends.len / sizeof(size_t);
}
int tm_fold_add(tm_fold *f, tm_slice operand) TM_CHECK_RESULT; // the next older one; copied
// Makes f->out of base (NULL: the key had no value) and the operands; at least one of them.
// UNSUPPORTED if m is NULL: the family's merger was not given. What the merger answers otherwise,
// its name in the message; NOTFOUND and BUSY, which mean something else here, become ABORTED.
int tm_fold_finish(tm_fold *f, const tamis_merger *m, tm_slice key, const tm_slice *base,
                   tamis_error *err) TM_CHECK_RESULT;
// The same for operands alone, of an associative merger: f->out becomes one operand.
int tm_fold_operands(tm_fold *f, const tamis_merger *m, tm_slice key,
                     tamis_error *err) TM_CHECK_RESULT;

// ---- Expiring values ---------------------------------------------------------------------------

// A PUT_EXPIRY entry's value is the moment of its end (ms since 1970, 8 bytes), then the value.
static inline bool tm_expiry_take(tm_slice *value, uint64_t *expires_ms)
{
    if (value->len < 8) return false; // damage
    *expires_ms = tm_get64(value->data);
    *value = tm_slice_of(value->data + 8, value->len - 8);
    return true;
}

#endif // TM_FOLD_H
