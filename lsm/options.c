// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/options.h"

#include <stdio.h>

#include "base/sync.h"

// ---- The table ---------------------------------------------------------------------------------

typedef enum type { BOOL, INT, SIZE, MILLI, DURATION, FILTER, COMPRESSION } type;
typedef enum scope { STORE, FAMILY } scope;
#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

typedef struct row {
    const char *name;
    scope scope;
    type type;
    size_t field;
    uint64_t def, min, max;
    const char *def_text, *min_text, *max_text;
    const char *doc;
} row;
#define FIELD(f) offsetof(tm_config, f)

static const row rows[] = {
    {"block_size", FAMILY, SIZE, FIELD(block_size), 4 * KIB, 256, 16 * MIB, "4KiB", "256", "16MiB",
     "raw size at which a data block is closed"},
    {"compression", FAMILY, COMPRESSION, FIELD(compression), TM_COMPRESSION_LZ4, 0, 1, "lz4", "",
     "", "of data and index blocks; kept where it saves at least 1/8"},
    {"filter", FAMILY, FILTER, FIELD(filter), TM_FILTER_BLOCKED, 0, 2, "blocked", "", "",
     "kind of the filters of new tables"},
    {"filter_bits", FAMILY, MILLI, FIELD(filter_millibits), 10000, 1000, 64000, "10", "1", "64",
     "bits a key of the filters of new tables; fractions are kept"},
    {"index_partition", FAMILY, SIZE, FIELD(index_size), 64 * KIB, KIB, 16 * MIB, "64KiB", "1KiB",
     "16MiB", "index size at which a partition is cut, whatever its filter has"},
    {"level0_compact", FAMILY, INT, FIELD(level0_compact), 4, 1, 1000, "4", "1", "1000",
     "tables of level 0 at which they are compacted"},
    {"level0_slowdown", FAMILY, INT, FIELD(level0_slowdown), 20, 2, 10000, "20", "2", "10000",
     "tables of level 0 from which writers are slowed down"},
    {"level0_stop", FAMILY, INT, FIELD(level0_stop), 36, 3, 10000, "36", "3", "10000",
     "tables of level 0 at which writers wait"},
    {"level_base", FAMILY, SIZE, FIELD(level_base), 0, 0, 1024 * GIB, "0", "0", "1TiB",
     "least target size of a level; 0 = level0_compact write buffers"},
    {"level_ratio", FAMILY, INT, FIELD(level_ratio), 10, 2, 100, "10", "2", "100",
     "how much larger each level is than the one above"},
    {"log_reserve", STORE, SIZE, FIELD(log_reserve), 4 * MIB, 0, GIB, "4MiB", "0", "1GiB",
     "room that a log takes from the file system in one step"},
    {"log_size", STORE, SIZE, FIELD(log_size), 0, 0, 1024 * GIB, "0", "0", "1TiB",
     "log that a quiet family's unflushed writes may hold back; 0 = 8 write buffers"},
    {"max_open_files", STORE, INT, FIELD(max_open_files), 1000, 8, 1000000, "1000", "8", "1000000",
     "descriptors kept open for tables"},
    {"partition_size", FAMILY, SIZE, FIELD(partition_size), 16 * KIB, KIB, 16 * MIB, "16KiB",
     "1KiB", "16MiB", "filter size at which a partition of a table is cut"},
    {"rate_limit", STORE, SIZE, FIELD(rate_limit), 0, 0, 1024 * GIB, "0", "0", "1TiB",
     "bytes a second that flushes and compactions write; 0 = no limit"},
    {"readahead", STORE, SIZE, FIELD(readahead), 256 * KIB, 4 * KIB, 64 * MIB, "256KiB", "4KiB",
     "64MiB", "one read of a compaction, and of a long scan"},
    {"seed", STORE, INT, FIELD(seed), 0, 0, UINT64_MAX, "0", "0", "",
     "hash seed of a store that is created, for experiments; 0 = random"},
    {"subcompactions", STORE, INT, FIELD(subcompactions), 0, 0, 8, "0", "0", "8",
     "parts by key that a large compaction is cut into; 0 = background threads less one"},
    {"table_size", FAMILY, SIZE, FIELD(table_size), 64 * MIB, 4 * KIB, 64 * GIB, "64MiB", "4KiB",
     "64GiB", "size at which compactions begin a new table"},
    {"tombstone_percent", FAMILY, INT, FIELD(tombstone_percent), 50, 0, 100, "50", "0", "100",
     "share of deletes from which a table is compacted for them; 0 = never"},
    {"ttl", FAMILY, DURATION, FIELD(ttl_ms), 0, 0, 1000ull * 365 * 86400000, "0", "0", "1000y",
     "values are gone so long after they were put; 0 = never"},
    {"verify_filters", STORE, BOOL, FIELD(verify_filters), 0, 0, 1, "false", "", "",
     "check every \"no\" of a filter by a search: for tests"},
    {"write_buffer", FAMILY, SIZE, FIELD(write_buffer), 0, 0, 64 * GIB, "0", "0", "64GiB",
     "bytes at which a memtable is flushed; 0 = 1/16 of the memory budget"},
    {"write_buffers", FAMILY, INT, FIELD(write_buffers), 3, 2, 8, "3", "2", "8",
     "memtables in all, the one in use counted, before writers wait"},
};

