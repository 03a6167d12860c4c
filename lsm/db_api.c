// SPDX-License-Identifier: BSD-2-Clause
//
// db_api.c - public writes and upkeep: checks of arguments, then the calls that do the work.

#include <stdarg.h>
#include <stdio.h>

#include "lsm/db.h"

#include "base/mem.h"

// ---- Version -----------------------------------------------------------------------------------

#define STR2(x) #x
#define STR(x)  STR2(x)
#define VERSION STR(TAMIS_VERSION_MAJOR) "." STR(TAMIS_VERSION_MINOR) "." STR(TAMIS_VERSION_PATCH)

uint32_t tamis_version(void)
{
    return TAMIS_VERSION_MAJOR * 1000000 + TAMIS_VERSION_MINOR * 1000 + TAMIS_VERSION_PATCH;
}

const char *tamis_version_string(void)
{
#if defined(__clang__)
    return VERSION " (clang " STR(__clang_major__) ", lz4, xxhash)";
#elif defined(__GNUC__)
    return VERSION " (gcc " STR(__GNUC__) ", lz4, xxhash)";
#else
    return VERSION " (lz4, xxhash)";
#endif
}

int tamis_has_feature(const char *name)
{
    return name != NULL && strcmp(name, "lz4") == 0;
}

uint32_t tamis_format_version(void)
{
    return 1;
}

// ---- Writes ------------------------------------------------------------------------------------

static int given_ttl(const tamis_write_options *wo, uint64_t *out, tamis_error *err)
{
    if (TM_LIKELY(wo == NULL || wo->size <= offsetof(tamis_write_options, ttl_ms))) return TAMIS_OK;
    if (wo->size < offsetof(tamis_write_options, ttl_ms) + sizeof wo->ttl_ms || wo->size > 4096) {
        return tm_fail(err, TAMIS_INVALID, "write options: size is %zu", wo->size);
    }
    *out = wo->ttl_ms;
    return TAMIS_OK;
}

static int start_write(tamis_db *db, const tamis_write_options *wo, tm_writer *w, tamis_error *err)
{
    TM_TRY(tm_db_check(db, err));
    if (TM_UNLIKELY(db->readonly)) {
        return tm_fail(err, TAMIS_READONLY, "the store was opened with TAMIS_OPEN_READONLY");
    }
    int32_t sync = TAMIS_SYNC_DEFAULT;
    if (wo != NULL) {
        tamis_write_options o = {0};
        if (wo->size < sizeof(size_t) || wo->size > 4096) {
            return tm_fail(err, TAMIS_INVALID, "write options: size is %zu", wo->size);
        }
        memcpy(&o, wo, TM_MIN(wo->size, sizeof o));
        sync = o.sync;
        w->no_stall = o.no_stall != 0;
        if (sync < TAMIS_SYNC_DEFAULT || sync > TAMIS_SYNC_NEVER) {
            return tm_fail(err, TAMIS_INVALID, "write options: sync is %d", (int)sync);
        }
    }
    w->sync = sync == TAMIS_SYNC_DEFAULT ? db->config.sync : (tamis_sync)sync;
    w->err = err;
    return TAMIS_OK;
}

static int check_pair(const void *key, size_t klen, const void *val, size_t vlen, tamis_error *err)
{
    if (TM_UNLIKELY((key == NULL && klen > 0) || (val == NULL && vlen > 0))) {
        return tm_fail(err, TAMIS_INVALID, "%s is NULL, its length is not 0",
                       key == NULL && klen > 0 ? "key" : "val");
    }
    if (TM_UNLIKELY(klen > TAMIS_MAX_KEY)) {
        return tm_fail(err, TAMIS_TOOLARGE, "the key has %zu bytes; %zu are allowed", klen,
                       TAMIS_MAX_KEY);
    }
    if (TM_UNLIKELY(vlen > TAMIS_MAX_VALUE)) {
        return tm_fail(err, TAMIS_TOOLARGE, "the value has %zu bytes; %zu are allowed", vlen,
                       TAMIS_MAX_VALUE);
    }
    return TAMIS_OK;
}

