// SPDX-License-Identifier: BSD-2-Clause
//
// pick.h - which tables to compact next: a function of a version and figures, with no side effects.
//
// Shape: level 0 is compacted by the number of its tables; the levels from the base level on have
// targets that follow from the size of the last one, each level_ratio smaller than the next, so
// that the last level holds about 90 % of the data however much there is (as in RocksDB's dynamic
// level sizes). The level that is most above its target goes first; of its tables the one that
// overlaps least of the next level.
#ifndef TM_PICK_H
#define TM_PICK_H

#include "lsm/options.h"
#include "lsm/version.h"

typedef enum tm_pick_reason {
    TM_PICK_NONE = 0,
    TM_PICK_LEVEL0,
    TM_PICK_SIZE,
    TM_PICK_TOMBSTONES,
    TM_PICK_MANUAL
} tm_pick_reason;

typedef struct tm_targets {
    uint32_t base;             // where level 0 is compacted to
    uint64_t bytes[TM_LEVELS]; // 0 below base
    double score[TM_LEVELS];   // >= 1: due. Running inputs not counted
} tm_targets;
void tm_pick_targets(const tm_version *v, const tm_config *c, tm_targets *out);

typedef struct tm_pick {
    tm_pick_reason reason;
    uint32_t level, output_level;
    tm_file_ref **inputs[2]; // of level, of output_level (level == output_level: none)
    uint32_t count[2];
    bool move; // the one input can be moved down as it is
    uint64_t bytes;
} tm_pick;
// NOTFOUND: nothing is due, or what is due is busy. References are the version's.
int tm_pick_next(const tm_version *v, const tm_config *c, tm_pick *out) TM_CHECK_RESULT;
// All tables of level that overlap the range, pushed one level down; in the last level the first
// run of those that are older than file number before, rewritten where they are. NOTFOUND: none
// there. BUSY: some are in work.
int tm_pick_manual(const tm_version *v, const tm_config *c, uint32_t level,
                   const tm_slice *smallest, const tm_slice *largest, uint64_t before,
                   tm_pick *out) TM_CHECK_RESULT;
void tm_pick_deinit(tm_pick *p);
const char *tm_pick_reason_name(tm_pick_reason r);

#endif // TM_PICK_H
