// SPDX-License-Identifier: BSD-2-Clause
//
// db_write.c - the life of a write.
//
// Goal: one write call and at most one sync for all writers that wait, and readers that never see
// half of a batch.
//
//   1  A call puts a tm_writer into the queue. The one at its head is the leader; the others sleep.
//   2  The leader makes room: a full memtable is frozen, writers are slowed down or held back.
//   3  It gathers all that wait (up to 1 MiB) into one log record, and syncs it if one of them
//   asks. 4  It adds the operations to the memtable and publishes the last sequence number: from
//      then on readers see the whole group.
//   5  It wakes the others with their results, and the new head.
//
// INVARIANTS
//  P1  Sequence numbers are given out by the leader, ascending in log order, and never twice; those
//      of a write that failed stay used.
//  P2  Nothing is added to a memtable that is not in the log first (memory for it is reserved
//      before, so that step 4 cannot fail).
//  P3  A group whose sync failed is not visible while the store stays open.

#include "lsm/db.h"

#include "lsm/overlay.h"

enum { GROUP_BYTES = 1 << 20, DEBT_US = 500, MAX_SLEEP_US = 100000 };

// ---- The queue ---------------------------------------------------------------------------------

// The queue's mutex orders the links; the leader also looks at its own without it.
static tm_writer *next_of(const tm_writer *w)
{
    return atomic_load_explicit(&w->next, memory_order_relaxed);
}

// Waits until w is at the head or done. True: it leads.
static bool join_queue(struct tamis_db *db, tm_writer *w, bool *has_cond, int *status)
{
    atomic_init(&w->next, NULL);
    w->done = false;
    *has_cond = false;
    *status = TAMIS_OK;
    tm_mutex_lock(&db->queue.m);
    if (db->queue.head == NULL) {
        db->queue.head = db->queue.tail = w;
        tm_mutex_unlock(&db->queue.m);
        return true;
    }
    *status = tm_cond_init(&w->cond, w->err); // only who has to wait needs one
    if (*status != TAMIS_OK) {
        tm_mutex_unlock(&db->queue.m);
        return false;
    }
    *has_cond = true;
    atomic_store_explicit(&db->queue.tail->next, w, memory_order_relaxed);
    db->queue.tail = w;
    while (!w->done && db->queue.head != w) tm_cond_wait(&w->cond, &db->queue.m);
    bool leads = !w->done;
    tm_mutex_unlock(&db->queue.m);
    *status = w->status;
    return leads;
}

// Takes the writers from the head to last off the queue, and wakes them and the new head.
static void leave_queue(struct tamis_db *db, tm_writer *last, int status, const tamis_error *detail)
{
    tm_mutex_lock(&db->queue.m);
    tm_writer *leader = db->queue.head, *w = leader;
    for (;;) {
        tm_writer *next = next_of(w);
        w->status = status;
        if (status != TAMIS_OK) (void)!tm_fail_copy(w->err, detail);
        bool is_last = w == last;
        if (w != leader) {
            w->done = true;
            tm_cond_signal(&w->cond); // w may be gone as soon as the queue's mutex is let go
        }
        w = next;
        if (is_last) break;
    }
    db->queue.head = w;
    if (w == NULL)
        db->queue.tail = NULL;
    else
        tm_cond_signal(&w->cond);
    tm_mutex_unlock(&db->queue.m);
}

int tm_db_as_leader(struct tamis_db *db,
                    int (*fn)(struct tamis_db *db, void *arg, tamis_error *err), void *arg,
                    tamis_error *err)
{
    tm_writer w = {.barrier = true};
    tamis_error detail = {0};
    bool has_cond;
    int st;
    if (join_queue(db, &w, &has_cond, &st)) {
        st = fn(db, arg, &detail);
        leave_queue(db, &w, st, &detail);
        if (st != TAMIS_OK) (void)!tm_fail_copy(err, &detail);
    }
    if (has_cond) tm_cond_deinit(&w.cond);
    return st;
}

// ---- Room --------------------------------------------------------------------------------------