// One operation, in the form of a batch but without copying key and value.
static int write_one(tamis_db *db, tamis_cf *cf, const tamis_write_options *wo, tm_kind kind,
                     tm_slice key, tm_slice value, tamis_error *err)
{
    tm_writer w = {.single = true, .count = 1};
    uint8_t head[1 + 2 * TM_MAX_VARINT64], middle[TM_MAX_VARINT64 + sizeof(uint64_t)], *p = head;
    TM_TRY(start_write(db, wo, &w, err));
    TM_TRY(tm_db_family(db, cf, &w.family, err));
    *p++ = (uint8_t)kind;
    if (TM_UNLIKELY(w.family->id != 0)) {
        head[0] |= TM_BATCH_FAMILY_FOLLOWS;
        p = tm_put_varint(p, w.family->id);
    }
    w.end_family = w.family->id;
    p = tm_put_varint(p, key.len);
    w.op = (tm_batch_op){w.family->id, kind, key, value};
    w.parts[0] = tm_slice_of(head, (size_t)(p - head));
    w.parts[1] = key;
    w.part_count = 2;
    w.bytes = w.parts[0].len + key.len;
    w.data = key.len + value.len;
    if (kind != TM_KIND_DELETE && kind != TM_KIND_SINGLE_DELETE) {
        size_t middle_len = (size_t)(tm_put_varint(middle, value.len) - middle);
        w.parts[2] = tm_slice_of(middle, middle_len);
        w.parts[3] = value;
        w.part_count = 4;
        w.bytes += middle_len + value.len;
    }
    return tm_db_write(db, &w);
}

// ttl_ms is not 0.
static int put_expiring(tamis_db *db, tamis_cf *cf, const tamis_write_options *wo, tm_slice key,
                        tm_slice value, uint64_t ttl_ms, tamis_error *err)
{
    tm_buf both = {0};
    int st = tm_db_expiring_value(db, ttl_ms, value, &both, err);
    if (st == TAMIS_OK) {
        st = write_one(db, cf, wo, TM_KIND_PUT_EXPIRY, key, tm_buf_slice(&both), err);
    }
    tm_buf_deinit(&both);
    return st;
}

int tamis_put(tamis_db *db, tamis_cf *cf, const tamis_write_options *wo, const void *key,
              size_t klen, const void *val, size_t vlen, tamis_error *err)
{
    tm_family *f;
    TM_TRY(check_pair(key, klen, val, vlen, err));
    TM_TRY(tm_db_check(db, err));
    TM_TRY(tm_db_family(db, cf, &f, err));
    tm_slice k = tm_slice_of(key, klen), v = tm_slice_of(val, vlen);
    uint64_t ttl = atomic_load_explicit(&f->ttl_ms, memory_order_relaxed), own = 0;
    TM_TRY(given_ttl(wo, &own, err));
    if (own != 0) ttl = own == TAMIS_TTL_NEVER ? 0 : own;
    if (TM_UNLIKELY(ttl != 0)) return put_expiring(db, cf, wo, k, v, ttl, err);
    return write_one(db, cf, wo, TM_KIND_PUT, k, v, err);
}

int tamis_delete_range(tamis_db *db, tamis_cf *cf, const tamis_write_options *wo, const void *start,
                       size_t slen, const void *limit, size_t llen, tamis_error *err)
{
    tm_family *f;
    tm_slice from = tm_slice_of(start, slen), to = tm_slice_of(limit, llen);
    TM_TRY(tm_db_check(db, err));
    TM_TRY(tm_db_family(db, cf, &f, err));
    if (slen > TAMIS_MAX_KEY || llen > TAMIS_MAX_KEY) {
        return tm_fail(err, TAMIS_TOOLARGE, "start has %zu bytes, limit %zu; %zu are allowed", slen,
                       llen, TAMIS_MAX_KEY);
    }
    TM_TRY(tm_db_check_range(f, from, to, err));
    return write_one(db, cf, wo, TM_KIND_RANGE_DELETE, from, to, err);
}

int tamis_merge(tamis_db *db, tamis_cf *cf, const tamis_write_options *wo, const void *key,
                size_t klen, const void *operand, size_t olen, tamis_error *err)
{
    tm_family *f;
    TM_TRY(check_pair(key, klen, operand, olen, err));
    TM_TRY(tm_db_check(db, err));
    TM_TRY(tm_db_family(db, cf, &f, err));
    if (!atomic_load_explicit(&f->can_merge, memory_order_relaxed))
        return tm_fail(err, TAMIS_INVALID, "the family has no merger");
    return write_one(db, cf, wo, TM_KIND_MERGE, tm_slice_of(key, klen), tm_slice_of(operand, olen),
                     err);
}

int tamis_delete(tamis_db *db, tamis_cf *cf, const tamis_write_options *wo, const void *key,
                 size_t klen, tamis_error *err)
{
    TM_TRY(check_pair(key, klen, NULL, 0, err));
    return write_one(db, cf, wo, TM_KIND_DELETE, tm_slice_of(key, klen), (tm_slice){0}, err);
}

