// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/random.h"

#define MIB ((size_t)1 << 20)

typedef struct meter { // counts, and lets only the first calls pass
    int calls, left;
    size_t bytes;
} meter;

static bool measure(void *ctx, size_t n)
{
    meter *m = ctx;
    m->calls++;
    if (m->left-- <= 0) return false;
    m->bytes += n;
    return true;
}

START_TEST(an_empty_arena_takes_nothing)
{
    meter m = {.left = 100};
    tm_mem_set_hook(measure, &m);
    tm_arena a;
    tm_arena_init(&a, 4096);
    ck_assert_uint_eq(tm_arena_bytes(&a), 0);
    tm_arena_deinit(&a);
    ck_assert_int_eq(m.calls, 0);
    void *p = tm_arena_alloc(&a, 0); // usable again after deinit; nothing is something
    ck_assert_ptr_nonnull(p);
    ck_assert_ptr_ne(p, tm_arena_alloc(&a, 1));
    tm_mem_set_hook(NULL, NULL);
    tm_arena_deinit(&a);
}
END_TEST

// Pieces of all sizes: aligned, apart from each other, and counted to the byte.
START_TEST(pieces_stand_apart)
{
    enum { N = 3000 };
    static uint8_t *piece[N];
    static size_t size[N];
    static const size_t chunks[] = {0, 1, 77, 4096, 3 * MIB};
    for (size_t c = 0; c < TM_COUNT(chunks); c++) {
        tm_random r = tm_random_seed(c);
        meter m = {.left = INT32_MAX};
        tm_mem_set_hook(measure, &m);
        tm_arena a;
        tm_arena_init(&a, chunks[c]);
        for (size_t i = 0; i < N; i++) {
            size[i] = (size_t)tm_random_below(&r, i % 100 == 0 ? 5000 : 100);
            piece[i] = tm_arena_alloc(&a, size[i]);
            ck_assert_ptr_nonnull(piece[i]);
            ck_assert_uint_eq((uintptr_t)piece[i] % 8, 0);
            if (size[i] != 0) memset(piece[i], (int)(i & 0xff), size[i]);
        }
        tm_mem_set_hook(NULL, NULL);
        for (size_t i = 0; i < N; i++) {
            for (size_t k = 0; k < size[i]; k++) ck_assert(piece[i][k] == (i & 0xff));
        }
        ck_assert_uint_eq(tm_arena_bytes(&a), m.bytes);
        tm_arena_deinit(&a);
        ck_assert_uint_eq(tm_arena_bytes(&a), 0);
    }
}
END_TEST

START_TEST(chunks_are_at_least_what_was_asked_and_grow)
{
    meter m = {.left = INT32_MAX};
    tm_mem_set_hook(measure, &m);
    tm_arena a;
    tm_arena_init(&a, 4096);
    size_t total = 0;
    for (; total < 8 * MIB; total += 64) ck_assert_ptr_nonnull(tm_arena_alloc(&a, 64));
    tm_mem_set_hook(NULL, NULL);
    ck_assert_int_le(m.calls, 9 + 5); // 4 KiB doubled to 2 MiB, then 2 MiB each
    ck_assert_uint_lt(tm_arena_bytes(&a), total + 2 * MIB + 64 * 1024);
    tm_arena_deinit(&a);
}
END_TEST

START_TEST(a_large_piece_does_not_end_the_chunk)
{
    meter m = {.left = 100};
    tm_mem_set_hook(measure, &m);
    tm_arena a;
    tm_arena_init(&a, 64 * 1024);
    uint8_t *small = tm_arena_alloc(&a, 16);
    uint8_t *large = tm_arena_alloc(&a, 5 * MIB);
    uint8_t *next = tm_arena_alloc(&a, 16);
    tm_mem_set_hook(NULL, NULL);
    ck_assert(small && large && next);
    memset(large, 1, 5 * MIB);
    ck_assert_ptr_eq(next, small + 16);
    ck_assert_int_eq(m.calls, 2);
    tm_arena_deinit(&a);
}
END_TEST

START_TEST(the_last_byte_of_a_chunk_is_used)
{
    tm_arena a;
    tm_arena_init(&a, 4096);
    uint8_t *p = tm_arena_alloc(&a, 8);
    ck_assert_ptr_nonnull(p);
    while ((size_t)(a.end - a.next) > 8) ck_assert_ptr_nonnull(tm_arena_alloc(&a, 8));
    size_t bytes = tm_arena_bytes(&a);
    ck_assert_uint_eq((size_t)(a.end - a.next), 8);
    p = tm_arena_alloc(&a, 1);
    memset(p, 1, 8);
    ck_assert_ptr_eq(a.next, a.end);
    ck_assert_uint_eq(tm_arena_bytes(&a), bytes);
    ck_assert_ptr_nonnull(tm_arena_alloc(&a, 1));
    ck_assert_uint_gt(tm_arena_bytes(&a), bytes);
    tm_arena_deinit(&a);
}
END_TEST

START_TEST(the_end_of_memory_changes_nothing)
{
    meter m = {.left = 1};
    tm_mem_set_hook(measure, &m);
    tm_arena a;
    tm_arena_init(&a, 1024);
    uint8_t *p = tm_arena_alloc(&a, 100);
    ck_assert_ptr_nonnull(p);
    size_t bytes = tm_arena_bytes(&a);
    uint8_t *next = a.next;
    ck_assert_ptr_null(tm_arena_alloc(&a, 1000));    // a chunk of its own
    ck_assert_ptr_null(tm_arena_alloc(&a, 3 * MIB)); // from the kernel
    ck_assert_ptr_eq(a.next, next);
    while (tm_arena_alloc(&a, 8) != NULL) { // to the end, and not beyond
    }
    ck_assert_uint_eq(tm_arena_bytes(&a), bytes);
    m.left = 1;
    ck_assert_ptr_nonnull(tm_arena_alloc(&a, 8));
    tm_mem_set_hook(NULL, NULL);
    tm_arena_deinit(&a);
}
END_TEST

START_TEST(sizes_that_overflow_are_refused)
{
    tm_arena a;
    tm_arena_init(&a, 4096);
    ck_assert_ptr_nonnull(tm_arena_alloc(&a, 8));
    size_t bytes = tm_arena_bytes(&a);
    for (size_t below = 0; below < 64; below++) {
        ck_assert_ptr_null(tm_arena_alloc(&a, SIZE_MAX - below));
        ck_assert_ptr_null(tm_arena_alloc(&a, (size_t)PTRDIFF_MAX - 24 + below));
    }
    ck_assert_uint_eq(tm_arena_bytes(&a), bytes);
    tm_arena_deinit(&a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("arena");
    TCase *t = tcase_create("arena");
    tcase_add_test(t, an_empty_arena_takes_nothing);
    tcase_add_test(t, pieces_stand_apart);
    tcase_add_test(t, chunks_are_at_least_what_was_asked_and_grow);
    tcase_add_test(t, a_large_piece_does_not_end_the_chunk);
    tcase_add_test(t, the_last_byte_of_a_chunk_is_used);
    tcase_add_test(t, the_end_of_memory_changes_nothing);
    tcase_add_test(t, sizes_that_overflow_are_refused);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
