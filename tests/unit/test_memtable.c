// SPDX-License-Identifier: BSD-2-Clause
#include "memtable_kit.h"

// ---- Order -------------------------------------------------------------------------------------

START_TEST(nothing_is_in_an_empty_one)
{
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, 0);
    tm_slice key = tm_slice_str("k"), value;
    uint64_t found, cover = 1;
    const tm_range_set *set;
    tm_iter *it;
    ck_assert(!tm_memtable_get(t, key, UINT64_MAX, hash_of(key), &found, &value));
    tm_memtable_prefetch(t, hash_of(key));
    ck_assert_int_eq(tm_memtable_range_cover(t, key, TM_MAX_SEQ, &cover, NULL), TAMIS_OK);
    ck_assert_uint_eq(cover, 0);
    ck_assert_int_eq(tm_memtable_ranges(t, &set, NULL), TAMIS_OK);
    ck_assert_ptr_null(set);
    ck_assert_int_eq(tm_memtable_iter_create(t, &it, NULL), TAMIS_OK);
    it->ops->first(it);
    ck_assert(!it->valid);
    it->ops->last(it);
    ck_assert(!it->valid);
    it->ops->seek(it, key, 0);
    ck_assert(!it->valid);
    it->ops->seek_before(it, key, 0);
    ck_assert(!it->valid);
    ck_assert_int_eq(it->status, TAMIS_OK);
    ck_assert_uint_eq(tm_memtable_entries(t), 0);
    ck_assert_uint_eq(tm_memtable_hash_seed(t), SEED);
    tm_memtable_unref(t);
    it->ops->first(it); // it holds a reference
    ck_assert(!it->valid);
    tm_iter_destroy(it);
    tm_memtable_unref(NULL);
}
END_TEST

START_TEST(every_kind_of_keys_is_kept_in_order)
{
    const keys *k = &kinds[_i % KINDS];
    tm_order o = _i < KINDS ? tm_order_bytewise() : reversed_order();
    model m = {.reversed = _i >= KINDS};
    tm_memtable *t = create(&o, BUFFER);
    tm_random r = tm_random_seed((uint64_t)_i);
    uint64_t deletes = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        ck_assert_int_eq(add(t, &m, k, i, &r), TAMIS_OK);
        deletes += kind_of(i) == TM_KIND_DELETE;
        if (i < 40 || i % 997 == 0) check_walks(t, &m);
    }
    check_walks(t, &m);
    check_searches(t, &m, k, &r, 300);
    ck_assert_uint_eq(tm_memtable_entries(t), 4000);
    ck_assert_uint_eq(tm_memtable_deletes(t), deletes);
    ck_assert_uint_ge(tm_memtable_bytes(t), tm_memtable_data(t));
    tm_memtable_unref(t);
    model_free(&m);
}
END_TEST

START_TEST(an_iterator_steps_on_where_its_leaf_was_split)
{
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, BUFFER);
    model m = {0};
    tm_random r = tm_random_seed(3);
    for (uint64_t i = 0; i < 200; i++) ck_assert_int_eq(add(t, &m, &kinds[4], i, &r), TAMIS_OK);
    model_sort(&m);
    tm_iter *its[200];
    for (size_t i = 0; i < 200; i++) {
        ck_assert_int_eq(tm_memtable_iter_create(t, &its[i], NULL), TAMIS_OK);
        its[i]->ops->seek(its[i], tm_slice_of(m.items[i].key, m.items[i].len), UINT64_MAX);
        check_at(its[i], &m, i);
    }
    model later = {0};
    for (uint64_t i = 200; i < 3000; i++) ck_assert_int_eq(add(t, &later, &kinds[4], i, &r), 0);
    for (size_t i = 0; i < 200; i++) { // what was there is met, in order, whatever else is
        bool back = i % 2;
        size_t at = i, met = 0;
        check_at(its[i], &m, at);
        for (;;) {
            tm_buf before = {0};
            ck_assert_int_eq(tm_buf_set(&before, its[i]->key), TAMIS_OK);
            if (back)
                its[i]->ops->prev(its[i]);
            else
                its[i]->ops->next(its[i]);
            if (!its[i]->valid) {
                tm_buf_deinit(&before);
                break;
            }
            int c = tm_slice_compare(its[i]->key, tm_buf_slice(&before));
            ck_assert(back ? c <= 0 : c >= 0); // keys may repeat
            tm_buf_deinit(&before);
            if (tm_trailer_seq(its[i]->trailer) > 200) continue;
            at = back ? at - 1 : at + 1;
            met++;
            check_at(its[i], &m, at);
        }
        ck_assert_uint_eq(met, back ? i : 199 - i);
        tm_iter_destroy(its[i]);
    }
    tm_memtable_unref(t);
    model_free(&m);
    model_free(&later);
}
END_TEST

