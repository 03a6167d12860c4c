// SPDX-License-Identifier: BSD-2-Clause
#include "iter_support.h"

#include <stdio.h>

#include "base/mem.h"
#include "lsm/merge_iter.h"

enum { CHILDREN_MAX = 12, ENTRIES_MAX = 200 };

typedef struct scene { // the same entries, all together and by child
    tm_order order;
    entry all[ENTRIES_MAX];
    size_t n;
    entry by_child[CHILDREN_MAX][ENTRIES_MAX];
    size_t counts[CHILDREN_MAX], children;
    tm_iter *iters[CHILDREN_MAX];
    tm_iter *merged;
} scene;

// Keys of few letters, so that many are equal and many begin alike; doubles: the same entry in
// several children.
static void set_scene(scene *s, size_t children, size_t n, bool doubles, tm_random *r)
{
    s->order = tm_random_below(r, 3) ? tm_order_bytewise() : order_reversed();
    s->children = children;
    s->n = children > 0 ? n : 0;
    for (size_t i = 0; i < s->n; i++) {
        entry *e = &s->all[i];
        *e = (entry){.child = tm_random_below(r, children)};
        size_t len = tm_random_below(r, 4);
        if (tm_random_below(r, 2)) { // beyond the 8 bytes of a head
            memcpy(e->key, "prefix00", 8);
            for (size_t k = 0; k < len; k++) e->key[8 + k] = (char)('a' + tm_random_below(r, 3));
        } else {
            for (size_t k = 0; k < len; k++) e->key[k] = (char)(tm_random_below(r, 2) ? 'a' : -1);
        }
        e->trailer = tm_trailer(i + 1, TM_KIND_PUT);
        snprintf(e->value, sizeof(e->value), "value %zu", i);
        if (!doubles || i == 0 || tm_random_below(r, 2)) continue;
        const entry *other = &s->all[tm_random_below(r, i)];
        bool taken = false;
        for (size_t k = 0; k < i; k++) {
            taken = taken || (s->all[k].child == e->child && s->all[k].trailer == other->trailer);
        }
        if (taken) continue;
        memcpy(e->key, other->key, sizeof(e->key));
        e->trailer = other->trailer;
    }
    sort_entries(&s->order, s->all, s->n);
    for (size_t c = 0; c < children; c++) {
        s->counts[c] = 0;
        for (size_t i = 0; i < s->n; i++) {
            if (s->all[i].child == c) s->by_child[c][s->counts[c]++] = s->all[i];
        }
        s->iters[c] = array_iter_create(&s->order, s->by_child[c], s->counts[c]);
    }
    ck_assert_int_eq(tm_merge_iter_create(&s->order, s->iters, children, &s->merged, NULL),
                     TAMIS_OK);
}

static void end_scene(scene *s)
{
    tm_iter_destroy(s->merged);
    ck_assert_uint_eq(array_iters_alive, 0);
}

static void check_at(const scene *s, size_t at)
{
    const tm_iter *it = s->merged;
    ck_assert_int_eq(it->status, TAMIS_OK);
    ck_assert_int_eq(it->valid, at < s->n);
    if (at >= s->n) return;
    const entry *e = &s->all[at];
    bool same = tm_slice_equal(it->key, entry_key(e)) && it->trailer == e->trailer &&
                tm_slice_equal(it->value, tm_slice_str(e->value)) &&
                tm_merge_iter_child(it) == e->child;
    if (!same) ck_abort_msg("not at entry %zu of %zu", at, s->n);
}

static size_t find(const scene *s, tm_slice key, uint64_t trailer)
{
    size_t i = 0;
    while (i < s->n && tm_order_compare_internal(&s->order, entry_key(&s->all[i]),
                                                 s->all[i].trailer, key, trailer) < 0) {
        i++;
    }
    return i;
}

