// SPDX-License-Identifier: BSD-2-Clause
#include "iter_support.h"

#include <stdio.h>

#include "base/mem.h"
#include "lsm/merge_iter.h"
#include "lsm/user_iter.h"

enum { SOURCES_MAX = 6, OPS_MAX = 1500 };

// ---- The model: what happened, in order --------------------------------------------------------

typedef struct op {
    tm_kind kind;
    char key[12], limit[12]; // limit: range deletes; empty is "to the end"
    char value[32];
} op;

typedef struct scene {
    tm_order order;
    op ops[OPS_MAX]; // number i has sequence number i + 1
    size_t n, sources;
    entry entries[SOURCES_MAX][OPS_MAX]; // source 0 is the newest
    size_t counts[SOURCES_MAX];
    tm_range_set sets[SOURCES_MAX];
    // The view: what is seen, in order.
    entry seen[OPS_MAX];
    size_t seen_count;
    tm_user_iter_options options;
    tm_user_iter *it;
    tm_iter *children[SOURCES_MAX];
} scene;

static int compare(const scene *s, const char *a, const char *b)
{
    return tm_order_compare(&s->order, tm_slice_str(a), tm_slice_str(b));
}

static bool covers(const scene *s, const op *o, const char *key)
{
    return o->kind == TM_KIND_RANGE_DELETE && compare(s, o->key, key) <= 0 &&
           (o->limit[0] == 0 || compare(s, key, o->limit) < 0);
}

static bool in_bounds(const scene *s, const char *key)
{
    const tm_user_iter_options *o = &s->options;
    tm_slice k = tm_slice_str(key);
    return (!o->has_lower || tm_order_compare(&s->order, k, o->lower) >= 0) &&
           (!o->has_upper || tm_order_compare(&s->order, k, o->upper) < 0) &&
           (!o->has_prefix || tm_slice_starts_with(k, o->prefix));
}

static bool was_met(const op *ops, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++) {
        if (ops[i].kind != TM_KIND_RANGE_DELETE && strcmp(ops[i].key, key) == 0) return true;
    }
    return false;
}

// What a reader at seq sees within the bounds.
static void look(scene *s)
{
    s->seen_count = 0;
    for (size_t i = 0; i < s->n; i++) {
        const char *key = s->ops[i].key;
        if (s->ops[i].kind == TM_KIND_RANGE_DELETE || was_met(s->ops, i, key)) continue;
        const op *last = NULL;
        for (size_t k = 0; k < s->n && k + 1 <= s->options.seq; k++) {
            const op *o = &s->ops[k];
            if (covers(s, o, key))
                last = NULL;
            else if (o->kind != TM_KIND_RANGE_DELETE && strcmp(o->key, key) == 0)
                last = o;
        }
        if (last == NULL || last->kind != TM_KIND_PUT || !in_bounds(s, key)) continue;
        entry *e = &s->seen[s->seen_count++];
        *e = (entry){.child = 0};
        memcpy(e->key, last->key, sizeof(e->key));
        memcpy(e->value, last->value, sizeof(e->value));
    }
    sort_entries(&s->order, s->seen, s->seen_count);
}

// Gives each source, newest first, the operations of its time.
static void share_out(scene *s)
{
    for (size_t c = 0; c < s->sources; c++) {
        size_t from = s->n * (s->sources - 1 - c) / s->sources;
        size_t to = s->n * (s->sources - c) / s->sources;
        tm_range_builder b;
        tm_range_builder_init(&b);
        s->counts[c] = 0;
        for (size_t i = from; i < to; i++) {
            const op *o = &s->ops[i];
            if (o->kind == TM_KIND_RANGE_DELETE) {
                ck_assert_int_eq(
                    tm_range_builder_add(&b, tm_slice_str(o->key), tm_slice_str(o->limit), i + 1),
                    TAMIS_OK);
                continue;
            }
            entry *e = &s->entries[c][s->counts[c]++];
            *e = (entry){.trailer = tm_trailer(i + 1, o->kind), .child = c};
            memcpy(e->key, o->key, sizeof(e->key));
            memcpy(e->value, o->value, sizeof(e->value));
        }
        sort_entries(&s->order, s->entries[c], s->counts[c]);
        ck_assert_int_eq(tm_range_builder_finish(&b, &s->order, &s->sets[c]), TAMIS_OK);
        tm_range_builder_deinit(&b);
    }
}

