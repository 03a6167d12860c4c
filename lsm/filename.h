// SPDX-License-Identifier: BSD-2-Clause
//
// filename.h - the names of a store's files, both ways. Names come from numbers, never from what a
// file says.
#ifndef TM_FILENAME_H
#define TM_FILENAME_H

#include "base/base.h"

typedef enum tm_file_kind {
    TM_FILE_OTHER = 0, // not ours
    TM_FILE_CURRENT,
    TM_FILE_MANIFEST,
    TM_FILE_LOG, // write-ahead log
    TM_FILE_TABLE,
    TM_FILE_LOCK,
    TM_FILE_NOTES, // LOG and LOG.old
    TM_FILE_TEMP,  // CURRENT.tmp
    TM_FILE_LOST   // the folder lost/
} tm_file_kind;

#define TM_NAME_CURRENT     "CURRENT"
#define TM_NAME_CURRENT_TMP "CURRENT.tmp"
#define TM_NAME_LOCK        "LOCK"
#define TM_NAME_NOTES       "LOG"
#define TM_NAME_NOTES_OLD   "LOG.old"
#define TM_NAME_LOST        "lost"

#define TM_NAME_MAX 40
// "000012.sst" and so on; kind is MANIFEST, LOG or TABLE.
void tm_filename(char out[TM_NAME_MAX], tm_file_kind kind, uint64_t number);
// What a name in the folder is; *number is set for the numbered kinds. Only the exact spelling that
// tm_filename gives is ours.
tm_file_kind tm_filename_parse(const char *name, uint64_t *number);

#endif // TM_FILENAME_H
