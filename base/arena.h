// SPDX-License-Identifier: BSD-2-Clause
//
// arena.h - bump allocation, freed as a whole.
//
// Threads: one thread allocates at a time (the caller's lock); tm_arena_bytes may be read by any.
#ifndef TM_ARENA_H
#define TM_ARENA_H

#include "base/base.h"

typedef struct tm_arena_chunk tm_arena_chunk;
typedef struct tm_arena {
    uint8_t *next, *end;
    tm_arena_chunk *chunks;
    size_t chunk_bytes;   // of the next chunk; at least this much is asked of the kernel
    _Atomic size_t bytes; // taken from the system
} tm_arena;

void tm_arena_init(tm_arena *a, size_t chunk_bytes); // takes no memory yet
void tm_arena_deinit(tm_arena *a);
void *tm_arena_alloc_slow(tm_arena *a, size_t n) TM_CHECK_RESULT;
size_t tm_arena_bytes(const tm_arena *a);

// 8-byte aligned, not cleared; NULL when memory ends. n = 0 gives a pointer too.
static inline TM_CHECK_RESULT void *tm_arena_alloc(tm_arena *a, size_t n)
{
    size_t rounded = (n + 7) & ~(size_t)7; // 0 for n = 0, and where n + 7 overflows:
    if (TM_LIKELY(rounded - 1 < (size_t)(a->end - a->next))) { // then the left side is the maximum
        void *p = a->next;
        a->next += rounded;
        return p;
    }
    return tm_arena_alloc_slow(a, n);
}

#endif // TM_ARENA_H