// One step of background work on this thread, where there are no others (TAMIS_OPEN_NO_BACKGROUND).
static bool work_here(struct tamis_db *db)
{
    if (tm_sched_threads(db->sched) > 0) return false;
    int before = db->mu.background_status;
    db->mu.background_status = TAMIS_OK;
    tm_db_schedule(db);
    tm_mutex_unlock(&db->mu.m);
    bool did = tm_sched_step(db->sched);
    tm_mutex_lock(&db->mu.m);
    if (!did) db->mu.background_status = before;
    return did && db->mu.background_status == TAMIS_OK;
}

// Waits until writers may go on. mu held.
static int wait_for_room(struct tamis_db *db, bool no_stall, tamis_error *err)
{
    uint64_t begin = 0;
    int st = TAMIS_OK;
    while (atomic_load_explicit(&db->stall, memory_order_relaxed) == TM_STALL_STOP) {
        if (atomic_load_explicit(&db->poisoned, memory_order_relaxed)) {
            st = tm_fail_copy(err, &db->mu.poison_error);
            break;
        }
        if (work_here(db)) continue; // where there are no threads, this one makes room
        if (db->mu.background_status != TAMIS_OK) { // nobody will make room soon: say why
            st = tm_fail_copy(err, &db->mu.background_error);
            break;
        }
        if (no_stall || db->mu.closing) {
            st = tm_fail(err, TAMIS_BUSY, "writes have to wait for flushes and compaction");
            if (err != NULL) err->retryable = 1;
            break;
        }
        if (begin == 0) {
            begin = tm_db_now_ns(db);
            tm_stats_add(&db->stats, TM_STAT_stalls, 1);
            tm_mutex_unlock(&db->mu.m);
            tamis_event e = {.kind = TAMIS_EVENT_STALL_BEGIN};
            tm_db_event(db, &e, "writers wait for flushes and compaction");
            tm_mutex_lock(&db->mu.m);
        }
        tm_db_schedule(db);
        tm_cond_wait_us(&db->mu.changed, &db->mu.m, 100000);
    }
    if (begin != 0) {
        uint64_t us = (tm_db_now_ns(db) - begin) / 1000;
        tm_stats_add(&db->stats, TM_STAT_stall_us, us);
        tm_mutex_unlock(&db->mu.m);
        tamis_event e = {.kind = TAMIS_EVENT_STALL_END, .duration_us = us};
        tm_db_event(db, &e, "writers go on after %llu us", (unsigned long long)us);
        tm_mutex_lock(&db->mu.m);
    }
    return st;
}

// Pays for the bytes of a write while the store is behind: small sleeps, so that writers slow down
// smoothly before they would have to stop.
static int pay_delay(struct tamis_db *db, const tm_writer *w, tamis_error *err)
{
    uint64_t rate = atomic_load_explicit(&db->delay_rate, memory_order_relaxed);
    if (rate == 0) return TAMIS_OK;
    uint64_t cost = (w->bytes + 64) * 1000000 / rate;
    if (w->no_stall && cost > DEBT_US) {
        int st = tm_fail(err, TAMIS_BUSY, "writes are slowed down for compaction");
        if (err != NULL) err->retryable = 1;
        return st;
    }
    db->delay_debt_us += cost;
    if (db->delay_debt_us < DEBT_US) return TAMIS_OK;
    uint64_t us = TM_MIN(db->delay_debt_us, (uint64_t)MAX_SLEEP_US);
    db->delay_debt_us = 0;
    tm_stats_add(&db->stats, TM_STAT_stall_us, us);
    if (tm_sched_threads(db->sched) > 0)
        db->vfs->sleep_us(db->vfs, us);
    else
        (void)tm_sched_step(db->sched);
    return TAMIS_OK;
}

// What of the budget may be memtables where there are several families.
static uint64_t memtable_share(const struct tamis_db *db)
{
    return db->config.memory_budget / 4;
}

