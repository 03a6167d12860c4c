// SPDX-License-Identifier: BSD-2-Clause
#include "wal/wal_writer.h"

#include "base/mem.h"
#include "base/sync.h"

enum {
    RECORD_MAX = TM_WAL_FRAME_MAX + TM_WAL_PAYLOAD_MAX,
    SMALL_BUFFER = 64 * 1024 // above it the buffer is made as large as it can ever be needed
};

struct tm_wal_writer {
    // Fixed after create.
    tm_file file;
    tm_wal_place place;
    uint64_t reserve_bytes;

    // The appender's.
    tm_buf buffer; // TM_WAL_FRAME_MAX bytes for the header, then the payload
    uint64_t reserved;
    uint64_t last_seq; // of the last record's last operation
    bool sealed;       // the last record is a seal
    uint64_t told_manifest, told_manifest_synced; // said by the file

    // Stored by the appender when all of a record is written (release); a sync that reads it
    // (acquire) thus covers the writes up to there.
    _Atomic uint64_t end;
    _Atomic bool broken;
    // Stored by sync under sync_m (release). An append that reads it (acquire) may vouch for it.
    _Atomic uint64_t synced;
    _Atomic bool poisoned;

    tm_mutex sync_m; // held during a sync: one at a time
    tm_mutex manifest_m;
    uint64_t manifest, manifest_synced; // manifest_m
};

// ---- Life --------------------------------------------------------------------------------------

static void reserve_ahead(tm_wal_writer *w, uint64_t need)
{
    if (w->reserve_bytes == 0 || need <= w->reserved) return;
    uint64_t n = TM_MAX(w->reserve_bytes, need - w->reserved);
    // Refused or not, the next try comes a step further on: the write itself will tell.
    TM_IGNORE(tm_file_reserve(&w->file, w->reserved, n, NULL));
    w->reserved += n;
}

static int write_header(tm_wal_writer *w, const tm_wal_header *h, tamis_error *err)
{
    uint8_t bytes[TM_WAL_HEADER_BYTES];
    tm_wal_header_encode(h, bytes);
    reserve_ahead(w, TM_WAL_HEADER_BYTES);
    return tm_file_write(&w->file, 0, bytes, sizeof(bytes), err);
}

static int create_file(tm_wal_writer *w, tamis_dir *dir, const char *name, const tm_wal_header *h,
                       tamis_error *err)
{
    TM_TRY(tm_file_open(dir, name, h->number, TAMIS_FILE_CREATE, &w->file, err));
    int st = write_header(w, h, err);
    if (st != TAMIS_OK) {
        (void)tm_file_close(&w->file, NULL);
        TM_IGNORE(tm_dir_unlink(dir, name, NULL)); // as well as it goes
    }
    return st;
}

int tm_wal_writer_create(tamis_dir *dir, const char *name, const tm_wal_header *h,
                         uint64_t reserve_bytes, tm_wal_writer **out, tamis_error *err)
{
    *out = NULL;
    tm_wal_writer *w = tm_calloc(1, sizeof(*w));
    if (w == NULL) return tm_fail_nomem(err);
    w->place.number = h->number;
    memcpy(w->place.store_id, h->store_id, sizeof(w->place.store_id));
    w->reserve_bytes = reserve_bytes;
    w->last_seq = h->kind == TM_WAL_LOG ? h->base : 0;
    w->told_manifest = w->manifest = h->manifest;
    w->told_manifest_synced = w->manifest_synced = h->manifest_synced;
    atomic_init(&w->end, TM_WAL_HEADER_BYTES);
    atomic_init(&w->broken, false);
    atomic_init(&w->synced, 0);
    atomic_init(&w->poisoned, false);

    int st = tm_mutex_init(&w->sync_m, err);
    if (st != TAMIS_OK) goto no_sync_m;
    st = tm_mutex_init(&w->manifest_m, err);
    if (st != TAMIS_OK) goto no_manifest_m;
    st = create_file(w, dir, name, h, err);
    if (st != TAMIS_OK) goto no_file;
    *out = w;
    return TAMIS_OK;

no_file:
    tm_mutex_deinit(&w->manifest_m);
no_manifest_m:
    tm_mutex_deinit(&w->sync_m);
no_sync_m:
    tm_free(w);
    return st;
}

