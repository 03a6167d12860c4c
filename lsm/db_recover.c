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

typedef struct recovery {
    struct tamis_db *db;
    const tm_folder *files;
    // From the manifest.
    tm_edit state; // live tables, families, cursors so far
    uint64_t manifest;
    tm_manifest_end manifest_end;
    uint64_t min_log, last_seq, next_file;
    // From the logs.
    tm_wal_reader **logs; // by place in files->logs; NULL: below min_log, or never begun
    uint64_t manifest_vouched;
    uint64_t records, operations, cut_bytes;
    uint64_t replayed_seq; // of the last operation replayed
    bool all_whole;
    size_t first_log, end_log; // places that are replayed: [first, end)
    tm_output *outs;           // tables written
    size_t out_count;
} recovery;

// ---- The manifest ------------------------------------------------------------------------------

static int forget_table(recovery *r, const tm_edit_table *gone, tamis_error *err)
{
    tm_edit *s = &r->state;
    for (size_t i = 0; i < s->table_count; i++) {
        tm_edit_table *t = &s->tables[i];
        if (t->number != gone->number || t->level != gone->level || t->family != gone->family) {
            continue;
        }
        tm_table_meta_deinit(&t->meta);
        *t = s->tables[--s->table_count];
        return TAMIS_OK;
    }
    return tm_fail_corrupt(err, r->manifest, 0,
                           "MANIFEST-%06llu drops table %06llu, which is not there",
                           (unsigned long long)r->manifest, (unsigned long long)gone->number);
}

static int take_families(recovery *r, const tm_edit *e, tamis_error *err)
{
    for (size_t i = 0; i < e->family_count; i++) {
        const tm_edit_family *f = &e->families[i];
        if (f->id != 0 || f->drop) {
            return tm_fail(err, TAMIS_UNSUPPORTED,
                           "the store has column families, which this version cannot open");
        }
        if (tm_edit_add_family(&r->state, f->id, tm_buf_slice(&f->name),
                               tm_buf_slice(&f->comparator), tm_buf_slice(&f->merger)) != 0) {
            return tm_fail_nomem(err);
        }
    }
    for (size_t i = 0; i < e->cursor_count; i++) {
        const tm_edit_cursor *c = &e->cursors[i];
        if (tm_edit_set_cursor(&r->state, c->family, c->level, tm_buf_slice(&c->key)) != 0) {
            return tm_fail_nomem(err);
        }
    }
    return TAMIS_OK;
}

static int take_edit(void *ctx, tm_edit *e, tamis_error *err)
{
    recovery *r = ctx;
    if (e->has_store) {
        r->state.has_store = true;
        memcpy(r->state.store_id, e->store_id, sizeof e->store_id);
        r->state.hash_seed = e->hash_seed;
        r->state.format_level = e->format_level;
    }
    if (e->has_min_log) r->min_log = e->min_log;
    if (e->has_last_seq) r->last_seq = TM_MAX(r->last_seq, e->last_seq);
    if (e->has_next_file) r->next_file = TM_MAX(r->next_file, e->next_file);
    TM_TRY(take_families(r, e, err));
    for (size_t i = 0; i < e->table_count; i++) {
        if (!e->tables[i].add) TM_TRY(forget_table(r, &e->tables[i], err));
    }
    for (size_t i = 0; i < e->table_count; i++) {
        const tm_edit_table *t = &e->tables[i];
        if (t->add && tm_edit_add_table(&r->state, t->family, t->level, &t->meta) != 0) {
            return tm_fail_nomem(err);
        }
    }
    if (e->has_live_tables && e->live_tables != r->state.table_count) {
        return tm_fail_corrupt(err, r->manifest, 0,
                               "MANIFEST-%06llu: %llu live tables expected, %zu found",
                               (unsigned long long)r->manifest, (unsigned long long)e->live_tables,
                               r->state.table_count);
    }
    return TAMIS_OK;
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
    const tm_buf *stored = &s->families[0].comparator;
    const char *given = tm_order_name(&db->config.order);
    if (!tm_slice_equal(tm_buf_slice(stored), tm_slice_str(given))) {
        return tm_fail(err, TAMIS_INVALID,
                       "the store was made with comparator \"%.*s\", not \"%s\"",
                       (int)TM_MIN(stored->len, (size_t)100), (const char *)stored->data, given);
    }
    memcpy(db->store_id, s->store_id, sizeof db->store_id);
    db->hash_seed = s->hash_seed;
    db->alloc_seq = r->last_seq;
    uint64_t next = TM_MAX(r->next_file, r->files->highest + 1);
    atomic_store_explicit(&db->next_file, next, memory_order_relaxed);
    return TAMIS_OK;
}