// A memtable for a family that has none, published. As the leader.
static int begin_memtable(struct tamis_db *db, tm_family *f, tamis_error *err)
{
    tm_memtable *fresh = NULL;
    uint64_t room = TM_MIN(f->config.write_buffer, memtable_share(db) / db->family_count);
    if (db->family_count == 1) room = f->config.write_buffer;
    tm_view *view = tm_view_alloc(err);
    if (view == NULL) return TAMIS_NOMEM;
    int st = tm_memtable_create(&f->order, db->hash_seed, (size_t)room, &fresh, err);
    if (st != TAMIS_OK) {
        tm_view_unref(view);
        return st;
    }
    tm_mutex_lock(&db->mu.m);
    f->mem = fresh;
    tm_family_publish(f, view);
    tm_mutex_unlock(&db->mu.m);
    return TAMIS_OK;
}

// Freezes what the family has; the next write begins a new memtable. The log has been switched. mu
// held.
static void freeze(struct tamis_db *db, tm_family *f, tm_view *view)
{
    uint64_t first_log = atomic_load_explicit(&f->mem_log, memory_order_relaxed);
    assert(f->frozen_count < TM_MAX_WRITE_BUFFERS);
    f->frozen[f->frozen_count++] = (tm_frozen){f->mem, first_log, db->alloc_seq};
    f->mem = NULL;
    db->memtable_bytes -= f->mem_bytes;
    f->mem_bytes = 0;
    atomic_store_explicit(&f->mem_log, 0, memory_order_relaxed);
    tm_family_publish(f, view);
    tm_db_update_pressure(db, f);
    tm_db_schedule(db);
}

static bool has_writes(const tm_family *f)
{
    return f->mem != NULL && tm_memtable_entries(f->mem) > 0;
}

// Where the oldest write stands that no table has yet.
static void find_oldest(struct tamis_db *db)
{
    db->log_oldest = UINT64_MAX;
    for (uint32_t i = 0; i < db->family_count; i++) {
        const tm_family *f = db->families[i];
        if (has_writes(f)) db->log_oldest = TM_MIN(db->log_oldest, f->mem_begin);
    }
}

int tm_db_switch_memtable(struct tamis_db *db, tm_family *f, tamis_error *err)
{
    tm_view *view = tm_view_alloc(err);
    if (view == NULL) return TAMIS_NOMEM;
    int st = tm_db_new_log(db, err);
    if (st != TAMIS_OK) {
        tm_view_unref(view);
        return st;
    }
    tm_mutex_lock(&db->mu.m);
    freeze(db, f, view);
    tm_mutex_unlock(&db->mu.m);
    find_oldest(db);
    tm_epoch_collect();
    return TAMIS_OK;
}

// The family that should be flushed although it is not full: the one whose writes hold back the
// log, or the one with most memory. NULL: none can be. mu held.
static tm_family *pick_quiet(struct tamis_db *db, bool much_log)
{
    tm_family *best = NULL;
    for (uint32_t i = 0; i < db->family_count; i++) {
        tm_family *f = db->families[i];
        if (!has_writes(f) || f->frozen_count + 1 >= f->config.write_buffers) continue;
        bool better = best == NULL ||
                      (much_log ? f->mem_begin < best->mem_begin : f->mem_bytes > best->mem_bytes);
        if (better) best = f;
    }
    return best;
}

// A quiet family would keep old logs alive without end, and many families together would take more
// memory than there is.
static int flush_quiet(struct tamis_db *db, const tm_writer *w, tamis_error *err)
{
    for (;;) {
        bool much_log = db->log_total - TM_MIN(db->log_total, db->log_oldest) > db->config.log_size;
        bool much_memory = db->memtable_bytes > memtable_share(db);
        if (TM_LIKELY(!much_log && !much_memory)) return TAMIS_OK;
        tm_mutex_lock(&db->mu.m);
        int st = wait_for_room(db, w->no_stall, err);
        tm_family *f = st == TAMIS_OK ? pick_quiet(db, much_log) : NULL;
        tm_mutex_unlock(&db->mu.m);
        if (f == NULL) return st; // they all wait for their flushes
        TM_TRY(tm_db_switch_memtable(db, f, err));
    }
}

static bool is_full(const tm_family *f)
{
    return f->mem != NULL && tm_memtable_data(f->mem) >= f->config.write_buffer;
}

