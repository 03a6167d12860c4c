// SPDX-License-Identifier: BSD-2-Clause
//
// notes.h - the LOG file: what the store did, a line each, for people. Rotated by size and at each
// open; a failure to write it is ignored, as nothing depends on it.
#ifndef TM_NOTES_H
#define TM_NOTES_H

#include "base/file.h"
#include "base/sync.h"

typedef struct tm_notes {
    tm_mutex m;
    tamis_dir *dir; // NULL: off
    tm_file file;
    uint64_t end;
    uint64_t limit; // bytes at which it is rotated
    bool ready;
} tm_notes;

int tm_notes_init(tm_notes *n, tamis_error *err) TM_CHECK_RESULT;
void tm_notes_open(tm_notes *n, tamis_dir *dir, uint64_t limit); // moves an old LOG to LOG.old
void tm_notes_write(tm_notes *n, uint64_t wall_ms, const char *line);
void tm_notes_close(tm_notes *n);
void tm_notes_deinit(tm_notes *n);

#endif // TM_NOTES_H
