// SPDX-License-Identifier: BSD-2-Clause
//
// property.c - reports as JSON text. Keys of the user's are given as escaped text: bytes outside
// printable ASCII as \u00XX.

#include <stdarg.h>
#include <stdio.h>

#include "lsm/db.h"
#include "lsm/pick.h"

// ---- JSON --------------------------------------------------------------------------------------

typedef struct json {
    tm_buf b;
    int status; // first failure; later output is dropped
    bool comma;
} json;

static void put(json *j, const char *fmt, ...) TM_PRINTF(2, 3);
static void put(json *j, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t len = TM_MIN((size_t)TM_MAX(n, 0), sizeof text - 1);
    if (j->status == TAMIS_OK) j->status = tm_buf_append(&j->b, text, len);
}

static void open_with(json *j, const char *text)
{
    if (j->comma) put(j, ",");
    put(j, "%s", text);
    j->comma = false;
}
static void open_named(json *j, const char *name, const char *bracket)
{
    if (j->comma) put(j, ",");
    put(j, "\"%s\":%s", name, bracket);
    j->comma = false;
}
static void close_with(json *j, const char *text)
{
    put(j, "%s", text);
    j->comma = true;
}
static void number(json *j, const char *name, uint64_t v)
{
    put(j, "%s\"%s\":%llu", j->comma ? "," : "", name, (unsigned long long)v);
    j->comma = true;
}
static void real(json *j, const char *name, double v)
{
    put(j, "%s\"%s\":%.9g", j->comma ? "," : "", name, v);
    j->comma = true;
}
static void text(json *j, const char *name, tm_slice s)
{
    put(j, "%s\"%s\":\"", j->comma ? "," : "", name);
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = s.data[i];
        if (c == '"' || c == '\\')
            put(j, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            put(j, "\\u%04x", c);
        else
            put(j, "%c", c);
    }
    put(j, "\"");
    j->comma = true;
}

// ---- Reports -----------------------------------------------------------------------------------

static void report_levels(tm_family *f, const tm_view *v, json *j)
{
    tm_targets t;
    tm_mutex_lock(&f->db->mu.m); // scores look at which tables are busy
    tm_pick_targets(v->version, &f->config, &t);
    tm_mutex_unlock(&f->db->mu.m);
    open_named(j, "levels", "[");
    for (uint32_t l = 0; l < TM_LEVELS; l++) {
        const tm_level *level = &v->version->levels[l];
        uint64_t entries = 0, deletes = 0;
        for (uint32_t i = 0; i < level->count; i++) {
            entries += level->files[i]->meta->entries;
            deletes += level->files[i]->meta->deletes;
        }
        open_with(j, "{");
        number(j, "level", l);
        number(j, "tables", level->count);
        number(j, "bytes", level->bytes);
        number(j, "entries", entries);
        number(j, "deletes", deletes);
        number(j, "target_bytes", t.bytes[l]);
        real(j, "score", t.score[l]);
        close_with(j, "}");
    }
    close_with(j, "]");
}

static void report_tables(const tm_view *v, json *j)
{
    open_named(j, "tables", "[");
    for (uint32_t l = 0; l < TM_LEVELS; l++) {
        for (uint32_t i = 0; i < v->version->levels[l].count; i++) {
            const tm_table_meta *m = v->version->levels[l].files[i]->meta;
            open_with(j, "{");
            number(j, "level", l);
            number(j, "number", m->number);
            number(j, "bytes", m->file_bytes);
            number(j, "entries", m->entries);
            number(j, "deletes", m->deletes);
            number(j, "range_deletes", m->range_deletes);
            number(j, "raw_bytes", m->raw_bytes);
            number(j, "min_seq", m->min_seq);
            number(j, "max_seq", m->max_seq);
            number(j, "filter_bytes", m->filter_bytes);
            number(j, "filter_keys", m->filter_keys);
            number(j, "created_ms", m->created_ms);
            text(j, "smallest", tm_buf_slice(&m->smallest));
            text(j, "largest", tm_buf_slice(&m->largest));
            close_with(j, "}");
        }
    }
    close_with(j, "]");
}

// As in force for the family; it may be changed meanwhile.
static int print_option(tm_family *f, size_t i, char *buf, size_t cap, size_t *len)
{
    tm_mutex_lock(&f->db->mu.m);
    int st = tm_config_print(&f->config, i, buf, cap, len);
    tm_mutex_unlock(&f->db->mu.m);
    return st;
}

