// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>

#include "base/sync.h"
#include "tests/unit/table_kit.h"

#define LARGE ((size_t)64 * 1024 * 1024)

static const kit_shape shapes[] = {
    {"numbers", 3000, 1, 0, 40, 1024, 512, 4096, TM_COMPRESSION_LZ4, TM_FILTER_BLOCKED, 10000,
     false, false, 1},
    {"random bytes", 800, 3, 1, 20, 256, 256, 300, TM_COMPRESSION_NONE, TM_FILTER_BLOOM, 8000,
     false, false, 3},
    {"long starts", 1500, 2, 2, 10, 512, 256, 512, TM_COMPRESSION_LZ4, TM_FILTER_BLOCKED, 12000,
     false, false, 4},
    {"equal heads", 1000, 2, 3, 30, 512, 256, 512, TM_COMPRESSION_NONE, TM_FILTER_NONE, 0, false,
     false, 5},
    {"many versions", 20, 400, 0, 30, 512, 256, 512, TM_COMPRESSION_LZ4, TM_FILTER_BLOCKED, 10000,
     false, true, 6},
    {"reverse", 1000, 2, 0, 30, 512, 256, 512, TM_COMPRESSION_LZ4, TM_FILTER_BLOCKED, 10000, true,
     false, 8},
    {"large values", 60, 2, 0, 20000, 4096, 4096, 4096, TM_COMPRESSION_LZ4, TM_FILTER_BLOCKED,
     10000, false, false, 9},
    {"one entry", 1, 1, 0, 20, 4096, 4096, 4096, TM_COMPRESSION_NONE, TM_FILTER_BLOCKED, 10000,
     false, false, 11},
};
enum { SHAPES = TM_COUNT(shapes), NUMBERS = 0 };

static tm_read_counts counts;

static tm_iter *iter_of(kit *k, size_t readahead, bool cached_only, bool no_fill)
{
    tm_table_iter_options o = {.counts = &counts,
                               .readahead_bytes = readahead,
                               .cached_only = cached_only,
                               .no_fill = no_fill};
    tm_iter *it = NULL;
    ck_assert_int_eq(tm_table_iter_create(k->table, &o, &it, NULL), TAMIS_OK);
    ck_assert(!it->valid);
    return it;
}

// The iterator stands at entry i; at the end for any other number.
static void check_at(const kit *k, const tm_iter *it, uint32_t i)
{
    ck_assert_msg(it->status == TAMIS_OK, "%s: %s", k->shape.name, it->error.message);
    ck_assert_int_eq(it->valid, i < k->n);
    if (!it->valid) return;
    ck_assert(tm_slice_equal(it->key, k->entries[i].key));
    ck_assert_uint_eq(it->trailer, k->entries[i].trailer);
    ck_assert(tm_slice_equal(it->value, k->entries[i].value));
}

// ---- Walks -------------------------------------------------------------------------------------

static void walk_both_ways(kit *k, tm_iter *it)
{
    it->ops->first(it);
    for (uint32_t i = 0; i < k->n; i++) {
        check_at(k, it, i);
        it->ops->next(it);
    }
    check_at(k, it, k->n);
    it->ops->last(it);
    for (uint32_t i = k->n; i-- > 0;) {
        check_at(k, it, i);
        it->ops->prev(it);
    }
    check_at(k, it, UINT32_MAX);
}

START_TEST(walks)
{
    static const size_t budgets[] = {0, 3000, 30000, LARGE};
    kit k;
    kit_begin(&k, &shapes[_i]);
    for (size_t i = 0; i < 2 * TM_COUNT(budgets); i++) {
        kit_open(&k, budgets[i / 2]);
        tm_iter *it = iter_of(&k, i % 2 == 0 ? 0 : 1, false, i == 5);
        walk_both_ways(&k, it);
        walk_both_ways(&k, it);
        tm_iter_destroy(it);
        kit_close(&k);
    }
    kit_end(&k);
}
END_TEST

