// SPDX-License-Identifier: BSD-2-Clause
//
// table_cache.h - the open files of tables: at most so many descriptors, whatever the number of
// tables. A table asks for its file when a block has to be read; the least recently used one that
// nobody reads from is closed when the limit is reached. When the system says EMFILE, others are
// closed and the open is tried again.
//
// INVARIANTS
//  TC1 A file that somebody reads from stays open until the last release.
//  TC2 More than max_open are open only while so many are being read from at once: waiting for a
//      descriptor could wait for oneself (a compaction holds the files of all its inputs).
//
// Threads: all functions by any thread; one mutex, never held across open and close. Who wants a
// file that another thread is opening waits for it.
// Errors: CORRUPT for a table file that is not there; else what opening it gave. Failing to close a
// file that was read from says nothing about its content and is ignored.
#ifndef TM_TABLE_CACHE_H
#define TM_TABLE_CACHE_H

#include "base/file.h"

typedef struct tm_table_cache tm_table_cache;
typedef struct tm_open_table tm_open_table; // a place for one table's descriptor

// "000012.sst". Room for the longest is TM_TABLE_NAME_BYTES.
#define TM_TABLE_NAME_BYTES 32
void tm_table_cache_name(uint64_t number, char out[TM_TABLE_NAME_BYTES]);

int tm_table_cache_create(tamis_dir *dir, uint32_t max_open, tm_table_cache **out,
                          tamis_error *err) TM_CHECK_RESULT;
void tm_table_cache_destroy(tm_table_cache *c); // after all its places were given back
int tm_table_cache_add(tm_table_cache *c, uint64_t number, tm_open_table **out,
                       tamis_error *err) TM_CHECK_RESULT;
void tm_table_cache_remove(tm_table_cache *c, tm_open_table *t); // closes; NULL is fine
// An open file to read from, until released. Never inside an epoch.
int tm_table_cache_acquire(tm_table_cache *c, tm_open_table *t, tm_file **out,
                           tamis_error *err) TM_CHECK_RESULT;
void tm_table_cache_release(tm_table_cache *c, tm_open_table *t);
uint32_t tm_table_cache_open_files(tm_table_cache *c);

#endif // TM_TABLE_CACHE_H
