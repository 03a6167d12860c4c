// SPDX-License-Identifier: BSD-2-Clause
//
// base.h - attributes and small helpers that every file may use.
#ifndef TM_BASE_H
#define TM_BASE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tamis_types.h"

#define TM_CHECK_RESULT TAMIS_CHECK_RESULT
// For the rare result that must not be looked at, such as a second failure while undoing.
#define TM_IGNORE(expr)                                                                            \
    do {                                                                                           \
        int tm_ignored_ = (expr);                                                                  \
        (void)tm_ignored_;                                                                         \
    } while (0)
#define TM_LIKELY(x)                    __builtin_expect(!!(x), 1)
#define TM_UNLIKELY(x)                  __builtin_expect(!!(x), 0)
#define TM_ALIGNED(n)                   __attribute__((aligned(n)))
#define TM_PRINTF(fmt, args)            __attribute__((format(printf, fmt, args)))
#define TM_CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define TM_COUNT(array)                 (sizeof(array) / sizeof((array)[0]))
#define TM_MIN(a, b)                    ((a) < (b) ? (a) : (b))
#define TM_MAX(a, b)                    ((a) > (b) ? (a) : (b))
#define TM_CACHE_LINE                   64

// TM_CHECKS builds verify whole structures after each change. Asserts state what our own code must
// hold; what a file or a caller supplied gets a status, never an assert.
#ifdef TM_CHECKS
#define TM_CHECK(x) assert(x)
#else
#define TM_CHECK(x) ((void)0)
#endif

// The high half of the 128-bit product: maps a uniform 64-bit x to [0, n) (Lemire, "Fast random
// integer generation in an interval", 2019).
static inline uint64_t tm_mulhi64(uint64_t x, uint64_t n)
{
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 u128;
    return (uint64_t)(((u128)x * n) >> 64);
#else
    uint64_t xl = x & 0xffffffffu, xh = x >> 32, nl = n & 0xffffffffu, nh = n >> 32;
    uint64_t mid = xh * nl + ((xl * nl) >> 32);
    uint64_t mid2 = xl * nh + (mid & 0xffffffffu);
    return xh * nh + (mid >> 32) + (mid2 >> 32);
#endif
}

#endif // TM_BASE_H
