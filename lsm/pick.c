// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/pick.h"

#include "base/mem.h"

const char *tm_pick_reason_name(tm_pick_reason r)
{
    static const char *const names[] = {"none", "level 0", "size", "tombstones", "manual"};
    return names[r];
}

void tm_pick_deinit(tm_pick *p)
{
    tm_free(p->inputs[0]);
    tm_free(p->inputs[1]);
    memset(p, 0, sizeof *p);
}

// ---- Targets -----------------------------------------------------------------------------------

static uint64_t idle_bytes(const tm_level *level)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < level->count; i++) {
        if (!level->files[i]->busy) sum += level->files[i]->meta->file_bytes;
    }
    return sum;
}

static void level_targets(const tm_version *v, const tm_config *c, tm_targets *t)
{
    uint64_t largest = 0;
    uint32_t first = TM_LEVELS - 1;
    for (uint32_t l = TM_LEVELS - 1; l > 0; l--) {
        if (v->levels[l].bytes > 0) first = l;
        largest = TM_MAX(largest, v->levels[l].bytes);
    }
    // From the last level up, until a level is small enough to be the base.
    uint64_t target = largest;
    for (uint32_t l = TM_LEVELS - 1; l > first; l--) target /= c->level_ratio;
    t->base = first;
    while (t->base > 1 && target > c->level_base) {
        t->base--;
        target /= c->level_ratio;
    }
    target = TM_MAX(target, TM_MAX(c->level_base / c->level_ratio, (uint64_t)1));
    for (uint32_t l = t->base; l < TM_LEVELS; l++) {
        t->bytes[l] = TM_MAX(target, c->level_base);
        target = target > UINT64_MAX / c->level_ratio ? UINT64_MAX : target * c->level_ratio;
    }
}

void tm_pick_targets(const tm_version *v, const tm_config *c, tm_targets *t)
{
    memset(t, 0, sizeof *t);
    level_targets(v, c, t);
    uint32_t idle = 0;
    bool running = false;
    for (uint32_t i = 0; i < v->levels[0].count; i++) {
        if (v->levels[0].files[i]->busy)
            running = true;
        else
            idle++;
    }
    t->score[0] = running ? 0 : (double)idle / (double)c->level0_compact;
    for (uint32_t l = 1; l + 1 < TM_LEVELS; l++) {
        uint64_t bytes = idle_bytes(&v->levels[l]);
        // A level above the base (the base moved down when data went) is emptied.
        if (l < t->base)
            t->score[l] = bytes > 0 ? 1.5 : 0;
        else
            t->score[l] = (double)bytes / (double)t->bytes[l];
    }
}

// ---- Inputs ------------------------------------------------------------------------------------

static bool any_busy(const tm_level *level, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i < last; i++) {
        if (level->files[i]->busy) return true;
    }
    return false;
}

static int take(const tm_level *level, uint32_t first, uint32_t last, tm_pick *p, int which)
{
    uint32_t n = last - first;
    if (n == 0) return TAMIS_OK;
    p->inputs[which] = tm_alloc(n * sizeof *p->inputs[which]);
    if (p->inputs[which] == NULL) return TAMIS_NOMEM;
    memcpy(p->inputs[which], level->files + first, n * sizeof *p->inputs[which]);
    p->count[which] = n;
    for (uint32_t i = first; i < last; i++) p->bytes += level->files[i]->meta->file_bytes;
    return TAMIS_OK;
}

// The bounds of some tables; *open tells that there is no upper one.
static void bounds_of(const tm_order *order, tm_file_ref *const *files, uint32_t n,
                      tm_slice *smallest, tm_slice *largest, bool *open)
{
    *open = false;
    for (uint32_t i = 0; i < n; i++) {
        const tm_table_meta *m = files[i]->meta;
        tm_slice s = tm_buf_slice(&m->smallest), l = tm_buf_slice(&m->largest);
        if (i == 0 || tm_order_compare(order, s, *smallest) < 0) *smallest = s;
        if (i == 0 || tm_order_compare(order, l, *largest) > 0) *largest = l;
        if (m->flags & TM_TABLE_UNBOUNDED) *open = true;
    }
}

// Completes a pick whose inputs[0] are chosen: what they overlap below. BUSY if some of it is.
static int take_below(const tm_version *v, tm_pick *p)
{
    tm_slice smallest = {0}, largest = {0};
    bool open;
    uint32_t first, last;
    bounds_of(&v->order, p->inputs[0], p->count[0], &smallest, &largest, &open);
    tm_version_overlap(v, p->output_level, &smallest, open ? NULL : &largest, &first, &last);
    if (any_busy(&v->levels[p->output_level], first, last)) return TAMIS_BUSY;
    TM_TRY(take(&v->levels[p->output_level], first, last, p, 1));
    p->move = p->count[0] == 1 && p->count[1] == 0;
    return TAMIS_OK;
}

static int pick_level0(const tm_version *v, uint32_t base, tm_pick *p)
{
    const tm_level *level = &v->levels[0];
    p->level = 0;
    p->output_level = base;
    if (level->count == 0) return TAMIS_NOTFOUND;
    if (any_busy(level, 0, level->count)) return TAMIS_BUSY;
    TM_TRY(take(level, 0, level->count, p, 0));
    return take_below(v, p);
}