static void report_options(tm_family *f, json *j)
{
    struct tamis_db *db = f->db;
    tamis_option_info info = {.size = sizeof info};
    open_named(j, "options", "{");
    number(j, "memory_budget", db->config.memory_budget);
    number(j, "background_threads", db->config.background_threads);
    number(j, "sync_interval_ms", db->config.sync_interval_ms);
    static const char *const syncs[] = {"default", "always", "interval", "never"};
    text(j, "sync", tm_slice_str(syncs[db->config.sync]));
    text(j, "comparator", tm_slice_str(tm_order_name(&f->order)));
    for (size_t i = 0; tamis_option_at(i, &info) == TAMIS_OK; i++) {
        char value[64];
        size_t len;
        if (print_option(f, i, value, sizeof value, &len) != TAMIS_OK) continue;
        text(j, info.name, tm_slice_of(value, len));
    }
    close_with(j, "}");
}

static void report_memory(struct tamis_db *db, json *j)
{
    tamis_memory m = {.size = sizeof m};
    if (tamis_memory_usage(db, &m, NULL) != TAMIS_OK) return;
    open_named(j, "memory", "{");
    number(j, "budget", m.budget);
    number(j, "used", m.used);
    number(j, "memtables", m.memtables);
    number(j, "filters", m.filters);
    number(j, "indexes", m.indexes);
    number(j, "data_blocks", m.data_blocks);
    number(j, "buffers", m.buffers);
    number(j, "other", m.other);
    number(j, "pinned", m.pinned);
    close_with(j, "}");
}

static void report_filter(json *j, const tamis_filter_report *r)
{
    number(j, "probes", r->probes);
    number(j, "negatives", r->negatives);
    number(j, "true_positives", r->true_positives);
    number(j, "false_positives", r->false_positives);
    number(j, "unavailable", r->unavailable);
    number(j, "partitions_read", r->partitions_read);
    number(j, "bytes_read", r->bytes_read);
    number(j, "filter_bytes", r->filter_bytes);
    number(j, "keys", r->keys);
    real(j, "bits_per_key", r->bits_per_key);
    real(j, "expected_rate", r->expected_rate);
    real(j, "observed_rate", r->observed_rate);
    uint64_t positives = r->true_positives + r->false_positives;
    real(j, "false_share_of_positives",
         positives ? (double)r->false_positives / (double)positives : 0);
}

static int report_filters(tm_family *f, json *j, tamis_error *err)
{
    open_named(j, "filters", "[");
    for (int l = -1; l < TM_LEVELS; l++) {
        tamis_filter_report r = {.size = sizeof r};
        TM_TRY(tamis_filter_stats(f->db, f, l, &r, err));
        if (l >= 0 && r.keys == 0 && r.probes == 0) continue;
        open_with(j, "{");
        if (l < 0)
            text(j, "level", tm_slice_str("all"));
        else
            number(j, "level", (uint64_t)l);
        report_filter(j, &r);
        close_with(j, "}");
    }
    close_with(j, "]");
    return TAMIS_OK;
}

static void report_counters(struct tamis_db *db, json *j)
{
    const char *name, *doc;
    open_named(j, "counters", "{");
    for (size_t i = 0; tamis_counter_at(i, &name, &doc) == TAMIS_OK; i++) {
        uint64_t v = 0;
        if (tamis_counter(db, name, &v, NULL) == TAMIS_OK) number(j, name, v);
    }
    close_with(j, "}");
}

static void report_state(tm_family *f, const tm_view *v, json *j)
{
    struct tamis_db *db = f->db;
    static const char *const stalls[] = {"none", "slowed", "stopped"};
    uint64_t wall = db->vfs->wall_ms(db->vfs), since = 0;
    uint64_t written = tm_stats_get(&db->stats, TM_STAT_flush_bytes) +
                       tm_stats_get(&db->stats, TM_STAT_compact_bytes_written) +
                       tm_stats_get(&db->stats, TM_STAT_log_bytes);
    uint64_t user = tm_stats_get(&db->stats, TM_STAT_write_bytes);
    open_named(j, "state", "{");
    tm_mutex_lock(&db->mu.m);
    text(j, "family", tm_family_name(f));
    number(j, "families", db->family_count);
    tm_mutex_unlock(&db->mu.m);
    number(j, "last_sequence", atomic_load_explicit(&db->last_seq, memory_order_acquire));
    number(j, "memtables", v->mem_count);
    number(j, "tables", tm_version_tables(v->version));
    number(j, "table_bytes", tm_version_bytes(v->version));
    number(j, "entries", v->version->entries);
    number(j, "snapshots", tm_snapshots_count(&db->snapshots));
    number(j, "oldest_snapshot_sequence", tm_snapshots_oldest(&db->snapshots, &since));
    number(j, "oldest_snapshot_age_ms", since ? wall - TM_MIN(wall, since) : 0);
    number(j, "iterators", atomic_load_explicit(&db->iterators, memory_order_relaxed));
    number(j, "open_files", tm_table_cache_open_files(db->files));
    text(j, "stall", tm_slice_str(stalls[atomic_load_explicit(&db->stall, memory_order_relaxed)]));
    number(j, "slowed_to_bytes_per_second",
           atomic_load_explicit(&db->delay_rate, memory_order_relaxed));
    number(j, "poisoned", atomic_load_explicit(&db->poisoned, memory_order_relaxed));
    tm_mutex_lock(&db->mu.m);
    int background = db->mu.background_status;
    tm_mutex_unlock(&db->mu.m);
    text(j, "background_status", tm_slice_str(tamis_status_name(background)));
    real(j, "write_amplification", user ? (double)written / (double)user : 0);
    close_with(j, "}");
}

