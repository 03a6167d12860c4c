// SPDX-License-Identifier: BSD-2-Clause
//
// edit.h - one change of the store's table list, as the manifest keeps it (docs/format.md,
// "Manifest payload").
#ifndef TM_EDIT_H
#define TM_EDIT_H

#include "sstable/table_meta.h"

#define TM_LEVELS 7

typedef struct tm_edit_table { // a table that comes or goes
    uint32_t family;
    uint32_t level;
    uint64_t number;
    bool add;
    tm_table_meta meta; // where add
} tm_edit_table;

typedef struct tm_edit_family {
    uint32_t id;
    bool drop;
    tm_buf name, comparator, merger;
} tm_edit_family;

typedef struct tm_edit_cursor { // where the next compaction of a level begins
    uint32_t family, level;
    tm_buf key;
} tm_edit_cursor;

typedef struct tm_edit_flushed { // writes of a family up to seq stand in its tables
    uint32_t family;
    uint64_t seq;
} tm_edit_flushed;

// Family 0: recorded for the operator. Other families: what was given for them, in one text.
typedef struct tm_edit_option {
    uint32_t family;
    tm_buf name, value;
} tm_edit_option;

typedef struct tm_edit { // all-zero is the empty edit
    bool has_store;
    uint8_t store_id[16];
    uint64_t hash_seed;
    uint64_t format_level;
    bool has_next_file, has_last_seq, has_min_log, has_live_tables, has_next_family;
    uint64_t next_file, last_seq, min_log, live_tables;
    uint32_t next_family; // ids from here on were never given out
    tm_edit_table *tables;
    size_t table_count, table_cap;
    tm_edit_family *families;
    size_t family_count, family_cap;
    tm_edit_cursor *cursors;
    size_t cursor_count, cursor_cap;
    tm_edit_flushed *flushed;
    size_t flushed_count, flushed_cap;
    tm_edit_option *options;
    size_t option_count, option_cap;
} tm_edit;

void tm_edit_init(tm_edit *e);
void tm_edit_deinit(tm_edit *e);
void tm_edit_family_deinit(tm_edit_family *f);
int tm_edit_add_table(tm_edit *e, uint32_t family, uint32_t level,
                      const tm_table_meta *meta) TM_CHECK_RESULT;
int tm_edit_drop_table(tm_edit *e, uint32_t family, uint32_t level,
                       uint64_t number) TM_CHECK_RESULT;
int tm_edit_add_family(tm_edit *e, uint32_t id, tm_slice name, tm_slice comparator,
                       tm_slice merger) TM_CHECK_RESULT;
int tm_edit_drop_family(tm_edit *e, uint32_t id) TM_CHECK_RESULT;
int tm_edit_set_flushed(tm_edit *e, uint32_t family, uint64_t seq) TM_CHECK_RESULT;
int tm_edit_set_cursor(tm_edit *e, uint32_t family, uint32_t level, tm_slice key) TM_CHECK_RESULT;
int tm_edit_add_option(tm_edit *e, uint32_t family, tm_slice name, tm_slice value) TM_CHECK_RESULT;

// chain is the chain of the edit before (0 for the first) and becomes this one's.
int tm_edit_encode(const tm_edit *e, uint64_t *chain, tm_buf *out) TM_CHECK_RESULT;
// Checks everything that can be checked without the versions; CORRUPT (number and offset of the
// manifest are for the message).
int tm_edit_decode(tm_edit *e, tm_slice payload, uint64_t *chain, uint64_t number, uint64_t offset,
                   tamis_error *err) TM_CHECK_RESULT;

// Adds e, of that manifest, to what the edits before it add up to. CORRUPT where it does not fit
// them: it drops what is not there, or counts other tables than there are.
int tm_edit_merge(tm_edit *state, const tm_edit *e, uint64_t manifest,
                  tamis_error *err) TM_CHECK_RESULT;

#endif // TM_EDIT_H