// Random movements beside the array.
START_TEST(movements)
{
    static const size_t budgets[] = {0, 5000, 50000, LARGE};
    kit k;
    kit_begin(&k, &shapes[_i]);
    tm_random r = tm_random_seed(7);
    for (size_t b = 0; b < TM_COUNT(budgets); b++) {
        kit_open(&k, budgets[b]);
        tm_iter *it = iter_of(&k, 0, false, false);
        uint32_t at = UINT32_MAX;
        for (int i = 0; i < 3000; i++) {
            uint64_t what = tm_random_below(&r, 20);
            const kit_entry *e = &k.entries[tm_random_below(&r, k.n)];
            uint8_t near[200];
            memcpy(near, e->key.data, e->key.len);
            near[e->key.len] = 0;
            tm_slice key = tm_slice_of(near, e->key.len + tm_random_below(&r, 2));
            if (key.len > 0 && tm_random_below(&r, 4) == 0) near[key.len - 1]--;
            uint64_t trailer = e->trailer + tm_random_below(&r, 3) - 1;
            if (what == 0) {
                it->ops->first(it);
                at = 0;
            } else if (what == 1) {
                it->ops->last(it);
                at = k.n - 1;
            } else if (what < 5) {
                it->ops->seek(it, key, trailer);
                at = kit_bound(&k, key, trailer);
            } else if (what < 8) {
                it->ops->seek_before(it, key, trailer);
                at = kit_bound(&k, key, trailer) - 1;
            } else if (it->valid && what < 14) {
                it->ops->next(it);
                at++;
            } else if (it->valid) {
                it->ops->prev(it);
                at--;
            }
            check_at(&k, it, at);
        }
        tm_iter_destroy(it);
        kit_close(&k);
    }
    kit_end(&k);
}
END_TEST

START_TEST(seeks_at_every_entry)
{
    kit k;
    kit_begin(&k, &shapes[_i]);
    kit_open(&k, 100000);
    tm_iter *it = iter_of(&k, 0, false, false);
    for (uint32_t i = 0; i < k.n; i++) {
        const kit_entry *e = &k.entries[i];
        it->ops->seek(it, e->key, e->trailer);
        check_at(&k, it, i);
        it->ops->seek(it, it->key, it->trailer - 1); // with its own key
        check_at(&k, it, kit_bound(&k, e->key, e->trailer - 1));
        it->ops->seek_before(it, e->key, e->trailer);
        check_at(&k, it, i - 1);
        it->ops->seek_before(it, e->key, 0);
        check_at(&k, it, kit_bound(&k, e->key, 0) - 1);
    }
    tm_iter_destroy(it);
    kit_close(&k);
    kit_end(&k);
}
END_TEST

// ---- Reading ahead and memory ------------------------------------------------------------------

START_TEST(sequential_walks_read_ahead)
{
    kit k;
    kit_begin(&k, &shapes[NUMBERS]);
    for (int way = 0; way < 2; way++) {
        kit_open(&k, way == 0 ? 0 : LARGE);
        tm_iter *it = iter_of(&k, 0, false, false);
        counts = (tm_read_counts){0};
        uint64_t before = kit_reads, blocks;
        if (way == 0) {
            for (it->ops->first(it); it->valid; it->ops->next(it)) {}
        } else {
            for (it->ops->last(it); it->valid; it->ops->prev(it)) {}
        }
        ck_assert_int_eq(it->status, TAMIS_OK);
        blocks = counts.read_blocks[TM_CACHED_DATA];
        ck_assert_uint_gt(blocks, 50);
        ck_assert_uint_lt(kit_reads - before, blocks / 4);
        tm_cache_usage u;
        tm_cache_usage_get(k.cache, &u);
        ck_assert_uint_gt(u.charged, 0);
        ck_assert_uint_le(u.charged, 256 * 1024);
        tm_iter_destroy(it);
        kit_close(&k);

        // Single seeks do not.
        kit_open(&k, 0);
        it = iter_of(&k, 0, false, false);
        counts = (tm_read_counts){0};
        for (uint32_t i = 0; i < 100; i++) {
            uint32_t j = (i * 37) % k.n;
            it->ops->seek(it, k.entries[j].key, UINT64_MAX);
            it->ops->next(it);
        }
        tm_cache_usage_get(k.cache, &u);
        ck_assert_uint_eq(u.charged, 0);
        tm_iter_destroy(it);
        kit_close(&k);
    }
    // With all in memory nothing is read.
    kit_open(&k, LARGE);
    tm_iter *it = iter_of(&k, 0, false, false);
    walk_both_ways(&k, it);
    uint64_t before = kit_reads;
    walk_both_ways(&k, it);
    ck_assert_uint_eq(kit_reads, before);
    tm_iter_destroy(it);
    it = iter_of(&k, 0, true, false);
    walk_both_ways(&k, it);
    tm_iter_destroy(it);
    kit_close(&k);
    kit_end(&k);
}
END_TEST