START_TEST(lengths_at_the_limits)
{
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, BUFFER);
    size_t lens[] = {0, 1, KEY_MAX - 1, KEY_MAX};
    uint8_t *big = malloc(3 << 20);
    model m = {0};
    fill_value(big, 3 << 20, 0);
    uint8_t *key = calloc(1, KEY_MAX + 1);
    for (size_t i = 0; i < TM_COUNT(lens); i++) {
        tm_slice k = tm_slice_of(key, lens[i]);
        size_t value_len = i % 2 ? 0 : 3 << 20;
        ck_assert_int_eq(tm_memtable_add(t, k, tm_trailer(i + 1, TM_KIND_PUT),
                                         tm_slice_of(big, value_len), hash_of(k), NULL),
                         TAMIS_OK);
        model_add(&m, k, tm_trailer(i + 1, TM_KIND_PUT), 0, value_len);
    }
    tamis_error err = {0};
    tm_slice k = tm_slice_of(key, KEY_MAX + 1), none = tm_slice_of(NULL, 0);
    ck_assert_int_eq(tm_memtable_add(t, k, 999, none, 1, &err), TAMIS_TOOLARGE);
    ck_assert_int_eq(err.code, TAMIS_TOOLARGE);
    ck_assert_int_eq(tm_memtable_add_range(t, k, none, 9, NULL), TAMIS_TOOLARGE);
    ck_assert_int_eq(tm_memtable_add_range(t, none, k, 9, NULL), TAMIS_TOOLARGE);
    ck_assert_uint_eq(tm_memtable_entries(t), 4);
    check_walks(t, &m);
    uint64_t found;
    tm_slice value;
    ck_assert(tm_memtable_get(t, none, UINT64_MAX, hash_of(none), &found, &value));
    ck_assert_uint_eq(value.len, 3 << 20);
    tm_memtable_unref(t);
    model_free(&m);
    free(key);
    free(big);
}
END_TEST

