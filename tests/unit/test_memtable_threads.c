// SPDX-License-Identifier: BSD-2-Clause
//
// Readers beside the writer: everything that was published is found, in order, and nothing twice.
#include "memtable_kit.h"

#include <stdatomic.h>

#include "base/sync.h"

enum { SHARED = 12000 };
typedef struct shared {
    tm_memtable *t;
    const keys *k;
    _Atomic uint64_t published; // sequence number
    uint8_t *keys;              // 32 bytes each: length, bytes
    uint64_t seed, failures;
} shared;

static tm_slice shared_key(const shared *s, uint64_t i)
{
    return tm_slice_of(s->keys + 32 * i + 1, s->keys[32 * i]);
}

// Everything up to the published number is there, in order, and nothing twice.
static uint64_t scan_failures(shared *s, bool back)
{
    uint64_t seen = atomic_load_explicit(&s->published, memory_order_acquire), n = 0, failures = 0;
    tm_iter *it;
    tm_buf last = {0};
    uint64_t last_trailer = 0;
    if (tm_memtable_iter_create(s->t, &it, NULL) != TAMIS_OK) return 1;
    if (back)
        it->ops->last(it);
    else
        it->ops->first(it);
    for (bool begun = false; it->valid; begun = true) {
        n += tm_trailer_seq(it->trailer) <= seen;
        if (begun) {
            tm_order o = tm_order_bytewise();
            int c = tm_order_compare_internal(&o, tm_buf_slice(&last), last_trailer, it->key,
                                              it->trailer);
            failures += back ? c <= 0 : c >= 0;
        }
        failures += tm_buf_set(&last, it->key) != TAMIS_OK;
        last_trailer = it->trailer;
        if (back)
            it->ops->prev(it);
        else
            it->ops->next(it);
    }
    tm_iter_destroy(it);
    tm_buf_deinit(&last);
    return failures + (n != seen);
}

static uint64_t search_failures(shared *s, tm_iter *it, uint64_t seen, tm_random *r)
{
    uint64_t i = tm_random_below(r, seen), found = 0, failures = 0, trailer = tm_trailer(i + 1, 1);
    tm_slice key = shared_key(s, i), value;
    bool has = tm_memtable_get(s->t, key, tm_trailer_seek(i + 1), hash_of(key), &found, &value);
    failures += !has || found != trailer || value.len != 8 || tm_get64(value.data) != i;
    it->ops->seek(it, key, trailer);
    failures += !it->valid || it->trailer != trailer;
    it->ops->seek_before(it, key, trailer - 1);
    // Only what is newer than the view may have come between.
    while (it->valid && tm_trailer_seq(it->trailer) > seen) it->ops->prev(it);
    failures += !it->valid || it->trailer != trailer;
    // What is just being added: whatever is there of it, nothing before the key is shown.
    tm_order o = tm_order_bytewise();
    uint64_t soon = TM_MIN(seen + tm_random_below(r, 40), (uint64_t)SHARED - 1);
    trailer = tm_trailer_seek(soon + 1);
    it->ops->seek(it, shared_key(s, soon), trailer);
    failures += it->valid && tm_order_compare_internal(&o, it->key, it->trailer,
                                                       shared_key(s, soon), trailer) < 0;
    uint64_t cover;
    failures += tm_memtable_range_cover(s->t, tm_slice_str("r"), seen, &cover, NULL) != TAMIS_OK;
    return failures + (cover != seen / 50 * 50); // one range delete for each 50 entries
}

static void *read_all(void *arg)
{
    shared *s = arg;
    tm_random r = tm_random_seed(s->seed);
    tm_iter *it;
    uint64_t failures = 0;
    if (tm_memtable_iter_create(s->t, &it, NULL) != TAMIS_OK) return NULL;
    for (;;) {
        uint64_t seen = atomic_load_explicit(&s->published, memory_order_acquire);
        for (int i = 0; i < 300 && seen > 0; i++) failures += search_failures(s, it, seen, &r);
        failures += scan_failures(s, false);
        failures += scan_failures(s, true);
        if (seen == SHARED) break;
    }
    tm_iter_destroy(it);
    s->failures = failures;
    return s;
}

START_TEST(readers_see_what_was_published)
{
    tm_order o = tm_order_bytewise();
    shared s = {.t = create(&o, BUFFER), .k = &kinds[_i], .keys = calloc(SHARED, 32)};
    shared readers[2];
    tm_thread threads[2];
    tm_random r = tm_random_seed(1);
    for (uint64_t i = 0; i < SHARED; i++) {
        s.keys[32 * i] = (uint8_t)s.k->make(s.keys + 32 * i + 1, i, &r);
    }
    // The readers share the number through one struct; their counts are their own.
    for (int i = 0; i < 2; i++) {
        readers[i] = s;
        readers[i].seed = (uint64_t)i + 1;
    }
    _Atomic uint64_t *numbers[2] = {&readers[0].published, &readers[1].published};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tm_thread_start(&threads[i], read_all, &readers[i], "reader", NULL), 0);
    }
    for (uint64_t i = 0; i < SHARED; i++) {
        uint8_t value[8];
        tm_put64(value, i);
        tm_slice key = shared_key(&s, i);
        ck_assert_int_eq(tm_memtable_add(s.t, key, tm_trailer(i + 1, TM_KIND_PUT),
                                         tm_slice_of(value, 8), hash_of(key), NULL),
                         TAMIS_OK);
        if ((i + 1) % 50 == 0) {
            ck_assert_int_eq(
                tm_memtable_add_range(s.t, tm_slice_str("q"), tm_slice_str("s"), i + 1, NULL),
                TAMIS_OK);
        }
        for (int k = 0; k < 2; k++) atomic_store_explicit(numbers[k], i + 1, memory_order_release);
    }
    for (int i = 0; i < 2; i++) {
        tm_thread_join(&threads[i]);
        ck_assert_uint_eq(readers[i].failures, 0);
    }
    tm_memtable_unref(s.t);
    free(s.keys);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("memtable_threads");
    TCase *c = tcase_create("threads");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, readers_see_what_was_published, 0, KINDS);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    SRunner *r = srunner_create(suite());
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
