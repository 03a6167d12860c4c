// SPDX-License-Identifier: BSD-2-Clause
//
// Edits of the manifest: there and back, damage, and what a row of them adds up to.
#include <check.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "lsm/edit.h"

static tm_slice random_text(tm_random *r, uint8_t *room)
{
    size_t n = (size_t)tm_random_below(r, 20);
    for (size_t i = 0; i < n; i++) room[i] = (uint8_t)tm_random_next(r);
    return tm_slice_of(room, n);
}

static void make_meta(tm_table_meta *m, uint64_t number, tm_random *r)
{
    uint8_t room[32];
    tm_table_meta_init(m);
    m->number = number;
    m->file_bytes = 1000 + tm_random_below(r, 1u << 30);
    m->tail_offset = 100 + tm_random_below(r, 500);
    m->entries = 1 + tm_random_below(r, 1000);
    m->deletes = tm_random_below(r, m->entries);
    m->range_deletes = tm_random_below(r, 3);
    m->max_seq = tm_random_below(r, 1u << 30);
    m->min_seq = tm_random_below(r, m->max_seq + 1);
    m->hash_seed = tm_random_next(r);
    m->expires_ms = tm_random_below(r, 2) ? tm_random_next(r) : 0;
    m->half_ms = tm_random_below(r, 2) ? tm_random_next(r) : 0;
    ck_assert_int_eq(tm_buf_set(&m->smallest, random_text(r, room)), 0);
    ck_assert_int_eq(tm_buf_set(&m->largest, random_text(r, room)), 0);
}

static void add_table(tm_edit *e, uint32_t family, uint32_t level, uint64_t number, tm_random *r)
{
    tm_table_meta m;
    make_meta(&m, number, r);
    ck_assert_int_eq(tm_edit_add_table(e, family, level, &m), TAMIS_OK);
    tm_table_meta_deinit(&m);
}

static void make_edit(tm_edit *e, tm_random *r)
{
    uint8_t a[32], b[32], c[32];
    tm_edit_init(e);
    if (tm_random_below(r, 2)) {
        e->has_store = true;
        e->hash_seed = tm_random_next(r);
        e->format_level = 1;
        memset(e->store_id, (int)tm_random_below(r, 256), sizeof e->store_id);
    }
    e->has_next_file = e->has_last_seq = e->has_min_log = e->has_live_tables = true;
    e->next_file = tm_random_next(r);
    e->last_seq = tm_random_below(r, TM_MAX_SEQ);
    e->min_log = tm_random_next(r);
    e->live_tables = tm_random_below(r, 100);
    e->has_next_family = tm_random_below(r, 2);
    e->next_family = e->has_next_family ? (uint32_t)tm_random_next(r) : 0;
    for (uint64_t i = tm_random_below(r, 4); i > 0; i--) {
        uint32_t family = (uint32_t)tm_random_below(r, 5), level = (uint32_t)tm_random_below(r, 7);
        switch (tm_random_below(r, 7)) {
        case 0:
            add_table(e, family, level, 1 + tm_random_below(r, 1000), r);
            break;
        case 1:
            ck_assert_int_eq(tm_edit_drop_table(e, family, level, tm_random_next(r)), 0);
            break;
        case 2:
            ck_assert_int_eq(tm_edit_add_family(e, family, random_text(r, a), random_text(r, b),
                                                random_text(r, c)),
                             0);
            break;
        case 3:
            ck_assert_int_eq(tm_edit_drop_family(e, family), 0);
            break;
        case 4:
            ck_assert_int_eq(tm_edit_set_cursor(e, family, level, random_text(r, a)), 0);
            break;
        case 5:
            ck_assert_int_eq(tm_edit_set_flushed(e, family, tm_random_below(r, TM_MAX_SEQ)), 0);
            break;
        default:
            ck_assert_int_eq(tm_edit_add_option(e, family, random_text(r, a), random_text(r, b)),
                             0);
            break;
        }
    }
}

