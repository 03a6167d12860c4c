// SPDX-License-Identifier: BSD-2-Clause
//
// db_install.c - changes of the table list: first the manifest, durably, then memory.
//
// One installer at a time; mu is let go while the manifest is written. What an installer computed
// before (its new version) stays right, as nobody else may change the list meanwhile.

#include "lsm/db.h"
#include "lsm/filename.h"
#include "lsm/pick.h"

#include "base/mem.h"

enum { ROLL_BYTES = 1 << 20, ROLL_FACTOR = 4 };
#define DELAY_RATE_MAX (64u << 20)
#define DELAY_RATE_MIN (1u << 20)

uint64_t tm_db_min_log(struct tamis_db *db, const tm_family *except)
{
    uint64_t min = db->log ? tm_wal_writer_number(db->log) : 0;
    for (uint32_t i = 0; i < db->family_count; i++) {
        tm_family *f = db->families[i];
        if (f == except) continue;
        uint64_t active = atomic_load_explicit(&f->mem_log, memory_order_relaxed);
        if (active != 0) min = TM_MIN(min, active);
        for (uint32_t k = 0; k < f->frozen_count; k++) {
            if (f->frozen[k].first_log != 0) min = TM_MIN(min, f->frozen[k].first_log);
        }
    }
    return min;
}

// ---- Edits -------------------------------------------------------------------------------------

static uint64_t live_tables(struct tamis_db *db, const tm_family *changed, const tm_version *v)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < db->family_count; i++) {
        tm_family *f = db->families[i];
        n += tm_version_tables(f == changed ? v : f->version);
    }
    return n;
}

static void stamp(struct tamis_db *db, tm_edit *e)
{
    e->has_next_file = e->has_last_seq = e->has_live_tables = true;
    e->next_file = atomic_load_explicit(&db->next_file, memory_order_relaxed);
    e->last_seq = atomic_load_explicit(&db->last_seq, memory_order_acquire);
}

static int snapshot_family(const tm_family *f, tm_edit *e)
{
    TM_TRY(tm_edit_add_family(e, f->id, tm_family_name(f), tm_slice_str(tm_order_name(&f->order)),
                              tm_buf_text(&f->merger_name)));
    if (f->id != 0) {
        TM_TRY(
            tm_edit_add_option(e, f->id, tm_slice_str(TM_GIVEN_OPTIONS), tm_buf_text(&f->given)));
    }
    TM_TRY(tm_edit_set_flushed(e, f->id, f->flushed_seq));
    for (uint32_t l = 0; l < TM_LEVELS; l++) {
        const tm_level *level = &f->version->levels[l];
        for (uint32_t i = 0; i < level->count; i++) {
            TM_TRY(tm_edit_add_table(e, f->id, l, level->files[i]->meta));
        }
        if (f->cursors[l].len > 0) {
            TM_TRY(tm_edit_set_cursor(e, f->id, l, tm_buf_slice(&f->cursors[l])));
        }
    }
    return TAMIS_OK;
}

// Options that differ from their defaults are not needed to read the store: they tell the operator.
static int snapshot_options(struct tamis_db *db, tm_edit *e)
{
    char value[64];
    size_t len;
    tamis_option_info info = {.size = sizeof info};
    for (size_t i = 0; tamis_option_at(i, &info) == TAMIS_OK; i++) {
        TM_TRY(tm_config_print(&db->config, i, value, sizeof value, &len));
        TM_TRY(tm_edit_add_option(e, 0, tm_slice_str(info.name), tm_slice_of(value, len)));
    }
    return TAMIS_OK;
}

int tm_db_snapshot_edit(struct tamis_db *db, tm_edit *e, tamis_error *err)
{
    e->has_store = true;
    memcpy(e->store_id, db->store_id, sizeof e->store_id);
    e->hash_seed = db->hash_seed;
    e->format_level = tamis_format_version();
    stamp(db, e);
    e->has_min_log = true;
    e->min_log = tm_db_min_log(db, NULL);
    e->has_next_family = true;
    e->next_family = db->next_family;
    int st = TAMIS_OK;
    for (uint32_t i = 0; st == TAMIS_OK && i < db->family_count; i++) {
        st = snapshot_family(db->families[i], e);
    }
    if (st == TAMIS_OK) st = snapshot_options(db, e);
    e->live_tables = live_tables(db, NULL, NULL);
    return st == TAMIS_OK ? st : tm_fail_nomem(err);
}

