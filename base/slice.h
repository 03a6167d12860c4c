// SPDX-License-Identifier: BSD-2-Clause
//
// slice.h - borrowed bytes. A tm_slice never owns; tm_buf (buf.h) does.
#ifndef TM_SLICE_H
#define TM_SLICE_H

#include "base/base.h"

typedef struct tm_slice {
    const uint8_t *data; // not NULL where len > 0
    size_t len;
} tm_slice;

static inline tm_slice tm_slice_of(const void *data, size_t len)
{
    return (tm_slice){(const uint8_t *)data, len};
}
static inline tm_slice tm_slice_str(const char *s)
{
    return tm_slice_of(s, strlen(s));
}

static inline bool tm_slice_equal(tm_slice a, tm_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

// Bytewise order: shorter first where one is a prefix of the other.
static inline int tm_slice_compare(tm_slice a, tm_slice b)
{
    size_t n = TM_MIN(a.len, b.len);
    int c = n ? memcmp(a.data, b.data, n) : 0;
    if (c != 0) return c;
    return (a.len > b.len) - (a.len < b.len);
}

static inline bool tm_slice_starts_with(tm_slice s, tm_slice prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.data, prefix.data, prefix.len) == 0);
}

// Length of the common prefix.
static inline size_t tm_slice_common(tm_slice a, tm_slice b)
{
    size_t n = TM_MIN(a.len, b.len), i = 0;
    while (i < n && a.data[i] == b.data[i]) i++;
    return i;
}

#endif // TM_SLICE_H