// Makes room in the families that w writes to.
static int make_room(struct tamis_db *db, const tm_writer *w, tamis_error *err)
{
    uint32_t stall = atomic_load_explicit(&db->stall, memory_order_relaxed);
    bool paid = false;
    for (tm_family *f = db->touched; f != NULL; f = f->next_touched) {
        bool full = is_full(f);
        if (TM_LIKELY(!full && stall == TM_STALL_NONE)) continue;
        if (stall == TM_STALL_SLOW && !paid) TM_TRY(pay_delay(db, w, err));
        paid = true;
        if (!full) continue;
        tm_mutex_lock(&db->mu.m);
        int st = wait_for_room(db, w->no_stall, err);
        tm_mutex_unlock(&db->mu.m);
        TM_TRY(st);
        TM_TRY(tm_db_switch_memtable(db, f, err));
    }
    if (TM_UNLIKELY(db->family_count > 1)) return flush_quiet(db, w, err);
    return TAMIS_OK;
}

// ---- What a group touches ----------------------------------------------------------------------

static void touch(struct tamis_db *db, tm_family *f, uint64_t entries, size_t data)
{
    if (!f->is_touched) {
        f->is_touched = true;
        f->group_data = f->group_entries = 0;
        f->next_touched = db->touched;
        db->touched = f;
    }
    f->group_data += data;
    f->group_entries += (size_t)entries;
}

static void untouch_all(struct tamis_db *db)
{
    while (db->touched != NULL) {
        tm_family *f = db->touched;
        db->touched = f->next_touched;
        f->is_touched = false;
    }
}

static bool is_gone(const tm_family *f)
{
    return f == NULL || atomic_load_explicit(&f->dropped, memory_order_relaxed);
}

// Adds the families of w to those touched, with what it brings. NOTFOUND (and others are touched
// perhaps) if one of them is gone.
static int touch_families(struct tamis_db *db, const tm_writer *w, tamis_error *err)
{
    if (TM_LIKELY(w->family != NULL)) {
        if (TM_UNLIKELY(is_gone(w->family))) goto gone;
        touch(db, w->family, w->count, w->data);
        return TAMIS_OK;
    }
    tm_batch_op op;
    tm_batch_reader r = tm_batch_reader_of(w->parts[0]);
    tm_family *f = NULL;
    while (tm_batch_reader_next(&r, &op) == TAMIS_OK) {
        if (f == NULL || f->id != op.family) f = tm_db_family_by_id(db, op.family);
        if (is_gone(f)) goto gone;
        touch(db, f, 1, op.key.len + op.value.len);
    }
    return TAMIS_OK;
gone:
    return tm_fail(err, TAMIS_NOTFOUND,
                   "a family of the write was dropped, or is none of this store");
}

// ---- The group ---------------------------------------------------------------------------------

typedef struct group {
    tm_writer *first, *last;
    uint64_t count;
    size_t data;
    bool sync, interval;
} group;

// Who may join a group: writes to one family that is there and has room.
static bool may_join(const tm_writer *w)
{
    return !w->barrier && w->family != NULL && !is_gone(w->family) && !is_full(w->family);
}

static void gather(struct tamis_db *db, tm_writer *leader, group *g)
{
    *g = (group){leader,
                 leader,
                 leader->count,
                 leader->data,
                 leader->sync == TAMIS_SYNC_ALWAYS,
                 leader->sync == TAMIS_SYNC_INTERVAL};
    size_t bytes = leader->bytes;
    if (next_of(leader) == NULL) return; // a race costs a smaller group
    tm_mutex_lock(&db->queue.m);
    while (next_of(g->last) != NULL) {
        tm_writer *w = next_of(g->last);
        if (!may_join(w) || bytes + w->bytes > GROUP_BYTES) break;
        touch(db, w->family, w->count, w->data);
        bytes += w->bytes;
        g->count += w->count;
        g->data += w->data;
        g->sync = g->sync || w->sync == TAMIS_SYNC_ALWAYS;
        g->interval = g->interval || w->sync == TAMIS_SYNC_INTERVAL;
        g->last = w;
    }
    tm_mutex_unlock(&db->queue.m);
}