static uint64_t *field_of(tm_config *c, const row *r)
{
    return (uint64_t *)(void *)((char *)c + r->field);
}

static const char *type_name(type t)
{
    static const char *const names[] = {
        "bool", "int", "size", "float", "duration", "enum:none|bloom|blocked", "enum:none|lz4"};
    return names[t];
}

int tamis_option_at(size_t i, tamis_option_info *out)
{
    if (out == NULL) return TAMIS_INVALID;
    if (i >= TM_COUNT(rows)) return TAMIS_NOTFOUND;
    const row *r = &rows[i];
    tamis_option_info info = {.size = out->size,
                              .name = r->name,
                              .type = type_name(r->type),
                              .def = r->def_text,
                              .min = r->min_text,
                              .max = r->max_text,
                              .doc = r->doc,
                              .scope = r->scope == FAMILY ? "family" : "store"};
    memcpy(out, &info, TM_MIN(out->size, sizeof info));
    return TAMIS_OK;
}

// ---- Parsing -----------------------------------------------------------------------------------

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static tm_slice trim(tm_slice s)
{
    while (s.len > 0 && is_space((char)s.data[0])) s = tm_slice_of(s.data + 1, s.len - 1);
    while (s.len > 0 && is_space((char)s.data[s.len - 1])) s.len--;
    return s;
}

static bool is_word(tm_slice s, const char *word)
{
    return tm_slice_equal(s, tm_slice_str(word));
}

// Digits; *rest is what follows. False: none, or too large.
static bool parse_digits(tm_slice s, uint64_t *out, tm_slice *rest)
{
    uint64_t n = 0;
    size_t i = 0;
    for (; i < s.len && s.data[i] >= '0' && s.data[i] <= '9'; i++) {
        uint64_t digit = (uint64_t)(s.data[i] - '0');
        if (n > (UINT64_MAX - digit) / 10) return false;
        n = n * 10 + digit;
    }
    *out = n;
    *rest = tm_slice_of(s.data + i, s.len - i);
    return i > 0;
}

// Digits and a unit that is one of the table's.
typedef struct unit {
    const char *name;
    uint64_t factor;
} unit;
static bool parse_units(tm_slice s, const unit *units, size_t count, uint64_t *out)
{
    uint64_t n;
    tm_slice rest;
    if (!parse_digits(s, &n, &rest)) return false;
    rest = trim(rest);
    for (size_t i = 0; i < count; i++) {
        if (!is_word(rest, units[i].name)) continue;
        if (n > UINT64_MAX / units[i].factor) return false;
        *out = n * units[i].factor;
        return true;
    }
    return false;
}

