// SPDX-License-Identifier: BSD-2-Clause
//
// db_recover.c - from files to an open store.
//
//   CURRENT ─► manifest ─► list of tables ─► versions
//              logs (from the lowest live one) ─► memtables ─► tables of level 0
//              new manifest that names them, CURRENT switched; new log
//
// INVARIANTS
//  R1  Old logs and manifests are never written to. A crash anywhere in here leaves them as they
//      were until the new manifest is in force; the next open starts again from the same input.
//  R2  What open shows is durable already: replayed records stand in synced tables.
//  R3  Log N+1 is replayed only if log N was read whole up to the end that N+1 names.
//  R4  Nothing is deleted by an open that saw anything but whole ends: what is not named then goes
//      to lost/.

#include <stdio.h>

#include "base/mem.h"
#include "lsm/db.h"
#include "lsm/folder.h"
#include "lsm/output.h"
#include "wal/wal_reader.h"

typedef struct replayed_output {
    tm_family *family;
    tm_output out;
} replayed_output;

typedef struct recovery {
    struct tamis_db *db;
    const tm_folder *files;
    // From the manifest.
    tm_edit state; // what all edits add up to
    uint64_t manifest;
    tm_manifest_end manifest_end;
    // From the logs.
    tm_wal_reader **logs; // by place in files->logs; NULL: below min_log, or never begun
    uint64_t manifest_vouched;
    uint64_t records, operations, cut_bytes;
    uint64_t replayed_seq; // of the last operation replayed
    bool all_whole;
    size_t first_log, end_log; // places that are replayed: [first, end)
    replayed_output *outs;     // tables written
    size_t out_count;
} recovery;

// ---- The manifest ------------------------------------------------------------------------------

static int take_edit(void *ctx, tm_edit *e, tamis_error *err)
{
    recovery *r = ctx;
    return tm_edit_merge(&r->state, e, r->manifest, err);
}

static int read_manifest(recovery *r, tamis_error *err)
{
    struct tamis_db *db = r->db;
    TM_TRY(tm_current_read(db->dir, &r->manifest, err));
    int st = tm_manifest_read(db->dir, r->manifest, 0, take_edit, r, &r->manifest_end, err);
    if (st == TAMIS_NOTFOUND) {
        return tm_fail_corrupt(err, r->manifest, 0,
                               "CURRENT names MANIFEST-%06llu, which is missing",
                               (unsigned long long)r->manifest);
    }
    TM_TRY(st);
    const tm_edit *s = &r->state;
    if (!s->has_store || s->family_count == 0 ||
        memcmp(s->store_id, r->manifest_end.store_id, sizeof s->store_id) != 0) {
        return tm_fail_corrupt(err, r->manifest, 0, "MANIFEST-%06llu does not describe its store",
                               (unsigned long long)r->manifest);
    }
    if (s->format_level > tamis_format_version()) {
        return tm_fail(err, TAMIS_UNSUPPORTED,
                       "the store has format level %llu; this library reads up to %u",
                       (unsigned long long)s->format_level, (unsigned)tamis_format_version());
    }
    memcpy(db->store_id, s->store_id, sizeof db->store_id);
    db->hash_seed = s->hash_seed;
    db->alloc_seq = s->last_seq;
    uint64_t next = TM_MAX(s->next_file, r->files->highest + 1);
    atomic_store_explicit(&db->next_file, next, memory_order_relaxed);
    return TAMIS_OK;
}

// ---- Families and versions ---------------------------------------------------------------------

static bool same_text(const tm_buf *stored, const char *given)
{
    return tm_slice_equal(tm_buf_slice(stored), tm_slice_str(given));
}

static int other_comparator(const tm_edit_family *e, const char *given, tamis_error *err)
{
    int shown = (int)TM_MIN(e->comparator.len, (size_t)60);
    if (e->id == 0) {
        return tm_fail(err, TAMIS_INVALID,
                       "the store was made with comparator \"%.*s\", not \"%.60s\"", shown,
                       (const char *)e->comparator.data, given);
    }
    return tm_fail(
        err, TAMIS_INVALID,
        "the family \"%.*s\" was made with comparator \"%.*s\", not \"%.60s\": give it in "
        "tamis_options.families",
        (int)TM_MIN(e->name.len, (size_t)60), (const char *)e->name.data, shown,
        (const char *)e->comparator.data, given);
}