int tamis_commit(tamis_db *db, const tamis_write_options *wo, tamis_batch *b, uint64_t *seq,
                 tamis_error *err)
{
    tm_writer w = {.count = 0};
    if (b == NULL) return tm_fail(err, TAMIS_INVALID, "the batch is NULL");
    TM_TRY(start_write(db, wo, &w, err));
    if (b->db != db) return tm_fail(err, TAMIS_INVALID, "the batch was made for another store");
    if (b->status != TAMIS_OK) return tm_fail_copy(err, &b->error);
    if (b->count == 0) {
        if (seq != NULL) *seq = atomic_load_explicit(&db->last_seq, memory_order_acquire);
        return TAMIS_OK;
    }
    w.parts[0] = tm_buf_slice(&b->rep);
    w.part_count = 1;
    w.count = b->count;
    w.bytes = b->rep.len;
    w.data = b->data;
    w.end_family = b->family;
    if (!b->foreign) w.family = db->default_family;
    int st = tm_db_write(db, &w);
    if (st == TAMIS_OK && seq != NULL) *seq = w.last_seq;
    return st;
}

// ---- Upkeep ------------------------------------------------------------------------------------

static int check_writable(tamis_db *db, tamis_error *err)
{
    TM_TRY(tm_db_check(db, err));
    if (db->readonly) {
        return tm_fail(err, TAMIS_READONLY, "the store was opened with TAMIS_OPEN_READONLY");
    }
    return TAMIS_OK;
}

int tamis_sync_wal(tamis_db *db, tamis_error *err)
{
    TM_TRY(check_writable(db, err));
    return tm_db_sync_logs(db, err);
}

// One turn of waiting for background work. mu held.
static void wait_turn(struct tamis_db *db)
{
    tm_db_schedule(db);
    if (tm_sched_threads(db->sched) > 0) {
        tm_cond_wait_us(&db->mu.changed, &db->mu.m, 100000);
        return;
    }
    tm_mutex_unlock(&db->mu.m);
    (void)tm_sched_step(db->sched);
    tm_mutex_lock(&db->mu.m);
}

// What failed before the call is not its failure: the work is tried again now.
static void try_afresh(struct tamis_db *db)
{
    tm_mutex_lock(&db->mu.m);
    db->mu.background_status = TAMIS_OK;
    db->mu.retry_at_ns = 0;
    tm_mutex_unlock(&db->mu.m);
}

static int switch_if_any(struct tamis_db *db, void *arg, tamis_error *err)
{
    tm_family *f = arg;
    if (f->mem == NULL || tm_memtable_entries(f->mem) == 0) return TAMIS_OK;
    TM_TRY(tm_db_check_poison(db, err));
    int st = TAMIS_OK;
    tm_mutex_lock(&db->mu.m);
    while (st == TAMIS_OK && f->frozen_count + 1 >= f->config.write_buffers) {
        if (atomic_load_explicit(&db->poisoned, memory_order_relaxed)) {
            st = tm_fail_copy(err, &db->mu.poison_error);
        } else if (db->mu.background_status != TAMIS_OK) {
            st = tm_fail_copy(err, &db->mu.background_error);
        } else {
            wait_turn(db);
        }
    }
    tm_mutex_unlock(&db->mu.m);
    return st == TAMIS_OK ? tm_db_switch_memtable(db, f, err) : st;
}

static int flush_family(struct tamis_db *db, tm_family *f, tamis_error *err)
{
    try_afresh(db);
    TM_TRY(tm_db_as_leader(db, switch_if_any, f, err));
    int st = TAMIS_OK;
    tm_mutex_lock(&db->mu.m);
    uint64_t target = tm_wal_writer_number(db->log); // what is frozen later begins there or behind
    for (;;) {
        bool waiting = f->frozen_count > 0 && f->frozen[0].first_log < target;
        if (!waiting) break;
        if (atomic_load_explicit(&db->poisoned, memory_order_relaxed)) {
            st = tm_fail_copy(err, &db->mu.poison_error);
            break;
        }
        if (db->mu.background_status != TAMIS_OK) {
            st = tm_fail_copy(err, &db->mu.background_error);
            break;
        }
        wait_turn(db);
    }
    tm_mutex_unlock(&db->mu.m);
    return st;
}

int tamis_flush(tamis_db *db, tamis_cf *cf, tamis_error *err)
{
    tm_family *f;
    TM_TRY(check_writable(db, err));
    TM_TRY(tm_db_family(db, cf, &f, err));
    return flush_family(db, f, err);
}

