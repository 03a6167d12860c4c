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

static int start_write(tamis_db *db, tamis_cf *cf, const tamis_write_options *wo, tm_writer *w,
                       tamis_error *err)
{
    tm_family *f;
    TM_TRY(tm_db_check(db, err));
    TM_TRY(tm_db_family(db, cf, &f, err));
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
    tm_writer w = {.single = true, .count = 1, .op = {0, kind, key, value}};
    uint8_t head[1 + TM_MAX_VARINT64], middle[TM_MAX_VARINT64];
    TM_TRY(start_write(db, cf, wo, &w, err));
    head[0] = (uint8_t)kind;
    size_t head_len = (size_t)(tm_put_varint(head + 1, key.len) - head);
    w.parts[0] = tm_slice_of(head, head_len);
    w.parts[1] = key;
    w.part_count = 2;
    w.bytes = head_len + key.len;
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

int tamis_put(tamis_db *db, tamis_cf *cf, const tamis_write_options *wo, const void *key,
              size_t klen, const void *val, size_t vlen, tamis_error *err)
{
    TM_TRY(check_pair(key, klen, val, vlen, err));
    return write_one(db, cf, wo, TM_KIND_PUT, tm_slice_of(key, klen), tm_slice_of(val, vlen), err);
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
    TM_TRY(start_write(db, NULL, wo, &w, err));
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
    if (tm_memtable_entries(f->mem) == 0) return TAMIS_OK;
    TM_TRY(tm_db_check_poison(db, err));
    int st = TAMIS_OK;
    tm_mutex_lock(&db->mu.m);
    while (st == TAMIS_OK && f->frozen_count + 1 >= db->config.write_buffers) {
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

int tamis_flush(tamis_db *db, tamis_cf *cf, tamis_error *err)
{
    tm_family *f;
    TM_TRY(check_writable(db, err));
    TM_TRY(tm_db_family(db, cf, &f, err));
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
        if (atomic_load_explicit(&db->poisoned, memory_order_relaxed) && !m.running) {
            m.status = tm_fail_copy(&m.error, &db->mu.poison_error);
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
    tm_db_update_pressure(db);
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