START_TEST(without_memory_nothing_changes)
{
    const keys *k = &kinds[_i];
    tm_order o = tm_order_bytewise();
    for (long n = 0;; n++) { // creation
        gate g = {.left = n};
        tm_memtable *t = (tm_memtable *)&o;
        tamis_error err = {0};
        tm_mem_set_hook(pass, &g);
        int st = tm_memtable_create(&o, SEED, BUFFER, &t, &err);
        tm_mem_set_hook(NULL, NULL);
        if (st == TAMIS_OK) {
            ck_assert(!g.hit);
            tm_memtable_unref(t);
            break;
        }
        ck_assert_int_eq(st, TAMIS_NOMEM);
        ck_assert_int_eq(err.code, TAMIS_NOMEM);
        ck_assert_ptr_null(t);
        ck_assert_int_lt(n, 20);
    }
    tm_memtable *t = create(&o, 0); // chunks of 64 KiB
    model m = {0};
    tm_random r = tm_random_seed(9);
    size_t failed = 0;
    for (uint64_t i = 0; i < 6000; i++) { // every chunk is refused at first
        gate g = {.sticky = true};
        size_t data = tm_memtable_data(t), bytes = tm_memtable_bytes(t);
        tm_mem_set_hook(pass, &g);
        int st = add(t, &m, k, i, &r);
        tm_mem_set_hook(NULL, NULL);
        if (st == TAMIS_OK) continue;
        failed++;
        ck_assert_int_eq(st, TAMIS_NOMEM);
        ck_assert_uint_eq(tm_memtable_data(t), data);
        ck_assert_uint_eq(tm_memtable_bytes(t), bytes);
        ck_assert_uint_eq(tm_memtable_entries(t), m.n);
        check_walks(t, &m);
        ck_assert_int_eq(add(t, &m, k, i, &r), TAMIS_OK);
    }
    ck_assert_uint_ge(failed, 3);
    check_walks(t, &m);
    tm_memtable_unref(t);
    model_free(&m);
}
END_TEST

START_TEST(what_was_reserved_cannot_fail)
{
    const keys *k = &kinds[_i];
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, 0);
    model m = {0};
    tm_random r = tm_random_seed(11);
    uint64_t i = 0;
    for (size_t round = 0; round < 300; round++) {
        size_t count = round % 10 == 0 ? 500 : 1 + (size_t)tm_random_below(&r, 20);
        gate g = {.left = 0};
        tm_mem_set_hook(pass, &g);
        size_t bytes = tm_memtable_bytes(t);
        int st = tm_memtable_reserve(t, count * 64, count, NULL);
        tm_mem_set_hook(NULL, NULL);
        if (st != TAMIS_OK) {
            ck_assert_int_eq(st, TAMIS_NOMEM);
            ck_assert_uint_eq(tm_memtable_bytes(t), bytes);
            ck_assert_int_eq(tm_memtable_reserve(t, count * 64, count, NULL), TAMIS_OK);
        }
        gate closed = {.sticky = true};
        tm_mem_set_hook(pass, &closed);
        for (size_t n = 0; n < count; n++, i++) {
            if (tm_random_below(&r, 10) == 0) {
                uint8_t a[64], b[64];
                tm_slice start = tm_slice_of(a, k->make(a, i, &r));
                tm_slice limit = tm_slice_of(b, k->make(b, i + 1, &r));
                if (start.len + limit.len > 64) limit.len = 64 - start.len;
                ck_assert_int_eq(tm_memtable_add_range(t, start, limit, i + 1, NULL), TAMIS_OK);
            } else {
                ck_assert_int_eq(add(t, &m, k, i, &r), TAMIS_OK);
            }
        }
        tm_mem_set_hook(NULL, NULL);
        ck_assert(!closed.hit);
    }
    check_walks(t, &m);
    ck_assert_int_eq(tm_memtable_reserve(t, SIZE_MAX, 1, NULL), TAMIS_NOMEM);
    ck_assert_int_eq(tm_memtable_reserve(t, 1, SIZE_MAX, NULL), TAMIS_NOMEM);
    ck_assert_int_eq(tm_memtable_reserve(t, SIZE_MAX / 2, SIZE_MAX / 64, NULL), TAMIS_NOMEM);
    tm_memtable_unref(t);
    model_free(&m);
}
END_TEST

