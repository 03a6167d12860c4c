// SPDX-License-Identifier: BSD-2-Clause
//
// coding.h - integers as bytes: fixed width little-endian, and varints (7 bits a byte, low first).
//
// Writers write to memory that the caller made room for. Reading from files goes through tm_cursor,
// which never passes its end and remembers a failure, so that a parser checks once at its end.
#ifndef TM_CODING_H
#define TM_CODING_H

#include "base/buf.h"

#define TM_MAX_VARINT64 10

static inline void tm_put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}
static inline void tm_put32(uint8_t *p, uint32_t v)
{
    tm_put16(p, (uint16_t)v);
    tm_put16(p + 2, (uint16_t)(v >> 16));
}
static inline void tm_put64(uint8_t *p, uint64_t v)
{
    tm_put32(p, (uint32_t)v);
    tm_put32(p + 4, (uint32_t)(v >> 32));
}
// Compilers turn these into one load on little-endian machines.
static inline uint16_t tm_get16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t tm_get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint64_t tm_get64(const uint8_t *p)
{
    return (uint64_t)tm_get32(p) | (uint64_t)tm_get32(p + 4) << 32;
}
// Big-endian, for key heads: integers in the order of their bytes.
static inline uint32_t tm_get32be(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}
static inline void tm_put32be(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static inline size_t tm_varint_len(uint64_t v)
{
    size_t n = 1;
    while (v >= 0x80) {
        v >>= 7;
        n++;
    }
    return n;
}
// Returns the position behind the last byte written; at most TM_MAX_VARINT64 bytes.
static inline uint8_t *tm_put_varint(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

int tm_buf_put16(tm_buf *b, uint16_t v) TM_CHECK_RESULT;
int tm_buf_put32(tm_buf *b, uint32_t v) TM_CHECK_RESULT;
int tm_buf_put64(tm_buf *b, uint64_t v) TM_CHECK_RESULT;
int tm_buf_put_varint(tm_buf *b, uint64_t v) TM_CHECK_RESULT;
int tm_buf_put_slice(tm_buf *b, tm_slice s) TM_CHECK_RESULT; // varint length, bytes

// ---- Reading what may be damaged ---------------------------------------------------------------

typedef struct tm_cursor {
    const uint8_t *p, *end;
    bool bad; // something did not fit; every later read gives 0 or empty
} tm_cursor;

static inline tm_cursor tm_cursor_of(tm_slice s)
{
    return (tm_cursor){s.data, s.len ? s.data + s.len : s.data, false};
}
static inline size_t tm_cursor_left(const tm_cursor *c)
{
    return (size_t)(c->end - c->p);
}

uint8_t tm_read8(tm_cursor *c);
uint16_t tm_read16(tm_cursor *c);
uint32_t tm_read32(tm_cursor *c);
uint64_t tm_read64(tm_cursor *c);
// Refuses more than 10 bytes, an overflowing tenth byte, and needlessly long spellings (a last
// byte of 0 after another byte), so that a number has one spelling.
uint64_t tm_read_varint(tm_cursor *c);
tm_slice tm_read_bytes(tm_cursor *c, size_t n);
tm_slice tm_read_slice(tm_cursor *c); // varint length, bytes

#endif // TM_CODING_H
