// SPDX-License-Identifier: BSD-2-Clause
//
// db_trim.c - tables that go without being read: those that lie wholly under a newer range delete,
// and those whose values are all past their time. Those of which half are, or which hide older
// tables, are marked to be compacted.
//
//   range delete   [=====================)@90
//   level 2            |  t1  |  | t2 |  |  t3  |      t1 and t2 go, if no snapshot between their
//                      @10..20   @7..31  @12..40       oldest entry and 90 can see them
//
// INVARIANTS
//  T1  What a table hides in older ones stays hidden without it: a range delete that covers it
//      covers all of its bounds; of an expired one, no older table overlaps it.

#include "base/mem.h"
#include "lsm/db.h"

typedef struct trim {
    struct tamis_db *db;
    tm_family *family;
    tm_version *version; // pinned
    tm_stripes stripes;
    uint64_t now_ms;
    tm_range_builder newer; // range deletes of all tables newer than those looked at
    bool has_newer;
    tm_buf drops;   // tm_version_drop
    tm_buf files;   // tm_file_ref *: the same
    tm_buf delayed; // tm_file_ref *: to be compacted for what has expired in them
} trim;

// ---- Under a range delete ----------------------------------------------------------------------

// Whether a snapshot sees something from low up, but not the range delete at seq.
static bool snapshot_between(const trim *t, uint64_t low, uint64_t seq)
{
    size_t i = tm_stripe_of(&t->stripes, low); // the first snapshot >= low
    return i < t->stripes.count && t->stripes.seqs[i] < seq;
}

// Whether a fragment hides all of a table's entries from everybody who could see them.
static bool hides(const trim *t, const tm_range_set *set, const tm_range_fragment *f,
                  const tm_table_meta *m)
{
    for (uint32_t i = f->count; i > 0; i--) { // oldest first: the fewest snapshots lie between
        uint64_t seq = set->seqs[f->first + i - 1];
        if (seq > m->max_seq) return !snapshot_between(t, m->min_seq, seq);
    }
    return false;
}

static bool covers(const trim *t, const tm_range_set *set, const tm_table_meta *m)
{
    const tm_order *order = &t->family->order;
    tm_slice at = tm_buf_slice(&m->smallest), largest = tm_buf_slice(&m->largest);
    for (uint32_t i = tm_range_set_find(set, order, at); i < set->n; i++) {
        const tm_range_fragment *f = &set->fragments[i];
        if (tm_order_compare(order, f->start, at) > 0 || !hides(t, set, f, m)) return false;
        if (f->unbounded) return true;
        if (!(m->flags & TM_TABLE_UNBOUNDED)) {
            int c = tm_order_compare(order, f->limit, largest);
            if (c > 0 || (c == 0 && (m->flags & TM_TABLE_LARGEST_EXCLUSIVE))) return true;
        }
        at = f->limit;
    }
    return false;
}

static int add_newer(trim *t, tm_file_ref *f, tamis_error *err)
{
    const tm_range_set *set = NULL;
    if (f->meta->range_deletes == 0) return TAMIS_OK;
    TM_TRY(tm_table_ranges(f->table, &set, err));
    if (set == NULL) return TAMIS_OK;
    t->has_newer = true;
    if (tm_range_builder_add_set(&t->newer, set) == TAMIS_OK) return TAMIS_OK;
    return tm_fail_nomem(err);
}

// ---- Candidates --------------------------------------------------------------------------------

static bool overlaps_older(const trim *t, uint32_t level, uint32_t place)
{
    const tm_version *v = t->version;
    const tm_table_meta *m = v->levels[level].files[place]->meta;
    tm_slice smallest = tm_buf_slice(&m->smallest), largest = tm_buf_slice(&m->largest);
    const tm_slice *end = m->flags & TM_TABLE_UNBOUNDED ? NULL : &largest;
    for (uint32_t i = place + 1; level == 0 && i < v->levels[0].count; i++) {
        if (tm_file_overlaps(&v->order, v->levels[0].files[i], &smallest, end)) return true;
    }
    for (uint32_t l = level + 1; l < TM_LEVELS; l++) {
        uint32_t first, last;
        if (l == 0 || v->levels[l].count == 0) continue;
        tm_version_overlap(v, l, &smallest, end, &first, &last);
        if (first < last) return true;
    }
    return false;
}

static int judge(trim *t, const tm_range_set *set, uint32_t level, uint32_t place)
{
    tm_file_ref *f = t->version->levels[level].files[place];
    const tm_table_meta *m = f->meta;
    bool expired = m->expires_ms != 0 && m->expires_ms <= t->now_ms;
    bool covered = set != NULL && covers(t, set, m);
    bool half = m->half_ms != 0 && m->half_ms <= t->now_ms;
    if (!covered && (expired ? overlaps_older(t, level, place) : half)) {
        return tm_buf_append(&t->delayed, &f, sizeof(tm_file_ref *));
    }
    if (!covered && !expired) return TAMIS_OK;
    tm_version_drop d = {level, m->number};
    TM_TRY(tm_buf_append(&t->drops, &d, sizeof d));
    return tm_buf_append(&t->files, &f, sizeof(tm_file_ref *));
}