// One movement of any kind; returns where it leads.
static size_t move(scene *s, size_t at, tm_random *r)
{
    tm_iter *it = s->merged;
    uint64_t kind = tm_random_below(r, 30);
    if (it->valid && kind >= 6) { // mostly steps, with a memory for direction
        if (kind < 18) {
            it->ops->next(it);
            return at + 1;
        }
        it->ops->prev(it);
        return at - 1;
    }
    if (kind % 6 == 0) {
        it->ops->first(it);
        return 0;
    }
    if (kind % 6 == 1) {
        it->ops->last(it);
        return s->n - 1;
    }
    char text[12] = "a";
    tm_slice key = tm_slice_str(text);
    uint64_t trailer = tm_random_below(r, 2) ? tm_random_below(r, 60000) : UINT64_MAX;
    if (s->n > 0 && tm_random_below(r, 4)) {
        const entry *e = &s->all[tm_random_below(r, s->n)];
        key = entry_key(e);
        if (tm_random_below(r, 2)) trailer = e->trailer;
    }
    size_t to = find(s, key, trailer);
    if (kind % 2) {
        it->ops->seek(it, key, trailer);
        return to;
    }
    it->ops->seek_before(it, key, trailer);
    return to - 1;
}

START_TEST(random_walks)
{
    static scene s;
    tm_random r = tm_random_seed((uint64_t)_i);
    size_t n = _i % 5 == 0 ? tm_random_below(&r, 4) : tm_random_below(&r, ENTRIES_MAX);
    set_scene(&s, (size_t)_i % CHILDREN_MAX, n, false, &r);
    ck_assert(!s.merged->valid);
    size_t at = SIZE_MAX;
    for (int i = 0; i < 600; i++) {
        at = move(&s, at, &r);
        check_at(&s, at);
    }
    end_scene(&s);
}
END_TEST

START_TEST(whole_walks_and_a_turn_at_every_place)
{
    static scene s;
    tm_random r = tm_random_seed((uint64_t)_i + 1000);
    set_scene(&s, 2 + (size_t)_i % (CHILDREN_MAX - 2), ENTRIES_MAX, _i % 2, &r);
    tm_iter *it = s.merged;
    it->ops->first(it);
    for (size_t i = 0; i < s.n; i++) { // two steps forward, one back
        check_at(&s, i);
        it->ops->next(it);
        if (!it->valid) break;
        it->ops->prev(it);
        check_at(&s, i);
        it->ops->next(it);
    }
    check_at(&s, s.n);
    it->ops->last(it);
    for (size_t i = s.n; i > 0; i--) {
        check_at(&s, i - 1);
        it->ops->prev(it);
        if (!it->valid) break;
        it->ops->next(it);
        check_at(&s, i - 1);
        it->ops->prev(it);
    }
    check_at(&s, s.n);
    end_scene(&s);
}
END_TEST

START_TEST(one_child_stands_for_itself)
{
    static scene s;
    tm_random r = tm_random_seed(5);
    set_scene(&s, 1, 10, false, &r);
    ck_assert_ptr_eq(s.merged, s.iters[0]);
    ck_assert_uint_eq(tm_merge_iter_child(s.merged), 0);
    end_scene(&s);
}
END_TEST

// ---- Passing over a child's entries ------------------------------------------------------------

static bool is_passed(const scene *s, const entry *e, size_t child, const tm_slice *to, bool back)
{
    if (e->child != child) return false;
    if (to == NULL) return true;
    int c = tm_order_compare(&s->order, entry_key(e), *to);
    return back ? c >= 0 : c < 0;
}