static void open_scene(scene *s, bool tell_children)
{
    const tm_range_set *sets[SOURCES_MAX];
    uint32_t numbers[SOURCES_MAX];
    tm_iter *merged;
    for (size_t c = 0; c < s->sources; c++) {
        s->children[c] = array_iter_create(&s->order, s->entries[c], s->counts[c]);
        sets[c] = &s->sets[c];
        numbers[c] = (uint32_t)c;
    }
    ck_assert_int_eq(tm_merge_iter_create(&s->order, s->children, s->sources, &merged, NULL), 0);
    s->options.order = s->order;
    s->options.ranges = sets;
    s->options.range_count = s->sources;
    s->options.range_children = tell_children ? numbers : NULL;
    ck_assert_int_eq(tm_user_iter_create(merged, &s->options, &s->it, NULL), TAMIS_OK);
    memset(sets, 0, sizeof(sets)); // the arrays are copied
    look(s);
}

static void close_scene(scene *s)
{
    tm_user_iter_destroy(s->it);
    ck_assert_uint_eq(array_iters_alive, 0);
    for (size_t c = 0; c < s->sources; c++) tm_range_set_deinit(&s->sets[c]);
}

// ---- Walking -----------------------------------------------------------------------------------

static void check_at(const scene *s, size_t at)
{
    const tm_user_iter *it = s->it;
    ck_assert_int_eq(tm_user_iter_status(it, NULL), TAMIS_OK);
    ck_assert_int_eq(tm_user_iter_valid(it), at < s->seen_count);
    if (at >= s->seen_count) return;
    const entry *e = &s->seen[at];
    bool same = tm_slice_equal(tm_user_iter_key(it), entry_key(e)) &&
                tm_slice_equal(tm_user_iter_value(it), tm_slice_str(e->value));
    if (!same) ck_abort_msg("not at %zu of %zu: %s", at, s->seen_count, e->key);
}

static size_t find(const scene *s, tm_slice key) // the first at or behind key
{
    size_t i = 0;
    while (i < s->seen_count && tm_order_compare(&s->order, entry_key(&s->seen[i]), key) < 0) i++;
    return i;
}

static size_t find_for_prev(const scene *s, tm_slice key)
{
    size_t i = find(s, key);
    bool there = i < s->seen_count && tm_slice_equal(entry_key(&s->seen[i]), key);
    return there ? i : i - 1;
}

static size_t move(scene *s, size_t at, tm_random *r)
{
    uint64_t kind = tm_random_below(r, 40);
    if (kind < 16) {
        tm_user_iter_next(s->it);
        return at < s->seen_count ? at + 1 : at;
    }
    if (kind < 32) {
        tm_user_iter_prev(s->it);
        return at < s->seen_count ? at - 1 : at;
    }
    if (kind == 32) {
        tm_user_iter_first(s->it);
        return 0;
    }
    if (kind == 33) {
        tm_user_iter_last(s->it);
        return s->seen_count - 1;
    }
    const op *some = &s->ops[tm_random_below(r, s->n)];
    tm_slice key = tm_slice_str(tm_random_below(r, 2) ? some->key : some->limit);
    if (tm_random_below(r, 4) == 0) key.len = TM_MIN(key.len, (size_t)tm_random_below(r, 3));
    if (at < s->seen_count && tm_random_below(r, 5) == 0) key = tm_user_iter_key(s->it); // its own
    if (kind % 2) {
        size_t to = find(s, key);
        tm_user_iter_seek(s->it, key);
        return to;
    }
    size_t to = find_for_prev(s, key);
    tm_user_iter_seek_for_prev(s->it, key);
    return to;
}