// Order, plug-ins and options of a stored family: the default one's are the opener's, those of
// others are what was kept, unless the opener names them.
static int make_family(recovery *r, const tm_edit_family *e, tamis_error *err)
{
    struct tamis_db *db = r->db;
    const tamis_family *g = tm_db_given_family(db, tm_buf_slice(&e->name));
    tm_config config = db->config;
    tm_plugins plugins = db->config.plugins;
    tm_buf given = {0}, text = {0};
    tm_family_spec spec = {.id = e->id,
                           .name = tm_buf_slice(&e->name),
                           .order = db->config.order,
                           .merger = tm_buf_slice(&e->merger),
                           .config = &config,
                           .plugins = &plugins};
    tm_family *f = NULL;
    int st = TAMIS_OK;
    if (e->id != 0) {
        const char *extra = g ? g->options.extra : NULL;
        memset(&plugins, 0, sizeof plugins);
        TM_GOTO(tm_order_take(g ? g->options.comparator : NULL, &spec.order, err));
        TM_GOTO(tm_plugins_take(&plugins, g ? g->options.merger : NULL,
                                g ? g->options.compaction_filter : NULL, err));
        for (size_t i = 0; extra == NULL && i < r->state.option_count; i++) { // the last one holds
            const tm_edit_option *o = &r->state.options[i];
            if (o->family != e->id || !same_text(&o->name, TM_GIVEN_OPTIONS)) continue;
            if (tm_buf_set_text(&text, tm_buf_slice(&o->value)) != TAMIS_OK) {
                st = tm_fail_nomem(err);
                goto out;
            }
        }
        if (extra == NULL) extra = (const char *)text.data;
        TM_GOTO(tm_config_family(&db->config, extra, &config, &given, err));
        spec.given = tm_buf_slice(&given);
    }
    if (!same_text(&e->comparator, tm_order_name(&spec.order))) {
        st = other_comparator(e, tm_order_name(&spec.order), err);
        goto out;
    }
    TM_GOTO(tm_family_create(db, &spec, &f, err));
    for (size_t i = 0; i < r->state.flushed_count; i++) {
        const tm_edit_flushed *x = &r->state.flushed[i];
        if (x->family == e->id) f->flushed_seq = TM_MAX(f->flushed_seq, x->seq);
    }
    TM_GOTO(tm_db_list_family(db, f, err));
    f = NULL;
out:
    tm_family_unref(f);
    tm_buf_deinit(&given);
    tm_buf_deinit(&text);
    return st;
}

static int open_table(recovery *r, const tm_family *f, const tm_edit_table *t, tm_file_ref **out,
                      tamis_error *err)
{
    struct tamis_db *db = r->db;
    tm_table *table = NULL;
    if (!tm_folder_has(&r->files->tables, t->number)) {
        return tm_fail_corrupt(err, t->number, 0, "table %06llu.sst is missing",
                               (unsigned long long)t->number);
    }
    TM_TRY(tm_table_open(&db->table_env, &t->meta, &f->order, false, &table, err));
    TM_TRY(tm_file_ref_create(table, &db->dead, out, err));
    (*out)->marked = tm_db_many_tombstones(f, t->level, &t->meta);
    return TAMIS_OK;
}

static int make_version(recovery *r, tm_family *f, tamis_error *err)
{
    const tm_edit *s = &r->state;
    tm_version_add *adds = tm_calloc(s->table_count + 1, sizeof *adds);
    tm_version *v = NULL;
    if (adds == NULL) return tm_fail_nomem(err);
    int st = TAMIS_OK;
    size_t n = 0;
    for (size_t i = 0; st == TAMIS_OK && i < s->table_count; i++) {
        const tm_edit_table *t = &s->tables[i];
        if (t->family != f->id) continue;
        st = open_table(r, f, t, &adds[n].file, err);
        adds[n].level = t->level;
        if (st == TAMIS_OK) n++;
    }
    if (st == TAMIS_OK) st = tm_version_apply(f->version, NULL, 0, adds, n, &v, err);
    for (size_t i = 0; i < n; i++) tm_file_ref_put(adds[i].file);
    tm_free(adds);
    if (st == TAMIS_OK) {
        tm_version_unref(f->version);
        f->version = v;
    }
    return st;
}