static bool parse_size(tm_slice s, uint64_t *out)
{
    static const unit units[] = {
        {"", 1},      {"B", 1},          {"K", KIB},         {"KB", KIB},        {"KiB", KIB},
        {"M", MIB},   {"MB", MIB},       {"MiB", MIB},       {"G", GIB},         {"GB", GIB},
        {"GiB", GIB}, {"T", 1024 * GIB}, {"TB", 1024 * GIB}, {"TiB", 1024 * GIB}};
    return parse_units(s, units, TM_COUNT(units), out);
}

// In milliseconds.
static bool parse_duration(tm_slice s, uint64_t *out)
{
    static const unit units[] = {{"", 1},          {"ms", 1},         {"s", 1000},
                                 {"min", 60000},   {"h", 3600000},    {"d", 86400000},
                                 {"w", 604800000}, {"y", 31536000000}};
    return parse_units(s, units, TM_COUNT(units), out);
}

// A number with up to three digits behind the point, times 1,000.
static bool parse_milli(tm_slice s, uint64_t *out)
{
    uint64_t whole, part = 0;
    tm_slice rest;
    if (!parse_digits(s, &whole, &rest) || whole > 1000000) return false;
    uint64_t scale = 100;
    if (rest.len > 0) {
        if (rest.data[0] != '.' || rest.len == 1 || rest.len > 4) return false;
        for (size_t i = 1; i < rest.len; i++, scale /= 10) {
            if (rest.data[i] < '0' || rest.data[i] > '9') return false;
            part += (uint64_t)(rest.data[i] - '0') * scale;
        }
    }
    *out = whole * 1000 + part;
    return true;
}

static bool parse_enum(const char *choices, tm_slice s, uint64_t *out)
{
    const char *p = strchr(choices, ':') + 1;
    for (uint64_t i = 0;; i++) {
        const char *end = strchr(p, '|');
        size_t n = end ? (size_t)(end - p) : strlen(p);
        if (tm_slice_equal(s, tm_slice_of(p, n))) {
            *out = i;
            return true;
        }
        if (end == NULL) return false;
        p = end + 1;
    }
}

static bool parse_value(const row *r, tm_slice s, uint64_t *out)
{
    tm_slice rest;
    switch (r->type) {
    case BOOL:
        *out = is_word(s, "true") || is_word(s, "1") || is_word(s, "on") || is_word(s, "yes");
        return *out || is_word(s, "false") || is_word(s, "0") || is_word(s, "off") ||
               is_word(s, "no");
    case INT:
        return parse_digits(s, out, &rest) && rest.len == 0;
    case SIZE:
        return parse_size(s, out);
    case MILLI:
        return parse_milli(s, out);
    case DURATION:
        return parse_duration(s, out);
    default:
        return parse_enum(type_name(r->type), s, out);
    }
}

// ---- Names -------------------------------------------------------------------------------------

enum { NAME_MAX_LEN = 32 };

// Edit distance (Levenshtein), for the nearest name of a mistyped one.
static size_t distance(tm_slice a, const char *b)
{
    size_t bn = strlen(b), row_now[NAME_MAX_LEN + 1];
    for (size_t j = 0; j <= bn; j++) row_now[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row_now[0];
        row_now[0] = i;
        for (size_t j = 1; j <= bn; j++) {
            size_t cost = diagonal + (a.data[i - 1] != (uint8_t)b[j - 1]);
            diagonal = row_now[j];
            row_now[j] = TM_MIN(cost, TM_MIN(row_now[j], row_now[j - 1]) + 1);
        }
    }
    return row_now[bn];
}

