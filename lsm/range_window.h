// SPDX-License-Identifier: BSD-2-Clause
//
// range_window.h - which range delete covers a key, for walks: the answer holds for a stretch of
// keys, and is kept until the walk leaves it.
//
//   set 0   ....[=======@9=======)..........
//   set 1   .[@4)....[==@12==)..............
//                        ^ key
//   window           [       )               cover 12, by set 1
//
// Threads: one at a time. The sets outlive it.
// Cost: two comparisons while the walk stays inside; a search of every set where it leaves.
#ifndef TM_RANGE_WINDOW_H
#define TM_RANGE_WINDOW_H

#include "sstable/range_set.h"

typedef struct tm_range_window {
    tm_order order;
    uint64_t seq;              // range deletes above are not seen,
    uint64_t overlay_seq;      // but for those of a batch that is read through, up to this one
    const tm_range_set **sets; // no empty ones
    uint32_t *children;        // which child of the merge a set belongs to
    size_t count;
    // What holds in [low, high).
    bool known, has_low, has_high;
    tm_slice low, high;
    uint64_t cover; // newest range delete <= seq; 0 if none
    uint32_t child; // its set's
} tm_range_window;

// Copies the arrays. overlay_seq 0: there is none. children may be NULL: child is UINT32_MAX then.
int tm_range_window_init(tm_range_window *w, const tm_order *order, uint64_t seq,
                         uint64_t overlay_seq, const tm_range_set *const *sets,
                         const uint32_t *children, size_t count, tamis_error *err) TM_CHECK_RESULT;
void tm_range_window_deinit(tm_range_window *w);

void tm_range_window_move(tm_range_window *w, tm_slice key);
// The newest range delete <= seq over key, 0 if none. The window then lies around key.
static inline uint64_t tm_range_window_cover(tm_range_window *w, tm_slice key)
{
    if (TM_LIKELY(w->count == 0)) return 0;
    if (!w->known || (w->has_low && tm_order_compare(&w->order, key, w->low) < 0) ||
        (w->has_high && tm_order_compare(&w->order, key, w->high) >= 0)) {
        tm_range_window_move(w, key);
    }
    return w->cover;
}

#endif // TM_RANGE_WINDOW_H