static void walk(scene *s, tm_random *r, int steps)
{
    size_t at = SIZE_MAX;
    ck_assert(!tm_user_iter_valid(s->it));
    tm_user_iter_next(s->it); // not valid: stays so
    check_at(s, at);
    for (int i = 0; i < steps; i++) {
        at = move(s, at, r);
        check_at(s, at);
    }
    tm_user_iter_first(s->it);
    for (size_t i = 0; i <= s->seen_count; i++) {
        check_at(s, i);
        tm_user_iter_next(s->it);
    }
    tm_user_iter_last(s->it);
    for (size_t i = s->seen_count; i > 0; i--) {
        check_at(s, i - 1);
        tm_user_iter_prev(s->it);
    }
    check_at(s, SIZE_MAX);
}

// ---- Scenes ------------------------------------------------------------------------------------

static void letters(char *out, size_t max, tm_random *r)
{
    static const char set[] = {'a', 'b', 'c', (char)0xff};
    size_t n = tm_random_below(r, max + 1);
    memset(out, 0, 12);
    for (size_t i = 0; i < n; i++) out[i] = set[tm_random_below(r, sizeof(set))];
}

static void number(char *out, size_t below, tm_random *r)
{
    memset(out, 0, 12);
    snprintf(out, 12, "%04u", (unsigned)tm_random_below(r, below) % 10000);
}

static void set_op(scene *s, tm_kind kind)
{
    op *o = &s->ops[s->n];
    o->kind = kind;
    snprintf(o->value, sizeof(o->value), "%zu", s->n++);
}

static void set_letter_ops(scene *s, size_t n, tm_random *r)
{
    for (size_t i = 0; i < n; i++) {
        op *o = &s->ops[s->n];
        letters(o->key, 3, r);
        letters(o->limit, 3, r);
        uint64_t kind = tm_random_below(r, 10);
        set_op(s, kind < 6   ? TM_KIND_PUT
                  : kind < 7 ? TM_KIND_DELETE
                  : kind < 8 ? TM_KIND_SINGLE_DELETE
                             : TM_KIND_RANGE_DELETE);
        if (tm_random_below(r, 3)) continue;
        for (int many = 0; many < 20 && s->n < OPS_MAX; many++) { // versions of one key
            s->ops[s->n] = *o;
            set_op(s, tm_random_below(r, 3) ? TM_KIND_PUT : TM_KIND_DELETE);
        }
    }
}

static void set_random_options(scene *s, tm_random *r, char bounds[3][12])
{
    tm_user_iter_options *o = &s->options;
    for (int i = 0; i < 3; i++) letters(bounds[i], 2, r);
    *o = (tm_user_iter_options){.seq = tm_random_below(r, 3) ? s->n : tm_random_below(r, s->n + 1)};
    o->has_lower = tm_random_below(r, 3) == 0;
    o->has_upper = tm_random_below(r, 3) == 0;
    o->has_prefix = s->order.bytewise && tm_random_below(r, 4) == 0;
    o->lower = tm_slice_str(bounds[0]);
    o->upper = tm_slice_str(bounds[1]);
    o->prefix = tm_slice_str(bounds[2]);
}

START_TEST(random_walks_in_random_views)
{
    static scene s;
    tm_random r = tm_random_seed((uint64_t)_i);
    s.order = _i % 4 == 3 ? order_reversed() : tm_order_bytewise();
    s.sources = 1 + (size_t)_i % SOURCES_MAX;
    set_letter_ops(&s, _i % 3 ? 60 : 12, &r);
    for (int view = 0; view < 12; view++) {
        char bounds[3][12];
        share_out(&s);
        set_random_options(&s, &r, bounds);
        open_scene(&s, view % 2);
        memset(bounds, 'x', sizeof(bounds)); // they are copied
        s.options.has_lower = s.options.has_upper = s.options.has_prefix = false;
        walk(&s, &r, 150);
        close_scene(&s);
    }
}
END_TEST

