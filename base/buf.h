// SPDX-License-Identifier: BSD-2-Clause
//
// buf.h - owned, growing bytes. All-zero is an empty buffer.
#ifndef TM_BUF_H
#define TM_BUF_H

#include "base/slice.h"
#include "base/status.h"

typedef struct tm_buf {
    uint8_t *data;
    size_t len, cap;
} tm_buf;

static inline void tm_buf_init(tm_buf *b)
{
    *b = (tm_buf){NULL, 0, 0};
}
void tm_buf_deinit(tm_buf *b); // frees, leaves it empty
static inline void tm_buf_clear(tm_buf *b)
{
    b->len = 0;
} // keeps the memory
static inline tm_slice tm_buf_slice(const tm_buf *b)
{
    return tm_slice_of(b->data, b->len);
}

// NOMEM leaves the buffer unchanged (all of them).
int tm_buf_grow(tm_buf *b, size_t extra) TM_CHECK_RESULT; // slow path of tm_buf_reserve
// Makes room for extra bytes more.
static inline TM_CHECK_RESULT int tm_buf_reserve(tm_buf *b, size_t extra)
{
    return TM_LIKELY(b->cap - b->len >= extra) ? TAMIS_OK : tm_buf_grow(b, extra);
}
static inline TM_CHECK_RESULT int tm_buf_append(tm_buf *b, const void *data, size_t n)
{
    TM_TRY(tm_buf_reserve(b, n));
    if (n) memcpy(b->data + b->len, data, n);
    b->len += n;
    return TAMIS_OK;
}
// Replaces the content, by a part of itself too.
static inline TM_CHECK_RESULT int tm_buf_set(tm_buf *b, tm_slice s)
{
    if (s.len > b->cap) TM_TRY(tm_buf_grow(b, s.len - b->len));
    if (s.len) memmove(b->data, s.data, s.len);
    b->len = s.len;
    return TAMIS_OK;
}
// A C string: the bytes of s and a NUL. tm_buf_text is the slice without it.
static inline TM_CHECK_RESULT int tm_buf_set_text(tm_buf *b, tm_slice s)
{
    TM_TRY(tm_buf_set(b, s));
    return tm_buf_append(b, "", 1);
}
static inline tm_slice tm_buf_text(const tm_buf *b)
{
    return tm_slice_of(b->data, b->len > 0 ? b->len - 1 : 0);
}

#endif // TM_BUF_H
