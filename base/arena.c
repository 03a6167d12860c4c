// SPDX-License-Identifier: BSD-2-Clause
#include "base/arena.h"

#include <stdatomic.h>

#include "base/mem.h"

// Chunks grow up to the size of a huge page; from LARGE_BYTES on they come from the kernel.
enum { LARGE_BYTES = 1 << 20, GROW_BYTES = 2 << 20 };

struct tm_arena_chunk { // in front of its memory
    tm_arena_chunk *next;
    size_t bytes; // with this head
};

static_assert(sizeof(tm_arena_chunk) % 8 == 0, "what follows the head is aligned");

void tm_arena_init(tm_arena *a, size_t chunk_bytes)
{
    a->next = a->end = NULL;
    a->chunks = NULL;
    a->chunk_bytes = TM_MAX(chunk_bytes, 4 * sizeof(tm_arena_chunk));
    atomic_init(&a->bytes, 0);
}

void tm_arena_deinit(tm_arena *a)
{
    while (a->chunks != NULL) {
        tm_arena_chunk *chunk = a->chunks;
        a->chunks = chunk->next;
        if (chunk->bytes >= LARGE_BYTES) {
            tm_free_large(chunk, chunk->bytes);
        } else {
            tm_free(chunk);
        }
    }
    a->next = a->end = NULL;
    atomic_store_explicit(&a->bytes, 0, memory_order_relaxed);
}

static tm_arena_chunk *add_chunk(tm_arena *a, size_t bytes)
{
    tm_arena_chunk *chunk = bytes >= LARGE_BYTES ? tm_alloc_large(bytes) : tm_alloc(bytes);
    if (chunk == NULL) return NULL;
    *chunk = (tm_arena_chunk){a->chunks, bytes};
    a->chunks = chunk;
    // Relaxed: a figure by itself, nothing is read through it.
    atomic_fetch_add_explicit(&a->bytes, bytes, memory_order_relaxed);
    return chunk;
}

void *tm_arena_alloc_slow(tm_arena *a, size_t n)
{
    if (n > PTRDIFF_MAX - sizeof(tm_arena_chunk) - 7) return NULL;
    n = n > 0 ? (n + 7) & ~(size_t)7 : 8;
    // What is large gets a chunk of its own, so that the rest of the current one is not lost.
    if (n > (a->chunk_bytes - sizeof(tm_arena_chunk)) / 4) {
        tm_arena_chunk *own = add_chunk(a, sizeof(*own) + n);
        return own != NULL ? own + 1 : NULL;
    }
    tm_arena_chunk *chunk = add_chunk(a, a->chunk_bytes);
    if (chunk == NULL) return NULL;
    if (a->chunk_bytes <= GROW_BYTES / 2) a->chunk_bytes *= 2;
    uint8_t *p = (uint8_t *)(chunk + 1);
    a->next = p + n;
    a->end = (uint8_t *)chunk + chunk->bytes;
    return p;
}

size_t tm_arena_bytes(const tm_arena *a)
{
    return atomic_load_explicit(&a->bytes, memory_order_relaxed);
}