static int change_edit(struct tamis_db *db, const tm_family *f, const tm_change *c,
                       const tm_version *v, tm_edit *e)
{
    stamp(db, e);
    e->live_tables = live_tables(db, f, v);
    for (size_t i = 0; i < c->drop_count; i++) {
        TM_TRY(tm_edit_drop_table(e, f->id, c->drops[i].level, c->drops[i].number));
    }
    for (size_t i = 0; i < c->add_count; i++) {
        TM_TRY(tm_edit_add_table(e, f->id, c->adds[i].level, c->adds[i].file->meta));
    }
    if (c->flushed > 0) {
        TM_TRY(tm_edit_set_flushed(e, f->id, f->frozen[c->flushed - 1].last_seq));
    }
    if (c->has_cursor) TM_TRY(tm_edit_set_cursor(e, f->id, c->cursor_level, c->cursor));
    return TAMIS_OK;
}

// ---- The manifest ------------------------------------------------------------------------------

static bool wants_roll(const tm_manifest *m)
{
    uint64_t bytes = tm_manifest_bytes(m);
    return bytes > ROLL_BYTES && bytes / ROLL_FACTOR > tm_manifest_snapshot_bytes(m);
}

// Begins a new manifest with what is true now, and takes it into use. Not under mu.
static int roll(struct tamis_db *db, const tm_edit *snapshot, bool *poisoned, tamis_error *err)
{
    uint64_t number = atomic_fetch_add_explicit(&db->next_file, 1, memory_order_relaxed);
    tm_manifest *fresh = NULL;
    TM_TRY(tm_manifest_create(db->dir, number, db->store_id, snapshot, &fresh, poisoned, err));
    uint64_t old_number = tm_manifest_number(db->mu.manifest);
    (void)!tm_manifest_close(db->mu.manifest, false, NULL); // superseded: nothing hangs on it
    db->mu.manifest = fresh; // the installer's while mu.installing is set
    char name[TM_NAME_MAX];
    tm_filename(name, TM_FILE_MANIFEST, old_number);
    // Log records vouch for the new one from here on; the old one is gone for good.
    atomic_store_explicit(&db->manifest_synced, tm_manifest_synced(fresh), memory_order_release);
    atomic_store_explicit(&db->manifest_number, number, memory_order_release);
    (void)!tm_dir_unlink(db->dir, name, NULL);
    return TAMIS_OK;
}

static int write_edit(struct tamis_db *db, const tm_edit *e, const tm_edit *snapshot,
                      tamis_error *err)
{
    bool poisoned = false;
    tamis_error detail = {0};
    int st = TAMIS_OK;
    if (snapshot != NULL) st = roll(db, snapshot, &poisoned, &detail);
    if (st == TAMIS_OK) st = tm_manifest_append(db->mu.manifest, e, &poisoned, &detail);
    if (st == TAMIS_OK) {
        atomic_store_explicit(&db->manifest_synced, tm_manifest_synced(db->mu.manifest),
                              memory_order_release);
        tm_stats_add(&db->stats, TM_STAT_manifest_syncs, 1);
        return TAMIS_OK;
    }
    if (poisoned) (void)!tm_db_poison(db, st, &detail);
    (void)!tm_fail_copy(err, &detail);
    return poisoned ? TAMIS_POISONED : st;
}

// ---- Install -----------------------------------------------------------------------------------

