// SPDX-License-Identifier: BSD-2-Clause
//
// db_batch.c - the public batch: operations by family, savepoints, the serialised form.

#include "base/hash.h"
#include "base/mem.h"
#include "lsm/db.h"
#include "lsm/overlay.h"

// ---- Life --------------------------------------------------------------------------------------

tamis_batch *tamis_batch_create(tamis_db *db, uint32_t flags)
{
    if (db == NULL || (flags & ~TAMIS_BATCH_INDEXED) != 0) return NULL;
    tamis_batch *b = tm_alloc(sizeof *b);
    if (b == NULL) return NULL;
    tm_batch_init(b);
    b->db = db;
    b->flags = flags;
    tm_db_ref(db);
    atomic_fetch_add_explicit(&db->handles, 1, memory_order_relaxed);
    return b;
}

void tamis_batch_free(tamis_batch *b)
{
    if (b == NULL) return;
    struct tamis_db *db = b->db;
    tm_overlay_free(b->overlay);
    tm_buf_deinit(&b->marks);
    tm_buf_deinit(&b->packed);
    tm_buf_deinit(&b->value);
    tm_batch_deinit(b);
    tm_free(b);
    atomic_fetch_sub_explicit(&db->handles, 1, memory_order_relaxed);
    tm_db_unref(db);
}

// Back to a state: what was indexed beyond it is no longer true.
static void go_back(tamis_batch *b, const tm_batch_mark *m)
{
    if (m->rep_len < b->rep.len) {
        tm_overlay_free(b->overlay);
        b->overlay = NULL;
    }
    tm_batch_return(b, m);
}

void tamis_batch_clear(tamis_batch *b)
{
    const tm_batch_mark empty = {.status = TAMIS_OK};
    go_back(b, &empty);
    tm_buf_clear(&b->marks);
}

size_t tamis_batch_count(const tamis_batch *b)
{
    return (size_t)b->count;
}

size_t tamis_batch_bytes(const tamis_batch *b)
{
    return b->rep.len;
}

// ---- Operations --------------------------------------------------------------------------------

static int add(tamis_batch *b, tamis_cf *cf, tm_kind kind, tm_slice key, tm_slice value)
{
    tm_family *f;
    if (b->status != TAMIS_OK) return b->status;
    b->status = tm_db_family(b->db, cf, &f, &b->error);
    if (b->status != TAMIS_OK) return b->status;
    if (kind == TM_KIND_MERGE && !atomic_load_explicit(&f->can_merge, memory_order_relaxed)) {
        b->status = tm_fail(&b->error, TAMIS_INVALID, "the family has no merger");
    }
    return tm_batch_add(b, f->id, kind, key, value);
}

int tm_db_expiring_value(const struct tamis_db *db, uint64_t ttl_ms, tm_slice value, tm_buf *out,
                         tamis_error *err)
{
    uint64_t now = db->vfs->wall_ms(db->vfs);
    uint8_t expiry[8];
    tm_put64(expiry, ttl_ms > UINT64_MAX - now ? UINT64_MAX : now + ttl_ms);
    tm_buf_clear(out);
    if (tm_buf_append(out, expiry, sizeof expiry) != TAMIS_OK ||
        tm_buf_append(out, value.data, value.len) != TAMIS_OK) {
        return tm_fail_nomem(err);
    }
    return TAMIS_OK;
}

static int put(tamis_batch *b, tamis_cf *cf, tm_slice key, tm_slice value, uint64_t ttl_ms)
{
    if (ttl_ms == 0 || b->status != TAMIS_OK || value.len > TAMIS_MAX_VALUE ||
        (value.data == NULL && value.len > 0)) {
        return add(b, cf, TM_KIND_PUT, key, value); // says what is wrong
    }
    b->status = tm_db_expiring_value(b->db, ttl_ms, value, &b->value, &b->error);
    return add(b, cf, TM_KIND_PUT_EXPIRY, key, tm_buf_slice(&b->value));
}

int tamis_batch_put(tamis_batch *b, tamis_cf *cf, const void *key, size_t klen, const void *val,
                    size_t vlen)
{
    tm_family *f;
    if (tm_db_family(b->db, cf, &f, NULL) != TAMIS_OK) f = NULL; // add says it
    uint64_t ttl = f ? atomic_load_explicit(&f->ttl_ms, memory_order_relaxed) : 0;
    return put(b, cf, tm_slice_of(key, klen), tm_slice_of(val, vlen), ttl);
}

int tamis_batch_put_ttl(tamis_batch *b, tamis_cf *cf, const void *key, size_t klen, const void *val,
                        size_t vlen, uint64_t ttl_ms)
{
    return put(b, cf, tm_slice_of(key, klen), tm_slice_of(val, vlen), ttl_ms);
}

int tamis_batch_delete(tamis_batch *b, tamis_cf *cf, const void *key, size_t klen)
{
    return add(b, cf, TM_KIND_DELETE, tm_slice_of(key, klen), tm_slice_of(NULL, 0));
}