static int unknown_option(tm_slice name, int code, tamis_error *err)
{
    const char *nearest = rows[0].name;
    size_t best = SIZE_MAX;
    tm_slice cut = tm_slice_of(name.data, TM_MIN(name.len, (size_t)64));
    for (size_t i = 0; i < TM_COUNT(rows); i++) {
        size_t d = distance(cut, rows[i].name);
        if (d < best) {
            best = d;
            nearest = rows[i].name;
        }
    }
    return tm_fail(err, code, "unknown option \"%.*s\"; the nearest name is \"%s\"", (int)cut.len,
                   (const char *)cut.data, nearest);
}

static const row *find_row(tm_slice name)
{
    for (size_t i = 0; i < TM_COUNT(rows); i++) {
        if (is_word(name, rows[i].name)) return &rows[i];
    }
    return NULL;
}

// given (may be NULL) marks the options of a family: it gets the pair, normalised.
static int parse_pair(tm_config *c, tm_slice pair, tm_buf *given, tamis_error *err)
{
    const uint8_t *eq = memchr(pair.data, '=', pair.len);
    if (eq == NULL) {
        return tm_fail(err, TAMIS_INVALID, "options: \"%.*s\" is not of the form name=value",
                       (int)TM_MIN(pair.len, (size_t)64), (const char *)pair.data);
    }
    tm_slice name = trim(tm_slice_of(pair.data, (size_t)(eq - pair.data)));
    tm_slice value = trim(tm_slice_of(eq + 1, (size_t)(pair.data + pair.len - eq - 1)));
    const row *r = find_row(name);
    if (r == NULL) return unknown_option(name, TAMIS_INVALID, err);
    uint64_t v;
    int shown = (int)TM_MIN(value.len, (size_t)64);
    if (!parse_value(r, value, &v)) {
        return tm_fail(err, TAMIS_INVALID, "option %s: \"%.*s\" is no %s", r->name, shown,
                       (const char *)value.data, type_name(r->type));
    }
    if (v < r->min || v > r->max) {
        return tm_fail(err, TAMIS_INVALID, "option %s: %.*s is out of range (%s to %s)", r->name,
                       shown, (const char *)value.data, r->min_text, r->max_text);
    }
    if (given != NULL && r->scope != FAMILY) {
        return tm_fail(err, TAMIS_INVALID,
                       "option %s is one of the store's: a family cannot have its own", r->name);
    }
    *field_of(c, r) = v;
    if (given == NULL) return TAMIS_OK;
    if ((given->len > 0 && tm_buf_append(given, "; ", 2) != 0) ||
        tm_buf_append(given, r->name, strlen(r->name)) != 0 || tm_buf_append(given, "=", 1) != 0 ||
        tm_buf_append(given, value.data, value.len) != 0) {
        return tm_fail_nomem(err);
    }
    return TAMIS_OK;
}

static int parse_extra(tm_config *c, const char *extra, tm_buf *given, tamis_error *err)
{
    while (*extra != '\0') {
        const char *end = strchr(extra, ';');
        size_t n = end ? (size_t)(end - extra) : strlen(extra);
        tm_slice pair = trim(tm_slice_of(extra, n));
        if (pair.len > 0) TM_TRY(parse_pair(c, pair, given, err));
        extra += n + (end != NULL);
    }
    return TAMIS_OK;
}

// ---- The whole ---------------------------------------------------------------------------------

static bool is_name(const char *name)
{
    return name != NULL && name[0] != '\0' && strlen(name) <= 255;
}

int tm_order_take(const tamis_comparator *c, tm_order *out, tamis_error *err)
{
    if (c != NULL && (c->compare == NULL || !is_name(c->name))) {
        return tm_fail(err, TAMIS_INVALID,
                       "options: the comparator needs compare and a name of up to 255 bytes");
    }
    *out = tm_order_of(c);
    return TAMIS_OK;
}

