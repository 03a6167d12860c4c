// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/search.h"

#include "base/mem.h"

enum { WAVE = 16 }; // tables whose memory waits are overlapped

// Not found so far: the search goes on; any status ends it.
#define GO_ON 1

static void tell(tm_search *s, const char *what, const char *outcome, uint64_t number)
{
    if (TM_LIKELY(s->rc.step == NULL)) return;
    tm_read_step step = {.what = what, .outcome = outcome, .cached = true, .file_number = number};
    s->rc.step(s->rc.step_ctx, &step);
}

// ---- What an entry says ------------------------------------------------------------------------

// The search ends on a value, or (NULL) on the key's absence: the answer itself, or what the
// operands found so far are merged with.
static int end_with(tm_search *s, const tm_slice *value)
{
    if (TM_LIKELY(s->fold == NULL)) {
        if (value == NULL) return TAMIS_NOTFOUND;
        s->value = *value;
        return TAMIS_OK;
    }
    const tamis_merger *m = atomic_load_explicit(&s->family->merger, memory_order_acquire);
    TM_TRY(tm_fold_finish(s->fold, m, s->key, value, s->rc.err));
    s->value = tm_buf_slice(&s->fold->out);
    return TAMIS_OK;
}

static int end_expiring(tm_search *s, tm_slice value)
{
    uint64_t expires_ms;
    if (!tm_expiry_take(&value, &expires_ms)) {
        return tm_fail_corrupt(s->rc.err, 0, 0, "an expiring entry has no time of expiry");
    }
    bool gone = expires_ms <= s->db->vfs->wall_ms(s->db->vfs);
    return end_with(s, gone ? NULL : &value);
}

static int take_operand(tm_search *s, tm_slice operand)
{
    if (s->rc.mode == TM_READ_EPOCH) return TAMIS_BUSY;
    if (s->fold == NULL) s->fold = tm_calloc(1, sizeof *s->fold);
    if (s->fold == NULL || tm_fold_add(s->fold, operand) != TAMIS_OK) {
        return tm_fail_nomem(s->rc.err);
    }
    return GO_ON;
}

static int verdict(tm_search *s, uint64_t trailer, tm_slice value)
{
    if (s->cover > tm_trailer_seq(trailer)) return end_with(s, NULL);
    switch (tm_trailer_kind(trailer)) {
    case TM_KIND_PUT:
        return end_with(s, &value);
    case TM_KIND_DELETE:
    case TM_KIND_SINGLE_DELETE:
        return end_with(s, NULL);
    case TM_KIND_PUT_EXPIRY:
        return end_expiring(s, value);
    case TM_KIND_MERGE:
        return take_operand(s, value);
    default:
        return tm_fail(s->rc.err, TAMIS_UNSUPPORTED,
                       "the key's entry is of kind %d, which this version cannot read",
                       (int)tm_trailer_kind(trailer));
    }
}

static const char *outcome_of(const tm_search *s, int st, uint64_t trailer)
{
    if (s->cover > tm_trailer_seq(trailer)) return "covered";
    if (tm_trailer_kind(trailer) == TM_KIND_MERGE) return "operand";
    if (tm_trailer_kind(trailer) == TM_KIND_PUT_EXPIRY && st == TAMIS_NOTFOUND) return "expired";
    return st == TAMIS_OK ? "found" : "deleted";
}

// ---- Memtables ---------------------------------------------------------------------------------

// Anything but GO_ON ends the search.
static int search_memtable(tm_search *s, tm_memtable *m, uint64_t seq, const char *what)
{
    uint64_t cover = 0, trailer = 0, from = tm_trailer_seek(seq);
    tm_slice value;
    TM_TRY(tm_memtable_range_cover(m, s->key, seq, &cover, s->rc.err));
    s->cover = TM_MAX(s->cover, cover);
    bool any = false;
    while (tm_memtable_get(m, s->key, from, s->hash, &trailer, &value)) {
        int st = verdict(s, trailer, value);
        tell(s, what, outcome_of(s, st, trailer), 0);
        if (TM_LIKELY(st != GO_ON)) {
            s->mem = s->fold == NULL ? m : NULL;
            return st;
        }
        any = true;
        from = trailer - 1; // the next older version
    }
    if (s->cover > 0) { // whatever is older stands below the range delete
        tell(s, what, "covered", 0);
        return end_with(s, NULL);
    }
    if (!any) tell(s, what, "no", 0);
    return GO_ON;
}

static int search_memtables(tm_search *s)
{
    for (uint32_t i = 0; i < s->view->mem_count; i++) {
        tm_memtable_prefetch(s->view->mems[i], s->hash);
    }
    if (TM_UNLIKELY(s->overlay != NULL)) {
        int st = search_memtable(s, s->overlay, s->overlay_seq, "overlay");
        if (st != GO_ON) return st;
    }
    for (uint32_t i = 0; i < s->view->mem_count; i++) {
        int st = search_memtable(s, s->view->mems[i], s->seq, i == 0 ? "memtable" : "immutable");
        if (st != GO_ON) return st;
    }
    return GO_ON;
}

