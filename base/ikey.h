// SPDX-License-Identifier: BSD-2-Clause
//
// ikey.h - internal keys: a user key, the sequence number of its write, and the kind of entry.
//
// The sequence number and kind are packed into a 64-bit trailer, sequence << 8 | kind. Internal
// order: user keys ascending; of one user key, trailers descending, so that the newest comes first
// and a search for (key, tm_trailer_seek(s)) stops at the newest entry that snapshot s sees.
#ifndef TM_IKEY_H
#define TM_IKEY_H

#include "base/coding.h"

// Stored in logs and tables: numbers never change meaning. 8 to 15 are kept for later kinds of
// point entries, 64 to 127 for others; an unknown kind is refused at open by its feature bit.
typedef enum tm_kind {
    TM_KIND_DELETE = 0,
    TM_KIND_PUT = 1,
    TM_KIND_MERGE = 2,      // an operand
    TM_KIND_PUT_EXPIRY = 3, // value = 8 bytes of absolute milliseconds, then the value
    TM_KIND_SINGLE_DELETE = 4,
    TM_KIND_RANGE_DELETE = 5, // key = start, value = limit
    TM_KIND_VALUE_POINTER = 6,
    TM_KIND_DELETE_EXPIRY = 7
} tm_kind;
#define TM_KIND_MAX 7

#define TM_MAX_SEQ (((uint64_t)1 << 56) - 1)

static inline uint64_t tm_trailer(uint64_t seq, tm_kind kind)
{
    return seq << 8 | (uint64_t)kind;
}
static inline uint64_t tm_trailer_seq(uint64_t trailer)
{
    return trailer >> 8;
}
static inline tm_kind tm_trailer_kind(uint64_t trailer)
{
    return (tm_kind)(trailer & 0xff);
}
// The trailer to search with: the first entry at or behind it is the newest with sequence <= seq.
static inline uint64_t tm_trailer_seek(uint64_t seq)
{
    return seq << 8 | 0xff;
}

// ---- Order -------------------------------------------------------------------------------------

typedef struct tm_order {  // copied by value; fixed for the life of a family
    bool bytewise;         // heads, prefixes and shortened separators apply
    tamis_comparator user; // where not bytewise
} tm_order;

#define TM_BYTEWISE_NAME "tamis.bytewise"
static inline tm_order tm_order_bytewise(void)
{
    return (tm_order){.bytewise = true};
}
tm_order tm_order_of(const tamis_comparator *c); // NULL = bytewise; named TM_BYTEWISE_NAME too
const char *tm_order_name(const tm_order *o);

static inline int tm_order_compare(const tm_order *o, tm_slice a, tm_slice b)
{
    if (TM_LIKELY(o->bytewise)) return tm_slice_compare(a, b);
    return o->user.compare(o->user.ctx, a.data, a.len, b.data, b.len);
}
// By user key, then newest first.
static inline int tm_order_compare_internal(const tm_order *o, tm_slice a, uint64_t a_trailer,
                                            tm_slice b, uint64_t b_trailer)
{
    int c = tm_order_compare(o, a, b);
    if (c != 0) return c;
    return (a_trailer < b_trailer) - (a_trailer > b_trailer);
}
// A short s with a <= s < b, for a < b, appended to the empty out. a itself if nothing is shorter.
int tm_order_separator(const tm_order *o, tm_slice a, tm_slice b, tm_buf *out) TM_CHECK_RESULT;
// The hash that filters and memtables use for a user key (of its canonical spelling, which scratch
// holds where the comparator has one). NOMEM only with a canonical spelling.
int tm_order_hash(const tm_order *o, tm_slice key, uint64_t seed, tm_buf *scratch,
                  uint64_t *hash) TM_CHECK_RESULT;

// ---- Heads -------------------------------------------------------------------------------------

// The first bytes of s as a big-endian integer, padded with zero bytes. a < b implies
// head(a) <= head(b); equal heads decide nothing.
static inline uint32_t tm_head32(const uint8_t *p, size_t n)
{
    if (TM_LIKELY(n >= 4)) return tm_get32be(p);
    uint32_t h = 0;
    for (size_t i = 0; i < n; i++) h |= (uint32_t)p[i] << (24 - 8 * i);
    return h;
}
static inline uint64_t tm_head64(const uint8_t *p, size_t n)
{
    if (TM_LIKELY(n >= 8)) return (uint64_t)tm_get32be(p) << 32 | tm_get32be(p + 4);
    if (n >= 4) return (uint64_t)tm_get32be(p) << 32 | tm_head32(p + 4, n - 4);
    return (uint64_t)tm_head32(p, n) << 32;
}

#endif // TM_IKEY_H
