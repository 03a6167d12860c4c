// SPDX-License-Identifier: BSD-2-Clause
//
// folder.h - what stands in a store's folder.
#ifndef TM_FOLDER_H
#define TM_FOLDER_H

#include "base/file.h"
#include "lsm/filename.h"

typedef struct tm_folder {
    bool has_current, has_temp, has_lock, has_notes, has_lost;
    bool has_other;                 // something that is not ours
    char other[64];                 // the first of these, cut
    tm_buf manifests, logs, tables; // numbers (uint64_t), ascending
    uint64_t highest;               // number of all
} tm_folder;

int tm_folder_list(tamis_dir *dir, tm_folder *out, tamis_error *err) TM_CHECK_RESULT;
void tm_folder_deinit(tm_folder *f);
static inline size_t tm_folder_count(const tm_buf *numbers)
{
    return numbers->len / 8;
}
uint64_t tm_folder_at(const tm_buf *numbers, size_t i);
bool tm_folder_has(const tm_buf *numbers, uint64_t number);

#endif // TM_FOLDER_H