static void take_effect(struct tamis_db *db, tm_family *f, const tm_change *c, tm_version *v,
                        tm_view *view)
{
    for (size_t i = 0; i < c->drop_count; i++) {
        const tm_level *level = &f->version->levels[c->drops[i].level];
        for (uint32_t k = 0; k < level->count; k++) {
            bool moved = false;
            if (level->files[k]->meta->number != c->drops[i].number) continue;
            for (size_t a = 0; a < c->add_count; a++) moved |= c->adds[a].file == level->files[k];
            // Release: whoever unlinks has seen the edit become durable.
            if (!moved)
                atomic_store_explicit(&level->files[k]->dropped, true, memory_order_release);
        }
    }
    tm_version_unref(f->version);
    f->version = v;
    if (c->flushed > 0) f->flushed_seq = f->frozen[c->flushed - 1].last_seq;
    for (uint32_t i = 0; i < c->flushed; i++) tm_memtable_unref(f->frozen[i].mem);
    f->frozen_count -= c->flushed;
    memmove(f->frozen, f->frozen + c->flushed, f->frozen_count * sizeof f->frozen[0]);
    f->trim_due = f->trim_due || v->has_ranges;
    if (c->has_cursor) (void)!tm_buf_set(&f->cursors[c->cursor_level], c->cursor);
    tm_family_publish(f, view);
    tm_db_update_pressure(db, f);
}

void tm_db_mark_dropped(const tm_version *v)
{
    for (uint32_t l = 0; l < TM_LEVELS; l++) {
        for (uint32_t i = 0; i < v->levels[l].count; i++) {
            atomic_store_explicit(&v->levels[l].files[i]->dropped, true, memory_order_release);
        }
    }
}

static uint64_t min_log_after(struct tamis_db *db, tm_family *f, uint32_t flushed)
{
    uint32_t count = f->frozen_count;
    tm_frozen saved[TM_MAX_WRITE_BUFFERS];
    memcpy(saved, f->frozen, sizeof saved);
    f->frozen_count -= flushed;
    memmove(f->frozen, f->frozen + flushed, f->frozen_count * sizeof f->frozen[0]);
    uint64_t min = tm_db_min_log(db, NULL);
    memcpy(f->frozen, saved, sizeof saved);
    f->frozen_count = count;
    return min;
}

// Waits for its turn to install. mu held.
static int begin_install(struct tamis_db *db, tamis_error *err)
{
    while (db->mu.installing) tm_cond_wait(&db->mu.changed, &db->mu.m);
    if (!atomic_load_explicit(&db->poisoned, memory_order_relaxed)) return TAMIS_OK;
    return tm_fail_copy(err, &db->mu.poison_error);
}

// Writes the edit, in a new manifest if the old one is large or broken. mu held; given up
// meanwhile, with installing set.
static int log_edit(struct tamis_db *db, const tm_edit *edit, tamis_error *err)
{
    tm_edit snapshot;
    bool rolls = wants_roll(db->mu.manifest) || tm_manifest_broken(db->mu.manifest);
    tm_edit_init(&snapshot);
    int st = rolls ? tm_db_snapshot_edit(db, &snapshot, err) : TAMIS_OK;
    if (st == TAMIS_OK) {
        db->mu.installing = true;
        tm_mutex_unlock(&db->mu.m);
        st = write_edit(db, edit, rolls ? &snapshot : NULL, err);
        tm_mutex_lock(&db->mu.m);
        db->mu.installing = false;
        tm_cond_broadcast(&db->mu.changed);
    }
    tm_edit_deinit(&snapshot);
    return st;
}

int tm_db_install_edit(struct tamis_db *db, tm_edit *edit, tamis_error *err)
{
    TM_TRY(begin_install(db, err));
    stamp(db, edit);
    edit->live_tables = live_tables(db, NULL, NULL);
    for (size_t i = 0; i < edit->family_count; i++) {
        if (!edit->families[i].drop) continue;
        const tm_family *f = tm_db_family_by_id(db, edit->families[i].id);
        edit->live_tables -= tm_version_tables(f->version);
    }
    return log_edit(db, edit, err);
}

