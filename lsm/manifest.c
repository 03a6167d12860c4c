// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/manifest.h"

#include <stdio.h>

#include "base/hash.h"
#include "base/mem.h"
#include "lsm/filename.h"
#include "wal/wal_reader.h"
#include "wal/wal_writer.h"

#define CURRENT_MAGIC "tamis-current 1 "
enum { CURRENT_BYTES = 64, CURRENT_SUMMED = 37 };

struct tm_manifest {
    tm_wal_writer *w;
    uint64_t number;
    uint64_t snapshot_bytes;
    uint64_t edits;
    uint64_t chain;
    bool broken; // N3
    tm_buf scratch;
};

// ---- CURRENT -----------------------------------------------------------------------------------

static void current_encode(uint64_t number, char out[CURRENT_BYTES + 1])
{
    int n = snprintf(out, CURRENT_BYTES + 1, CURRENT_MAGIC "%020llu\n", (unsigned long long)number);
    unsigned long long sum = tm_checksum(out, (size_t)n);
    n += snprintf(out + n, (size_t)(CURRENT_BYTES + 1 - n), "%016llx", sum);
    memset(out + n, '\n', (size_t)(CURRENT_BYTES - n));
    out[CURRENT_BYTES] = '\0';
}

int tm_current_read(tamis_dir *dir, uint64_t *number, tamis_error *err)
{
    tm_buf b;
    tm_buf_init(&b);
    int st = tm_file_load(dir, TM_NAME_CURRENT, 4096, &b, err);
    if (st == TAMIS_OK) {
        char expected[CURRENT_BYTES + 1];
        uint64_t n = 0;
        size_t i = sizeof CURRENT_MAGIC - 1;
        for (; b.len == CURRENT_BYTES && i + 1 < CURRENT_SUMMED; i++) {
            n = n * 10 + (uint64_t)(b.data[i] - '0'); // what is no digit fails the comparison
        }
        current_encode(n, expected);
        if (b.len != CURRENT_BYTES || memcmp(b.data, expected, CURRENT_BYTES) != 0) {
            st = tm_fail_corrupt(err, 0, 0, "CURRENT is damaged: it does not name a manifest");
        }
        *number = n;
    } else if (st == TAMIS_TOOLARGE) {
        st = tm_fail_corrupt(err, 0, 0, "CURRENT is damaged: it has more than 64 bytes");
    }
    tm_buf_deinit(&b);
    return st;
}

// ---- Writing -----------------------------------------------------------------------------------

static int append(tm_manifest *m, const tm_edit *e, tamis_error *err)
{
    uint64_t chain = m->chain;
    tm_buf_clear(&m->scratch);
    if (tm_edit_encode(e, &chain, &m->scratch) != TAMIS_OK) return tm_fail_nomem(err);
    tm_slice payload = tm_buf_slice(&m->scratch);
    TM_TRY(tm_wal_writer_append(m->w, &payload, 1, m->edits + 1, 1, err));
    m->edits++;
    m->chain = chain;
    return TAMIS_OK;
}

int tm_manifest_create(tamis_dir *dir, uint64_t number, const uint8_t store_id[16],
                       const tm_edit *snapshot, tm_manifest **out, bool *poisoned, tamis_error *err)
{
    *poisoned = false;
    char name[TM_NAME_MAX], current[CURRENT_BYTES + 1];
    tm_filename(name, TM_FILE_MANIFEST, number);
    tm_manifest *m = tm_calloc(1, sizeof *m);
    if (m == NULL) return tm_fail_nomem(err);
    m->number = number;
    tm_wal_header h = {.kind = TM_WAL_MANIFEST, .number = number, .base = snapshot->format_level};
    memcpy(h.store_id, store_id, sizeof h.store_id);
    bool created = false;
    int st = tm_wal_writer_create(dir, name, &h, 0, &m->w, err);
    if (st != TAMIS_OK) goto out;
    created = true;
    TM_GOTO(append(m, snapshot, err));
    TM_GOTO(tm_wal_writer_seal(m->w, err));
    *poisoned = true; // a failed sync of the folder or a half-done switch: see the header
    TM_GOTO(tm_dir_sync(dir, err));
    m->snapshot_bytes = tm_wal_writer_end(m->w);
    current_encode(number, current);
    // From the rename on the new manifest may be in force, whatever the call says: it is kept.
    created = false;
    TM_GOTO(tm_file_replace(dir, TM_NAME_CURRENT, TM_NAME_CURRENT_TMP,
                            tm_slice_of(current, CURRENT_BYTES), err));
    *poisoned = false;
    *out = m;
    m = NULL;
out:
    if (m != NULL) (void)!tm_manifest_close(m, false, NULL);
    if (created) (void)!tm_dir_unlink(dir, name, NULL);
    return st;
}