int tm_wal_writer_close(tm_wal_writer *w, tamis_error *err)
{
    if (w == NULL) return TAMIS_OK;
    uint64_t end = tm_wal_writer_end(w);
    if (w->reserved > end && !tm_wal_writer_broken(w) && !tm_wal_writer_poisoned(w)) {
        TM_IGNORE(tm_file_truncate(&w->file, end, NULL)); // gives the room behind it back
    }
    int st = tm_file_close(&w->file, err);
    tm_mutex_deinit(&w->manifest_m);
    tm_mutex_deinit(&w->sync_m);
    tm_buf_deinit(&w->buffer);
    tm_free(w);
    return st;
}

// ---- What any thread may ask -------------------------------------------------------------------

uint64_t tm_wal_writer_number(const tm_wal_writer *w)
{
    return w->place.number;
}

uint64_t tm_wal_writer_end(const tm_wal_writer *w)
{
    return atomic_load_explicit(&w->end, memory_order_acquire); // the append's release
}

uint64_t tm_wal_writer_synced(const tm_wal_writer *w)
{
    return atomic_load_explicit(&w->synced, memory_order_acquire); // the sync's release
}

bool tm_wal_writer_broken(const tm_wal_writer *w)
{
    return atomic_load_explicit(&w->broken, memory_order_acquire);
}

bool tm_wal_writer_poisoned(const tm_wal_writer *w)
{
    return atomic_load_explicit(&w->poisoned, memory_order_acquire); // the sync's release
}

void tm_wal_writer_set_manifest(tm_wal_writer *w, uint64_t number, uint64_t synced_length)
{
    tm_mutex_lock(&w->manifest_m);
    w->manifest = number;
    w->manifest_synced = synced_length;
    tm_mutex_unlock(&w->manifest_m);
}

static int fail_poisoned(const tm_wal_writer *w, tamis_error *err)
{
    int st = tm_fail(err, TAMIS_POISONED, "an earlier sync of %s failed: reopen the store",
                     w->file.label);
    if (err != NULL) err->file_number = w->file.number;
    return st;
}

static int check_usable(const tm_wal_writer *w, tamis_error *err)
{
    if (tm_wal_writer_poisoned(w)) return fail_poisoned(w, err);
    if (!tm_wal_writer_broken(w)) return TAMIS_OK;
    int st = tm_fail(err, TAMIS_IO, "an earlier write to %s failed and could not be undone",
                     w->file.label);
    if (err != NULL) err->file_number = w->file.number;
    return st;
}

// ---- Append ------------------------------------------------------------------------------------

// The parts of a payload as one stream.
typedef struct gather {
    const tm_slice *part, *stop;
    size_t done; // bytes of *part that were taken
} gather;

static void take(gather *g, uint8_t *to, size_t n)
{
    while (n > 0) {
        size_t some = TM_MIN(n, g->part->len - g->done);
        if (some > 0) memcpy(to, g->part->data + g->done, some);
        to += some;
        n -= some;
        g->done += some;
        if (g->done == g->part->len && n > 0) {
            g->part++;
            g->done = 0;
            assert(g->part < g->stop);
        }
    }
}

static int sum_parts(const tm_slice *parts, size_t n_parts, size_t *total, tamis_error *err)
{
    *total = 0;
    for (size_t i = 0; i < n_parts; i++) {
        if (parts[i].len > SIZE_MAX - *total) {
            return tm_fail(err, TAMIS_TOOLARGE, "a record larger than memory");
        }
        *total += parts[i].len;
    }
    return TAMIS_OK;
}

static int reserve_buffer(tm_wal_writer *w, size_t payload, tamis_error *err)
{
    size_t need = TM_WAL_FRAME_MAX + TM_MIN(payload, (size_t)TM_WAL_PAYLOAD_MAX);
    if (need <= w->buffer.cap) return TAMIS_OK;
    if (need > SMALL_BUFFER) need = RECORD_MAX;
    return tm_buf_reserve(&w->buffer, need) == TAMIS_OK ? TAMIS_OK : tm_fail_nomem(err);
}

// Writes one record at offset; its payload stands in the buffer. Gives the offset behind it.
static int write_record(tm_wal_writer *w, tm_wal_frame *f, uint64_t *offset, tamis_error *err)
{
    uint8_t *payload = w->buffer.data + TM_WAL_FRAME_MAX;
    f->vouched = tm_wal_writer_synced(w);
    TM_TRY(tm_wal_frame_encode(f, &w->place, *offset, payload, err));
    size_t n = f->header_bytes + f->payload_bytes;
    reserve_ahead(w, *offset + n);
    TM_TRY(tm_file_write(&w->file, *offset, payload - f->header_bytes, n, err));
    *offset += n;
    return TAMIS_OK;
}

