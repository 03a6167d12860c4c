// SPDX-License-Identifier: BSD-2-Clause
//
// level_iter.h - the tables of a sorted level, one behind the other, as one internal iterator. Only
// the table at hand is open.
#ifndef TM_LEVEL_ITER_H
#define TM_LEVEL_ITER_H

#include "sstable/table.h"

// tables: ascending, disjoint; the array and the tables are borrowed and must outlive the iterator
// (its owner holds the version).
int tm_level_iter_create(const tm_order *order, tm_table *const *tables, size_t n,
                         const tm_table_iter_options *options, tm_iter **out,
                         tamis_error *err) TM_CHECK_RESULT;

#endif // TM_LEVEL_ITER_H