static int make_families(recovery *r, tamis_error *err)
{
    struct tamis_db *db = r->db;
    const tm_edit *s = &r->state;
    size_t placed = 0;
    for (size_t i = 0; i < s->family_count; i++) TM_TRY(make_family(r, &s->families[i], err));
    db->next_family = TM_MAX(db->next_family, s->next_family);
    if (db->default_family == NULL) {
        return tm_fail_corrupt(err, r->manifest, 0, "MANIFEST-%06llu names no default family",
                               (unsigned long long)r->manifest);
    }
    for (uint32_t i = 0; i < db->family_count; i++) {
        TM_TRY(make_version(r, db->families[i], err));
        placed += tm_version_tables(db->families[i]->version);
    }
    if (placed == s->table_count) return TAMIS_OK;
    return tm_fail_corrupt(err, r->manifest, 0,
                           "MANIFEST-%06llu has tables of families that it does not name",
                           (unsigned long long)r->manifest);
}

// ---- The logs ----------------------------------------------------------------------------------

static int no_record(void *ctx, const tm_wal_record *rec, tamis_error *err)
{
    (void)ctx;
    (void)rec;
    (void)err;
    return TAMIS_OK;
}

// Whether log k or a later one was ever synced: then every older log was durable to its end.
static int later_sync(recovery *r, size_t k, bool *synced, tamis_error *err)
{
    for (size_t i = k; !*synced && i < r->end_log; i++) {
        tm_wal_end end = {0};
        if (r->logs[i] == NULL) continue;
        if (i > k && tm_wal_reader_header(r->logs[i])->previous_synced > 0) *synced = true;
        TM_TRY(tm_wal_reader_scan(r->logs[i], 0, UINT64_MAX, no_record, NULL, &end, err));
        if (end.vouched > 0) *synced = true;
    }
    return TAMIS_OK;
}

// Opens the logs from min_log on and checks that each names the one before it.
static int open_logs(recovery *r, tamis_error *err)
{
    size_t n = tm_folder_count(&r->files->logs);
    r->logs = tm_calloc(n + 1, sizeof *r->logs);
    if (r->logs == NULL) return tm_fail_nomem(err);
    r->first_log = n;
    size_t last_good = n; // place of the last log with a readable header
    tamis_error bad = {0};
    size_t bad_at = n;
    for (size_t i = 0; i < n; i++) {
        char name[TM_NAME_MAX];
        uint64_t number = tm_folder_at(&r->files->logs, i);
        if (number < r->state.min_log) continue;
        if (r->first_log == n) r->first_log = i;
        tm_filename(name, TM_FILE_LOG, number);
        tamis_error e = {0};
        int st = tm_wal_reader_open(r->db->dir, name, number, TM_WAL_LOG, r->db->store_id,
                                    &r->logs[i], &e);
        if (st == TAMIS_CORRUPT) {
            bool begun = false;
            TM_TRY(tm_wal_was_begun(r->db->dir, name, number, r->db->store_id, &begun, err));
            if (begun) return tm_fail_copy(err, &e);
            if (bad_at == n) {
                bad = e;
                bad_at = i;
            }
            continue;
        }
        if (st != TAMIS_OK) return tm_fail_copy(err, &e);
        last_good = i;
    }
    r->end_log = last_good == n ? r->first_log : last_good + 1;
    if (bad_at < r->end_log) { // later logs were begun: its header was lost, or damaged
        bool synced = false;
        const tm_wal_reader *next = r->logs[bad_at + 1];
        if (next != NULL) synced = tm_wal_reader_header(next)->previous_synced > 0;
        if (!synced) TM_TRY(later_sync(r, bad_at + 1, &synced, err));
        if (synced) return tm_fail_copy(err, &bad);
        r->end_log = bad_at; // R3: the tail begins with it
    }
    if (bad_at < n) r->all_whole = false; // never begun; set aside, not deleted
    for (size_t i = r->first_log; i < r->end_log; i++) {
        const tm_wal_header *h = tm_wal_reader_header(r->logs[i]);
        uint64_t before = i > r->first_log ? tm_folder_at(&r->files->logs, i - 1) : 0;
        if (h->previous >= r->state.min_log && h->previous != before) {
            return tm_fail_corrupt(err, h->previous, 0,
                                   "log %06llu.log is missing: %06llu.log follows it",
                                   (unsigned long long)h->previous, (unsigned long long)h->number);
        }
    }
    return TAMIS_OK;
}

