// SPDX-License-Identifier: BSD-2-Clause
//
// edit_merge.c - what the edits of a manifest add up to: the live tables, families and figures, in
// an edit that would make them at once.

#include "lsm/edit.h"

// ---- Tables ------------------------------------------------------------------------------------

static void remove_table(tm_edit *s, size_t i)
{
    tm_table_meta_deinit(&s->tables[i].meta);
    s->tables[i] = s->tables[--s->table_count];
}

static int drop_table(tm_edit *s, const tm_edit_table *gone, uint64_t manifest, tamis_error *err)
{
    for (size_t i = 0; i < s->table_count; i++) {
        const tm_edit_table *t = &s->tables[i];
        if (t->number != gone->number || t->level != gone->level || t->family != gone->family) {
            continue;
        }
        remove_table(s, i);
        return TAMIS_OK;
    }
    return tm_fail_corrupt(err, manifest, 0,
                           "MANIFEST-%06llu drops table %06llu, which is not there",
                           (unsigned long long)manifest, (unsigned long long)gone->number);
}

static int merge_tables(tm_edit *s, const tm_edit *e, uint64_t manifest, tamis_error *err)
{
    for (size_t i = 0; i < e->table_count; i++) { // a move is a drop and an add
        if (!e->tables[i].add) TM_TRY(drop_table(s, &e->tables[i], manifest, err));
    }
    for (size_t i = 0; i < e->table_count; i++) {
        const tm_edit_table *t = &e->tables[i];
        if (t->add && tm_edit_add_table(s, t->family, t->level, &t->meta) != TAMIS_OK) {
            return tm_fail_nomem(err);
        }
    }
    return TAMIS_OK;
}

// ---- Families ----------------------------------------------------------------------------------

static int drop_family(tm_edit *s, uint32_t id, uint64_t manifest, tamis_error *err)
{
    bool found = false;
    for (size_t i = 0; i < s->family_count && !found; i++) {
        if (s->families[i].id != id) continue;
        tm_edit_family_deinit(&s->families[i]);
        s->families[i] = s->families[--s->family_count];
        found = true;
    }
    for (size_t i = s->table_count; i > 0; i--) { // its tables go with it
        if (s->tables[i - 1].family == id) remove_table(s, i - 1);
    }
    if (found && id != 0) return TAMIS_OK;
    return tm_fail_corrupt(err, manifest, 0, "MANIFEST-%06llu drops family %u, which is not there",
                           (unsigned long long)manifest, (unsigned)id);
}

// A family that comes, or gets another name or merger.
static int take_family(tm_edit *s, const tm_edit_family *f)
{
    for (size_t i = 0; i < s->family_count; i++) {
        tm_edit_family *old = &s->families[i];
        if (old->id != f->id) continue;
        TM_TRY(tm_buf_set(&old->name, tm_buf_slice(&f->name)));
        return tm_buf_set(&old->merger, tm_buf_slice(&f->merger));
    }
    return tm_edit_add_family(s, f->id, tm_buf_slice(&f->name), tm_buf_slice(&f->comparator),
                              tm_buf_slice(&f->merger));
}

// The last one of a kind holds.
static int take_cursor(tm_edit *s, const tm_edit_cursor *c)
{
    for (size_t i = 0; i < s->cursor_count; i++) {
        tm_edit_cursor *old = &s->cursors[i];
        if (old->family != c->family || old->level != c->level) continue;
        return tm_buf_set(&old->key, tm_buf_slice(&c->key));
    }
    return tm_edit_set_cursor(s, c->family, c->level, tm_buf_slice(&c->key));
}

static int take_flushed(tm_edit *s, const tm_edit_flushed *f)
{
    for (size_t i = 0; i < s->flushed_count; i++) {
        if (s->flushed[i].family != f->family) continue;
        s->flushed[i].seq = TM_MAX(s->flushed[i].seq, f->seq);
        return TAMIS_OK;
    }
    return tm_edit_set_flushed(s, f->family, f->seq);
}

static int take_option(tm_edit *s, const tm_edit_option *o)
{
    for (size_t i = 0; i < s->option_count; i++) {
        tm_edit_option *old = &s->options[i];
        if (old->family != o->family ||
            !tm_slice_equal(tm_buf_slice(&old->name), tm_buf_slice(&o->name))) {
            continue;
        }
        return tm_buf_set(&old->value, tm_buf_slice(&o->value));
    }
    return tm_edit_add_option(s, o->family, tm_buf_slice(&o->name), tm_buf_slice(&o->value));
}

static int merge_families(tm_edit *s, const tm_edit *e, uint64_t manifest, tamis_error *err)
{
    int st = TAMIS_OK;
    for (size_t i = 0; i < e->family_count; i++) {
        const tm_edit_family *f = &e->families[i];
        if (f->drop)
            TM_TRY(drop_family(s, f->id, manifest, err));
        else if (take_family(s, f) != TAMIS_OK)
            return tm_fail_nomem(err);
    }
    for (size_t i = 0; st == TAMIS_OK && i < e->cursor_count; i++)
        st = take_cursor(s, &e->cursors[i]);
    for (size_t i = 0; st == TAMIS_OK && i < e->flushed_count; i++) {
        st = take_flushed(s, &e->flushed[i]);
    }
    for (size_t i = 0; st == TAMIS_OK && i < e->option_count; i++)
        st = take_option(s, &e->options[i]);
    return st == TAMIS_OK ? st : tm_fail_nomem(err);
}

// ---- The whole ---------------------------------------------------------------------------------

int tm_edit_merge(tm_edit *s, const tm_edit *e, uint64_t manifest, tamis_error *err)
{
    if (e->has_store) {
        s->has_store = true;
        memcpy(s->store_id, e->store_id, sizeof e->store_id);
        s->hash_seed = e->hash_seed;
        s->format_level = e->format_level;
    }
    if (e->has_min_log) s->min_log = e->min_log;
    if (e->has_last_seq) s->last_seq = TM_MAX(s->last_seq, e->last_seq);
    if (e->has_next_file) s->next_file = TM_MAX(s->next_file, e->next_file);
    if (e->has_next_family) s->next_family = TM_MAX(s->next_family, e->next_family);
    TM_TRY(merge_families(s, e, manifest, err));
    TM_TRY(merge_tables(s, e, manifest, err));
    if (!e->has_live_tables || e->live_tables == s->table_count) return TAMIS_OK;
    return tm_fail_corrupt(
        err, manifest, 0, "MANIFEST-%06llu: %llu live tables expected, %zu found",
        (unsigned long long)manifest, (unsigned long long)e->live_tables, s->table_count);
}