static int make_version(recovery *r, tamis_error *err)
{
    struct tamis_db *db = r->db;
    tm_family *f = db->families[0];
    const tm_edit *s = &r->state;
    tm_version_add *adds = tm_calloc(s->table_count + 1, sizeof *adds);
    tm_version *v = NULL;
    if (adds == NULL) return tm_fail_nomem(err);
    int st = TAMIS_OK;
    size_t n = 0;
    for (; st == TAMIS_OK && n < s->table_count; n++) {
        const tm_edit_table *t = &s->tables[n];
        tm_table *table = NULL;
        if (!tm_folder_has(&r->files->tables, t->number)) {
            st = tm_fail_corrupt(err, t->number, 0, "table %06llu.sst is missing",
                                 (unsigned long long)t->number);
            break;
        }
        st = tm_table_open(&db->table_env, &t->meta, &f->order, false, &table, err);
        if (st == TAMIS_OK) st = tm_file_ref_create(table, &db->dead, &adds[n].file, err);
        if (st != TAMIS_OK) break;
        adds[n].level = t->level;
        adds[n].file->marked =
            db->config.tombstone_percent > 0 && t->level > 0 && t->meta.entries >= 1024 &&
            t->meta.deletes * 100 >= t->meta.entries * db->config.tombstone_percent;
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
        if (number < r->min_log) continue;
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
        if (h->previous >= r->min_log && h->previous != before) {
            return tm_fail_corrupt(err, h->previous, 0,
                                   "log %06llu.log is missing: %06llu.log follows it",
                                   (unsigned long long)h->previous, (unsigned long long)h->number);
        }
    }
    return TAMIS_OK;
}

static int flush_replayed(recovery *r, tamis_error *err)
{
    struct tamis_db *db = r->db;
    tm_family *f = db->families[0];
    if (tm_memtable_entries(f->mem) == 0) return TAMIS_OK;
    tm_output *outs = tm_realloc(r->outs, (r->out_count + 1) * sizeof *outs);
    if (outs == NULL) return tm_fail_nomem(err);
    r->outs = outs;
    const tm_range_set *ranges = NULL;
    tm_iter *it = NULL;
    tm_stripes stripes = {0};
    tm_memtable *fresh = NULL;
    TM_TRY(tm_memtable_ranges(f->mem, &ranges, err));
    TM_TRY(tm_memtable_create(&f->order, db->hash_seed, db->config.write_buffer, &fresh, err));
    int st = tm_memtable_iter_create(f->mem, &it, err);
    if (st == TAMIS_OK) {
        tm_output_options o = {.db = db,
                               .family = f,
                               .stripes = &stripes,
                               .ranges = ranges,
                               .table_bytes = UINT64_MAX};
        st = tm_output_run(&o, it, &r->outs[r->out_count], err);
        tm_iter_destroy(it);
    }
    if (st != TAMIS_OK) {
        tm_memtable_unref(fresh);
        return st;
    }
    r->out_count++;
    tm_memtable_unref(f->mem);
    f->mem = fresh;
    return TAMIS_OK;
}