static int write_replayed(recovery *r, tm_family *f, tm_output *out, tamis_error *err)
{
    const tm_range_set *ranges = NULL;
    tm_iter *it = NULL;
    tm_stripes stripes = {0};
    TM_TRY(tm_memtable_ranges(f->mem, &ranges, err));
    TM_TRY(tm_memtable_iter_create(f->mem, &it, err));
    tm_output_options o = {
        .db = r->db, .family = f, .stripes = &stripes, .ranges = ranges, .table_bytes = UINT64_MAX};
    int st = tm_output_run(&o, it, out, err);
    tm_iter_destroy(it);
    return st;
}

// The family's memtable becomes a table.
static int flush_replayed(recovery *r, tm_family *f, tamis_error *err)
{
    if (f->mem == NULL) return TAMIS_OK;
    replayed_output *outs = tm_realloc(r->outs, (r->out_count + 1) * sizeof *outs);
    if (outs == NULL) return tm_fail_nomem(err);
    r->outs = outs;
    outs[r->out_count].family = f;
    TM_TRY(write_replayed(r, f, &outs[r->out_count].out, err));
    r->out_count++;
    tm_memtable_unref(f->mem);
    f->mem = NULL;
    return TAMIS_OK;
}

// Makes room when the memtables have grown: those of all families together count.
static int bound_memory(recovery *r, tamis_error *err)
{
    struct tamis_db *db = r->db;
    size_t bytes = 0;
    for (uint32_t i = 0; i < db->family_count; i++) {
        tm_family *f = db->families[i];
        if (f->mem == NULL) continue;
        tm_memtable_charge(f->mem, db->cache);
        if (!db->readonly && tm_memtable_data(f->mem) >= f->config.write_buffer) {
            TM_TRY(flush_replayed(r, f, err));
        } else {
            bytes += tm_memtable_bytes(f->mem);
        }
    }
    if (db->readonly && bytes > db->config.memory_budget) {
        return tm_fail(err, TAMIS_TOOLARGE,
                       "the log does not fit into the memory budget: raise it, or open for writing "
                       "once");
    }
    if (db->family_count == 1 || db->readonly || bytes <= db->config.memory_budget / 4) {
        return TAMIS_OK;
    }
    for (uint32_t i = 0; i < db->family_count; i++) TM_TRY(flush_replayed(r, db->families[i], err));
    return TAMIS_OK;
}

static int replay_op(recovery *r, const tm_batch_op *op, uint64_t seq, tm_buf *scratch,
                     tamis_error *err)
{
    struct tamis_db *db = r->db;
    tm_family *f = tm_db_family_by_id(db, op->family);
    if (f == NULL) { // dropped since; or never there
        return op->family < db->next_family ? TAMIS_OK : TAMIS_CORRUPT;
    }
    if (seq <= f->flushed_seq) return TAMIS_OK; // stands in a table
    if (f->mem == NULL) {
        TM_TRY(tm_memtable_create(&f->order, db->hash_seed, f->config.write_buffer, &f->mem, err));
    }
    TM_TRY(tm_memtable_reserve(f->mem, op->key.len + op->value.len, 1, err));
    if (op->kind == TM_KIND_RANGE_DELETE) {
        return tm_memtable_add_range(f->mem, op->key, op->value, seq, err);
    }
    uint64_t hash = 0;
    if (tm_order_hash(&f->order, op->key, db->hash_seed, scratch, &hash) != TAMIS_OK) {
        return tm_fail_nomem(err);
    }
    return tm_memtable_add(f->mem, op->key, tm_trailer(seq, op->kind), op->value, hash, err);
}