// ---- Tables ------------------------------------------------------------------------------------

static void use_level(tm_search *s, uint32_t level)
{
    if (!(s->levels & 1u << level)) {
        memset(&s->counts[level], 0, sizeof s->counts[level]);
        s->levels |= 1u << level;
    }
    s->rc.counts = &s->counts[level];
}

typedef struct wave {
    tm_probe probes[WAVE];
    tm_table *tables[WAVE];
    uint8_t levels[WAVE];
    uint32_t count;
} wave;

static int route_all(tm_search *s, wave *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        uint64_t hash = s->hash, seed = tm_table_get_meta(w->tables[i])->hash_seed;
        use_level(s, w->levels[i]);
        if (TM_UNLIKELY(seed != s->db->hash_seed)) { // a table brought from another store
            tm_buf scratch;
            tm_buf_init(&scratch);
            int st = tm_order_hash(&s->family->order, s->key, seed, &scratch, &hash);
            tm_buf_deinit(&scratch);
            if (st != TAMIS_OK) return tm_fail_nomem(s->rc.err);
        }
        TM_TRY(tm_table_route(w->tables[i], &s->rc, s->key, tm_trailer_seek(s->seq), hash,
                              &w->probes[i]));
    }
    return GO_ON;
}

// The versions of the key in one table, if its filter lets them be there.
static int search_probed(tm_search *s, tm_probe *p)
{
    uint64_t from = tm_trailer_seek(s->seq);
    if (!tm_table_probe(p, &s->rc)) return GO_ON;
    for (;;) {
        tm_found found;
        int st = tm_table_find(p, &s->rc, s->key, from, &found);
        if (st == TAMIS_NOTFOUND) return GO_ON;
        if (st != TAMIS_OK) return st;
        st = verdict(s, found.trailer, found.value);
        if (TM_LIKELY(st != GO_ON)) {
            s->block = s->fold == NULL ? found.block : NULL;
            return st;
        }
        if (found.trailer == 0) return GO_ON;
        from = found.trailer - 1;
    }
}

static int search_wave(tm_search *s, wave *w)
{
    int st = route_all(s, w);
    for (uint32_t i = 0; st == GO_ON && i < w->count; i++) {
        tm_table *t = w->tables[i];
        use_level(s, w->levels[i]);
        if (TM_UNLIKELY(tm_table_get_meta(t)->range_deletes > 0)) {
            uint64_t cover = 0;
            TM_TRY(tm_table_range_cover(t, &s->rc, s->key, s->seq, &cover));
            s->cover = TM_MAX(s->cover, cover);
        }
        st = search_probed(s, &w->probes[i]);
        if (st == GO_ON && s->cover > 0) st = end_with(s, NULL);
    }
    if (st != GO_ON) return st; // pins hold what was found
    if (s->rc.mode != TM_READ_EPOCH) tm_read_ctx_reset(&s->rc);
    w->count = 0;
    return GO_ON;
}

static int add_table(tm_search *s, wave *w, const tm_file_ref *f, uint32_t level)
{
    w->tables[w->count] = f->table;
    w->levels[w->count++] = (uint8_t)level;
    // In pinned mode every table is searched by itself: its pins are few and short-lived.
    bool full = w->count == WAVE || s->rc.mode != TM_READ_EPOCH;
    return full ? search_wave(s, w) : GO_ON;
}

static int search_tables(tm_search *s)
{
    const tm_version *v = s->view->version;
    wave w;
    w.count = 0;
    for (uint32_t i = 0; i < v->levels[0].count; i++) {
        const tm_file_ref *f = v->levels[0].files[i];
        if (tm_file_locate(&s->family->order, f->meta, s->key) != 0) {
            tell(s, "table", "out-of-range", f->meta->number);
            continue;
        }
        int st = add_table(s, &w, f, 0);
        if (st != GO_ON) return st;
    }
    for (uint32_t l = 1; l < v->levels_used; l++) {
        if (v->levels[l].count == 0) continue;
        int64_t i = tm_version_find(v, l, s->key);
        if (i < 0) continue;
        int st = add_table(s, &w, v->levels[l].files[i], l);
        if (st != GO_ON) return st;
    }
    int st = w.count > 0 ? search_wave(s, &w) : GO_ON;
    return st == GO_ON ? end_with(s, NULL) : st;
}

int tm_search_run(tm_search *s)
{
    s->mem = NULL;
    s->block = NULL;
    s->fold = NULL;
    s->cover = 0;
    s->levels = 0;
    int st = search_memtables(s);
    return st == GO_ON ? search_tables(s) : st;
}

void tm_search_done(tm_search *s)
{
    tm_read_ctx_reset(&s->rc);
    if (s->fold == NULL) return;
    tm_fold_deinit(s->fold);
    tm_free(s->fold);
    s->fold = NULL;
}

void tm_search_account(tm_search *s)
{
    for (uint32_t levels = s->levels, l = 0; levels != 0; levels >>= 1, l++) {
        if (levels & 1) tm_stats_add_reads(&s->family->stats, l, &s->counts[l]);
    }
}