// Long covered stretches in old sources, with newer entries in them.
START_TEST(covered_stretches_are_passed_over)
{
    static scene s;
    tm_random r = tm_random_seed((uint64_t)_i);
    size_t moves[2];
    for (int told = 0; told < 2; told++) {
        memset(&s, 0, sizeof(s));
        s.order = tm_order_bytewise();
        s.sources = 3;
        tm_random same = tm_random_seed((uint64_t)_i);
        for (size_t i = 0; i < 900; i++) {
            number(s.ops[s.n].key, 1000, &same);
            set_op(&s, TM_KIND_PUT);
        }
        for (size_t i = 0; i < 300; i++) {
            op *o = &s.ops[s.n];
            number(o->key, 1000, &same);
            if (i % 20 != 19) {
                set_op(&s, TM_KIND_PUT);
                continue;
            }
            number(o->limit, 1000, &same);
            if (i % 100 == 99) o->limit[0] = 0;
            if (_i % 2 && i % 100 == 99) o->key[0] = 0; // all keys
            set_op(&s, TM_KIND_RANGE_DELETE);
        }
        share_out(&s);
        s.options = (tm_user_iter_options){.seq = s.n - (size_t)_i % 3 * 100};
        open_scene(&s, told);
        walk(&s, &r, 0);
        moves[told] = 0;
        for (size_t c = 0; c < s.sources; c++) moves[told] += array_of(s.children[c])->moves;
        walk(&s, &r, 400);
        ck_assert_uint_gt(tm_user_iter_skipped(s.it), 0);
        close_scene(&s);
    }
    ck_assert_uint_lt(moves[1], moves[0]);
}
END_TEST

START_TEST(a_covered_source_costs_a_few_seeks)
{
    static scene s;
    tm_random r = tm_random_seed(3);
    memset(&s, 0, sizeof(s));
    s.order = tm_order_bytewise();
    s.sources = 2;
    for (size_t i = 0; i < 700; i++) {
        snprintf(s.ops[s.n].key, 12, "%04zu", i);
        set_op(&s, TM_KIND_PUT);
    }
    for (size_t i = 0; i < 700; i++) { // the newer source: a range delete, and a little after it
        snprintf(s.ops[s.n].key, 12, "%04zu", i < 690 ? (size_t)100 : 60 * (i - 690));
        memcpy(s.ops[s.n].limit, "0600", 5);
        set_op(&s, i < 690 ? TM_KIND_RANGE_DELETE : TM_KIND_PUT);
    }
    share_out(&s);
    s.options = (tm_user_iter_options){.seq = s.n};
    open_scene(&s, true);
    ck_assert_uint_ge(s.seen_count, 200);
    ck_assert_uint_le(s.seen_count, 210);
    walk(&s, &r, 0);
    // 500 covered entries, both ways.
    ck_assert_uint_lt(array_of(s.children[1])->moves, 2 * 200 + 2 * 30);
    close_scene(&s);
}
END_TEST

// Stepping over many versions of one key, seen or not, costs a few seeks.
START_TEST(many_versions_of_a_key)
{
    static scene s;
    tm_random r = tm_random_seed(1);
    memset(&s, 0, sizeof(s));
    s.order = tm_order_bytewise();
    s.sources = 2;
    for (size_t i = 0; i < 1000; i++) {
        memcpy(s.ops[s.n].key, i == 0 ? "a" : i == 999 ? "c" : "b", 2);
        set_op(&s, TM_KIND_PUT);
    }
    for (uint64_t seq = 1; seq <= 1000; seq += 333) {
        share_out(&s);
        s.options = (tm_user_iter_options){.seq = seq};
        open_scene(&s, false);
        walk(&s, &r, 0);
        size_t moves = 0;
        for (size_t c = 0; c < s.sources; c++) moves += array_of(s.children[c])->moves;
        ck_assert_uint_lt(moves, 150);
        close_scene(&s);
    }
}
END_TEST