// The parts of w, behind operations that left family in force. A first operation that relies on
// family 0, as all writers' do, is told so where that is not it.
static int add_parts(struct tamis_db *db, const tm_writer *w, uint32_t in_force)
{
    static const uint8_t default_family[TM_KIND_MAX + 1][2] = {
        {0x80, 0}, {0x81, 0}, {0x82, 0}, {0x83, 0}, {0x84, 0}, {0x85, 0}, {0x86, 0}, {0x87, 0}};
    const uint8_t *first = w->parts[0].data;
    if (in_force == 0 || (first[0] & 0x80)) {
        return tm_buf_append(&db->group, w->parts, w->part_count * sizeof(tm_slice));
    }
    tm_slice head[2] = {tm_slice_of(default_family[first[0]], 2),
                        tm_slice_of(first + 1, w->parts[0].len - 1)};
    TM_TRY(tm_buf_append(&db->group, head, sizeof head));
    return tm_buf_append(&db->group, w->parts + 1, (w->part_count - 1) * sizeof(tm_slice));
}

static int append_group(struct tamis_db *db, const group *g, uint64_t first_seq, tamis_error *err)
{
    uint64_t manifest = atomic_load_explicit(&db->manifest_number, memory_order_acquire);
    tm_wal_writer_set_manifest(db->log, manifest,
                               atomic_load_explicit(&db->manifest_synced, memory_order_acquire));
    uint64_t before = tm_wal_writer_end(db->log);
    int st;
    if (g->first == g->last) {
        st = tm_wal_writer_append(db->log, g->first->parts, g->first->part_count, first_seq,
                                  g->count, err);
    } else {
        tm_buf_clear(&db->group);
        uint32_t in_force = 0;
        for (tm_writer *w = g->first;; w = next_of(w)) {
            if (add_parts(db, w, in_force) != TAMIS_OK) return tm_fail_nomem(err);
            in_force = w->end_family;
            if (w == g->last) break;
        }
        st = tm_wal_writer_append(db->log, (const tm_slice *)(void *)db->group.data,
                                  db->group.len / sizeof(tm_slice), first_seq, g->count, err);
    }
    if (st == TAMIS_OK) {
        uint64_t bytes = tm_wal_writer_end(db->log) - before;
        db->log_total += bytes;
        tm_stats_add(&db->stats, TM_STAT_log_bytes, bytes);
    }
    return st;
}

static int apply_op(struct tamis_db *db, tm_family *f, const tm_batch_op *op, uint64_t seq,
                    tamis_error *err)
{
    if (op->kind == TM_KIND_RANGE_DELETE) {
        return tm_memtable_add_range(f->mem, op->key, op->value, seq, err);
    }
    uint64_t hash = 0;
    tm_buf scratch;
    tm_buf_init(&scratch);
    int st = tm_order_hash(&f->order, op->key, db->hash_seed, &scratch, &hash);
    if (st == TAMIS_OK) {
        st = tm_memtable_add(f->mem, op->key, tm_trailer(seq, op->kind), op->value, hash, err);
    }
    tm_buf_deinit(&scratch);
    return st;
}

static int apply_writer(struct tamis_db *db, tm_writer *w, uint64_t seq, tamis_error *err)
{
    w->last_seq = seq + w->count - 1;
    tm_family *f = w->family;
    if (w->single) return apply_op(db, f, &w->op, seq, err);
    tm_batch_op op;
    tm_batch_reader r = tm_batch_reader_of(w->parts[0]);
    int st;
    while ((st = tm_batch_reader_next(&r, &op)) == TAMIS_OK) {
        if (f == NULL || f->id != op.family) f = tm_db_family_by_id(db, op.family);
        TM_TRY(apply_op(db, f, &op, seq++, err));
    }
    return st == TAMIS_NOTFOUND ? TAMIS_OK : st;
}

// ALWAYS: durable now. INTERVAL: the timer syncs; who comes when it is late by an interval waits.
static int sync_group(struct tamis_db *db, const group *g, tamis_error *err)
{
    if (g->sync) return tm_db_sync_logs(db, err);
    uint64_t now = tm_db_now_ns(db);
    uint64_t since = atomic_load_explicit(&db->unsynced_since_ns, memory_order_relaxed);
    if (since == 0) {
        atomic_store_explicit(&db->unsynced_since_ns, now, memory_order_seq_cst);
        tm_mutex_lock(&db->mu.m); // once an interval: the timer may be resting
        tm_cond_signal(&db->timer_wake);
        tm_mutex_unlock(&db->mu.m);
        return TAMIS_OK;
    }
    if (now - since < 2 * db->config.sync_interval_ms * 1000000) return TAMIS_OK;
    return tm_db_sync_logs(db, err);
}