int tm_db_install(struct tamis_db *db, tm_family *f, const tm_change *c, tamis_error *err)
{
    tm_version *v = NULL;
    tm_edit edit;
    TM_TRY(begin_install(db, err));
    if (atomic_load_explicit(&f->dropped, memory_order_relaxed)) {
        return tm_fail(err, TAMIS_ABORTED, "the family was dropped");
    }
    tm_edit_init(&edit);
    tm_view *view = tm_view_alloc(err);
    int st = view == NULL ? TAMIS_NOMEM : TAMIS_OK;
    if (st != TAMIS_OK) goto out;
    TM_GOTO(tm_version_apply(f->version, c->drops, c->drop_count, c->adds, c->add_count, &v, err));
    st = change_edit(db, f, c, v, &edit);
    if (st != TAMIS_OK) {
        st = tm_fail_nomem(err);
        goto out;
    }
    if (c->flushed > 0) {
        edit.has_min_log = true;
        edit.min_log = min_log_after(db, f, c->flushed);
    }
    st = log_edit(db, &edit, err);
    if (st == TAMIS_OK) {
        take_effect(db, f, c, v, view);
        v = NULL;
        view = NULL;
    }
out:
    tm_version_unref(v);
    tm_view_unref(view);
    tm_edit_deinit(&edit);
    return st;
}

// ---- Pressure ----------------------------------------------------------------------------------

// From the first table above level0_slowdown to level0_stop the rate falls evenly.
static uint64_t delay_rate(const tm_config *c, uint64_t tables)
{
    if (tables < c->level0_slowdown) return 0;
    uint64_t room = c->level0_stop > tables ? c->level0_stop - tables : 0;
    uint64_t span = TM_MAX(c->level0_stop - c->level0_slowdown, (uint64_t)1);
    return DELAY_RATE_MIN + (uint64_t)(DELAY_RATE_MAX - DELAY_RATE_MIN) * room / span;
}

// What is due in the family, and what its level 0 and memtables ask of writers.
static void feel_pressure(tm_family *f)
{
    tm_targets t;
    uint64_t tables = f->version->levels[0].count;
    tm_pick_targets(f->version, &f->config, &t);
    f->compact_due = false;
    for (uint32_t l = 0; l < TM_LEVELS; l++) {
        f->compact_due = f->compact_due || t.score[l] >= 1;
        for (uint32_t k = 0; l > 0 && k < f->version->levels[l].count; k++) {
            tm_file_ref *file = f->version->levels[l].files[k];
            f->compact_due = f->compact_due || (file->marked && !file->busy);
        }
    }
    f->next_expiry = 0;
    for (uint32_t l = 0; l < TM_LEVELS; l++) {
        for (uint32_t k = 0; k < f->version->levels[l].count; k++) {
            const tm_file_ref *file = f->version->levels[l].files[k];
            uint64_t at = file->busy ? 0 : file->look_ms;
            if (at != 0 && (f->next_expiry == 0 || at < f->next_expiry)) f->next_expiry = at;
        }
    }
    f->slow_rate = delay_rate(&f->config, tables);
    f->full = f->frozen_count + 1 >= f->config.write_buffers || tables >= f->config.level0_stop;
}

void tm_db_update_pressure(struct tamis_db *db, tm_family *f)
{
    tm_stall stall = TM_STALL_NONE;
    uint64_t rate = 0, frozen = 0;
    if (f != NULL) feel_pressure(f);
    for (uint32_t i = 0; i < db->family_count; i++) {
        tm_family *g = db->families[i];
        if (f == NULL) feel_pressure(g);
        if (g->slow_rate != 0) {
            rate = rate == 0 ? g->slow_rate : TM_MIN(rate, g->slow_rate);
            stall = TM_MAX(stall, TM_STALL_SLOW);
        }
        if (g->full) stall = TM_STALL_STOP;
        for (uint32_t k = 0; k < g->frozen_count; k++)
            frozen += tm_memtable_bytes(g->frozen[k].mem);
    }
    // Many families that wait for their flushes, none of them full.
    if (db->family_count > 1 && frozen > db->config.memory_budget / 4) stall = TM_STALL_STOP;
    atomic_store_explicit(&db->delay_rate, rate, memory_order_relaxed);
    atomic_store_explicit(&db->stall, stall, memory_order_relaxed);
    tm_cond_broadcast(&db->mu.changed);
}