typedef struct bound_sample {
    const char *lower, *upper, *prefix; // NULL: none
    const char *first, *last;           // what is seen of a, aa, ab, b, b\xff, \xff, \xff\xff
} bound_sample;

static const bound_sample bound_samples[] = {
    {NULL, NULL, NULL, "a", "\xff\xff"},
    {"aa", NULL, NULL, "aa", "\xff\xff"},
    {NULL, "b", NULL, "a", "ab"},
    {"aa", "ab", NULL, "aa", "aa"},
    {"ab", "aa", NULL, NULL, NULL}, // reversed
    {"aa", "aa", NULL, NULL, NULL}, // empty
    {"", "", NULL, NULL, NULL},
    {NULL, NULL, "", "a", "\xff\xff"},
    {NULL, NULL, "a", "a", "ab"},
    {NULL, NULL, "\xff", "\xff", "\xff\xff"},
    {NULL, NULL, "b\xff", "b\xff", "b\xff"},
    {"ab", NULL, "a", "ab", "ab"},
    {NULL, "ab", "a", "a", "aa"},
    {"b", NULL, "a", NULL, NULL},
    {NULL, "a", "b", NULL, NULL},
    {"A", "z", "b", "b", "b\xff"},
    {NULL, NULL, "c", NULL, NULL},
};

static void check_shows(const tm_user_iter *it, const char *key)
{
    ck_assert_int_eq(tm_user_iter_valid(it), key != NULL);
    ck_assert_int_eq(tm_user_iter_status(it, NULL), TAMIS_OK);
    if (key != NULL) ck_assert(tm_slice_equal(tm_user_iter_key(it), tm_slice_str(key)));
}

START_TEST(bounds_and_prefixes)
{
    static scene s;
    static const char *const keys[] = {"a", "aa", "ab", "b", "b\xff", "\xff", "\xff\xff"};
    const bound_sample *b = &bound_samples[_i];
    s.order = tm_order_bytewise();
    s.sources = 1;
    for (size_t i = 0; i < TM_COUNT(keys); i++) {
        memcpy(s.ops[s.n].key, keys[i], strlen(keys[i]) + 1);
        set_op(&s, TM_KIND_PUT);
    }
    share_out(&s);
    s.options = (tm_user_iter_options){.seq = 100};
    s.options.has_lower = b->lower != NULL;
    s.options.has_upper = b->upper != NULL;
    s.options.has_prefix = b->prefix != NULL;
    if (b->lower) s.options.lower = tm_slice_str(b->lower);
    if (b->upper) s.options.upper = tm_slice_str(b->upper);
    if (b->prefix) s.options.prefix = tm_slice_str(b->prefix);
    open_scene(&s, true);
    tm_user_iter_first(s.it);
    check_shows(s.it, b->first);
    tm_user_iter_prev(s.it);
    check_shows(s.it, NULL);
    tm_user_iter_last(s.it);
    check_shows(s.it, b->last);
    tm_user_iter_next(s.it);
    check_shows(s.it, NULL);
    tm_user_iter_seek(s.it, tm_slice_str("")); // seeks clamp into the bounds
    check_shows(s.it, b->first);
    tm_user_iter_seek_for_prev(s.it, tm_slice_str("\xff\xff\xff"));
    check_shows(s.it, b->last);
    tm_user_iter_seek(s.it, tm_slice_str("\xff\xff\xff"));
    check_shows(s.it, NULL);
    tm_user_iter_seek_for_prev(s.it, tm_slice_str(""));
    check_shows(s.it, NULL);
    close_scene(&s);
}
END_TEST

// ---- Failures ----------------------------------------------------------------------------------

static void set_small(scene *s, tm_kind middle)
{
    s->order = tm_order_bytewise();
    s->sources = 1;
    s->n = 0;
    for (int i = 0; i < 3; i++) {
        memset(s->ops[s->n].key, 0, sizeof(s->ops[s->n].key));
        s->ops[s->n].key[0] = (char)('a' + i);
        set_op(s, i == 1 ? middle : TM_KIND_PUT);
    }
    share_out(s);
    s->options = (tm_user_iter_options){.seq = 100};
    open_scene(s, true);
}