static int judge_level(trim *t, uint32_t l, tamis_error *err)
{
    const tm_level *level = &t->version->levels[l];
    for (uint32_t first = 0; first < level->count;) {
        // In level 0 each table has others that are newer; the tables of a level share them.
        uint32_t last = l == 0 ? first + 1 : level->count;
        tm_range_set set = {0};
        if (t->has_newer && tm_range_builder_finish(&t->newer, &t->family->order, &set) != 0) {
            return tm_fail_nomem(err);
        }
        int st = TAMIS_OK;
        for (uint32_t i = first; st == TAMIS_OK && i < last; i++) {
            st = judge(t, t->has_newer ? &set : NULL, l, i);
        }
        tm_range_set_deinit(&set);
        if (st != TAMIS_OK) return tm_fail_nomem(err);
        for (uint32_t i = first; i < last; i++) TM_TRY(add_newer(t, level->files[i], err));
        first = last;
    }
    return TAMIS_OK;
}

// ---- One round ---------------------------------------------------------------------------------

// Keeps the candidates that no compaction has taken meanwhile, and takes them. mu held.
static size_t take(trim *t)
{
    tm_file_ref **files = (tm_file_ref **)(void *)t->files.data;
    tm_version_drop *drops = (tm_version_drop *)(void *)t->drops.data;
    size_t n = t->files.len / sizeof(tm_file_ref *), kept = 0;
    for (size_t i = 0; i < n; i++) {
        const tm_level *level = &t->family->version->levels[drops[i].level];
        bool there = false;
        for (uint32_t k = 0; k < level->count; k++) there = there || level->files[k] == files[i];
        if (!there || files[i]->busy) continue;
        files[i]->busy = true;
        files[kept] = files[i];
        drops[kept++] = drops[i];
    }
    return kept;
}

static int drop_taken(trim *t, size_t n, tamis_error *err) // mu held
{
    tm_file_ref **files = (tm_file_ref **)(void *)t->files.data;
    tm_change change = {.drops = (tm_version_drop *)(void *)t->drops.data, .drop_count = n};
    int st = tm_db_install(t->db, t->family, &change, err);
    for (size_t i = 0; i < n; i++) files[i]->busy = false;
    if (st != TAMIS_OK) return st;
    tm_stats_add(&t->db->stats, TM_STAT_tables_trimmed, n);
    tm_mutex_unlock(&t->db->mu.m);
    tm_db_note(t->db, 0, "dropped %zu tables that held nothing to be seen", n);
    tm_mutex_lock(&t->db->mu.m);
    return TAMIS_OK;
}

bool tm_db_trim_due(const tm_family *f)
{
    if (f->trim_due) return true;
    const tamis_vfs *vfs = f->config.vfs;
    return f->next_expiry != 0 && vfs->wall_ms(vfs) >= f->next_expiry;
}

int tm_db_trim_family(struct tamis_db *db, tm_family *f, tamis_error *err)
{
    if (!tm_db_trim_due(f)) return TAMIS_NOTFOUND;
    trim t = {.db = db, .family = f, .version = f->version, .now_ms = db->vfs->wall_ms(db->vfs)};
    tm_version_ref(t.version);
    tm_range_builder_init(&t.newer);
    f->trim_due = false;
    f->compacting++;
    tm_mutex_unlock(&db->mu.m);
    int st = TAMIS_OK;
    if (tm_snapshots_stripes(&db->snapshots, &t.stripes) != TAMIS_OK) st = tm_fail_nomem(err);
    for (uint32_t l = 0; st == TAMIS_OK && l < TM_LEVELS; l++) st = judge_level(&t, l, err);
    tm_mutex_lock(&db->mu.m);
    tm_file_ref **delayed = (tm_file_ref **)(void *)t.delayed.data;
    for (size_t i = 0; i < t.delayed.len / sizeof(tm_file_ref *); i++) {
        uint64_t all = delayed[i]->meta->expires_ms;
        if (delayed[i]->look_ms == 0 || delayed[i]->look_ms > t.now_ms) continue;
        delayed[i]->marked = true;
        delayed[i]->look_ms = all > t.now_ms ? all : 0;
    }
    size_t n = st == TAMIS_OK && !f->settling ? take(&t) : 0;
    if (n > 0) st = drop_taken(&t, n, err);
    f->compacting--;
    tm_db_update_pressure(db, f);
    tm_mutex_unlock(&db->mu.m);
    tm_version_unref(t.version);
    tm_stripes_deinit(&t.stripes);
    tm_range_builder_deinit(&t.newer);
    tm_buf_deinit(&t.drops);
    tm_buf_deinit(&t.files);
    tm_buf_deinit(&t.delayed);
    tm_mutex_lock(&db->mu.m);
    return st == TAMIS_OK && n == 0 ? TAMIS_NOTFOUND : st;
}