static int replay_record(void *ctx, const tm_wal_record *rec, tamis_error *err)
{
    recovery *r = ctx;
    struct tamis_db *db = r->db;
    uint64_t number = tm_wal_reader_header(r->logs[r->first_log])->number;
    if (rec->seal) return TAMIS_OK;
    if (rec->seq <= r->replayed_seq) {
        return tm_fail_corrupt(err, number, rec->offset,
                               "log record at offset %llu begins with sequence number %llu, which "
                               "is not above %llu",
                               (unsigned long long)rec->offset, (unsigned long long)rec->seq,
                               (unsigned long long)r->replayed_seq);
    }
    tm_batch_reader reader = tm_batch_reader_of(rec->payload);
    tm_batch_op op;
    uint64_t seq = rec->seq;
    tm_buf scratch;
    tm_buf_init(&scratch);
    int st;
    while ((st = tm_batch_reader_next(&reader, &op)) == TAMIS_OK) {
        if (seq - rec->seq >= rec->count) break;
        st = replay_op(r, &op, seq, &scratch, err);
        if (st != TAMIS_OK) break;
        seq++;
    }
    tm_buf_deinit(&scratch);
    if (st != TAMIS_NOTFOUND && st != TAMIS_OK && st != TAMIS_CORRUPT) return st;
    if (st != TAMIS_NOTFOUND || seq - rec->seq != rec->count) {
        return tm_fail_corrupt(err, number, rec->offset,
                               "log record at offset %llu does not hold the operations it counts",
                               (unsigned long long)rec->offset);
    }
    r->replayed_seq = seq - 1;
    db->alloc_seq = TM_MAX(db->alloc_seq, r->replayed_seq);
    r->records++;
    r->operations += rec->count;
    return bound_memory(r, err);
}

// Log i ended before the end that log i+1 names: a crash's tail, unless something vouches for it.
static int judge_gap(recovery *r, size_t i, const tm_wal_end *end, tamis_error *err)
{
    uint64_t number = tm_folder_at(&r->files->logs, i);
    const tm_wal_header *next = tm_wal_reader_header(r->logs[i + 1]);
    bool vouched = next->previous_synced > end->logical_end;
    if (!vouched) TM_TRY(later_sync(r, i + 1, &vouched, err));
    if (vouched) {
        return tm_fail_corrupt(err, number, end->logical_end,
                               "%06llu.log ends at offset %llu, but later logs say that it was "
                               "durable up to %llu",
                               (unsigned long long)number, (unsigned long long)end->logical_end,
                               (unsigned long long)next->previous_end);
    }
    r->all_whole = false;
    r->end_log = i + 1; // R3
    return TAMIS_OK;
}

// What a log says of the manifest that was in force when it was written.
static int hear_manifest(recovery *r, uint64_t manifest, uint64_t synced, tamis_error *err)
{
    if (manifest > r->manifest) {
        return tm_fail_corrupt(err, r->manifest, 0,
                               "CURRENT names MANIFEST-%06llu, but a log was written under "
                               "MANIFEST-%06llu",
                               (unsigned long long)r->manifest, (unsigned long long)manifest);
    }
    if (manifest == r->manifest) r->manifest_vouched = TM_MAX(r->manifest_vouched, synced);
    return TAMIS_OK;
}

static int replay_logs(recovery *r, tamis_error *err)
{
    for (size_t i = r->first_log; i < r->end_log; i++) {
        bool has_next = i + 1 < r->end_log;
        const tm_wal_header *next = has_next ? tm_wal_reader_header(r->logs[i + 1]) : NULL;
        bool follows = has_next && next->previous == tm_folder_at(&r->files->logs, i);
        tm_wal_end end = {0};
        r->first_log = i; // the one that replay_record speaks of
        TM_TRY(tm_wal_reader_scan(r->logs[i], follows ? next->previous_synced : 0,
                                  follows ? next->previous_end : UINT64_MAX, replay_record, r, &end,
                                  err));
        TM_TRY(hear_manifest(r, end.manifest, end.manifest_synced, err));
        r->cut_bytes += end.cut_bytes;
        if (!has_next && !end.whole) r->all_whole = false;
        if (follows && end.logical_end < next->previous_end) TM_TRY(judge_gap(r, i, &end, err));
        if (!has_next) break;
    }
    if (r->manifest_vouched > r->manifest_end.logical_end) {
        return tm_fail_corrupt(err, r->manifest, r->manifest_end.logical_end,
                               "MANIFEST-%06llu ends at offset %llu, but a log says that it was "
                               "durable up to %llu",
                               (unsigned long long)r->manifest,
                               (unsigned long long)r->manifest_end.logical_end,
                               (unsigned long long)r->manifest_vouched);
    }
    return TAMIS_OK;
}