typedef struct kind_sample {
    tm_kind kind;
    int status;
    const char *word;
} kind_sample;

static const kind_sample kind_samples[] = {
    {TM_KIND_MERGE, TAMIS_UNSUPPORTED, "merger was not given"},
    {TM_KIND_PUT_EXPIRY, TAMIS_CORRUPT, "time of expiry"},
    {TM_KIND_VALUE_POINTER, TAMIS_UNSUPPORTED, "kind 6"},
    {TM_KIND_DELETE_EXPIRY, TAMIS_UNSUPPORTED, "kind 7"},
    {TM_KIND_RANGE_DELETE, TAMIS_CORRUPT, "kind 5"},
    {(tm_kind)99, TAMIS_CORRUPT, "kind 99"},
};

START_TEST(kinds_that_cannot_be_read_end_the_walk)
{
    static scene s;
    const kind_sample *k = &kind_samples[_i];
    set_small(&s, TM_KIND_PUT);
    s.entries[0][1].trailer = tm_trailer(2, k->kind);
    for (int back = 0; back < 2; back++) {
        tamis_error err = {0};
        if (back)
            tm_user_iter_last(s.it);
        else
            tm_user_iter_first(s.it);
        check_shows(s.it, back ? "c" : "a");
        if (back)
            tm_user_iter_prev(s.it);
        else
            tm_user_iter_next(s.it);
        ck_assert(!tm_user_iter_valid(s.it));
        ck_assert_int_eq(tm_user_iter_status(s.it, &err), k->status);
        ck_assert_int_eq(err.code, k->status);
        ck_assert_ptr_nonnull(strstr(err.message, k->word));
        ck_assert_int_eq(tm_user_iter_status(s.it, NULL), k->status);
        tm_user_iter_next(s.it); // stays so
        ck_assert_int_eq(tm_user_iter_status(s.it, NULL), k->status);
    }
    tm_user_iter_seek(s.it, tm_slice_str("bb")); // and a seek elsewhere recovers
    check_shows(s.it, "c");
    close_scene(&s);
}
END_TEST

START_TEST(a_failing_source_ends_the_walk)
{
    static scene s;
    tm_random r = tm_random_seed((uint64_t)_i);
    s.order = tm_order_bytewise();
    s.sources = 3;
    set_letter_ops(&s, 30, &r);
    share_out(&s);
    s.options = (tm_user_iter_options){.seq = s.n};
    open_scene(&s, true);
    ck_assert_uint_gt(s.seen_count, 5);
    size_t failed = 0;
    for (long fail_in = 0; fail_in < 60; fail_in++) {
        tamis_error err = {0};
        array_iter *bad = array_of(s.children[fail_in % 3]);
        bool back = fail_in % 2;
        bad->fail_in = fail_in;
        size_t at = back ? s.seen_count - 1 : 0;
        if (back)
            tm_user_iter_last(s.it);
        else
            tm_user_iter_first(s.it);
        while (tm_user_iter_valid(s.it)) {
            check_at(&s, at);
            if (tm_random_below(&r, 4) == 0) back = !back;
            at = back ? at - 1 : at + 1;
            if (back)
                tm_user_iter_prev(s.it);
            else
                tm_user_iter_next(s.it);
        }
        if (tm_user_iter_status(s.it, &err) == TAMIS_OK) {
            ck_assert_uint_ge(at, s.seen_count); // the end came first
        } else {
            ck_assert_int_eq(err.code, TAMIS_IO);
            failed++;
        }
        bad->fail_in = -1;
        tm_user_iter_first(s.it);
        check_at(&s, 0);
    }
    ck_assert_uint_gt(failed, 10);
    close_scene(&s);
}
END_TEST

static long allocations_left;

static bool pass(void *ctx, size_t n)
{
    (void)ctx;
    (void)n;
    return allocations_left-- > 0;
}

