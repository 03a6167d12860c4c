// SPDX-License-Identifier: BSD-2-Clause
//
// db_family.c - column families: the list of them, and the calls that change it.
//
// Every change of the list is made by the leader of the write queue, so that no write is under way,
// and becomes true with one synced edit of the manifest. What changes a family itself (options,
// name, its end) first lets the jobs on it come to an end: it is settled.

#include "base/mem.h"
#include "lsm/db.h"

enum { NAME_BYTES = 255 };
#define DEFAULT_FAMILY "default"

// ---- Life --------------------------------------------------------------------------------------

// What it counted goes over to the store: counters only grow.
static void forget_dropped(tm_family *f)
{
    struct tamis_db *db = f->db;
    tm_mutex_lock(&db->mu.m);
    for (tm_family **p = &db->mu.dropped; *p != NULL; p = &(*p)->next_dropped) {
        if (*p != f) continue;
        *p = f->next_dropped;
        break;
    }
    tm_stats_merge(&db->stats, &f->stats);
    tm_mutex_unlock(&db->mu.m);
}

static void family_free(tm_family *f)
{
    if (atomic_load_explicit(&f->dropped, memory_order_relaxed)) forget_dropped(f);
    tm_family_retire_idle(f);
    tm_view_unref(atomic_load_explicit(&f->view, memory_order_acquire));
    tm_memtable_unref(f->mem);
    for (uint32_t i = 0; i < f->frozen_count; i++) tm_memtable_unref(f->frozen[i].mem);
    tm_version_unref(f->version);
    for (uint32_t l = 0; l < TM_LEVELS; l++) tm_buf_deinit(&f->cursors[l]);
    tm_buf_deinit(&f->name);
    tm_buf_deinit(&f->given);
    tm_buf_deinit(&f->merger_name);
    tm_stats_deinit(&f->stats);
    tm_free(f);
}

void tm_family_ref(tm_family *f)
{
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
}

void tm_family_unref(tm_family *f)
{
    if (f != NULL && atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) == 1) {
        family_free(f);
    }
}

// The merger of that name that every store knows.
static const tamis_merger *known_merger(tm_slice name)
{
    const tamis_merger *known[] = {tamis_merger_add(), tamis_merger_append()};
    for (size_t i = 0; i < TM_COUNT(known); i++) {
        if (tm_slice_equal(name, tm_slice_str(known[i]->name))) return known[i];
    }
    return NULL;
}

void tm_family_plug_in(tm_family *f, const tm_plugins *plugins)
{
    bool has = atomic_load_explicit(&f->merger, memory_order_relaxed) != NULL;
    if (!has && plugins->merger.size != 0) {
        f->plugins.merger = plugins->merger;
        // Release: who loads the pointer (acquire) sees the struct filled.
        atomic_store_explicit(&f->merger, &f->plugins.merger, memory_order_release);
    }
    if (plugins->filter.size != 0) f->plugins.filter = plugins->filter;
}

// A merger's name is kept; the plug-in itself is the opener's, or one of those that are known.
static int name_merger(tm_family *f, tm_slice name, const tm_plugins *plugins, tamis_error *err)
{
    tm_plugins p = *plugins;
    if (p.merger.size != 0 && name.len == 0) name = tm_slice_str(p.merger.name);
    if (p.merger.size == 0) {
        const tamis_merger *known = known_merger(name);
        if (known != NULL) p.merger = *known;
    } else if (!tm_slice_equal(name, tm_slice_str(p.merger.name))) {
        return tm_fail(err, TAMIS_INVALID,
                       "family \"%.60s\" has the merger \"%.*s\", not \"%.60s\"",
                       (const char *)f->name.data, (int)TM_MIN(name.len, (size_t)60),
                       (const char *)name.data, p.merger.name);
    }
    if (tm_buf_set_text(&f->merger_name, name) != TAMIS_OK) return tm_fail_nomem(err);
    atomic_init(&f->can_merge, name.len > 0);
    tm_family_plug_in(f, &p);
    return TAMIS_OK;
}

