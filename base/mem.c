// SPDX-License-Identifier: BSD-2-Clause
#define _DEFAULT_SOURCE // MAP_ANONYMOUS, madvise

#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

// Large blocks come from malloc under the address sanitizer, which then sees leaks and overruns.
#if defined(__SANITIZE_ADDRESS__)
#define LARGE_FROM_HEAP 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LARGE_FROM_HEAP 1
#endif
#endif

// No object is larger. (The address sanitizer ends the process where malloc would refuse.)
#ifdef LARGE_FROM_HEAP
#define BYTES_MAX ((size_t)1 << 38)
#else
#define BYTES_MAX ((size_t)PTRDIFF_MAX)
#endif

// ctx is written before the hook is published with release; its reader acquires.
static bool (*_Atomic hook)(void *ctx, size_t n);
static void *_Atomic hook_ctx;

void tm_mem_set_hook(bool (*allow)(void *ctx, size_t n), void *ctx)
{
    atomic_store_explicit(&hook, NULL, memory_order_relaxed);
    atomic_store_explicit(&hook_ctx, ctx, memory_order_relaxed);
    atomic_store_explicit(&hook, allow, memory_order_release);
}

static inline bool allowed(size_t n)
{
    if (TM_UNLIKELY(n > BYTES_MAX)) return false;
    bool (*allow)(void *, size_t) = atomic_load_explicit(&hook, memory_order_acquire);
    if (TM_LIKELY(allow == NULL)) return true;
    return allow(atomic_load_explicit(&hook_ctx, memory_order_relaxed), n);
}

void *tm_alloc(size_t n)
{
    return allowed(n) ? malloc(n ? n : 1) : NULL;
}

void *tm_calloc(size_t count, size_t n)
{
    if (n != 0 && count > SIZE_MAX / n) return NULL;
    size_t bytes = count * n;
    return allowed(bytes) ? calloc(1, bytes ? bytes : 1) : NULL;
}

void *tm_realloc(void *p, size_t n)
{
    return allowed(n) ? realloc(p, n ? n : 1) : NULL;
}

void tm_free(void *p)
{
    free(p);
}

void *tm_alloc_aligned(size_t align, size_t n)
{
    void *p = NULL;
    if (!allowed(n) || posix_memalign(&p, align, n ? n : 1) != 0) return NULL;
    return p;
}

#ifdef LARGE_FROM_HEAP

void *tm_alloc_large(size_t n)
{
    return tm_alloc_aligned(n >= HUGE_PAGE ? HUGE_PAGE : 4096, n);
}

void tm_free_large(void *p, size_t n)
{
    (void)n;
    free(p);
}

size_t tm_trim_large(void *p, size_t n, size_t kept)
{
    (void)p;
    (void)kept;
    return n;
}

#else

// What the kernel gives for n bytes, n <= BYTES_MAX: whole pages.
static size_t large_bytes(size_t n)
{
    long page = sysconf(_SC_PAGESIZE);
    size_t mask = page > 0 ? (size_t)page - 1 : 4095;
    return (TM_MAX(n, (size_t)1) + mask) & ~mask;
}

static void *map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p != MAP_FAILED ? p : NULL;
}

// A huge page needs an aligned place: more is mapped, and what hangs over on both sides goes back.
static void *map_on_huge_pages(size_t bytes)
{
    size_t mapped = bytes + HUGE_PAGE;
    uint8_t *p = map(mapped);
    if (p == NULL) return NULL;
    size_t before = (size_t)(-(uintptr_t)p & (HUGE_PAGE - 1));
    size_t after = mapped - before - bytes;
    if (before != 0) munmap(p, before);
    if (after != 0) munmap(p + before + bytes, after);
    p += before;
#ifdef MADV_HUGEPAGE
    (void)madvise(p, bytes, MADV_HUGEPAGE); // a wish: without it the block works just as well
#endif
    return p;
}

void *tm_alloc_large(size_t n)
{
    if (!allowed(n)) return NULL;
    size_t bytes = large_bytes(n);
    return n >= HUGE_PAGE ? map_on_huge_pages(bytes) : map(bytes);
}

void tm_free_large(void *p, size_t n)
{
    if (p != NULL) munmap(p, large_bytes(n));
}

size_t tm_trim_large(void *p, size_t n, size_t kept)
{
    size_t whole = large_bytes(n), least = large_bytes(kept);
    if (least >= whole || munmap((char *)p + least, whole - least) != 0) return n;
    return least;
}

#endif