static void encode(const tm_edit *e, uint64_t chain, tm_buf *out)
{
    tm_buf_clear(out);
    ck_assert_int_eq(tm_edit_encode(e, &chain, out), TAMIS_OK);
}

START_TEST(what_is_written_is_read)
{
    tm_buf bytes = {0}, again = {0};
    for (uint64_t seed = 1; seed <= 500; seed++) {
        tm_random r = tm_random_seed(seed);
        tm_edit e, back;
        uint64_t chain = seed, after = seed;
        make_edit(&e, &r);
        tm_buf_clear(&bytes);
        ck_assert_int_eq(tm_edit_encode(&e, &chain, &bytes), TAMIS_OK);
        tm_edit_init(&back);
        ck_assert_int_eq(tm_edit_decode(&back, tm_buf_slice(&bytes), &after, 3, 0, NULL), TAMIS_OK);
        ck_assert_uint_eq(chain, after);
        encode(&back, seed, &again); // the same bytes: nothing was lost or changed
        ck_assert_uint_eq(again.len, bytes.len);
        ck_assert_mem_eq(again.data, bytes.data, bytes.len);
        uint64_t other = seed + 1; // behind another edit it does not fit
        tm_edit_deinit(&back);
        ck_assert_int_eq(tm_edit_decode(&back, tm_buf_slice(&bytes), &other, 3, 0, NULL),
                         TAMIS_CORRUPT);
        tm_edit_deinit(&back);
        tm_edit_deinit(&e);
    }
    tm_buf_deinit(&bytes);
    tm_buf_deinit(&again);
}
END_TEST

static void check_refused(const uint8_t *bytes, size_t n)
{
    uint8_t *copy = malloc(n + 1); // ends where its memory ends
    memcpy(copy, bytes, n);
    tm_edit e;
    uint64_t chain = 9;
    tamis_error err = {0};
    tm_edit_init(&e);
    uint8_t *exact = realloc(copy, n ? n : 1);
    ck_assert_int_eq(tm_edit_decode(&e, tm_slice_of(exact, n), &chain, 5, 77, &err), TAMIS_CORRUPT);
    ck_assert_uint_eq(err.file_number, 5);
    tm_edit_deinit(&e);
    free(exact);
}

START_TEST(damage_is_refused)
{
    tm_buf bytes = {0};
    for (uint64_t seed = 1; seed <= 30; seed++) {
        tm_random r = tm_random_seed(seed);
        tm_edit e;
        make_edit(&e, &r);
        encode(&e, 9, &bytes);
        for (size_t i = 0; i < bytes.len; i++) {
            check_refused(bytes.data, i);
            bytes.data[i] ^= (uint8_t)(1u << i % 8);
            check_refused(bytes.data, bytes.len);
            bytes.data[i] ^= (uint8_t)(1u << i % 8);
        }
        tm_edit_deinit(&e);
    }
    tm_buf_deinit(&bytes);
}
END_TEST