int tm_manifest_append(tm_manifest *m, const tm_edit *e, bool *poisoned, tamis_error *err)
{
    *poisoned = false;
    if (m->broken)
        return tm_fail(err, TAMIS_IO,
                       "MANIFEST-%06llu takes no more edits after an earlier failure",
                       (unsigned long long)m->number);
    int st = append(m, e, err);
    if (st != TAMIS_OK) {
        m->broken = true; // N3, whether or not the log writer could undo it
        return st;
    }
    st = tm_wal_writer_sync(m->w, err);
    if (st != TAMIS_OK) {
        m->broken = true;
        *poisoned = true;
    }
    return st;
}

int tm_manifest_close(tm_manifest *m, bool seal, tamis_error *err)
{
    if (m == NULL) return TAMIS_OK;
    int st = TAMIS_OK;
    if (seal && m->w != NULL && !m->broken) st = tm_wal_writer_seal(m->w, err);
    int closed = tm_wal_writer_close(m->w, st == TAMIS_OK ? err : NULL);
    tm_buf_deinit(&m->scratch);
    tm_free(m);
    return st != TAMIS_OK ? st : closed;
}

bool tm_manifest_broken(const tm_manifest *m)
{
    return m->broken;
}
uint64_t tm_manifest_number(const tm_manifest *m)
{
    return m->number;
}
uint64_t tm_manifest_synced(const tm_manifest *m)
{
    return tm_wal_writer_synced(m->w);
}
uint64_t tm_manifest_bytes(const tm_manifest *m)
{
    return tm_wal_writer_end(m->w);
}
uint64_t tm_manifest_snapshot_bytes(const tm_manifest *m)
{
    return m->snapshot_bytes;
}

// ---- Reading -----------------------------------------------------------------------------------

typedef struct reading {
    int (*each)(void *ctx, tm_edit *e, tamis_error *err);
    void *ctx;
    uint64_t number, chain, edits;
    bool seal_seen;
} reading;

static int read_record(void *ctx, const tm_wal_record *rec, tamis_error *err)
{
    reading *r = ctx;
    if (rec->seal) {
        r->seal_seen = true;
        return TAMIS_OK;
    }
    if (rec->seq != r->edits + 1) {
        return tm_fail_corrupt(err, r->number, rec->offset,
                               "MANIFEST-%06llu: edit %llu expected at offset %llu, %llu found",
                               (unsigned long long)r->number, (unsigned long long)(r->edits + 1),
                               (unsigned long long)rec->offset, (unsigned long long)rec->seq);
    }
    tm_edit e;
    tm_edit_init(&e);
    int st = tm_edit_decode(&e, rec->payload, &r->chain, r->number, rec->offset, err);
    if (st == TAMIS_OK) st = r->each(r->ctx, &e, err);
    tm_edit_deinit(&e);
    r->edits++;
    return st;
}

int tm_manifest_read(tamis_dir *dir, uint64_t number, uint64_t vouched,
                     int (*each)(void *ctx, tm_edit *e, tamis_error *err), void *ctx,
                     tm_manifest_end *end, tamis_error *err)
{
    char name[TM_NAME_MAX];
    tm_filename(name, TM_FILE_MANIFEST, number);
    tm_wal_reader *r = NULL;
    tm_wal_end wal_end;
    reading state = {each, ctx, number, 0, 0, false};
    int st = tm_wal_reader_open(dir, name, number, TM_WAL_MANIFEST, NULL, &r, err);
    if (st != TAMIS_OK) goto out;
    memcpy(end->store_id, tm_wal_reader_header(r)->store_id, sizeof end->store_id);
    TM_GOTO(tm_wal_reader_scan(r, vouched, UINT64_MAX, read_record, &state, &wal_end, err));
    if (state.edits == 0 || !state.seal_seen) { // N1: CURRENT names only what was complete
        st = tm_fail_corrupt(err, number, wal_end.logical_end,
                             "%s is named by CURRENT, but its first edit is incomplete", name);
        goto out;
    }
    end->whole = wal_end.whole;
    end->sealed = wal_end.sealed;
    end->cut_bytes = wal_end.cut_bytes;
    end->logical_end = wal_end.logical_end;
    end->edits = state.edits;
out:
    tm_wal_reader_close(r);
    return st;
}