static int replay_record(void *ctx, const tm_wal_record *rec, tamis_error *err)
{
    recovery *r = ctx;
    struct tamis_db *db = r->db;
    tm_family *f = db->families[0];
    uint64_t number = tm_wal_reader_header(r->logs[r->first_log])->number;
    if (rec->seal) return TAMIS_OK;
    if (rec->seq <= r->replayed_seq) {
        return tm_fail_corrupt(err, number, rec->offset,
                               "log record at offset %llu begins with sequence number %llu, which "
                               "is not above %llu",
                               (unsigned long long)rec->offset, (unsigned long long)rec->seq,
                               (unsigned long long)r->replayed_seq);
    }
    TM_TRY(tm_memtable_reserve(f->mem, rec->payload.len, (size_t)rec->count, err));
    tm_batch_reader reader = tm_batch_reader_of(rec->payload);
    tm_batch_op op;
    uint64_t seq = rec->seq;
    tm_buf scratch;
    tm_buf_init(&scratch);
    int st;
    while ((st = tm_batch_reader_next(&reader, &op)) == TAMIS_OK) {
        uint64_t hash = 0;
        if (seq - rec->seq >= rec->count || op.family != 0) break;
        if (op.kind == TM_KIND_RANGE_DELETE) {
            st = tm_memtable_add_range(f->mem, op.key, op.value, seq, err);
        } else {
            st = tm_order_hash(&f->order, op.key, db->hash_seed, &scratch, &hash);
            if (st == TAMIS_OK) {
                st = tm_memtable_add(f->mem, op.key, tm_trailer(seq, op.kind), op.value, hash, err);
            }
        }
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
    tm_memtable_charge(f->mem, db->cache);
    if (tm_memtable_data(f->mem) < db->config.write_buffer) return TAMIS_OK;
    if (!db->readonly) return flush_replayed(r, err);
    if (tm_memtable_bytes(f->mem) > db->config.memory_budget) {
        return tm_fail(err, TAMIS_TOOLARGE,
                       "the log does not fit into the memory budget: raise it, or open for writing "
                       "once");
    }
    return TAMIS_OK;
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
    tm_family *f = db->families[0];
    for (size_t i = 0; i < r->out_count; i++) {
        tm_output *out = &r->outs[i];
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
        if (failed) tm_output_remove_files(r->db, &r->outs[i]);
        tm_output_deinit(&r->outs[i]);
    }
    tm_free(r->outs);
    tm_edit_deinit(&r->state);
}

int tm_db_recover(struct tamis_db *db, const struct tm_folder *files, tamis_error *err)
{
    recovery r = {.db = db, .files = files, .all_whole = true};
    tm_family *f = db->families[0];
    tm_view *view = NULL;
    bool switched = false;
    int st = read_manifest(&r, err);
    if (st != TAMIS_OK) goto out;
    r.all_whole = r.manifest_end.whole;
    TM_GOTO(make_version(&r, err));
    TM_GOTO(tm_memtable_create(&f->order, db->hash_seed, db->config.write_buffer, &f->mem, err));
    TM_GOTO(open_logs(&r, err));
    TM_GOTO(replay_logs(&r, err));
    if (!db->readonly) {
        TM_GOTO(flush_replayed(&r, err)); // begin_anew syncs the folder before it names them
        TM_GOTO(add_replayed(&r, err));
        switched = true; // from here on the new manifest may be in force and name the new tables
        TM_GOTO(begin_anew(db, err));
    }
    view = tm_view_alloc(err);
    if (view == NULL) {
        st = TAMIS_NOMEM;
        goto out;
    }
    tm_family_publish(f, view);
    atomic_store_explicit(&db->last_seq, db->alloc_seq, memory_order_release);
    if (!db->readonly) clean_folder(&r);
    tell(&r);
out:
    recovery_deinit(&r, st != TAMIS_OK && !switched);
    return st;
}

int tm_db_create(struct tamis_db *db, tamis_error *err)
{
    tm_family *f = db->families[0];
    int sys = db->vfs->random(db->vfs, db->store_id, sizeof db->store_id);
    if (sys == 0) sys = db->vfs->random(db->vfs, &db->hash_seed, sizeof db->hash_seed);
    if (sys != 0) return tm_fail_sys(err, sys, 0, 0, "read random bytes for the store's id");
    if (db->config.seed != 0) db->hash_seed = db->config.seed;
    atomic_store_explicit(&db->next_file, 1, memory_order_relaxed);
    TM_TRY(tm_memtable_create(&f->order, db->hash_seed, db->config.write_buffer, &f->mem, err));
    tm_view *view = tm_view_alloc(err);
    if (view == NULL) return TAMIS_NOMEM;
    tm_family_publish(f, view);
    return begin_anew(db, err);
}
