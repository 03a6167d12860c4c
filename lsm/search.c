// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/search.h"

#include "base/mem.h"

enum { WAVE = 16 }; // tables whose memory waits are overlapped

static int verdict(tm_search *s, uint64_t trailer)
{
    if (s->cover > tm_trailer_seq(trailer)) return TAMIS_NOTFOUND;
    switch (tm_trailer_kind(trailer)) {
    case TM_KIND_PUT:
        return TAMIS_OK;
    case TM_KIND_DELETE:
    case TM_KIND_SINGLE_DELETE:
        return TAMIS_NOTFOUND;
    default:
        return tm_fail(s->rc.err, TAMIS_UNSUPPORTED,
                       "the key's entry is of kind %d, which this version cannot read",
                       (int)tm_trailer_kind(trailer));
    }
}

static void tell(tm_search *s, const char *what, const char *outcome, uint64_t number)
{
    if (TM_LIKELY(s->rc.step == NULL)) return;
    tm_read_step step = {.what = what, .outcome = outcome, .cached = true, .file_number = number};
    s->rc.step(s->rc.step_ctx, &step);
}

// OK or NOTFOUND ends the search; BUSY here means: not in the memtables.
static int search_memtables(tm_search *s)
{
    for (uint32_t i = 0; i < s->view->mem_count; i++) {
        tm_memtable_prefetch(s->view->mems[i], s->hash);
    }
    for (uint32_t i = 0; i < s->view->mem_count; i++) {
        tm_memtable *m = s->view->mems[i];
        uint64_t cover = 0, trailer = 0;
        TM_TRY(tm_memtable_range_cover(m, s->key, s->seq, &cover, s->rc.err));
        s->cover = TM_MAX(s->cover, cover);
        bool found =
            tm_memtable_get(m, s->key, tm_trailer_seek(s->seq), s->hash, &trailer, &s->value);
        const char *what = i == 0 ? "memtable" : "immutable";
        if (found) {
            int st = verdict(s, trailer);
            tell(s, what,
                 st == TAMIS_OK                       ? "found"
                 : s->cover > tm_trailer_seq(trailer) ? "covered"
                                                      : "deleted",
                 0);
            s->mem = m;
            return st;
        }
        if (s->cover > 0) { // whatever is older stands below the range delete
            tell(s, what, "covered", 0);
            return TAMIS_NOTFOUND;
        }
        tell(s, what, "no", 0);
    }
    return TAMIS_BUSY;
}

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

// Searches the gathered tables, newest first. BUSY2 (see below) goes on; anything else ends.
#define GO_ON 1

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
        if (tm_table_probe(&w->probes[i], &s->rc)) {
            tm_found found;
            int one = tm_table_find(&w->probes[i], &s->rc, s->key, tm_trailer_seek(s->seq), &found);
            if (one == TAMIS_OK) {
                s->value = found.value;
                s->block = found.block;
                return verdict(s, found.trailer);
            }
            if (one != TAMIS_NOTFOUND) return one;
        }
        if (s->cover > 0) return TAMIS_NOTFOUND;
    }
    // In pinned mode a wave's pins are not needed any more.
    if (s->rc.mode != TM_READ_EPOCH) tm_read_ctx_reset(&s->rc);
    w->count = 0;
    return st;
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
    return st == GO_ON ? TAMIS_NOTFOUND : st;
}

int tm_search_run(tm_search *s)
{
    s->mem = NULL;
    s->block = NULL;
    s->cover = 0;
    s->levels = 0;
    int st = search_memtables(s);
    return st == TAMIS_BUSY ? search_tables(s) : st;
}

void tm_search_account(tm_search *s)
{
    for (uint32_t levels = s->levels, l = 0; levels != 0; levels >>= 1, l++) {
        if (levels & 1) tm_stats_add_reads(&s->db->stats, l, &s->counts[l]);
    }
}