int tm_db_flush_all(struct tamis_db *db, tamis_error *err)
{
    int st = TAMIS_OK;
    for (uint32_t id = 0; st == TAMIS_OK;) {
        tm_mutex_lock(&db->mu.m);
        tm_family *f = NULL;
        for (uint32_t i = 0; i < db->family_count && f == NULL; i++) {
            if (db->families[i]->id >= id) f = db->families[i];
        }
        if (f != NULL) tm_family_ref(f);
        tm_mutex_unlock(&db->mu.m);
        if (f == NULL) break;
        id = f->id + 1;
        st = flush_family(db, f, err);
        tm_family_unref(f);
    }
    return st;
}

int tamis_compact(tamis_db *db, tamis_cf *cf, const tamis_range *range, tamis_error *err)
{
    tm_family *f;
    tm_slice smallest = {0}, largest = {0};
    tm_manual m = {0};
    TM_TRY(check_writable(db, err));
    TM_TRY(tm_db_family(db, cf, &f, err));
    TM_TRY(tamis_flush(db, cf, err));
    if (range != NULL) {
        smallest = tm_slice_of(range->start.data, range->start.len);
        largest = tm_slice_of(range->limit.data, range->limit.len);
        if (smallest.len > 0) m.smallest = &smallest;
        if (largest.len > 0) m.largest = &largest;
    }
    m.before = atomic_load_explicit(&db->next_file, memory_order_relaxed);
    tm_mutex_lock(&db->mu.m);
    tm_manual **tail = &f->manual;
    while (*tail != NULL) tail = &(*tail)->next;
    *tail = &m;
    while (!m.done) {
        bool poisoned = atomic_load_explicit(&db->poisoned, memory_order_relaxed);
        bool dropped = atomic_load_explicit(&f->dropped, memory_order_relaxed);
        if ((poisoned || dropped) && !m.running) {
            m.status = poisoned ? tm_fail_copy(&m.error, &db->mu.poison_error)
                                : tm_fail(&m.error, TAMIS_NOTFOUND, "the family was dropped");
            for (tail = &f->manual; *tail != &m;) tail = &(*tail)->next;
            *tail = m.next;
            break;
        }
        wait_turn(db);
    }
    tm_mutex_unlock(&db->mu.m);
    if (m.status != TAMIS_OK) (void)!tm_fail_copy(err, &m.error);
    return m.status;
}

int tamis_wait_idle(tamis_db *db, uint64_t timeout_us, tamis_error *err)
{
    TM_TRY(tm_db_check(db, err));
    if (db->readonly) return TAMIS_OK;
    uint64_t begin = tm_db_now_ns(db);
    int st = TAMIS_OK;
    try_afresh(db);
    tm_mutex_lock(&db->mu.m);
    tm_db_update_pressure(db, NULL);
    while (tm_db_work_due(db)) {
        if (timeout_us != 0 && tm_db_now_ns(db) - begin >= timeout_us * 1000) {
            st = tm_fail(err, TAMIS_BUSY, "background work goes on");
            break;
        }
        if (db->mu.background_status != TAMIS_OK && db->mu.busy_jobs == 0) {
            st = tm_fail_copy(err, &db->mu.background_error);
            break;
        }
        wait_turn(db);
    }
    tm_mutex_unlock(&db->mu.m);
    return st;
}

int tamis_step(tamis_db *db, uint32_t *did_work, tamis_error *err)
{
    if (did_work == NULL) return tm_fail(err, TAMIS_INVALID, "did_work is NULL");
    *did_work = 0;
    TM_TRY(check_writable(db, err));
    if (tm_sched_threads(db->sched) > 0) {
        return tm_fail(err, TAMIS_MISUSE, "the store has background threads of its own");
    }
    tm_mutex_lock(&db->mu.m);
    tm_db_schedule(db);
    tm_mutex_unlock(&db->mu.m);
    *did_work = tm_sched_step(db->sched) ? 1 : 0;
    tm_mutex_lock(&db->mu.m);
    int st = db->mu.background_status;
    if (st != TAMIS_OK) (void)!tm_fail_copy(err, &db->mu.background_error);
    tm_mutex_unlock(&db->mu.m);
    return st;
}

// ---- Events ------------------------------------------------------------------------------------

static void send(struct tamis_db *db, tamis_event *e, const char *text)
{
    e->size = sizeof *e;
    e->wall_ms = db->vfs->wall_ms(db->vfs);
    e->text = text;
    tm_notes_write(&db->notes, e->wall_ms, text);
    if (db->config.on_event != NULL) db->config.on_event(db->config.on_event_ctx, e);
}

void tm_db_event(struct tamis_db *db, tamis_event *event, const char *fmt, ...)
{
    char text[480];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    send(db, event, text);
}

void tm_db_note(struct tamis_db *db, int severity, const char *fmt, ...)
{
    char text[480];
    tamis_event e = {.kind = TAMIS_EVENT_LOG, .level = severity};
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    send(db, &e, text);
}
