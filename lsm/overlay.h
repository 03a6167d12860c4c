// SPDX-License-Identifier: BSD-2-Clause
//
// overlay.h - the operations of an indexed batch, as memtables that reads look at first: one for
// each family that the batch writes to.
//
// Operation i of the batch has the number TM_OVERLAY_SEQ + 1 + i there, above all numbers of the
// store. The index is made at a read, of what was added since the last one.
#ifndef TM_OVERLAY_H
#define TM_OVERLAY_H

#include "lsm/family.h"

#define TM_OVERLAY_SEQ ((uint64_t)1 << 55) // numbers of the store end here

typedef struct tm_overlay tm_overlay;

// The batch's memtable of f (NULL: it writes nothing to it) and its newest number. The memtable is
// the batch's: who keeps it takes a reference. INVALID if b is not indexed, or of another store.
int tm_overlay_get(const tamis_batch *b, tm_family *f, tm_memtable **mem, uint64_t *seq,
                   tamis_error *err) TM_CHECK_RESULT;
void tm_overlay_free(tm_overlay *o); // NULL is fine

#endif // TM_OVERLAY_H