// What cannot fail by P2 failed all the same: the group is in the log, but only half in memory.
// Nothing more is taken until the log has been read again.
static int apply_group(struct tamis_db *db, const group *g, uint64_t seq, tamis_error *err)
{
    tamis_error detail = {0};
    for (tm_writer *w = g->first;; w = next_of(w)) {
        int st = apply_writer(db, w, seq, &detail);
        if (st != TAMIS_OK) {
            (void)!tm_fail_copy(err, &detail);
            return tm_db_poison(db, st, &detail);
        }
        seq += w->count;
        if (w == g->last) break;
    }
    for (tm_family *f = db->touched; f != NULL; f = f->next_touched) {
        tm_memtable_charge(f->mem, db->cache);
        size_t bytes = tm_memtable_bytes(f->mem);
        db->memtable_bytes += bytes - f->mem_bytes;
        f->mem_bytes = bytes;
    }
    return TAMIS_OK;
}

// P2, in every family that the group writes to.
static int prepare_memtables(struct tamis_db *db, tamis_error *err)
{
    for (tm_family *f = db->touched; f != NULL; f = f->next_touched) {
        if (TM_UNLIKELY(f->mem == NULL)) TM_TRY(begin_memtable(db, f, err));
        TM_TRY(tm_memtable_reserve(f->mem, f->group_data, f->group_entries, err));
    }
    for (tm_family *f = db->touched; f != NULL; f = f->next_touched) {
        if (atomic_load_explicit(&f->mem_log, memory_order_relaxed) != 0) continue;
        atomic_store_explicit(&f->mem_log, tm_wal_writer_number(db->log), memory_order_relaxed);
        f->mem_begin = db->log_total;
        db->log_oldest = TM_MIN(db->log_oldest, f->mem_begin);
    }
    return TAMIS_OK;
}

static int write_group(struct tamis_db *db, group *g, tamis_error *err)
{
    if (TM_UNLIKELY(tm_wal_writer_broken(db->log))) TM_TRY(tm_db_new_log(db, err));
    if (TM_UNLIKELY(db->alloc_seq + g->count >= TM_OVERLAY_SEQ)) {
        return tm_fail(err, TAMIS_TOOLARGE, "the store has used up its sequence numbers");
    }
    TM_TRY(prepare_memtables(db, err));
    uint64_t seq = db->alloc_seq + 1;
    db->alloc_seq += g->count; // P1
    TM_TRY(append_group(db, g, seq, err));
    if (g->sync || g->interval) TM_TRY(sync_group(db, g, err)); // P3
    TM_TRY(apply_group(db, g, seq, err));
    // Release: a reader that loads the number (acquire) sees the nodes of the whole group.
    atomic_store_explicit(&db->last_seq, db->alloc_seq, memory_order_release);
    tm_stats_add(&db->stats, TM_STAT_writes, g->count);
    tm_stats_add(&db->stats, TM_STAT_write_groups, 1);
    tm_stats_add(&db->stats, TM_STAT_write_bytes, g->data);
    return TAMIS_OK;
}

int tm_db_write(struct tamis_db *db, tm_writer *w)
{
    tamis_error detail;
    detail.code = 0;
    bool has_cond;
    int st;
    if (join_queue(db, w, &has_cond, &st)) {
        group g = {w, w, 0, 0, false, false};
        st = tm_db_check_poison(db, &detail);
        if (st == TAMIS_OK) st = touch_families(db, w, &detail);
        if (st == TAMIS_OK) st = make_room(db, w, &detail);
        if (st == TAMIS_OK) {
            gather(db, w, &g);
            st = write_group(db, &g, &detail);
        }
        untouch_all(db);
        leave_queue(db, g.last, st, &detail);
    }
    if (has_cond) tm_cond_deinit(&w->cond);
    return st;
}