// ---- A new beginning ---------------------------------------------------------------------------

// Puts the tables written from the logs into level 0.
static int add_replayed(recovery *r, tamis_error *err)
{
    struct tamis_db *db = r->db;
    for (size_t i = 0; i < r->out_count; i++) {
        tm_family *f = r->outs[i].family;
        tm_output *out = &r->outs[i].out;
        if (out->count == 0) continue;
        tm_version *v = NULL;
        tm_version_add *adds = tm_calloc(out->count, sizeof *adds);
        if (adds == NULL) return tm_fail_nomem(err);
        int st = tm_db_open_outputs(db, f, out, 0, adds, err);
        if (st == TAMIS_OK) st = tm_version_apply(f->version, NULL, 0, adds, out->count, &v, err);
        for (size_t k = 0; k < out->count; k++) tm_file_ref_put(adds[k].file);
        tm_free(adds);
        TM_TRY(st);
        tm_version_unref(f->version);
        f->version = v;
    }
    return TAMIS_OK;
}

// A new manifest that describes what is true now, then the log it names as the lowest.
static int begin_anew(struct tamis_db *db, tamis_error *err)
{
    tm_edit e;
    tm_edit_init(&e);
    uint64_t number = atomic_fetch_add_explicit(&db->next_file, 1, memory_order_relaxed);
    uint64_t log = atomic_load_explicit(&db->next_file, memory_order_relaxed);
    bool poisoned;
    atomic_store_explicit(&db->last_seq, db->alloc_seq, memory_order_release);
    int st = tm_db_snapshot_edit(db, &e, err);
    if (st == TAMIS_OK) {
        e.min_log = log; // given out next, by tm_db_new_log
        e.next_file = log + 1;
        st =
            tm_manifest_create(db->dir, number, db->store_id, &e, &db->mu.manifest, &poisoned, err);
    }
    tm_edit_deinit(&e);
    TM_TRY(st);
    atomic_store_explicit(&db->manifest_synced, tm_manifest_synced(db->mu.manifest),
                          memory_order_release);
    atomic_store_explicit(&db->manifest_number, number, memory_order_release);
    TM_TRY(tm_db_new_log(db, err));
    return tm_db_sync_logs(db, err);
}

static void remove_or_set_aside(recovery *r, tamis_dir *lost, tm_file_kind kind, uint64_t number)
{
    char name[TM_NAME_MAX];
    tm_filename(name, kind, number);
    if (r->all_whole) {
        (void)!tm_dir_unlink(r->db->dir, name, NULL);
        return;
    }
    if (lost == NULL) return;
    int st = tm_dir_rename(r->db->dir, name, lost, name, TAMIS_RENAME_NOREPLACE, NULL);
    if (st == TAMIS_OK) tm_db_note(r->db, 1, "moved %s to lost/", name);
}

// R4. What cannot be removed now is found again by the next open.
static void clean_folder(recovery *r)
{
    struct tamis_db *db = r->db;
    tamis_dir *lost = NULL;
    if (!r->all_whole) {
        (void)db->vfs->dir_open_at(db->dir, TM_NAME_LOST, TAMIS_DIR_CREATE, &lost, NULL);
    }
    for (size_t i = 0; i < tm_folder_count(&r->files->tables); i++) {
        uint64_t number = tm_folder_at(&r->files->tables, i);
        bool named = false;
        for (size_t k = 0; k < r->state.table_count; k++) {
            named = named || r->state.tables[k].number == number;
        }
        if (!named) remove_or_set_aside(r, lost, TM_FILE_TABLE, number);
    }
    for (size_t i = 0; i < tm_folder_count(&r->files->logs); i++) {
        remove_or_set_aside(r, lost, TM_FILE_LOG, tm_folder_at(&r->files->logs, i));
    }
    for (size_t i = 0; i < tm_folder_count(&r->files->manifests); i++) {
        remove_or_set_aside(r, lost, TM_FILE_MANIFEST, tm_folder_at(&r->files->manifests, i));
    }
    if (r->files->has_temp) (void)!tm_dir_unlink(db->dir, TM_NAME_CURRENT_TMP, NULL);
    if (lost != NULL) {
        (void)!tm_dir_sync(lost, NULL);
        tm_dir_close(lost);
    }
}

