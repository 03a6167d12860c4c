// SPDX-License-Identifier: BSD-2-Clause
#include "lsm/batch.h"

#include "base/mem.h"

enum {
    FAMILY_BYTES = 5, // longest varint of 32 bits
    EXPIRY_BYTES = 8  // stand in front of an expiring value
};

// ---- Kinds -------------------------------------------------------------------------------------

// Pointers to separated values are made by a flush, never by a writer.
static bool in_batches(tm_kind kind)
{
    return kind <= TM_KIND_RANGE_DELETE;
}

static bool has_value(tm_kind kind)
{
    return kind != TM_KIND_DELETE && kind != TM_KIND_SINGLE_DELETE;
}

static size_t value_min(tm_kind kind)
{
    return kind == TM_KIND_PUT_EXPIRY ? EXPIRY_BYTES : 0;
}

static size_t value_max(tm_kind kind)
{
    if (kind == TM_KIND_RANGE_DELETE) return TAMIS_MAX_KEY;
    return TAMIS_MAX_VALUE + value_min(kind);
}

// ---- Writing -----------------------------------------------------------------------------------

void tm_batch_init(tamis_batch *b)
{
    *b = (tamis_batch){.status = TAMIS_OK};
}

void tm_batch_deinit(tamis_batch *b)
{
    tm_buf_deinit(&b->rep);
    tm_batch_init(b);
}

static int check(tm_kind kind, tm_slice key, tm_slice value, tamis_error *err)
{
    if (!in_batches(kind)) {
        return tm_fail(err, TAMIS_INVALID, "kind %u is no operation of a batch", (unsigned)kind);
    }
    if ((key.data == NULL && key.len != 0) || (value.data == NULL && value.len != 0)) {
        return tm_fail(err, TAMIS_INVALID, "a key or value is NULL, but its length is not 0");
    }
    if (key.len > TAMIS_MAX_KEY) {
        return tm_fail(err, TAMIS_TOOLARGE, "a key of %zu bytes: at most %zu", key.len,
                       TAMIS_MAX_KEY);
    }
    if (value.len > value_max(kind)) {
        return tm_fail(err, TAMIS_TOOLARGE, "a value of %zu bytes: at most %zu", value.len,
                       value_max(kind));
    }
    if (value.len < value_min(kind)) {
        return tm_fail(err, TAMIS_INVALID, "an expiring value has no time of expiry");
    }
    return TAMIS_OK;
}

// What was checked, at the end of rep.
static int append(tamis_batch *b, uint32_t family, tm_kind kind, tm_slice key, tm_slice value)
{
    size_t most = 1 + FAMILY_BYTES + 2 * TM_MAX_VARINT64 + key.len + value.len;
    if (b->rep.len > TAMIS_MAX_BATCH - most) {
        return tm_fail(&b->error, TAMIS_TOOLARGE, "the batch is full: at most %zu bytes",
                       TAMIS_MAX_BATCH);
    }
    if (tm_buf_reserve(&b->rep, most) != TAMIS_OK) return tm_fail_nomem(&b->error);
    uint8_t *p = b->rep.data + b->rep.len;
    *p++ = (uint8_t)kind;
    if (family != b->family) {
        p[-1] |= TM_BATCH_FAMILY_FOLLOWS;
        p = tm_put_varint(p, family);
        b->family = family;
    }
    p = tm_put_varint(p, key.len);
    if (key.len != 0) memcpy(p, key.data, key.len);
    p += key.len;
    if (has_value(kind)) {
        p = tm_put_varint(p, value.len);
        if (value.len != 0) memcpy(p, value.data, value.len);
        p += value.len;
    }
    b->rep.len = (size_t)(p - b->rep.data);
    b->foreign = b->foreign || family != 0;
    b->count++;
    b->data += key.len + value.len;
    return TAMIS_OK;
}

int tm_batch_add(tamis_batch *b, uint32_t family, tm_kind kind, tm_slice key, tm_slice value)
{
    if (TM_UNLIKELY(b->status != TAMIS_OK)) return b->status; // B2
    if (!has_value(kind)) value = tm_slice_of(NULL, 0);
    b->status = check(kind, key, value, &b->error);
    if (b->status == TAMIS_OK) b->status = append(b, family, kind, key, value);
    return b->status;
}

tm_batch_mark tm_batch_mark_of(const tamis_batch *b)
{
    return (tm_batch_mark){b->rep.len, b->data, b->count, b->family, b->foreign, b->status};
}

void tm_batch_return(tamis_batch *b, const tm_batch_mark *m)
{
    b->rep.len = m->rep_len;
    b->data = m->data;
    b->count = m->count;
    b->family = m->family;
    b->foreign = m->foreign;
    b->status = m->status;
}

// ---- Reading -----------------------------------------------------------------------------------

tm_batch_reader tm_batch_reader_of(tm_slice rep)
{
    return (tm_batch_reader){.c = tm_cursor_of(rep), .family = 0};
}

// Where the bytes stand, the caller knows.
static int bad_operation(void)
{
    return tm_fail_corrupt(NULL, 0, 0, "these bytes are no operation");
}

int tm_batch_reader_next(tm_batch_reader *r, tm_batch_op *op)
{
    tm_cursor *c = &r->c;
    if (c->bad) return bad_operation();
    if (tm_cursor_left(c) == 0) return TAMIS_NOTFOUND;
    uint8_t first = tm_read8(c);
    uint64_t family = first & TM_BATCH_FAMILY_FOLLOWS ? tm_read_varint(c) : r->family;
    tm_kind kind = (tm_kind)(first & ~TM_BATCH_FAMILY_FOLLOWS);
    tm_slice value = tm_slice_of(NULL, 0);
    tm_slice key = tm_read_slice(c);
    if (in_batches(kind) && has_value(kind)) value = tm_read_slice(c);
    if (c->bad || !in_batches(kind) || family > UINT32_MAX || key.len > TAMIS_MAX_KEY ||
        value.len > value_max(kind) || value.len < value_min(kind)) {
        c->bad = true;
        return bad_operation();
    }
    r->family = (uint32_t)family;
    *op = (tm_batch_op){r->family, kind, key, value};
    return TAMIS_OK;
}
