// SPDX-License-Identifier: BSD-2-Clause
//
// mem.h - the only door to malloc.
//
// Everything returns NULL when memory ends; nothing aborts. Sizes are checked for overflow.
// Tests install a hook that lets the n-th allocation fail.
#ifndef TM_MEM_H
#define TM_MEM_H

#include "base/base.h"

void *tm_alloc(size_t n) TM_CHECK_RESULT; // not cleared; n = 0 gives a unique pointer
void *tm_calloc(size_t count, size_t n) TM_CHECK_RESULT; // zeros
void *tm_realloc(void *p, size_t n) TM_CHECK_RESULT;     // NULL leaves p as it was
void tm_free(void *p);                                   // NULL is fine

// Aligned to align (a power of two >= sizeof(void *)); freed by tm_free.
void *tm_alloc_aligned(size_t align, size_t n) TM_CHECK_RESULT;

// Large blocks (from about 1 MiB) straight from the kernel, on huge pages where it has them; for
// arenas. tm_free_large needs the same n.
void *tm_alloc_large(size_t n) TM_CHECK_RESULT;
void tm_free_large(void *p, size_t n);
// Gives what lies behind the first kept bytes of a large block back to the kernel, as far as whole
// pages go. Returns its new n, for tm_free_large; n itself where nothing could be given back.
size_t tm_trim_large(void *p, size_t n, size_t kept);

// Tests: called before each allocation; false makes it fail. NULL removes the hook.
void tm_mem_set_hook(bool (*allow)(void *ctx, size_t n), void *ctx);

#endif // TM_MEM_H