int tm_db_check_range(const tm_family *f, tm_slice start, tm_slice limit, tamis_error *err)
{
    if ((start.data == NULL && start.len > 0) || (limit.data == NULL && limit.len > 0)) {
        return tm_fail(err, TAMIS_INVALID, "start or limit is NULL, its length is not 0");
    }
    if (limit.len > 0 && tm_order_compare(&f->order, start, limit) > 0) {
        return tm_fail(err, TAMIS_INVALID, "the range's start is behind its limit");
    }
    return TAMIS_OK;
}

int tamis_batch_delete_range(tamis_batch *b, tamis_cf *cf, const void *start, size_t slen,
                             const void *limit, size_t llen)
{
    tm_family *f;
    tm_slice from = tm_slice_of(start, slen), to = tm_slice_of(limit, llen);
    if (b->status == TAMIS_OK && tm_db_family(b->db, cf, &f, NULL) == TAMIS_OK) {
        b->status = tm_db_check_range(f, from, to, &b->error);
    }
    return add(b, cf, TM_KIND_RANGE_DELETE, from, to);
}

int tamis_batch_merge(tamis_batch *b, tamis_cf *cf, const void *key, size_t klen,
                      const void *operand, size_t olen)
{
    return add(b, cf, TM_KIND_MERGE, tm_slice_of(key, klen), tm_slice_of(operand, olen));
}

// ---- Savepoints --------------------------------------------------------------------------------

int tamis_batch_savepoint(tamis_batch *b)
{
    tm_batch_mark m = tm_batch_mark_of(b);
    if (tm_buf_append(&b->marks, &m, sizeof m) == TAMIS_OK) return TAMIS_OK;
    return tm_fail_nomem(NULL);
}

int tamis_batch_rollback(tamis_batch *b)
{
    tm_batch_mark m;
    if (b->marks.len < sizeof m) {
        return tm_fail(NULL, TAMIS_MISUSE, "the batch has no savepoint");
    }
    b->marks.len -= sizeof m;
    memcpy(&m, b->marks.data + b->marks.len, sizeof m);
    go_back(b, &m);
    return TAMIS_OK;
}

// ---- The serialised form (docs/format.md) ------------------------------------------------------

static const uint8_t magic[8] = {'t', 'a', 'm', 'i', 's', 'B', 'A', 'T'};
enum { HEAD_BYTES = 16 }; // magic, checksum of what follows

int tamis_batch_data(tamis_batch *b, tamis_slice *out, tamis_error *err)
{
    uint8_t head[HEAD_BYTES] = {0};
    if (out == NULL) return tm_fail(err, TAMIS_INVALID, "out is NULL");
    *out = (tamis_slice){NULL, 0};
    if (b->status != TAMIS_OK) return tm_fail_copy(err, &b->error);
    tm_buf *p = &b->packed;
    tm_buf_clear(p);
    if (tm_buf_append(p, head, sizeof head) != TAMIS_OK ||
        tm_buf_put_varint(p, b->count) != TAMIS_OK ||
        tm_buf_append(p, b->rep.data, b->rep.len) != TAMIS_OK) {
        return tm_fail_nomem(err);
    }
    memcpy(p->data, magic, sizeof magic);
    tm_put64(p->data + sizeof magic, tm_checksum(p->data + HEAD_BYTES, p->len - HEAD_BYTES));
    *out = (tamis_slice){p->data, p->len};
    return TAMIS_OK;
}

int tamis_batch_load(tamis_batch *b, const void *data, size_t len, tamis_error *err)
{
    tm_slice s = tm_slice_of(data, len);
    if (data == NULL) return tm_fail(err, TAMIS_INVALID, "data is NULL");
    if (b->status != TAMIS_OK) return tm_fail_copy(err, &b->error);
    bool whole = len > HEAD_BYTES && memcmp(s.data, magic, sizeof magic) == 0;
    if (!whole ||
        tm_get64(s.data + sizeof magic) != tm_checksum(s.data + HEAD_BYTES, len - HEAD_BYTES)) {
        return tm_fail_corrupt(err, 0, 0, "these %zu bytes are no serialised batch, or damaged",
                               len);
    }
    tm_cursor c = tm_cursor_of(tm_slice_of(s.data + HEAD_BYTES, len - HEAD_BYTES));
    uint64_t expected = tm_read_varint(&c), count = 0;
    tm_batch_reader r = tm_batch_reader_of(tm_slice_of(c.p, tm_cursor_left(&c)));
    tm_batch_mark before = tm_batch_mark_of(b);
    tm_batch_op op;
    int st;
    while ((st = tm_batch_reader_next(&r, &op)) == TAMIS_OK) {
        st = tm_batch_add(b, op.family, op.kind, op.key, op.value);
        if (st != TAMIS_OK) break;
        count++;
    }
    if (st == TAMIS_NOTFOUND && !c.bad && count == expected) return TAMIS_OK;
    if (b->status != TAMIS_OK)
        st = tm_fail_copy(err, &b->error);
    else
        st = tm_fail_corrupt(err, 0, 0, "the serialised batch does not hold what it counts");
    tm_batch_return(b, &before);
    return st;
}