START_TEST(cached_only_is_busy)
{
    kit k;
    kit_begin(&k, &shapes[NUMBERS]);
    kit_open(&k, LARGE);
    tm_iter *it = iter_of(&k, 0, true, false), *loader = iter_of(&k, 0, false, false);
    uint64_t before = kit_reads;
    it->ops->first(it); // no top level
    ck_assert(!it->valid);
    ck_assert_int_eq(it->status, TAMIS_BUSY);
    ck_assert_uint_eq(kit_reads, before);
    loader->ops->first(loader);
    before = kit_reads;
    it->ops->last(it); // no index
    ck_assert_int_eq(it->status, TAMIS_BUSY);
    it->ops->first(it);
    check_at(&k, it, 0);
    uint32_t i = 0;
    for (; it->valid; it->ops->next(it)) check_at(&k, it, i++); // no second data block
    ck_assert_int_eq(it->status, TAMIS_BUSY);
    ck_assert_uint_gt(i, 1);
    ck_assert_uint_eq(kit_reads, before);
    it->ops->seek(it, k.entries[0].key, UINT64_MAX); // goes on after a failure
    check_at(&k, it, 0);
    tm_iter_destroy(it);
    tm_iter_destroy(loader);
    kit_close(&k);
    kit_end(&k);
}
END_TEST

START_TEST(no_fill_leaves_the_cache_as_it_is)
{
    kit k;
    kit_begin(&k, &shapes[NUMBERS]);
    kit_open(&k, 120000);
    // What is asked for again and again.
    tm_read_mode mode;
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 300; i++) kit_get(&k, k.entries[i].key, UINT64_MAX, NULL, &mode);
    }
    tm_iter *it = iter_of(&k, 0, false, true);
    for (it->ops->first(it); it->valid; it->ops->next(it)) {}
    ck_assert_int_eq(it->status, TAMIS_OK);
    tm_iter_destroy(it);
    uint32_t here = 0;
    for (uint32_t i = 0; i < 300; i++) {
        kit_get(&k, k.entries[i].key, UINT64_MAX, NULL, &mode);
        here += mode == TM_READ_EPOCH;
    }
    ck_assert_uint_ge(here, 280);
    kit_close(&k);
    kit_end(&k);
}
END_TEST

START_TEST(values_stay_while_the_iterator_stands)
{
    kit k;
    kit_begin(&k, &shapes[NUMBERS]);
    kit_open(&k, LARGE);
    tm_iter *it = iter_of(&k, 0, false, false);
    it->ops->seek(it, k.entries[1000].key, UINT64_MAX);
    tm_cache_set_budget(k.cache, 0);
    tm_epoch_synchronize();
    check_at(&k, it, 1000);
    for (uint32_t i = 1001; i < 1200; i++) {
        it->ops->next(it);
        check_at(&k, it, i);
    }
    tm_cache_usage u;
    tm_cache_usage_get(k.cache, &u);
    ck_assert_uint_gt(u.pinned, 0);
    tm_iter_destroy(it);
    kit_close(&k);
    kit_end(&k);
}
END_TEST

// ---- Damage and failures -----------------------------------------------------------------------

static const kit_shape small_shape = {
    "small", 24, 2, 0, 24, 128, 64, 80, TM_COMPRESSION_LZ4, TM_FILTER_BLOCKED, 10000, false, true,
    31};

// Walks both ways: what it shows is right, and it ends with a failure or with everything shown.
// Returns the last failure.
static int walk_as_far_as_it_goes(kit *k)
{
    tm_iter *it = iter_of(k, 0, false, false);
    uint32_t i = 0;
    int failure = TAMIS_OK;
    for (it->ops->first(it); it->valid; it->ops->next(it)) check_at(k, it, i++);
    if (it->status == TAMIS_OK) ck_assert_uint_eq(i, k->n);
    if (it->status != TAMIS_OK) ck_assert_int_eq(it->error.code, failure = it->status);
    i = k->n;
    for (it->ops->last(it); it->valid; it->ops->prev(it)) check_at(k, it, --i);
    if (it->status == TAMIS_OK) ck_assert_uint_eq(i, 0);
    if (it->status != TAMIS_OK) ck_assert_int_eq(it->error.code, failure = it->status);
    // Each entry is there, or a failure is.
    for (i = 0; i < k->n; i++) {
        it->ops->seek(it, k->entries[i].key, k->entries[i].trailer);
        if (it->status == TAMIS_OK) check_at(k, it, i);
        if (it->status != TAMIS_OK) failure = it->status;
    }
    tm_iter_destroy(it);
    return failure;
}

START_TEST(every_byte_changed)
{
    kit k;
    kit_begin(&k, &small_shape);
    uint32_t harmful = 0;
    for (uint64_t at = 0; at < k.meta.file_bytes; at++) {
        uint8_t byte, changed;
        kit_bytes(&k, at, &byte, 1, false);
        changed = (uint8_t)(byte ^ (1u << (at + 3) % 8));
        kit_bytes(&k, at, &changed, 1, true);
        kit_open(&k, at % 2 == 0 ? LARGE : 0);
        int st = walk_as_far_as_it_goes(&k);
        ck_assert(st == TAMIS_OK || st == TAMIS_CORRUPT || st == TAMIS_UNSUPPORTED);
        harmful += st != TAMIS_OK;
        kit_close(&k);
        kit_bytes(&k, at, &byte, 1, true);
    }
    ck_assert_uint_gt(harmful, k.meta.file_bytes / 3);
    kit_end(&k);
}
END_TEST

