// SPDX-License-Identifier: BSD-2-Clause
#include "base/coding.h"

// ---- Writing -----------------------------------------------------------------------------------

int tm_buf_put16(tm_buf *b, uint16_t v)
{
    TM_TRY(tm_buf_reserve(b, 2));
    tm_put16(b->data + b->len, v);
    b->len += 2;
    return TAMIS_OK;
}

int tm_buf_put32(tm_buf *b, uint32_t v)
{
    TM_TRY(tm_buf_reserve(b, 4));
    tm_put32(b->data + b->len, v);
    b->len += 4;
    return TAMIS_OK;
}

int tm_buf_put64(tm_buf *b, uint64_t v)
{
    TM_TRY(tm_buf_reserve(b, 8));
    tm_put64(b->data + b->len, v);
    b->len += 8;
    return TAMIS_OK;
}

int tm_buf_put_varint(tm_buf *b, uint64_t v)
{
    TM_TRY(tm_buf_reserve(b, TM_MAX_VARINT64));
    b->len = (size_t)(tm_put_varint(b->data + b->len, v) - b->data);
    return TAMIS_OK;
}

int tm_buf_put_slice(tm_buf *b, tm_slice s)
{
    if (s.len > SIZE_MAX - TM_MAX_VARINT64) return TAMIS_NOMEM;
    TM_TRY(tm_buf_reserve(b, TM_MAX_VARINT64 + s.len)); // both or nothing
    TM_TRY(tm_buf_put_varint(b, s.len));
    return tm_buf_append(b, s.data, s.len);
}

// ---- Reading -----------------------------------------------------------------------------------

// At the end there is nothing left to read, so that loops over what is left stop as well.
static void spoil(tm_cursor *c)
{
    c->bad = true;
    c->p = c->end;
}

// The next n > 0 bytes, or NULL.
static const uint8_t *take(tm_cursor *c, size_t n)
{
    if (TM_UNLIKELY(tm_cursor_left(c) < n)) {
        spoil(c);
        return NULL;
    }
    const uint8_t *p = c->p;
    c->p += n;
    return p;
}

uint8_t tm_read8(tm_cursor *c)
{
    const uint8_t *p = take(c, 1);
    return p != NULL ? *p : 0;
}

uint16_t tm_read16(tm_cursor *c)
{
    const uint8_t *p = take(c, 2);
    return p != NULL ? tm_get16(p) : 0;
}

uint32_t tm_read32(tm_cursor *c)
{
    const uint8_t *p = take(c, 4);
    return p != NULL ? tm_get32(p) : 0;
}

uint64_t tm_read64(tm_cursor *c)
{
    const uint8_t *p = take(c, 8);
    return p != NULL ? tm_get64(p) : 0;
}

uint64_t tm_read_varint(tm_cursor *c)
{
    const uint8_t *p = c->p;
    uint64_t v = 0;
    for (unsigned shift = 0; shift <= 63 && p != c->end; shift += 7) {
        uint8_t byte = *p++;
        if (shift == 63 && byte > 1) break; // bits above the 64th, or an eleventh byte to come
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80) continue;
        if (byte == 0 && shift != 0) break; // a shorter spelling exists
        c->p = p;
        return v;
    }
    spoil(c);
    return 0;
}

tm_slice tm_read_bytes(tm_cursor *c, size_t n)
{
    if (n == 0) return tm_slice_of(c->p, 0); // p may be NULL
    const uint8_t *p = take(c, n);
    return tm_slice_of(p, p != NULL ? n : 0);
}

tm_slice tm_read_slice(tm_cursor *c)
{
    uint64_t n = tm_read_varint(c);
    if (n > tm_cursor_left(c)) { // compared in 64 bits: size_t may be narrower
        spoil(c);
        n = 0;
    }
    return tm_read_bytes(c, (size_t)n);
}