int tm_plugins_take(tm_plugins *out, const tamis_merger *merger,
                    const tamis_compaction_filter *filter, tamis_error *err)
{
    if (merger != NULL) {
        if (merger->size < sizeof *merger || merger->merge == NULL || !is_name(merger->name) ||
            (merger->flags & ~TAMIS_MERGER_ASSOCIATIVE) != 0) {
            return tm_fail(err, TAMIS_INVALID,
                           "options: the merger needs its size, merge, known flags and a name of "
                           "up to 255 bytes");
        }
        out->merger = *merger;
    }
    if (filter != NULL) {
        if (filter->size < sizeof *filter || filter->filter == NULL || !is_name(filter->name)) {
            return tm_fail(err, TAMIS_INVALID,
                           "options: the compaction filter needs its size, filter and a name of "
                           "up to 255 bytes");
        }
        out->filter = *filter;
    }
    return TAMIS_OK;
}

static int take_struct(tm_config *c, const tamis_options *o, tamis_error *err)
{
    const uint32_t known =
        TAMIS_OPEN_EXISTING | TAMIS_OPEN_NEW | TAMIS_OPEN_READONLY | TAMIS_OPEN_NO_BACKGROUND;
    if (o->flags & ~known)
        return tm_fail(err, TAMIS_INVALID, "options: flags %u are unknown", o->flags & ~known);
    if ((o->flags & TAMIS_OPEN_NEW) && (o->flags & (TAMIS_OPEN_EXISTING | TAMIS_OPEN_READONLY))) {
        return tm_fail(err, TAMIS_INVALID,
                       "options: TAMIS_OPEN_NEW goes with neither EXISTING nor READONLY");
    }
    if (o->sync < TAMIS_SYNC_DEFAULT || o->sync > TAMIS_SYNC_NEVER) {
        return tm_fail(err, TAMIS_INVALID, "options: sync is %d", (int)o->sync);
    }
    if (o->memory_budget != 0 &&
        (o->memory_budget < 64 * KIB || o->memory_budget > 1024 * 1024 * GIB)) {
        return tm_fail(err, TAMIS_INVALID,
                       "options: memory_budget %llu is out of range (64KiB to 1PiB)",
                       (unsigned long long)o->memory_budget);
    }
    if (o->background_threads > 64) {
        return tm_fail(err, TAMIS_INVALID, "options: background_threads is %u; 64 are allowed",
                       o->background_threads);
    }
    if (o->sync_interval_ms > 3600000) {
        return tm_fail(err, TAMIS_INVALID, "options: sync_interval_ms is %u; at most an hour",
                       o->sync_interval_ms);
    }
    if (o->family_count > 0 && o->families == NULL) {
        return tm_fail(err, TAMIS_INVALID, "options: families is NULL, family_count %zu",
                       o->family_count);
    }
    TM_TRY(tm_order_take(o->comparator, &c->order, err));
    TM_TRY(tm_plugins_take(&c->plugins, o->merger, o->compaction_filter, err));
    c->flags = o->flags;
    if (o->sync != TAMIS_SYNC_DEFAULT) c->sync = (tamis_sync)o->sync;
    if (o->memory_budget != 0) c->memory_budget = o->memory_budget;
    if (o->background_threads != 0) c->background_threads = o->background_threads;
    if (o->sync_interval_ms != 0) c->sync_interval_ms = o->sync_interval_ms;
    if (o->vfs != NULL) c->vfs = o->vfs;
    c->given = o->families;
    c->given_count = o->family_count;
    c->on_event = o->on_event;
    c->on_event_ctx = o->on_event_ctx;
    return TAMIS_OK;
}

