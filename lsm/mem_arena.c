// SPDX-License-Identifier: BSD-2-Clause
#include "lsm/mem_arena.h"

#include "base/mem.h"

enum {
    LARGE_BYTES = 128 << 10, // from here on chunks come straight from the kernel
    FIRST_BYTES = 16 << 10   // the first chunk; each next one is as large as all before
};

struct tm_mem_chunk { // in front of its memory
    tm_mem_chunk *next;
    size_t bytes; // with this head
    bool large;   // straight from the kernel
};

static_assert(sizeof(tm_mem_chunk) % 8 == 0, "what follows the head is aligned");

void tm_mem_arena_init(tm_mem_arena *a, size_t chunk_bytes)
{
    a->next = a->end = a->spare_next = a->spare_end = NULL;
    a->chunks = a->at = a->spare = NULL;
    a->chunk_bytes = TM_MAX(chunk_bytes, 4 * sizeof(tm_mem_chunk));
    atomic_init(&a->bytes, 0);
    atomic_init(&a->used, 0);
}

void tm_mem_arena_deinit(tm_mem_arena *a)
{
    while (a->chunks != NULL) {
        tm_mem_chunk *chunk = a->chunks;
        a->chunks = chunk->next;
        if (chunk->large) {
            tm_free_large(chunk, chunk->bytes);
        } else {
            tm_free(chunk);
        }
    }
    tm_mem_arena_init(a, a->chunk_bytes);
}

// What is at hand becomes the spare, and the spare comes to hand.
static void swap_spare(tm_mem_arena *a)
{
    uint8_t *next = a->next, *end = a->end;
    tm_mem_chunk *at = a->at;
    a->at = a->spare;
    a->spare = at;
    a->next = a->spare_next;
    a->end = a->spare_end;
    a->spare_next = next;
    a->spare_end = end;
}

static void add_bytes(tm_mem_arena *a, size_t more, size_t less)
{
    size_t taken = atomic_load_explicit(&a->bytes, memory_order_relaxed);
    atomic_store_explicit(&a->bytes, taken + more - less, memory_order_relaxed);
}

// What is at hand is left for good: its pages that were never touched go back. A reserve for a
// large batch takes much more than the batch turns out to need.
static void give_up_rest(tm_mem_arena *a)
{
    tm_mem_chunk *c = a->at;
    if (c == NULL || !c->large) return;
    size_t bytes = tm_trim_large(c, c->bytes, (size_t)(a->next - (uint8_t *)c));
    add_bytes(a, bytes, c->bytes);
    c->bytes = bytes;
}

bool tm_mem_arena_ensure_slow(tm_mem_arena *a, size_t n)
{
    if ((size_t)(a->spare_end - a->spare_next) >= n) {
        swap_spare(a);
        return true;
    }
    if (n > PTRDIFF_MAX - sizeof(tm_mem_chunk)) return false;
    size_t grown =
        TM_MAX(atomic_load_explicit(&a->bytes, memory_order_relaxed), (size_t)FIRST_BYTES);
    size_t bytes = TM_MAX(TM_MIN(a->chunk_bytes, grown), n + sizeof(tm_mem_chunk));
    bool large = bytes >= LARGE_BYTES;
    tm_mem_chunk *chunk = large ? tm_alloc_large(bytes) : tm_alloc(bytes);
    if (chunk == NULL) return false;
    *chunk = (tm_mem_chunk){a->chunks, bytes, large};
    a->chunks = chunk;
    add_bytes(a, bytes, 0);
    // The larger rest is kept; the smaller one is given up.
    if (a->end - a->next > a->spare_end - a->spare_next) swap_spare(a);
    give_up_rest(a);
    a->at = chunk;
    a->next = (uint8_t *)(chunk + 1);
    a->end = (uint8_t *)chunk + bytes;
    return true;
}