int tm_family_create(struct tamis_db *db, const tm_family_spec *spec, tm_family **out,
                     tamis_error *err)
{
    tm_family *f = tm_calloc(1, sizeof *f);
    if (f == NULL) return tm_fail_nomem(err);
    f->db = db;
    f->id = spec->id;
    f->order = spec->order;
    f->config = *spec->config;
    atomic_init(&f->ttl_ms, f->config.ttl_ms);
    atomic_init(&f->refs, 1);
    tm_stats_init(&f->stats);
    int st = TAMIS_OK;
    if (tm_buf_set_text(&f->name, spec->name) != TAMIS_OK ||
        tm_buf_set_text(&f->given, spec->given) != TAMIS_OK) {
        st = tm_fail_nomem(err);
    }
    if (st == TAMIS_OK) st = name_merger(f, spec->merger, spec->plugins, err);
    if (st == TAMIS_OK) st = tm_version_create(&f->order, &f->version, err);
    if (st != TAMIS_OK) {
        family_free(f);
        return st;
    }
    *out = f;
    return TAMIS_OK;
}

// ---- The list ----------------------------------------------------------------------------------

static uint32_t place_of(const struct tamis_db *db, uint32_t id)
{
    uint32_t low = 0, high = db->family_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (db->families[mid]->id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

tm_family *tm_db_family_by_id(const struct tamis_db *db, uint32_t id)
{
    if (TM_LIKELY(id == 0)) return db->default_family;
    uint32_t i = place_of(db, id);
    return i < db->family_count && db->families[i]->id == id ? db->families[i] : NULL;
}

static tm_family *by_name(const struct tamis_db *db, tm_slice name) // mu held
{
    for (uint32_t i = 0; i < db->family_count; i++) {
        if (tm_slice_equal(tm_family_name(db->families[i]), name)) return db->families[i];
    }
    return NULL;
}

static int reserve_place(struct tamis_db *db, tamis_error *err)
{
    if (db->family_count < db->family_cap) return TAMIS_OK;
    uint32_t cap = db->family_cap ? db->family_cap * 2 : 4;
    tm_family **p = tm_realloc(db->families, cap * sizeof(tm_family *));
    if (p == NULL) return tm_fail_nomem(err);
    db->families = p;
    db->family_cap = cap;
    return TAMIS_OK;
}

int tm_db_list_family(struct tamis_db *db, tm_family *f, tamis_error *err)
{
    TM_TRY(reserve_place(db, err));
    uint32_t i = place_of(db, f->id);
    memmove(db->families + i + 1, db->families + i, (db->family_count - i) * sizeof(tm_family *));
    db->families[i] = f;
    db->family_count++;
    db->next_family = TM_MAX(db->next_family, f->id + 1);
    if (f->id == 0) db->default_family = f;
    return TAMIS_OK;
}

static void unlist(struct tamis_db *db, const tm_family *f)
{
    uint32_t i = place_of(db, f->id);
    db->family_count--;
    memmove(db->families + i, db->families + i + 1, (db->family_count - i) * sizeof(tm_family *));
}

int tm_db_family(struct tamis_db *db, const tamis_cf *cf, tm_family **out, tamis_error *err)
{
    *out = db->default_family;
    if (TM_LIKELY(cf == NULL)) return TAMIS_OK;
    if (cf->db != db) return tm_fail(err, TAMIS_INVALID, "the family belongs to another store");
    *out = (tm_family *)(uintptr_t)cf;
    if (TM_LIKELY(!atomic_load_explicit(&cf->dropped, memory_order_acquire))) return TAMIS_OK;
    return tm_fail(err, TAMIS_NOTFOUND, "the family (number %u) was dropped", (unsigned)cf->id);
}

const tamis_family *tm_db_given_family(const struct tamis_db *db, tm_slice name)
{
    for (size_t i = 0; i < db->config.given_count; i++) {
        const tamis_family *g = &db->config.given[i];
        if (g->name != NULL && tm_slice_equal(name, tm_slice_str(g->name))) return g;
    }
    return NULL;
}

// ---- Arguments ---------------------------------------------------------------------------------

static int check_name(const char *name, const char *what, tamis_error *err)
{
    if (name == NULL || name[0] == '\0' || strlen(name) > NAME_BYTES) {
        return tm_fail(err, TAMIS_INVALID, "%s: a family's name has 1 to %d bytes", what,
                       NAME_BYTES);
    }
    return TAMIS_OK;
}

static int check_writable(struct tamis_db *db, tamis_error *err)
{
    if (!db->readonly) return TAMIS_OK;
    return tm_fail(err, TAMIS_READONLY, "the store was opened with TAMIS_OPEN_READONLY");
}

static int not_found(const char *name, tamis_error *err)
{
    return tm_fail(err, TAMIS_NOTFOUND, "there is no family \"%.100s\"", name);
}

static int take_options(const tamis_cf_options *in, tamis_cf_options *out, tamis_error *err)
{
    *out = (tamis_cf_options){.size = sizeof *out};
    if (in == NULL) return TAMIS_OK;
    if (in->size < sizeof(size_t) || in->size > 4096) {
        return tm_fail(err, TAMIS_INVALID, "family options: size is %zu", in->size);
    }
    memcpy(out, in, TM_MIN(in->size, sizeof *out));
    return TAMIS_OK;
}

// ---- Settling ----------------------------------------------------------------------------------

// Waits until no job works on f, and keeps new ones away. mu held.
static void settle(struct tamis_db *db, tm_family *f)
{
    f->settling = true; // a running compaction stops when it sees this; it is begun again later
    while (f->flushing || f->compacting > 0) tm_cond_wait(&db->mu.changed, &db->mu.m);
}

static void unsettle(struct tamis_db *db, tm_family *f)
{
    f->settling = false;
    tm_db_update_pressure(db, f);
    tm_db_schedule(db);
}

// ---- Open and create ---------------------------------------------------------------------------

typedef struct opening {
    const char *name;
    tamis_cf_options o;
    tm_family *found; // with a reference
    bool created;
} opening;

static int edit_family(const tm_family *f, tm_slice name, tm_slice merger, const tm_buf *given,
                       tm_edit *e)
{
    TM_TRY(tm_edit_add_family(e, f->id, name, tm_slice_str(tm_order_name(&f->order)), merger));
    return tm_edit_add_option(e, f->id, tm_slice_str(TM_GIVEN_OPTIONS), tm_buf_text(given));
}

static int publish_empty(tm_family *f, tamis_error *err)
{
    tm_view *view = tm_view_alloc(err);
    if (view == NULL) return TAMIS_NOMEM;
    tm_family_publish(f, view);
    return TAMIS_OK;
}

static int build(struct tamis_db *db, const opening *a, tm_family **out, tamis_error *err)
{
    tm_config config;
    tm_buf given = {0};
    tm_plugins plugins = {0};
    tm_family_spec spec = {.id = db->next_family,
                           .name = tm_slice_str(a->name),
                           .config = &config,
                           .plugins = &plugins};
    int st = tm_order_take(a->o.comparator, &spec.order, err);
    if (st == TAMIS_OK) {
        st = tm_plugins_take(&plugins, a->o.merger, a->o.compaction_filter, err);
    }
    if (st == TAMIS_OK) st = tm_config_family(&db->config, a->o.extra, &config, &given, err);
    spec.given = tm_buf_slice(&given);
    if (st == TAMIS_OK) st = tm_family_create(db, &spec, out, err);
    tm_buf_deinit(&given);
    return st;
}

// As the leader.
static int create(struct tamis_db *db, void *arg, tamis_error *err)
{
    opening *a = arg;
    tm_family *f = NULL;
    tm_edit edit;
    tm_edit_init(&edit);
    TM_TRY(tm_db_check_poison(db, err));
    tm_mutex_lock(&db->mu.m);
    a->found = by_name(db, tm_slice_str(a->name));
    if (a->found != NULL) tm_family_ref(a->found); // somebody was quicker
    tm_mutex_unlock(&db->mu.m);
    if (a->found != NULL) return TAMIS_OK;
    if (db->next_family == UINT32_MAX) {
        return tm_fail(err, TAMIS_TOOLARGE, "the store has used up its family numbers");
    }
    TM_TRY(build(db, a, &f, err));
    int st = publish_empty(f, err);
    if (st == TAMIS_OK &&
        edit_family(f, tm_family_name(f), tm_buf_text(&f->merger_name), &f->given, &edit) != 0) {
        st = tm_fail_nomem(err);
    }
    tm_mutex_lock(&db->mu.m);
    if (st == TAMIS_OK) st = reserve_place(db, err);
    if (st == TAMIS_OK) {
        edit.has_next_family = true;
        edit.next_family = f->id + 1;
        f->flushed_seq = atomic_load_explicit(&db->last_seq, memory_order_acquire);
        st = tm_db_install_edit(db, &edit, err);
        if (st == TAMIS_OK) st = tm_db_list_family(db, f, err);
    }
    if (st == TAMIS_OK) tm_family_ref(f);
    tm_mutex_unlock(&db->mu.m);
    tm_edit_deinit(&edit);
    if (st != TAMIS_OK)
        tm_family_unref(f);
    else
        a->found = f;
    a->created = st == TAMIS_OK;
    return st;
}

// Whether what the caller gave agrees with what the family is.
static int check_same(const tm_family *f, const tamis_cf_options *o, tamis_error *err)
{
    if (o->comparator != NULL) {
        tm_order order;
        TM_TRY(tm_order_take(o->comparator, &order, err));
        if (strcmp(tm_order_name(&order), tm_order_name(&f->order)) != 0) {
            return tm_fail(err, TAMIS_INVALID,
                           "family \"%.60s\" was made with the comparator \"%.60s\", not \"%.60s\"",
                           (const char *)f->name.data, tm_order_name(&f->order),
                           tm_order_name(&order));
        }
    }
    if (o->merger != NULL && o->merger->name != NULL && f->merger_name.len > 1 &&
        strcmp(o->merger->name, (const char *)f->merger_name.data) != 0) {
        return tm_fail(
            err, TAMIS_INVALID, "family \"%.60s\" has the merger \"%.60s\", not \"%.60s\"",
            (const char *)f->name.data, (const char *)f->merger_name.data, o->merger->name);
    }
    return TAMIS_OK;
}

// Puts new options and plug-ins of a family into force. As the leader.
static int change(struct tamis_db *db, void *arg, tamis_error *err)
{
    opening *a = arg;
    tm_family *f = a->found;
    tm_plugins plugins = {0};
    tm_config config = f->config;
    tm_buf given = {0};
    tm_edit edit;
    tm_edit_init(&edit);
    int st = tm_plugins_take(&plugins, a->o.merger, a->o.compaction_filter, err);
    if (st == TAMIS_OK && a->o.extra != NULL) {
        st = tm_config_family(&db->config, a->o.extra, &config, &given, err);
    } else if (st == TAMIS_OK && tm_buf_set(&given, tm_buf_text(&f->given)) != TAMIS_OK) {
        st = tm_fail_nomem(err);
    }
    tm_mutex_lock(&db->mu.m);
    settle(db, f);
    if (st == TAMIS_OK && atomic_load_explicit(&f->dropped, memory_order_relaxed)) {
        st = not_found(a->name, err);
    }
    if (st == TAMIS_OK) st = check_same(f, &a->o, err);
    bool first_merger = plugins.merger.size != 0 && f->merger_name.len <= 1;
    bool other_options = !tm_slice_equal(tm_buf_slice(&given), tm_buf_text(&f->given));
    tm_slice merger =
        first_merger ? tm_slice_str(plugins.merger.name) : tm_buf_text(&f->merger_name);
    if (st == TAMIS_OK && (first_merger || other_options) && !db->readonly) {
        if (edit_family(f, tm_family_name(f), merger, &given, &edit) != TAMIS_OK) {
            st = tm_fail_nomem(err);
        } else {
            st = tm_db_install_edit(db, &edit, err);
        }
    }
    if (st == TAMIS_OK &&
        ((first_merger && tm_buf_set_text(&f->merger_name, merger) != 0) ||
         (other_options && tm_buf_set_text(&f->given, tm_buf_slice(&given)) != 0))) {
        st = tm_fail_nomem(err); // the manifest has it: the next open does
    }
    if (st == TAMIS_OK) {
        f->config = config;
        atomic_store_explicit(&f->ttl_ms, config.ttl_ms, memory_order_relaxed);
        tm_family_plug_in(f, &plugins);
        if (first_merger) atomic_store_explicit(&f->can_merge, true, memory_order_relaxed);
    }
    unsettle(db, f);
    tm_mutex_unlock(&db->mu.m);
    tm_edit_deinit(&edit);
    tm_buf_deinit(&given);
    return st;
}

int tamis_cf_open(tamis_db *db, const char *name, const tamis_cf_options *opt, uint32_t create_it,
                  tamis_cf **out, tamis_error *err)
{
    opening a = {.name = name};
    if (out == NULL) return tm_fail(err, TAMIS_INVALID, "out is NULL");
    *out = NULL;
    TM_TRY(tm_db_check(db, err));
    TM_TRY(check_name(name, "name", err));
    TM_TRY(take_options(opt, &a.o, err));
    tm_mutex_lock(&db->mu.m);
    a.found = by_name(db, tm_slice_str(name));
    if (a.found != NULL) tm_family_ref(a.found);
    tm_mutex_unlock(&db->mu.m);
    int st = TAMIS_OK;
    if (a.found == NULL) {
        if (!create_it) return not_found(name, err);
        TM_TRY(check_writable(db, err));
        TM_TRY(tm_db_as_leader(db, create, &a, err));
    }
    bool gives = a.o.extra != NULL || a.o.comparator != NULL || a.o.merger != NULL ||
                 a.o.compaction_filter != NULL;
    if (gives && !a.created) st = tm_db_as_leader(db, change, &a, err);
    if (st != TAMIS_OK) {
        tm_family_unref(a.found);
        return st;
    }
    tm_db_ref(db);
    atomic_fetch_add_explicit(&db->handles, 1, memory_order_relaxed);
    *out = a.found;
    return TAMIS_OK;
}

void tamis_cf_close(tamis_cf *cf)
{
    if (cf == NULL) return;
    struct tamis_db *db = cf->db;
    atomic_fetch_sub_explicit(&db->handles, 1, memory_order_relaxed);
    tm_family_unref(cf);
    tm_db_unref(db);
}

// ---- Drop and rename ---------------------------------------------------------------------------

typedef struct ending {
    const char *name, *to;
    tm_family *dropped; // the list's reference
    uint64_t min_log;
} ending;

static void end_manual(tm_family *f)
{
    for (tm_manual *m = f->manual; m != NULL; m = m->next) {
        m->status = tm_fail(&m->error, TAMIS_NOTFOUND, "the family was dropped");
        m->done = true;
    }
    f->manual = NULL;
}

// The family is settled and its end is durable: nothing of it stays but what readers hold.
static void empty(tm_family *f, tm_version *nothing, tm_view *view)
{
    f->db->memtable_bytes -= f->mem_bytes;
    f->mem_bytes = 0;
    atomic_store_explicit(&f->dropped, true, memory_order_release);
    tm_db_mark_dropped(f->version);
    tm_version_unref(f->version);
    f->version = nothing;
    tm_memtable_unref(f->mem);
    f->mem = NULL;
    atomic_store_explicit(&f->mem_log, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < f->frozen_count; i++) tm_memtable_unref(f->frozen[i].mem);
    f->frozen_count = 0;
    f->compact_due = f->full = false;
    f->slow_rate = 0;
    end_manual(f);
    tm_family_publish(f, view);
}

// As the leader.
static int drop(struct tamis_db *db, void *arg, tamis_error *err)
{
    ending *a = arg;
    tm_edit edit;
    tm_version *nothing = NULL;
    tm_edit_init(&edit);
    TM_TRY(tm_db_check_poison(db, err));
    tm_mutex_lock(&db->mu.m);
    int st = TAMIS_OK;
    tm_family *f = by_name(db, tm_slice_str(a->name));
    tm_view *view = tm_view_alloc(err);
    if (view == NULL) st = TAMIS_NOMEM;
    if (st == TAMIS_OK && f == NULL) st = not_found(a->name, err);
    if (st == TAMIS_OK) st = tm_version_create(&f->order, &nothing, err);
    if (st == TAMIS_OK) {
        settle(db, f);
        edit.has_min_log = true;
        edit.min_log = a->min_log = tm_db_min_log(db, f);
        if (tm_edit_drop_family(&edit, f->id) != TAMIS_OK) {
            st = tm_fail_nomem(err);
        } else {
            st = tm_db_install_edit(db, &edit, err);
        }
    }
    if (st == TAMIS_OK) {
        empty(f, nothing, view);
        nothing = NULL;
        view = NULL;
        unlist(db, f);
        f->next_dropped = db->mu.dropped;
        db->mu.dropped = f;
        a->dropped = f;
        tm_db_update_pressure(db, NULL);
        tm_db_schedule(db);
    } else if (f != NULL && f->settling) {
        unsettle(db, f);
    }
    tm_mutex_unlock(&db->mu.m);
    tm_version_unref(nothing);
    tm_view_unref(view);
    tm_edit_deinit(&edit);
    return st;
}

int tamis_cf_drop(tamis_db *db, const char *name, tamis_error *err)
{
    ending a = {.name = name};
    TM_TRY(tm_db_check(db, err));
    TM_TRY(check_name(name, "name", err));
    TM_TRY(check_writable(db, err));
    if (strcmp(name, DEFAULT_FAMILY) == 0) {
        return tm_fail(err, TAMIS_INVALID, "the family \"default\" cannot be dropped");
    }
    TM_TRY(tm_db_as_leader(db, drop, &a, err));
    tm_db_note(db, 0, "dropped family %s", name);
    tm_family_unref(a.dropped);
    tm_epoch_synchronize();
    tm_db_clean_dead(db);
    tm_db_delete_logs(db, a.min_log);
    return TAMIS_OK;
}

// As the leader.
static int rename_family(struct tamis_db *db, void *arg, tamis_error *err)
{
    ending *a = arg;
    tm_edit edit;
    tm_buf name = {0};
    tm_edit_init(&edit);
    TM_TRY(tm_db_check_poison(db, err));
    tm_mutex_lock(&db->mu.m);
    tm_family *f = by_name(db, tm_slice_str(a->name));
    int st = TAMIS_OK;
    if (f == NULL) {
        st = not_found(a->name, err);
    } else if (by_name(db, tm_slice_str(a->to)) != NULL) {
        st = tm_fail(err, TAMIS_EXISTS, "there is a family \"%.100s\" already", a->to);
    } else {
        settle(db, f);
        if (tm_buf_set_text(&name, tm_slice_str(a->to)) != TAMIS_OK ||
            edit_family(f, tm_buf_text(&name), tm_buf_text(&f->merger_name), &f->given, &edit) !=
                TAMIS_OK) {
            st = tm_fail_nomem(err);
        } else {
            st = tm_db_install_edit(db, &edit, err);
        }
        if (st == TAMIS_OK) {
            tm_buf old = f->name;
            f->name = name;
            name = old;
        }
        unsettle(db, f);
    }
    tm_mutex_unlock(&db->mu.m);
    tm_buf_deinit(&name);
    tm_edit_deinit(&edit);
    return st;
}

int tamis_cf_rename(tamis_db *db, const char *from, const char *to, tamis_error *err)
{
    ending a = {.name = from, .to = to};
    TM_TRY(tm_db_check(db, err));
    TM_TRY(check_name(from, "from", err));
    TM_TRY(check_name(to, "to", err));
    TM_TRY(check_writable(db, err));
    if (strcmp(from, DEFAULT_FAMILY) == 0) {
        return tm_fail(err, TAMIS_INVALID, "the family \"default\" cannot be renamed");
    }
    return tm_db_as_leader(db, rename_family, &a, err);
}

int tamis_cf_list(tamis_db *db, int (*each)(void *ctx, const char *name, uint32_t id), void *ctx,
                  tamis_error *err)
{
    TM_TRY(tm_db_check(db, err));
    if (each == NULL) return tm_fail(err, TAMIS_INVALID, "each is NULL");
    tm_buf list = {0}; // id, name with its NUL
    int st = TAMIS_OK;
    tm_mutex_lock(&db->mu.m);
    for (uint32_t i = 0; st == TAMIS_OK && i < db->family_count; i++) {
        const tm_family *f = db->families[i];
        st = tm_buf_append(&list, &f->id, sizeof f->id);
        if (st == TAMIS_OK) st = tm_buf_append(&list, f->name.data, f->name.len);
    }
    tm_mutex_unlock(&db->mu.m);
    if (st != TAMIS_OK) st = tm_fail_nomem(err);
    for (size_t at = 0; st == TAMIS_OK && at < list.len;) {
        uint32_t id;
        memcpy(&id, list.data + at, sizeof id);
        const char *name = (const char *)list.data + at + sizeof id;
        at += sizeof id + strlen(name) + 1;
        if (each(ctx, name, id) != 0) st = tm_fail(err, TAMIS_ABORTED, "the callback stopped it");
    }
    tm_buf_deinit(&list);
    return st;
}