START_TEST(edits_add_up)
{
    tm_random r = tm_random_seed(4);
    tm_edit state, e;
    tamis_error err = {0};
    tm_edit_init(&state);
    tm_edit_init(&e);
    ck_assert_int_eq(
        tm_edit_add_family(&e, 0, tm_slice_str("default"), tm_slice_str("c"), tm_slice_str("")), 0);
    ck_assert_int_eq(
        tm_edit_add_family(&e, 4, tm_slice_str("a"), tm_slice_str("c"), tm_slice_str("")), 0);
    add_table(&e, 0, 0, 10, &r);
    add_table(&e, 4, 1, 11, &r);
    add_table(&e, 4, 2, 12, &r);
    e.has_live_tables = true;
    e.live_tables = 3;
    ck_assert_int_eq(tm_edit_merge(&state, &e, 1, &err), TAMIS_OK);
    tm_edit_deinit(&e);
    // A move, another name, a merger, a cursor twice.
    ck_assert_int_eq(tm_edit_drop_table(&e, 0, 0, 10), 0);
    add_table(&e, 0, 1, 10, &r);
    ck_assert_int_eq(
        tm_edit_add_family(&e, 4, tm_slice_str("b"), tm_slice_str("c"), tm_slice_str("m")), 0);
    ck_assert_int_eq(tm_edit_set_cursor(&e, 0, 1, tm_slice_str("k")), 0);
    ck_assert_int_eq(tm_edit_set_cursor(&e, 0, 1, tm_slice_str("l")), 0);
    ck_assert_int_eq(tm_edit_set_flushed(&e, 4, 50), 0);
    ck_assert_int_eq(tm_edit_set_flushed(&e, 4, 40), 0);
    ck_assert_int_eq(tm_edit_merge(&state, &e, 1, &err), TAMIS_OK);
    tm_edit_deinit(&e);
    ck_assert_uint_eq(state.table_count, 3);
    ck_assert_uint_eq(state.family_count, 2);
    ck_assert_uint_eq(state.cursor_count, 1);
    ck_assert_uint_eq(state.flushed[0].seq, 50);
    // What does not fit.
    ck_assert_int_eq(tm_edit_drop_table(&e, 0, 0, 10), 0); // it stands in level 1 now
    ck_assert_int_eq(tm_edit_merge(&state, &e, 6, &err), TAMIS_CORRUPT);
    ck_assert_uint_eq(err.file_number, 6);
    tm_edit_deinit(&e);
    ck_assert_int_eq(tm_edit_drop_family(&e, 7), 0);
    ck_assert_int_eq(tm_edit_merge(&state, &e, 6, &err), TAMIS_CORRUPT);
    tm_edit_deinit(&e);
    e.has_live_tables = true;
    e.live_tables = 4;
    ck_assert_int_eq(tm_edit_merge(&state, &e, 6, &err), TAMIS_CORRUPT);
    tm_edit_deinit(&e);
    // A family takes its tables with it.
    ck_assert_int_eq(tm_edit_drop_family(&e, 4), 0);
    e.has_live_tables = true;
    e.live_tables = 1;
    ck_assert_int_eq(tm_edit_merge(&state, &e, 6, &err), TAMIS_OK);
    ck_assert_uint_eq(state.family_count, 1);
    tm_edit_deinit(&e);
    tm_edit_deinit(&state);
}
END_TEST

static bool fail_at(void *ctx, size_t n)
{
    (void)n;
    return --*(int *)ctx != 0;
}

START_TEST(without_memory_nothing_leaks)
{
    tm_random r = tm_random_seed(3);
    tm_edit e, state;
    tm_buf bytes = {0};
    make_edit(&e, &r);
    add_table(&e, 1, 1, 5, &r);
    encode(&e, 1, &bytes);
    for (int n = 1; n < 60; n++) {
        int countdown = n;
        uint64_t chain = 1;
        tm_edit back;
        tm_edit_init(&back);
        tm_edit_init(&state);
        tm_mem_set_hook(fail_at, &countdown);
        int st = tm_edit_decode(&back, tm_buf_slice(&bytes), &chain, 1, 0, NULL);
        if (st == TAMIS_OK) st = tm_edit_merge(&state, &back, 1, NULL);
        tm_mem_set_hook(NULL, NULL);
        ck_assert(st == TAMIS_OK || st == TAMIS_NOMEM || st == TAMIS_CORRUPT);
        tm_edit_deinit(&back);
        tm_edit_deinit(&state);
    }
    tm_edit_deinit(&e);
    tm_buf_deinit(&bytes);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("edit");
    TCase *t = tcase_create("edit");
    tcase_add_test(t, what_is_written_is_read);
    tcase_add_test(t, damage_is_refused);
    tcase_add_test(t, edits_add_up);
    tcase_add_test(t, without_memory_nothing_leaks);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