// ---- Public ------------------------------------------------------------------------------------

static const struct {
    const char *name, *doc;
} properties[] = {
    {"stats", "everything: state, counters, levels, filters, memory, options"},
    {"levels", "tables, bytes and targets of each level"},
    {"tables", "every table with its bounds and figures"},
    {"options", "the options in force"},
    {"memory", "where the memory budget is"},
    {"filters", "what filters avoided and cost, by level"},
};

int tamis_property_at(size_t i, const char **name, const char **doc)
{
    if (name == NULL || doc == NULL) return TAMIS_INVALID;
    if (i >= TM_COUNT(properties)) return TAMIS_NOTFOUND;
    *name = properties[i].name;
    *doc = properties[i].doc;
    return TAMIS_OK;
}

static int make_report(tm_family *f, const tm_view *v, const char *name, json *j, tamis_error *err)
{
    struct tamis_db *db = f->db;
    bool all = strcmp(name, "stats") == 0, known = all;
    int st = TAMIS_OK;
    open_with(j, "{");
    if (all) report_state(f, v, j);
    if (all) report_counters(db, j);
    if (all || strcmp(name, "levels") == 0) known = (report_levels(f, v, j), true);
    if (strcmp(name, "tables") == 0) known = (report_tables(v, j), true);
    if (all || strcmp(name, "filters") == 0) known = (st = report_filters(f, j, err), true);
    if (all || strcmp(name, "memory") == 0) known = (report_memory(db, j), true);
    if (all || strcmp(name, "options") == 0) known = (report_options(f, j), true);
    close_with(j, "}");
    if (!known) return tm_fail(err, TAMIS_NOTFOUND, "no property is called \"%.60s\"", name);
    if (j->status != TAMIS_OK) return tm_fail_nomem(err);
    return st;
}

static int give_text(tm_slice s, char *buf, size_t cap, size_t *len, tamis_error *err)
{
    *len = s.len;
    if (s.len + 1 > cap) {
        return tm_fail(err, TAMIS_TOOLARGE, "the text has %zu bytes, the buffer %zu", s.len, cap);
    }
    if (s.len > 0) memcpy(buf, s.data, s.len);
    buf[s.len] = '\0';
    return TAMIS_OK;
}

int tamis_property(tamis_db *db, tamis_cf *cf, const char *name, char *buf, size_t cap, size_t *len,
                   tamis_error *err)
{
    tm_family *f;
    json j = {{0}, TAMIS_OK, false};
    TM_TRY(tm_db_check(db, err));
    TM_TRY(tm_db_family(db, cf, &f, err));
    if (name == NULL || len == NULL || (buf == NULL && cap > 0)) {
        return tm_fail(err, TAMIS_INVALID, "name, len or buf is NULL");
    }
    tm_view *v = tm_family_pin_view(f);
    int st = make_report(f, v, name, &j, err);
    tm_view_unref(v);
    if (st == TAMIS_OK) st = give_text(tm_buf_slice(&j.b), buf, cap, len, err);
    tm_buf_deinit(&j.b);
    return st;
}

int tamis_get_option(tamis_db *db, tamis_cf *cf, const char *name, char *buf, size_t cap,
                     size_t *len, tamis_error *err)
{
    tm_family *f;
    char value[64];
    size_t i, n;
    TM_TRY(tm_db_check(db, err));
    if (name == NULL || len == NULL || (buf == NULL && cap > 0)) {
        return tm_fail(err, TAMIS_INVALID, "name, len or buf is NULL");
    }
    TM_TRY(tm_db_family(db, cf, &f, err));
    TM_TRY(tm_config_find(tm_slice_str(name), &i, err));
    TM_TRY(print_option(f, i, value, sizeof value, &n));
    return give_text(tm_slice_of(value, n), buf, cap, len, err);
}