// The worst case: ascending keys have filled every leaf, and then each addition meets another one.
START_TEST(full_leaves_are_split_within_what_was_reserved)
{
    enum { FULL = 14 * 2000 };
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, 0);
    for (uint64_t i = 0; i < FULL; i++) {
        uint8_t buf[64];
        tm_slice key = tm_slice_of(buf, make_decimal(buf, 2 * i));
        ck_assert_int_eq(tm_memtable_add(t, key, tm_trailer(1, 1), tm_slice_of(NULL, 0), 0, NULL),
                         0);
    }
    for (uint64_t round = 0; round < 6; round++) {
        size_t count = 2000 >> round, bytes = 0;
        ck_assert_int_eq(tm_memtable_reserve(t, count * 23, count, NULL), TAMIS_OK);
        gate closed = {.sticky = true};
        tm_mem_set_hook(pass, &closed);
        for (uint64_t i = 0; i < count; i++) {
            uint8_t buf[64];
            uint64_t leaf = i * 2000 / count;
            tm_slice key = tm_slice_of(buf, make_decimal(buf, 28 * leaf + 1 + 2 * round));
            bytes += key.len;
            ck_assert_int_eq(
                tm_memtable_add(t, key, tm_trailer(1, 1), tm_slice_of(NULL, 0), 0, NULL), TAMIS_OK);
        }
        tm_mem_set_hook(NULL, NULL);
        ck_assert_uint_eq(bytes, count * 23);
        ck_assert(!closed.hit);
    }
    tm_memtable_unref(t);
}
END_TEST

START_TEST(a_large_value_is_reserved_too)
{
    tm_order o = tm_order_bytewise();
    tm_memtable *t = create(&o, BUFFER);
    size_t n = 5 << 20;
    uint8_t *big = calloc(1, n);
    for (uint64_t i = 0; i < 3; i++) {
        ck_assert_int_eq(tm_memtable_reserve(t, n + 1, 1, NULL), TAMIS_OK);
        gate closed = {.sticky = true};
        tm_mem_set_hook(pass, &closed);
        ck_assert_int_eq(tm_memtable_add(t, tm_slice_str("k"), tm_trailer(i + 1, TM_KIND_PUT),
                                         tm_slice_of(big, n), hash_of(tm_slice_str("k")), NULL),
                         0);
        tm_mem_set_hook(NULL, NULL);
    }
    ck_assert_uint_ge(tm_memtable_data(t), 3 * n);
    ck_assert_uint_le(tm_memtable_bytes(t), 3 * n + (1 << 20));
    tm_memtable_unref(t);
    free(big);
}
END_TEST

START_TEST(what_it_uses_is_charged)
{
    tm_order o = tm_order_bytewise();
    tm_cache *cache;
    tm_cache_usage u;
    model m = {0};
    tm_random r = tm_random_seed(1);
    ck_assert_int_eq(tm_cache_create(64 << 20, &cache, NULL), TAMIS_OK);
    tm_memtable *t = create(&o, BUFFER);
    for (uint64_t i = 0; i < 3000; i++) {
        ck_assert_int_eq(add(t, &m, &kinds[0], i, &r), TAMIS_OK);
        if (i % 1000 != 0) continue;
        tm_memtable_charge(t, cache);
        tm_cache_usage_get(cache, &u);
        ck_assert_uint_eq(u.charged, tm_memtable_bytes(t));
    }
    tm_memtable_unref(t);
    tm_cache_usage_get(cache, &u);
    ck_assert_uint_eq(u.charged, 0);
    tm_cache_destroy(cache);
    model_free(&m);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("memtable");
    TCase *c = tcase_create("order");
    tcase_add_test(c, nothing_is_in_an_empty_one);
    tcase_add_loop_test(c, every_kind_of_keys_is_kept_in_order, 0, 2 * KINDS);
    tcase_add_test(c, an_iterator_steps_on_where_its_leaf_was_split);
    tcase_add_test(c, lengths_at_the_limits);
    suite_add_tcase(s, c);
    c = tcase_create("memory");
    tcase_add_loop_test(c, without_memory_nothing_changes, 0, KINDS);
    tcase_add_loop_test(c, what_was_reserved_cannot_fail, 0, KINDS);
    tcase_add_test(c, full_leaves_are_split_within_what_was_reserved);
    tcase_add_test(c, a_large_value_is_reserved_too);
    tcase_add_test(c, what_it_uses_is_charged);
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