static int resolve(tm_config *c, tamis_error *err)
{
    if (c->write_buffer == 0) {
        c->write_buffer = TM_MIN(TM_MAX(c->memory_budget / 16, 64 * KIB), GIB);
    }
    if (c->write_buffer < 4 * KIB) {
        return tm_fail(err, TAMIS_INVALID, "option write_buffer: out of range (4KiB to 64GiB)");
    }
    c->level_base_given = c->level_base != 0;
    if (c->level_base == 0) c->level_base = c->level0_compact * c->write_buffer;
    if (c->log_size == 0) c->log_size = 8 * c->write_buffer;
    if (c->level0_slowdown <= c->level0_compact || c->level0_stop <= c->level0_slowdown) {
        return tm_fail(err, TAMIS_INVALID,
                       "options: level0_compact < level0_slowdown < level0_stop must hold, not "
                       "%llu, %llu, %llu",
                       (unsigned long long)c->level0_compact,
                       (unsigned long long)c->level0_slowdown, (unsigned long long)c->level0_stop);
    }
    if (c->flags & TAMIS_OPEN_NO_BACKGROUND) c->background_threads = 0;
    return TAMIS_OK;
}

int tm_config_init(tm_config *c, const tamis_options *opt, tamis_error *err)
{
    memset(c, 0, sizeof *c);
    c->sync = TAMIS_SYNC_ALWAYS;
    c->memory_budget = 64 * MIB;
    c->background_threads = TM_MAX(2u, TM_MIN(tm_cpu_count(), 4u));
    c->sync_interval_ms = 100;
    c->order = tm_order_bytewise();
    c->vfs = tamis_vfs_default();
    for (size_t i = 0; i < TM_COUNT(rows); i++) *field_of(c, &rows[i]) = rows[i].def;
    if (opt != NULL) {
        tamis_options o = tamis_options_init();
        if (opt->size < sizeof(size_t) || opt->size > 4096) {
            return tm_fail(err, TAMIS_INVALID, "options: size is %zu; use tamis_options_init",
                           opt->size);
        }
        memcpy(&o, opt, TM_MIN(opt->size, sizeof o));
        TM_TRY(take_struct(c, &o, err));
        if (o.extra != NULL) TM_TRY(parse_extra(c, o.extra, NULL, err));
    }
    return resolve(c, err);
}

int tm_config_family(const tm_config *store, const char *extra, tm_config *out, tm_buf *given,
                     tamis_error *err)
{
    *out = *store;
    out->ttl_ms = 0; // what lives how long is said family by family
    if (!store->level_base_given) out->level_base = 0;
    tm_buf_clear(given);
    if (extra != NULL) TM_TRY(parse_extra(out, extra, given, err));
    bool base_given = out->level_base != 0;
    TM_TRY(resolve(out, err));
    out->level_base_given = base_given;
    return TAMIS_OK;
}

int tm_config_print(const tm_config *c, size_t i, char *buf, size_t cap, size_t *len)
{
    if (i >= TM_COUNT(rows)) return TAMIS_NOTFOUND;
    const row *r = &rows[i];
    unsigned long long v;
    memcpy(&v, (const char *)c + r->field, sizeof(uint64_t));
    int n = 0;
    switch (r->type) {
    case BOOL:
        n = snprintf(buf, cap, "%s", v ? "true" : "false");
        break;
    case MILLI:
        n = v % 1000 ? snprintf(buf, cap, "%llu.%03llu", v / 1000, v % 1000)
                     : snprintf(buf, cap, "%llu", v / 1000);
        break;
    case DURATION:
        n = snprintf(buf, cap, "%llums", v);
        break;
    case FILTER:
        n = snprintf(buf, cap, "%s", tm_filter_kind_name((tm_filter_kind)v));
        break;
    case COMPRESSION:
        n = snprintf(buf, cap, "%s", v == TM_COMPRESSION_LZ4 ? "lz4" : "none");
        break;
    default:
        n = snprintf(buf, cap, "%llu", v);
        break;
    }
    *len = (size_t)n;
    return (size_t)n < cap ? TAMIS_OK : TAMIS_TOOLARGE;
}

int tm_config_find(tm_slice name, size_t *i, tamis_error *err)
{
    const row *r = find_row(name);
    if (r == NULL) return unknown_option(name, TAMIS_NOTFOUND, err);
    *i = (size_t)(r - rows);
    return TAMIS_OK;
}