START_TEST(each_call_fails_once)
{
    kit k;
    kit_begin(&k, &small_shape);
    uint32_t failures = 0;
    for (uint64_t n = 1;; n++) {
        kit_open(&k, n % 2 == 0 ? LARGE : 0);
        uint64_t call = tamis_vfs_memory_calls(k.memory) + n;
        tamis_vfs_memory_fail(k.memory, call, n % 3 == 0 ? 0 : EIO, 0);
        int st = walk_as_far_as_it_goes(&k);
        bool met = tamis_vfs_memory_calls(k.memory) >= call;
        tamis_vfs_memory_fail(k.memory, 0, 0, 0);
        ck_assert(st == TAMIS_OK || (st == TAMIS_IO && n % 3 != 0));
        failures += st != TAMIS_OK;
        ck_assert_int_eq(walk_as_far_as_it_goes(&k), TAMIS_OK);
        kit_close(&k);
        if (!met && n > 8) break;
    }
    ck_assert_uint_gt(failures, 3);
    kit_end(&k);
}
END_TEST

static bool deny_nth(void *ctx, size_t n)
{
    (void)n;
    return --*(int64_t *)ctx != 0;
}

START_TEST(each_allocation_fails_once)
{
    kit k;
    kit_begin(&k, &small_shape);
    for (int64_t n = 1;; n++) {
        int64_t left = n;
        kit_open(&k, n % 2 == 0 ? LARGE : 0);
        tm_table_iter_options o = {.counts = &counts};
        tm_iter *it = NULL;
        tamis_error err = {0};
        tm_mem_set_hook(deny_nth, &left);
        int st = tm_table_iter_create(k.table, &o, &it, &err);
        if (st == TAMIS_OK) {
            uint32_t i = 0;
            for (it->ops->first(it); it->valid; it->ops->next(it)) check_at(&k, it, i++);
            st = it->status;
            ck_assert(st == TAMIS_NOMEM || i == k.n);
        }
        tm_mem_set_hook(NULL, NULL);
        ck_assert(st == TAMIS_OK || st == TAMIS_NOMEM);
        tm_iter_destroy(it);
        ck_assert_int_eq(walk_as_far_as_it_goes(&k), TAMIS_OK);
        kit_close(&k);
        if (left > 0) break;
    }
    kit_end(&k);
}
END_TEST

// ---- Threads -----------------------------------------------------------------------------------

typedef struct worker {
    kit *k;
    uint64_t seed;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    tm_random r = tm_random_seed(w->seed);
    tm_read_counts own = {0};
    tm_table_iter_options o = {.counts = &own, .no_fill = w->seed % 2 == 0};
    tm_iter *it = NULL;
    ck_assert_int_eq(tm_table_iter_create(w->k->table, &o, &it, NULL), TAMIS_OK);
    for (int i = 0; i < 60; i++) {
        uint32_t at = (uint32_t)tm_random_below(&r, w->k->n);
        it->ops->seek(it, w->k->entries[at].key, w->k->entries[at].trailer);
        for (int j = 0; j < 100 && it->valid; j++) {
            check_at(w->k, it, at);
            if (w->seed % 3 == 0) {
                it->ops->prev(it);
                at--;
            } else {
                it->ops->next(it);
                at++;
            }
        }
        check_at(w->k, it, at);
    }
    tm_iter_destroy(it);
    return NULL;
}

START_TEST(many_threads)
{
    kit k;
    kit_begin(&k, &shapes[_i]);
    kit_open(&k, 60000);
    tm_thread threads[4];
    worker workers[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (worker){&k, (uint64_t)i};
        ck_assert_int_eq(tm_thread_start(&threads[i], work, &workers[i], "worker", NULL), TAMIS_OK);
    }
    for (int i = 0; i < 4; i++) tm_thread_join(&threads[i]);
    kit_close(&k);
    kit_end(&k);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("table_iter");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, walks, 0, SHAPES);
    tcase_add_loop_test(t, movements, 0, SHAPES);
    tcase_add_loop_test(t, seeks_at_every_entry, 0, SHAPES);
    tcase_add_test(t, sequential_walks_read_ahead);
    tcase_add_test(t, cached_only_is_busy);
    tcase_add_test(t, no_fill_leaves_the_cache_as_it_is);
    tcase_add_test(t, values_stay_while_the_iterator_stands);
    tcase_add_test(t, every_byte_changed);
    tcase_add_test(t, each_call_fails_once);
    tcase_add_test(t, each_allocation_fails_once);
    tcase_add_loop_test(t, many_threads, 0, SHAPES);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