// The table of a level that overlaps least of the next one for its size.
static int64_t least_overlap(const tm_version *v, uint32_t l)
{
    const tm_level *level = &v->levels[l], *below = &v->levels[l + 1];
    int64_t best = -1;
    double best_ratio = 0;
    for (uint32_t i = 0; i < level->count; i++) {
        tm_file_ref *f = level->files[i];
        if (f->busy) continue;
        tm_slice smallest = tm_buf_slice(&f->meta->smallest);
        tm_slice largest = tm_buf_slice(&f->meta->largest);
        uint32_t first, last;
        tm_version_overlap(v, l + 1, &smallest,
                           f->meta->flags & TM_TABLE_UNBOUNDED ? NULL : &largest, &first, &last);
        if (any_busy(below, first, last)) continue;
        uint64_t bytes = 0;
        for (uint32_t k = first; k < last; k++) bytes += below->files[k]->meta->file_bytes;
        double ratio = (double)bytes / (double)f->meta->file_bytes;
        if (best < 0 || ratio < best_ratio) {
            best = i;
            best_ratio = ratio;
        }
    }
    return best;
}

static int pick_level(const tm_version *v, uint32_t l, int64_t i, tm_pick *p)
{
    p->level = l;
    p->output_level = l + 1;
    TM_TRY(take(&v->levels[l], (uint32_t)i, (uint32_t)i + 1, p, 0));
    return take_below(v, p);
}

// A table full of tombstones, which is compacted although its level is not above its target.
static int pick_tombstones(const tm_version *v, tm_pick *p)
{
    for (uint32_t l = 1; l < TM_LEVELS; l++) {
        const tm_level *level = &v->levels[l];
        for (uint32_t i = 0; i < level->count; i++) {
            if (!level->files[i]->marked || level->files[i]->busy) continue;
            if (l + 1 < v->levels_used) {
                int st = pick_level(v, l, i, p);
                if (st != TAMIS_BUSY) return st;
                tm_pick_deinit(p);
                continue;
            }
            p->level = p->output_level = l; // nothing below: rewritten where it is
            return take(level, i, i + 1, p, 0);
        }
    }
    return TAMIS_NOTFOUND;
}

static int try_level(const tm_version *v, const tm_targets *t, uint32_t l, tm_pick *p)
{
    if (l == 0) return pick_level0(v, t->base, p);
    int64_t i = least_overlap(v, l);
    return i < 0 ? TAMIS_BUSY : pick_level(v, l, i, p);
}

int tm_pick_next(const tm_version *v, const tm_config *c, tm_pick *p)
{
    tm_targets t;
    tm_pick_targets(v, c, &t);
    memset(p, 0, sizeof *p);
    for (uint32_t round = 0; round < TM_LEVELS; round++) {
        uint32_t best = TM_LEVELS;
        for (uint32_t l = 0; l + 1 < TM_LEVELS; l++) {
            if (t.score[l] >= 1 && (best == TM_LEVELS || t.score[l] > t.score[best])) best = l;
        }
        if (best == TM_LEVELS) break;
        int st = try_level(v, &t, best, p);
        if (st == TAMIS_OK) {
            p->reason = best == 0 ? TM_PICK_LEVEL0 : TM_PICK_SIZE;
            return TAMIS_OK;
        }
        tm_pick_deinit(p);
        if (st == TAMIS_NOMEM) return st;
        t.score[best] = 0; // busy: the next most urgent
    }
    int st = pick_tombstones(v, p);
    if (st != TAMIS_OK)
        tm_pick_deinit(p);
    else
        p->reason = TM_PICK_TOMBSTONES;
    return st == TAMIS_BUSY ? TAMIS_NOTFOUND : st;
}

// ---- Manual ------------------------------------------------------------------------------------

static int take_overlapping(const tm_version *v, uint32_t l, const tm_slice *smallest,
                            const tm_slice *largest, uint64_t before, bool last_level, tm_pick *p)
{
    const tm_level *level = &v->levels[l];
    p->inputs[0] = tm_alloc(level->count * sizeof *p->inputs[0]);
    if (p->inputs[0] == NULL) return TAMIS_NOMEM;
    for (uint32_t i = 0; i < level->count; i++) {
        tm_file_ref *f = level->files[i];
        bool wanted = tm_file_overlaps(&v->order, f, smallest, largest) &&
                      !(last_level && f->meta->number >= before);
        // Outputs may span all that lies between the inputs. Rewritten where they are, inputs must
        // therefore stand side by side: the next run of them is another pick.
        if (!wanted && last_level && p->count[0] > 0) break;
        if (!wanted) continue;
        if (f->busy) return TAMIS_BUSY;
        p->inputs[0][p->count[0]++] = f;
        p->bytes += f->meta->file_bytes;
    }
    return p->count[0] > 0 ? TAMIS_OK : TAMIS_NOTFOUND;
}

int tm_pick_manual(const tm_version *v, const tm_config *c, uint32_t level,
                   const tm_slice *smallest, const tm_slice *largest, uint64_t before, tm_pick *p)
{
    tm_targets t;
    tm_pick_targets(v, c, &t);
    memset(p, 0, sizeof *p);
    int st;
    if (v->levels[level].count == 0) return TAMIS_NOTFOUND;
    bool last = level > 0 && level + 1 >= v->levels_used;
    if (level == 0) {
        bool any = false;
        for (uint32_t i = 0; i < v->levels[0].count; i++) {
            any = any || tm_file_overlaps(&v->order, v->levels[0].files[i], smallest, largest);
        }
        st = any ? pick_level0(v, t.base, p) : TAMIS_NOTFOUND;
    } else {
        p->level = level;
        p->output_level = last ? level : level + 1;
        st = take_overlapping(v, level, smallest, largest, before, last, p);
        if (st == TAMIS_OK && !last) st = take_below(v, p);
    }
    if (st != TAMIS_OK) tm_pick_deinit(p);
    p->move = false;
    p->reason = TM_PICK_MANUAL;
    return st;
}