static void tell(recovery *r)
{
    tamis_event e = {.kind = TAMIS_EVENT_RECOVERED, .bytes_in = r->cut_bytes};
    tm_db_event(r->db, &e,
                "recovered: %zu tables, %llu log records with %llu operations, "
                "%llu bytes of unfinished end ignored, last sequence number %llu",
                r->state.table_count, (unsigned long long)r->records,
                (unsigned long long)r->operations,
                (unsigned long long)(r->cut_bytes + r->manifest_end.cut_bytes),
                (unsigned long long)r->db->alloc_seq);
}

static void recovery_deinit(recovery *r, bool failed)
{
    for (size_t i = 0; r->logs != NULL && i < tm_folder_count(&r->files->logs); i++) {
        tm_wal_reader_close(r->logs[i]);
    }
    tm_free(r->logs);
    for (size_t i = 0; i < r->out_count; i++) {
        if (failed) tm_output_remove_files(r->db, &r->outs[i].out);
        tm_output_deinit(&r->outs[i].out);
    }
    tm_free(r->outs);
    tm_edit_deinit(&r->state);
}

static int publish_families(struct tamis_db *db, tamis_error *err)
{
    for (uint32_t i = 0; i < db->family_count; i++) {
        tm_view *view = tm_view_alloc(err);
        if (view == NULL) return TAMIS_NOMEM;
        tm_family_publish(db->families[i], view);
    }
    return TAMIS_OK;
}

int tm_db_recover(struct tamis_db *db, const struct tm_folder *files, tamis_error *err)
{
    recovery r = {.db = db, .files = files, .all_whole = true};
    bool switched = false;
    int st = read_manifest(&r, err);
    if (st != TAMIS_OK) goto out;
    r.all_whole = r.manifest_end.whole;
    TM_GOTO(make_families(&r, err));
    TM_GOTO(open_logs(&r, err));
    TM_GOTO(replay_logs(&r, err));
    if (!db->readonly) {
        for (uint32_t i = 0; i < db->family_count; i++) {
            TM_GOTO(flush_replayed(&r, db->families[i], err));
        }
        TM_GOTO(add_replayed(&r, err)); // begin_anew syncs the folder before it names them
        for (uint32_t i = 0; i < db->family_count; i++) {
            db->families[i]->flushed_seq = db->alloc_seq;
        }
        switched = true; // from here on the new manifest may be in force and name the new tables
        TM_GOTO(begin_anew(db, err));
    }
    TM_GOTO(publish_families(db, err));
    atomic_store_explicit(&db->last_seq, db->alloc_seq, memory_order_release);
    if (!db->readonly) clean_folder(&r);
    tell(&r);
out:
    recovery_deinit(&r, st != TAMIS_OK && !switched);
    return st;
}

int tm_db_create(struct tamis_db *db, tamis_error *err)
{
    int sys = db->vfs->random(db->vfs, db->store_id, sizeof db->store_id);
    if (sys == 0) sys = db->vfs->random(db->vfs, &db->hash_seed, sizeof db->hash_seed);
    if (sys != 0) return tm_fail_sys(err, sys, 0, 0, "read random bytes for the store's id");
    if (db->config.seed != 0) db->hash_seed = db->config.seed;
    atomic_store_explicit(&db->next_file, 1, memory_order_relaxed);
    tm_family *f = NULL;
    tm_family_spec spec = {.name = tm_slice_str("default"),
                           .order = db->config.order,
                           .config = &db->config,
                           .plugins = &db->config.plugins};
    TM_TRY(tm_family_create(db, &spec, &f, err));
    int st = tm_db_list_family(db, f, err);
    if (st != TAMIS_OK) {
        tm_family_unref(f);
        return st;
    }
    TM_TRY(publish_families(db, err));
    return begin_anew(db, err);
}
