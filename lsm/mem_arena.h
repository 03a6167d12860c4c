// SPDX-License-Identifier: BSD-2-Clause
//
// mem_arena.h - the memory of a memtable: bump allocation that can be made sure of beforehand.
//
//   at hand   [#########|.........]   what is handed out next
//   spare     [##############|....]   what was left when more was needed than it had
//
// After tm_mem_arena_ensure(a, n), allocations of n bytes together succeed. Freed as a whole.
//
// Threads: one writer. Other threads may read the two figures.
#ifndef TM_MEM_ARENA_H
#define TM_MEM_ARENA_H

#include <stdatomic.h>

#include "base/base.h"

typedef struct tm_mem_chunk tm_mem_chunk;

typedef struct tm_mem_arena {
    uint8_t *next, *end;
    uint8_t *spare_next, *spare_end;
    tm_mem_chunk *chunks;
    tm_mem_chunk *at, *spare; // the chunks of the two
    size_t chunk_bytes;
    _Atomic size_t bytes; // taken from the system
    _Atomic size_t used;  // handed out
} tm_mem_arena;

void tm_mem_arena_init(tm_mem_arena *a, size_t chunk_bytes); // takes no memory yet
void tm_mem_arena_deinit(tm_mem_arena *a);
// False, and nothing changed, when memory ends.
bool tm_mem_arena_ensure_slow(tm_mem_arena *a, size_t n) TM_CHECK_RESULT;

static inline size_t tm_mem_arena_round(size_t n)
{
    return (n + 7) & ~(size_t)7;
}
static inline TM_CHECK_RESULT bool tm_mem_arena_ensure(tm_mem_arena *a, size_t n)
{
    return TM_LIKELY((size_t)(a->end - a->next) >= n) || tm_mem_arena_ensure_slow(a, n);
}
// 8-byte aligned, not cleared; n is a multiple of 8 and was made sure of.
static inline void *tm_mem_arena_alloc(tm_mem_arena *a, size_t n)
{
    assert(n % 8 == 0 && (size_t)(a->end - a->next) >= n);
    void *p = a->next;
    a->next += n;
    // Relaxed, and no read-modify-write: a figure with one writer.
    size_t used = atomic_load_explicit(&a->used, memory_order_relaxed);
    atomic_store_explicit(&a->used, used + n, memory_order_relaxed);
    return p;
}

#endif // TM_MEM_ARENA_H