START_TEST(without_memory)
{
    static scene s;
    set_small(&s, TM_KIND_PUT);
    const tm_range_set *sets[] = {&s.sets[0], NULL};
    tm_user_iter_options o = s.options;
    close_scene(&s);
    o.has_lower = o.has_upper = o.has_prefix = true;
    o.lower = o.upper = o.prefix = tm_slice_str("a");
    o.ranges = sets;
    o.range_count = 2;
    o.range_children = NULL;
    for (long allowed = 0;; allowed++) { // creation takes the merged iterator
        tm_iter *merged = array_iter_create(&s.order, NULL, 0);
        tm_user_iter *it = (tm_user_iter *)&s;
        tamis_error err = {0};
        allocations_left = allowed;
        tm_mem_set_hook(pass, NULL);
        int st = tm_user_iter_create(merged, &o, &it, &err);
        tm_mem_set_hook(NULL, NULL);
        tm_user_iter_destroy(it);
        ck_assert_uint_eq(array_iters_alive, 0);
        if (st == TAMIS_OK) break;
        ck_assert_int_eq(st, TAMIS_NOMEM);
        ck_assert_int_eq(err.code, TAMIS_NOMEM);
        ck_assert_ptr_null(it);
        ck_assert_int_lt(allowed, 12);
    }
    for (int back = 0; back < 2; back++) { // a walk
        for (long allowed = 0; allowed < 3; allowed++) {
            set_small(&s, TM_KIND_PUT);
            allocations_left = allowed;
            tm_mem_set_hook(pass, NULL);
            size_t n = 0;
            if (back)
                tm_user_iter_last(s.it);
            else
                tm_user_iter_first(s.it);
            for (; tm_user_iter_valid(s.it); n++) {
                if (back)
                    tm_user_iter_prev(s.it);
                else
                    tm_user_iter_next(s.it);
            }
            tm_mem_set_hook(NULL, NULL);
            tamis_error err = {0};
            int st = tm_user_iter_status(s.it, &err);
            ck_assert_int_eq(st, err.code);
            ck_assert(st == TAMIS_NOMEM ? n < 3 : st == TAMIS_OK && n == 3);
            ck_assert(allowed > 0 || st == TAMIS_NOMEM);
            ck_assert(allowed < 2 || st == TAMIS_OK);
            tm_user_iter_seek(s.it, tm_slice_str("b"));
            check_shows(s.it, "b");
            close_scene(&s);
        }
    }
}
END_TEST

START_TEST(a_prefix_needs_the_bytewise_order)
{
    tm_order o = order_reversed();
    tm_user_iter_options options = {.order = o, .has_prefix = true};
    tm_user_iter *it;
    tamis_error err = {0};
    tm_iter *merged = array_iter_create(&o, NULL, 0);
    ck_assert_int_eq(tm_user_iter_create(merged, &options, &it, &err), TAMIS_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "reversed"));
    ck_assert_ptr_null(it);
    ck_assert_uint_eq(array_iters_alive, 0);
    tm_user_iter_destroy(NULL);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("user_iter");
    TCase *c = tcase_create("walks");
    tcase_set_timeout(c, 30);
    tcase_add_loop_test(c, random_walks_in_random_views, 0, 48);
    tcase_add_loop_test(c, covered_stretches_are_passed_over, 0, 6);
    tcase_add_test(c, a_covered_source_costs_a_few_seeks);
    tcase_add_test(c, many_versions_of_a_key);
    tcase_add_loop_test(c, bounds_and_prefixes, 0, TM_COUNT(bound_samples));
    suite_add_tcase(s, c);
    c = tcase_create("failures");
    tcase_add_loop_test(c, kinds_that_cannot_be_read_end_the_walk, 0, TM_COUNT(kind_samples));
    tcase_add_loop_test(c, a_failing_source_ends_the_walk, 0, 4);
    tcase_add_test(c, without_memory);
    tcase_add_test(c, a_prefix_needs_the_bytewise_order);
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