START_TEST(a_child_is_skipped_and_no_other)
{
    static scene s;
    tm_random r = tm_random_seed((uint64_t)_i + 2000);
    set_scene(&s, 1 + (size_t)_i % 6, 150, false, &r);
    tm_iter *it = s.merged;
    for (int round = 0; round < 100; round++) {
        bool back = tm_random_below(&r, 2), to_end = tm_random_below(&r, 8) == 0;
        size_t at = tm_random_below(&r, s.n), goal = tm_random_below(&r, s.n);
        const entry *e = &s.all[at];
        tm_slice to = entry_key(&s.all[goal]);
        int c = tm_order_compare(&s.order, entry_key(e), to);
        if (!to_end && (back ? c < 0 : c >= 0)) continue; // it must lie ahead
        if (back) {
            it->ops->seek_before(it, entry_key(e), e->trailer - 1);
        } else {
            it->ops->seek(it, entry_key(e), e->trailer);
        }
        check_at(&s, at);
        tm_merge_iter_skip_child(it, to_end ? NULL : &to, back);
        for (;;) {
            size_t child = e->child;
            do {
                at = back ? at - 1 : at + 1;
            } while (at < s.n && is_passed(&s, &s.all[at], child, to_end ? NULL : &to, back));
            check_at(&s, at);
            if (!it->valid) break;
            if (back)
                it->ops->prev(it);
            else
                it->ops->next(it);
        }
    }
    end_scene(&s);
}
END_TEST

// ---- Failures ----------------------------------------------------------------------------------

START_TEST(a_failing_child_fails_the_merge)
{
    static scene s;
    tm_random r = tm_random_seed((uint64_t)_i + 3000);
    set_scene(&s, 3, 60, false, &r);
    tm_iter *it = s.merged;
    array_iter *bad = array_of(s.iters[_i % 3]);
    for (long fail_in = 0; fail_in < 20; fail_in++) {
        bad->fail_in = fail_in;
        bool back = fail_in % 2;
        if (back)
            it->ops->last(it);
        else
            it->ops->first(it);
        size_t at = back ? s.n - 1 : 0;
        while (it->valid) { // what was shown before is right
            check_at(&s, at);
            if (tm_random_below(&r, 4) == 0) back = !back;
            at = back ? at - 1 : at + 1;
            if (back)
                it->ops->prev(it);
            else
                it->ops->next(it);
        }
        if (it->status == TAMIS_OK) { // the end came first
            ck_assert(at >= s.n);
        } else {
            ck_assert_int_eq(it->status, TAMIS_IO);
            ck_assert_int_eq(it->error.code, TAMIS_IO);
            ck_assert_int_eq(bad->fail_in, 0);
        }
        bad->fail_in = -1;
        it->ops->first(it); // it recovers
        check_at(&s, 0);
    }
    end_scene(&s);
}
END_TEST

static long allocations_left;

static bool pass(void *ctx, size_t n)
{
    (void)ctx;
    (void)n;
    return allocations_left-- > 0;
}

START_TEST(children_are_taken_also_without_memory)
{
    tm_order o = tm_order_bytewise();
    tm_iter *children[3], *merged;
    for (size_t n = 0; n <= 3; n++) {
        for (long allowed = 0;; allowed++) {
            tamis_error err = {0};
            merged = (tm_iter *)&o;
            for (size_t i = 0; i < n; i++) children[i] = array_iter_create(&o, NULL, 0);
            allocations_left = allowed;
            tm_mem_set_hook(pass, NULL);
            int st = tm_merge_iter_create(&o, children, n, &merged, &err);
            tm_mem_set_hook(NULL, NULL);
            if (st == TAMIS_OK) {
                tm_iter_destroy(merged);
                ck_assert_uint_eq(array_iters_alive, 0);
                break;
            }
            ck_assert_int_eq(st, TAMIS_NOMEM);
            ck_assert_int_eq(err.code, TAMIS_NOMEM);
            ck_assert_ptr_null(merged);
            ck_assert_uint_eq(array_iters_alive, 0);
            ck_assert_int_lt(allowed, 10);
        }
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("merge_iter");
    TCase *c = tcase_create("walks");
    tcase_add_loop_test(c, random_walks, 0, 60);
    tcase_add_loop_test(c, whole_walks_and_a_turn_at_every_place, 0, 20);
    tcase_add_test(c, one_child_stands_for_itself);
    tcase_add_loop_test(c, a_child_is_skipped_and_no_other, 0, 12);
    suite_add_tcase(s, c);
    c = tcase_create("failures");
    tcase_add_loop_test(c, a_failing_child_fails_the_merge, 0, 9);
    tcase_add_test(c, children_are_taken_also_without_memory);
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
