// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

#define MIB ((size_t)1 << 20)

typedef struct gate { // lets only the first calls pass
    int left, calls;
    size_t last;
} gate;

static bool pass(void *ctx, size_t n)
{
    gate *g = ctx;
    g->calls++;
    g->last = n;
    return g->left-- > 0;
}

START_TEST(nothing_is_something)
{
    void *a = tm_alloc(0), *b = tm_alloc(0), *c = tm_calloc(0, 8), *d = tm_calloc(8, 0);
    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_nonnull(c);
    ck_assert_ptr_nonnull(d);
    ck_assert_ptr_ne(a, b);
    a = tm_realloc(a, 0);
    ck_assert_ptr_nonnull(a);
    tm_free(a);
    tm_free(b);
    tm_free(c);
    tm_free(d);
    tm_free(NULL);
    tm_free_large(NULL, 0);
}
END_TEST

START_TEST(calloc_clears_and_knows_overflow)
{
    uint8_t *p = tm_calloc(100, 33);
    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < 3300; i++) ck_assert_uint_eq(p[i], 0);
    tm_free(p);
    gate g = {.left = 100};
    tm_mem_set_hook(pass, &g);
    ck_assert_ptr_null(tm_calloc(SIZE_MAX / 2 + 1, 2));
    ck_assert_ptr_null(tm_calloc(2, SIZE_MAX / 2 + 1));
    ck_assert_ptr_null(tm_calloc((size_t)1 << 33, (size_t)1 << 33));
    tm_mem_set_hook(NULL, NULL);
    ck_assert_int_eq(g.calls, 0);
}
END_TEST

START_TEST(sizes_beyond_all_memory_are_refused)
{
    volatile size_t huge = SIZE_MAX; // the compiler would warn
    ck_assert_ptr_null(tm_alloc(huge));
    ck_assert_ptr_null(tm_calloc(1, huge));
    ck_assert_ptr_null(tm_realloc(NULL, huge));
    ck_assert_ptr_null(tm_alloc_aligned(64, huge));
    ck_assert_ptr_null(tm_alloc_large(huge));
    ck_assert_ptr_null(tm_alloc_large(huge / 2));
    ck_assert_ptr_null(tm_alloc_large(huge / 2 - 4096));
}
END_TEST

START_TEST(alignment_is_kept)
{
    for (size_t align = sizeof(void *); align <= 4096; align *= 2) {
        uint8_t *p = tm_alloc_aligned(align, 100);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq((uintptr_t)p % align, 0);
        memset(p, 1, 100);
        tm_free(p);
    }
    void *empty = tm_alloc_aligned(64, 0);
    ck_assert_ptr_nonnull(empty);
    tm_free(empty);
}
END_TEST

START_TEST(large_blocks_are_whole_and_aligned)
{
    static const size_t sizes[] = {1,           4096,    MIB,         MIB + 1,
                                   2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 7 * MIB + 12345};
    for (size_t i = 0; i < TM_COUNT(sizes); i++) {
        size_t n = sizes[i];
        uint8_t *p = tm_alloc_large(n), *q = tm_alloc_large(n);
        ck_assert_ptr_nonnull(p);
        ck_assert_ptr_nonnull(q);
        if (n >= 2 * MIB) {
            ck_assert_uint_eq((uintptr_t)p % (2 * MIB), 0);
            ck_assert_uint_eq((uintptr_t)q % (2 * MIB), 0);
        }
        memset(p, 1, n);
        memset(q, 2, n);
        ck_assert_uint_eq((unsigned)p[0] + p[n / 2] + p[n - 1], 3);
        tm_free_large(p, n);
        ck_assert_uint_eq((unsigned)q[0] + q[n / 2] + q[n - 1], 6); // its neighbour lives
        tm_free_large(q, n);
    }
}
END_TEST

START_TEST(the_end_of_a_large_block_goes_back)
{
    static const size_t kept[] = {1, 4096, MIB + 1, 5 * MIB - 1, 5 * MIB};
    for (size_t i = 0; i < TM_COUNT(kept); i++) {
        uint8_t *p = tm_alloc_large(5 * MIB);
        ck_assert_ptr_nonnull(p);
        memset(p, 3, 5 * MIB);
        size_t n = tm_trim_large(p, 5 * MIB, kept[i]);
        ck_assert_uint_ge(n, kept[i]);
        ck_assert_uint_le(n, 5 * MIB);
        for (size_t k = 0; k < n; k += 1000) ck_assert(p[k] == 3);
        ck_assert(p[n - 1] == 3);
        if (n < 5 * MIB) { // what is behind is not there any more
            pid_t child = fork();
            if (child == 0) {
                close(STDERR_FILENO); // a sanitizer's report
                _exit(*(volatile uint8_t *)(p + n) & 0);
            }
            int status = 0;
            ck_assert_int_eq(waitpid(child, &status, 0), child);
            ck_assert_int_ne(status, 0);
        }
        tm_free_large(p, n);
    }
}
END_TEST

START_TEST(hook_sees_every_kind)
{
    gate g = {.left = 6};
    tm_mem_set_hook(pass, &g);
    void *p = tm_alloc(10);
    ck_assert_uint_eq(g.last, 10);
    p = tm_realloc(p, 20);
    ck_assert_uint_eq(g.last, 20);
    void *q = tm_calloc(3, 5);
    ck_assert_uint_eq(g.last, 15);
    void *r = tm_alloc_aligned(64, 30);
    ck_assert_uint_eq(g.last, 30);
    void *s = tm_alloc_large(3 * MIB);
    ck_assert_uint_eq(g.last, 3 * MIB);
    void *t = tm_alloc_large(40);
    ck_assert_uint_eq(g.last, 40);
    ck_assert(p && q && r && s && t);
    ck_assert_int_eq(g.calls, 6);

    ck_assert_ptr_null(tm_alloc(1)); // from here on all fail
    ck_assert_ptr_null(tm_realloc(p, 1));
    ck_assert_ptr_null(tm_calloc(1, 1));
    ck_assert_ptr_null(tm_alloc_aligned(64, 1));
    ck_assert_ptr_null(tm_alloc_large(3 * MIB));
    ck_assert_int_eq(g.calls, 11);
    tm_mem_set_hook(NULL, NULL);
    tm_free(p); // as it was: the address sanitizer would tell otherwise
    tm_free(q);
    tm_free(r);
    tm_free_large(s, 3 * MIB);
    tm_free_large(t, 40);
    tm_free(tm_alloc(1));
    ck_assert_int_eq(g.calls, 11);
}
END_TEST

START_TEST(refused_realloc_keeps_the_block)
{
    uint8_t *p = tm_alloc(100);
    ck_assert_ptr_nonnull(p);
    memset(p, 7, 100);
    gate g = {.left = 0};
    tm_mem_set_hook(pass, &g);
    ck_assert_ptr_null(tm_realloc(p, 200));
    tm_mem_set_hook(NULL, NULL);
    for (size_t i = 0; i < 100; i++) ck_assert_uint_eq(p[i], 7);
    tm_free(p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mem");
    TCase *t = tcase_create("mem");
    tcase_add_test(t, nothing_is_something);
    tcase_add_test(t, calloc_clears_and_knows_overflow);
    tcase_add_test(t, sizes_beyond_all_memory_are_refused);
    tcase_add_test(t, alignment_is_kept);
    tcase_add_test(t, large_blocks_are_whole_and_aligned);
    tcase_add_test(t, the_end_of_a_large_block_goes_back);
    tcase_add_test(t, hook_sees_every_kind);
    tcase_add_test(t, refused_realloc_keeps_the_block);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
