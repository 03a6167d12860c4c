// SPDX-License-Identifier: BSD-2-Clause
#include "lsm/range_window.h"

#include "base/mem.h"
#include "lsm/overlay.h"

int tm_range_window_init(tm_range_window *w, const tm_order *order, uint64_t seq,
                         uint64_t overlay_seq, const tm_range_set *const *sets,
                         const uint32_t *children, size_t count, tamis_error *err)
{
    *w = (tm_range_window){.order = *order, .seq = seq, .overlay_seq = overlay_seq};
    if (count == 0) return TAMIS_OK;
    w->sets = tm_calloc(count, sizeof(const tm_range_set *));
    w->children = tm_calloc(count, sizeof(*w->children));
    if (w->sets == NULL || w->children == NULL) {
        tm_range_window_deinit(w);
        return tm_fail_nomem(err);
    }
    for (size_t i = 0; i < count; i++) {
        if (sets[i] == NULL || sets[i]->n == 0) continue;
        w->sets[w->count] = sets[i];
        w->children[w->count] = children != NULL ? children[i] : UINT32_MAX;
        w->count++;
    }
    return TAMIS_OK;
}

void tm_range_window_deinit(tm_range_window *w)
{
    tm_free(w->children);
    tm_free(w->sets);
    w->children = NULL;
    w->sets = NULL;
    w->count = 0;
}

static void raise_low(tm_range_window *w, tm_slice low)
{
    if (w->has_low && tm_order_compare(&w->order, low, w->low) <= 0) return;
    w->has_low = true;
    w->low = low;
}

static void sink_high(tm_range_window *w, tm_slice high)
{
    if (w->has_high && tm_order_compare(&w->order, high, w->high) >= 0) return;
    w->has_high = true;
    w->high = high;
}

// Cuts the window down to the stretch around key in which set i says the same.
static void look_into(tm_range_window *w, size_t i, tm_slice key)
{
    const tm_range_set *s = w->sets[i];
    uint32_t f = tm_range_set_find(s, &w->order, key);
    const tm_range_fragment *fragment = &s->fragments[f];
    if (f < s->n && tm_order_compare(&w->order, fragment->start, key) <= 0) {
        raise_low(w, fragment->start);
        if (!fragment->unbounded) sink_high(w, fragment->limit);
        for (uint32_t j = 0; j < fragment->count; j++) { // newest first
            uint64_t seq = s->seqs[fragment->first + j];
            bool seen = seq <= w->seq || (seq > TM_OVERLAY_SEQ && seq <= w->overlay_seq);
            if (!seen) continue;
            if (seq > w->cover) {
                w->cover = seq;
                w->child = w->children[i];
            }
            break;
        }
        return;
    }
    if (f > 0) raise_low(w, s->fragments[f - 1].limit);
    if (f < s->n) sink_high(w, fragment->start);
}

void tm_range_window_move(tm_range_window *w, tm_slice key)
{
    w->known = true;
    w->has_low = w->has_high = false;
    w->cover = 0;
    w->child = UINT32_MAX;
    for (size_t i = 0; i < w->count; i++) look_into(w, i, key);
}