// Writes a payload as one record or several.
static int write_payload(tm_wal_writer *w, gather *g, size_t total, tm_wal_frame *f,
                         uint64_t *offset, tamis_error *err)
{
    uint64_t count = f->count;
    bool several = total > TM_WAL_PAYLOAD_MAX;
    bool first = true;
    do {
        size_t n = TM_MIN(total, (size_t)TM_WAL_PAYLOAD_MAX);
        total -= n;
        if (several) {
            f->type = first ? TM_WAL_FIRST : total > 0 ? TM_WAL_MIDDLE : TM_WAL_LAST;
            f->count = total > 0 ? 0 : count;
        }
        f->payload_bytes = (uint32_t)n;
        take(g, w->buffer.data + TM_WAL_FRAME_MAX, n);
        TM_TRY(write_record(w, f, offset, err));
        f->has_manifest = false; // the first has said it
        first = false;
    } while (total > 0);
    return TAMIS_OK;
}

// Cuts off what a failed append wrote.
static void undo(tm_wal_writer *w)
{
    uint64_t end = tm_wal_writer_end(w);
    if (tm_file_truncate(&w->file, end, NULL) != TAMIS_OK) {
        atomic_store_explicit(&w->broken, true, memory_order_release); // with broken()
    }
    w->reserved = end; // the room behind went too
}

static int append(tm_wal_writer *w, gather *g, size_t total, tm_wal_frame *f, tamis_error *err)
{
    TM_TRY(check_usable(w, err));
    TM_TRY(reserve_buffer(w, total, err));
    tm_mutex_lock(&w->manifest_m);
    f->manifest = w->manifest;
    f->manifest_synced = w->manifest_synced;
    tm_mutex_unlock(&w->manifest_m);
    uint64_t manifest = f->manifest, manifest_synced = f->manifest_synced;
    f->has_manifest = manifest != w->told_manifest || manifest_synced != w->told_manifest_synced;

    uint64_t offset = tm_wal_writer_end(w);
    int st = write_payload(w, g, total, f, &offset, err);
    if (st != TAMIS_OK) {
        undo(w);
        return st;
    }
    w->told_manifest = manifest;
    w->told_manifest_synced = manifest_synced;
    w->sealed = f->type == TM_WAL_SEAL;
    atomic_store_explicit(&w->end, offset, memory_order_release); // pairs with sync's acquire
    return TAMIS_OK;
}

int tm_wal_writer_append(tm_wal_writer *w, const tm_slice *parts, size_t n_parts, uint64_t seq,
                         uint64_t count, tamis_error *err)
{
    size_t total;
    TM_TRY(sum_parts(parts, n_parts, &total, err));
    gather g = {parts, parts + n_parts, 0};
    tm_wal_frame f = {.type = TM_WAL_WHOLE, .seq = seq, .count = count};
    TM_TRY(append(w, &g, total, &f, err));
    w->last_seq = count > 0 ? seq + (count - 1) : seq;
    return TAMIS_OK;
}

// ---- Sync and seal -----------------------------------------------------------------------------

static int sync_locked(tm_wal_writer *w, tamis_error *err)
{
    if (tm_wal_writer_poisoned(w)) return fail_poisoned(w, err);
    uint64_t end = tm_wal_writer_end(w);
    if (tm_wal_writer_synced(w) == end) return TAMIS_OK;
    int st = tm_file_sync(&w->file, err);
    if (st == TAMIS_OK) {
        atomic_store_explicit(&w->synced, end, memory_order_release); // pairs with synced()
        return TAMIS_OK;
    }
    atomic_store_explicit(&w->poisoned, true, memory_order_release); // pairs with poisoned()
    // A full disk passes, a failed sync does not: it must not look like something to try again.
    if (err != NULL) {
        err->code = TAMIS_IO;
        err->retryable = 0;
    }
    return TAMIS_IO;
}

int tm_wal_writer_sync(tm_wal_writer *w, tamis_error *err)
{
    tm_mutex_lock(&w->sync_m);
    int st = sync_locked(w, err);
    tm_mutex_unlock(&w->sync_m);
    return st;
}

int tm_wal_writer_seal(tm_wal_writer *w, tamis_error *err)
{
    TM_TRY(check_usable(w, err));
    TM_TRY(tm_wal_writer_sync(w, err));
    if (w->sealed) return TAMIS_OK;
    gather none = {NULL, NULL, 0};
    tm_wal_frame f = {.type = TM_WAL_SEAL, .seq = w->last_seq};
    TM_TRY(append(w, &none, 0, &f, err));
    return tm_wal_writer_sync(w, err);
}
