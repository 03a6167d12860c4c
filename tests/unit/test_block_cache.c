// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/sync.h"
#include "sstable/block_cache.h"

// ---- Blocks that know whether they live --------------------------------------------------------

enum { ALIVE = 0x600d, CHILDREN = 16, BLOCK = 1000 };

typedef struct fake {
    tm_cached head;
    _Atomic uint32_t alive;
    uint32_t id;
    tm_cache_slot slots[CHILDREN];
} fake;

static _Atomic int live; // blocks not destroyed

static void fake_destroy(tm_cached *b)
{
    fake *f = (fake *)(void *)b;
    ck_assert_uint_eq(f->alive, ALIVE);
    for (uint32_t i = 0; i < b->slot_count; i++) ck_assert_ptr_null(tm_cache_load(&b->slots[i]));
    f->alive = 0xdead;
    atomic_fetch_sub(&live, 1);
    tm_free(f);
}

static tm_cached *fake_new(tm_cache *c, tm_cached_kind kind, uint32_t id, size_t charge)
{
    fake *f = tm_calloc(1, sizeof *f);
    ck_assert_ptr_nonnull(f);
    tm_cached_init(&f->head, c, kind, charge, fake_destroy);
    f->alive = ALIVE;
    f->id = id;
    if (kind == TM_CACHED_INDEX || kind == TM_CACHED_TOP) {
        f->head.slots = f->slots;
        f->head.slot_count = CHILDREN;
    }
    atomic_fetch_add(&live, 1);
    return &f->head;
}

static uint32_t id_of(tm_cached *b)
{
    fake *f = (fake *)(void *)b;
    ck_assert_uint_eq(f->alive, ALIVE);
    return f->id;
}

// Inserts a new block and lets go of it; whether it is in the slot then.
static bool put(tm_cache *c, tm_cache_slot *slot, tm_cached *parent, tm_cached_kind kind,
                uint32_t id, bool cold)
{
    tm_cached *b = tm_cache_insert(c, slot, parent, fake_new(c, kind, id, BLOCK), cold);
    bool linked = atomic_load(slot) == b;
    tm_cached_unref(b);
    return linked;
}

static tm_cache *new_cache(size_t blocks)
{
    tm_cache *c;
    ck_assert_int_eq(tm_cache_create(blocks * BLOCK, &c, NULL), TAMIS_OK);
    return c;
}

static void end_cache(tm_cache *c)
{
    tm_cache_usage u;
    ck_assert(tm_cache_check(c));
    tm_epoch_synchronize();
    tm_cache_usage_get(c, &u);
    for (int k = 0; k < TM_CACHED_KINDS; k++) {
        ck_assert_uint_eq(u.bytes[k], 0);
        ck_assert_uint_eq(u.blocks[k], 0);
    }
    ck_assert_uint_eq(u.pinned, 0);
    ck_assert_uint_eq(u.retired, 0);
    tm_cache_destroy(c);
    ck_assert_int_eq(live, 0);
}

static size_t linked_bytes(tm_cache *c)
{
    tm_cache_usage u;
    size_t sum = 0;
    tm_cache_usage_get(c, &u);
    for (int k = 0; k < TM_CACHED_KINDS; k++) sum += u.bytes[k];
    return sum;
}

static size_t used_bytes(tm_cache *c)
{
    tm_cache_usage u;
    tm_cache_usage_get(c, &u);
    return linked_bytes(c) + u.charged + u.retired;
}

static uint32_t count_set(tm_cache_slot *slots, uint32_t n)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < n; i++) set += atomic_load(&slots[i]) != NULL;
    return set;
}

static void drop_all(tm_cache *c, tm_cache_slot *slots, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        tm_cache_drop(c, &slots[i]);
        ck_assert_ptr_null(tm_cache_load(&slots[i]));
    }
}

// ---- One block ---------------------------------------------------------------------------------

START_TEST(insert_load_drop)
{
    tm_cache *c = new_cache(10);
    tm_cache_slot slot = NULL;
    ck_assert_ptr_null(tm_cache_load(&slot));
    ck_assert_ptr_null(tm_cache_pin(&slot));
    tm_cached *b = tm_cache_insert(c, &slot, NULL, fake_new(c, TM_CACHED_DATA, 7, BLOCK), false);
    ck_assert_ptr_eq(tm_cache_load(&slot), b);
    tm_cache_usage u;
    tm_cache_usage_get(c, &u);
    ck_assert_uint_eq(u.budget, 10 * BLOCK);
    ck_assert_uint_eq(u.bytes[TM_CACHED_DATA], BLOCK);
    ck_assert_uint_eq(u.blocks[TM_CACHED_DATA], 1);
    ck_assert_uint_eq(u.pinned, BLOCK);
    ck_assert_uint_eq(u.inserts, 1);
    tm_cached_unref(b);
    tm_cache_usage_get(c, &u);
    ck_assert_uint_eq(u.pinned, 0);

    tm_cached *again = tm_cache_pin(&slot);
    ck_assert_ptr_eq(again, b);
    tm_cache_drop(c, &slot);
    tm_cache_drop(c, &slot); // empty: nothing happens
    ck_assert_ptr_null(tm_cache_pin(&slot));
    tm_epoch_synchronize();
    ck_assert_uint_eq(id_of(again), 7); // the pin keeps it
    tm_cache_usage_get(c, &u);
    ck_assert_uint_eq(u.pinned, BLOCK);
    ck_assert_uint_eq(u.retired, BLOCK);
    tm_cached_unref(again);
    tm_cached_unref(NULL);
    end_cache(c);
}
END_TEST

START_TEST(the_first_of_two_inserts_stays)
{
    tm_cache *c = new_cache(10);
    tm_cache_slot slot = NULL;
    ck_assert(put(c, &slot, NULL, TM_CACHED_FILTER, 1, false));
    tm_cached *b = tm_cache_insert(c, &slot, NULL, fake_new(c, TM_CACHED_FILTER, 2, BLOCK), false);
    ck_assert_uint_eq(id_of(b), 1);
    ck_assert_int_eq(live, 1);
    tm_cached_unref(b);
    drop_all(c, &slot, 1);
    end_cache(c);
}
END_TEST

START_TEST(without_room_a_block_lives_by_its_pin)
{
    tm_cache *c = new_cache(0);
    tm_cache_slot slot = NULL;
    tm_cached *b = tm_cache_insert(c, &slot, NULL, fake_new(c, TM_CACHED_DATA, 3, BLOCK), false);
    ck_assert_ptr_null(tm_cache_load(&slot));
    tm_cache_usage u;
    tm_cache_usage_get(c, &u);
    ck_assert_uint_eq(u.pinned, BLOCK);
    ck_assert_uint_eq(u.rejected, 1);
    tm_cached_ref(b);
    tm_cached_unref(b);
    ck_assert_uint_eq(id_of(b), 3);
    tm_cached_unref(b);
    ck_assert_int_eq(live, 0);
    // One that would take more than half of the budget pushes nothing out.
    tm_cache_set_budget(c, 10 * BLOCK);
    ck_assert(put(c, &slot, NULL, TM_CACHED_DATA, 4, false));
    tm_cache_slot big = NULL;
    b = tm_cache_insert(c, &big, NULL, fake_new(c, TM_CACHED_DATA, 5, 6 * BLOCK), false);
    ck_assert_ptr_null(tm_cache_load(&big));
    ck_assert_ptr_nonnull(tm_cache_load(&slot));
    tm_cached_unref(b);
    drop_all(c, &slot, 1);
    end_cache(c);
}
END_TEST

static bool deny(void *ctx, size_t n)
{
    (void)ctx;
    (void)n;
    return false;
}

START_TEST(creation_without_memory)
{
    tm_cache *c = NULL;
    tamis_error err;
    tm_mem_set_hook(deny, NULL);
    ck_assert_int_eq(tm_cache_create(1000, &c, &err), TAMIS_NOMEM);
    tm_mem_set_hook(NULL, NULL);
    ck_assert_int_eq(err.code, TAMIS_NOMEM);
    ck_assert_ptr_null(c);
    tm_cache_destroy(NULL);
}
END_TEST

// ---- Eviction ----------------------------------------------------------------------------------

START_TEST(the_budget_holds)
{
    enum { N = 1000, ROOM = 100 };
    tm_cache *c = new_cache(ROOM);
    static tm_cache_slot slots[N];
    for (uint32_t i = 0; i < N; i++) {
        ck_assert(put(c, &slots[i], NULL, TM_CACHED_DATA, i, false));
        ck_assert_uint_le(used_bytes(c), ROOM * BLOCK);
        ck_assert_ptr_nonnull(tm_cache_load(&slots[0])); // touched again and again: it stays
    }
    ck_assert_uint_ge(count_set(slots, N), ROOM * 7 / 8);
    ck_assert_int_le(live, ROOM);
    drop_all(c, slots, N);
    end_cache(c);
}
END_TEST

START_TEST(touched_blocks_are_spared_once)
{
    tm_cache *c = new_cache(8);
    tm_cache_slot slots[16] = {NULL};
    for (uint32_t i = 0; i < 7; i++) ck_assert(put(c, &slots[i], NULL, TM_CACHED_DATA, i, false));
    tm_epoch_synchronize();
    for (uint32_t i = 0; i < 7; i += 2) (void)tm_cache_load(&slots[i]);
    // From the oldest on, those that are not touched.
    for (uint32_t i = 7; i < 10; i++) {
        ck_assert(put(c, &slots[i], NULL, TM_CACHED_DATA, i, false));
        tm_epoch_synchronize();
    }
    for (uint32_t i = 0; i < 7; i++) {
        ck_assert_int_eq(atomic_load(&slots[i]) != NULL, i % 2 == 0 || i == 5);
    }
    drop_all(c, slots, 16);
    end_cache(c);
}
END_TEST

START_TEST(cold_blocks_go_first)
{
    tm_cache *c = new_cache(20);
    tm_cache_slot slots[20] = {NULL}, scan[100] = {NULL};
    for (uint32_t i = 0; i < 16; i++) ck_assert(put(c, &slots[i], NULL, TM_CACHED_DATA, i, false));
    for (uint32_t i = 0; i < 100; i++) {
        ck_assert(put(c, &scan[i], NULL, TM_CACHED_DATA, i, true));
        tm_epoch_synchronize();
    }
    ck_assert_uint_eq(count_set(slots, 16), 16);
    ck_assert_uint_ge(count_set(scan, 100), 1);
    drop_all(c, slots, 20);
    drop_all(c, scan, 100);
    end_cache(c);
}
END_TEST

START_TEST(data_leaves_before_filters_and_indexes)
{
    enum { ROOM = 160 };
    tm_cache *c = new_cache(ROOM);
    static tm_cache_slot data[2 * ROOM], filters[2 * ROOM];
    memset(data, 0, sizeof data);
    memset(filters, 0, sizeof filters);
    for (uint32_t i = 0; i < ROOM; i++) put(c, &data[i], NULL, TM_CACHED_DATA, i, false);
    for (uint32_t i = 0; i < ROOM; i++) {
        tm_cached_kind kind = i % 2 == 0 ? TM_CACHED_FILTER : TM_CACHED_INDEX;
        ck_assert(put(c, &filters[i], NULL, kind, i, false));
    }
    // Data was pushed out down to its share, then partitions.
    tm_cache_usage u;
    tm_cache_usage_get(c, &u);
    ck_assert_uint_le(u.bytes[TM_CACHED_DATA], ROOM / 16 * BLOCK);
    ck_assert_uint_ge(u.bytes[TM_CACHED_DATA], (ROOM / 16 - 1) * BLOCK);
    ck_assert_uint_ge(u.bytes[TM_CACHED_FILTER] + u.bytes[TM_CACHED_INDEX], ROOM * 3 / 4 * BLOCK);
    // A walk over much data does not push partitions out.
    uint32_t partitions = count_set(filters, ROOM);
    for (uint32_t i = 0; i < 2 * ROOM; i++) put(c, &data[i], NULL, TM_CACHED_DATA, i, false);
    ck_assert_uint_ge(count_set(filters, ROOM), partitions - ROOM / 16 - 2); // retired: the rest
    drop_all(c, data, 2 * ROOM);
    drop_all(c, filters, 2 * ROOM);
    end_cache(c);
}
END_TEST

START_TEST(tops_are_kept_up_to_a_quarter)
{
    enum { ROOM = 160 };
    tm_cache *c = new_cache(ROOM);
    static tm_cache_slot tops[ROOM], filters[4 * ROOM];
    memset(tops, 0, sizeof tops);
    memset(filters, 0, sizeof filters);
    for (uint32_t i = 0; i < ROOM / 5; i++) put(c, &tops[i], NULL, TM_CACHED_TOP, i, false);
    for (uint32_t i = 0; i < 4 * ROOM; i++) put(c, &filters[i], NULL, TM_CACHED_FILTER, i, false);
    ck_assert_uint_eq(count_set(tops, ROOM), ROOM / 5);
    for (uint32_t i = 0; i < ROOM; i++) put(c, &tops[i], NULL, TM_CACHED_TOP, i, false);
    ck_assert_uint_le(count_set(tops, ROOM), ROOM / 4 + ROOM / 16 + 1); // retired: the rest
    ck_assert_uint_ge(count_set(tops, ROOM), ROOM / 4 - 1);
    drop_all(c, tops, ROOM);
    drop_all(c, filters, 4 * ROOM);
    end_cache(c);
}
END_TEST

START_TEST(pinned_blocks_stay)
{
    tm_cache *c = new_cache(8);
    tm_cache_slot slots[40] = {NULL};
    ck_assert(put(c, &slots[0], NULL, TM_CACHED_DATA, 0, false));
    tm_cached *pinned = tm_cache_pin(&slots[0]);
    for (uint32_t i = 1; i < 40; i++) ck_assert(put(c, &slots[i], NULL, TM_CACHED_DATA, i, false));
    ck_assert_ptr_eq(atomic_load(&slots[0]), pinned);
    // All pinned: what comes is not taken in.
    tm_cached *pins[40] = {NULL};
    for (uint32_t i = 0; i < 40; i++) pins[i] = tm_cache_pin(&slots[i]);
    tm_epoch_synchronize();
    uint32_t set = count_set(slots, 40);
    tm_cache_slot more[4] = {NULL};
    uint32_t taken = 0;
    for (uint32_t i = 0; i < 4; i++) {
        tm_cached *b =
            tm_cache_insert(c, &more[i], NULL, fake_new(c, TM_CACHED_DATA, i, BLOCK), false);
        taken += atomic_load(&more[i]) == b;
        tm_cached_unref(b);
    }
    ck_assert_uint_le(set + taken, 9);
    ck_assert_uint_eq(count_set(slots, 40), set);
    for (uint32_t i = 0; i < 40; i++) tm_cached_unref(pins[i]);
    tm_cached_unref(pinned);
    drop_all(c, slots, 40);
    drop_all(c, more, 4);
    end_cache(c);
}
END_TEST

START_TEST(pins_of_evicted_blocks_count)
{
    tm_cache *c = new_cache(100);
    static tm_cache_slot slots[100];
    memset(slots, 0, sizeof slots);
    tm_cached *pins[20];
    for (uint32_t i = 0; i < 20; i++) {
        put(c, &slots[i], NULL, TM_CACHED_DATA, i, false);
        pins[i] = tm_cache_pin(&slots[i]);
        tm_cache_drop(c, &slots[i]);
    }
    tm_epoch_synchronize();
    for (uint32_t i = 0; i < 100; i++) {
        put(c, &slots[i], NULL, TM_CACHED_DATA, i, false);
        ck_assert_uint_le(used_bytes(c), 100 * BLOCK);
    }
    ck_assert_uint_le(count_set(slots, 100), 80);
    for (uint32_t i = 0; i < 20; i++) tm_cached_unref(pins[i]);
    drop_all(c, slots, 100);
    end_cache(c);
}
END_TEST

// ---- Children ----------------------------------------------------------------------------------

START_TEST(children_leave_before_their_parent)
{
    tm_cache *c = new_cache(200);
    enum { FILTERS = 1000 };
    static tm_cache_slot slots[FILTERS];
    memset(slots, 0, sizeof slots);
    tm_cache_slot top = NULL;
    ck_assert(put(c, &top, NULL, TM_CACHED_TOP, 0, false));
    tm_cached *t = tm_cache_pin(&top);
    for (uint32_t i = 0; i < 8; i++) {
        ck_assert(put(c, &t->slots[i], t, TM_CACHED_INDEX, i, false));
        tm_cached *index = tm_cache_pin(&t->slots[i]);
        for (uint32_t j = 0; j < 4; j++) {
            ck_assert(put(c, &index->slots[j], index, TM_CACHED_DATA, j, false));
        }
        ck_assert_uint_eq(index->live_children, 4);
        tm_cached_unref(index);
    }
    ck_assert_uint_eq(t->live_children, 8);
    ck_assert(tm_cache_check(c));
    // So many filters that the indexes have to go; some had children still (data's share).
    for (uint32_t i = 0; i < FILTERS; i++) {
        put(c, &slots[i], NULL, TM_CACHED_FILTER, i, false);
        if (i % 2 == 0) (void)tm_cache_load(&slots[i]); // the hand passes over it
        if (i % 10 == 0) ck_assert(tm_cache_check(c));
    }
    ck_assert_uint_eq(t->live_children, 0);
    tm_cache_usage u;
    tm_cache_usage_get(c, &u);
    ck_assert_uint_eq(u.blocks[TM_CACHED_INDEX], 0);
    ck_assert_uint_eq(u.blocks[TM_CACHED_DATA], 0);
    ck_assert_uint_eq(u.blocks[TM_CACHED_TOP], 1);
    tm_cached_unref(t);
    drop_all(c, slots, FILTERS);
    drop_all(c, &top, 1);
    end_cache(c);
}
END_TEST

START_TEST(nothing_is_linked_below_a_parent_that_has_left)
{
    tm_cache *c = new_cache(100);
    tm_cache_slot slot = NULL;
    ck_assert(put(c, &slot, NULL, TM_CACHED_INDEX, 0, false));
    tm_cached *index = tm_cache_pin(&slot);
    ck_assert(put(c, &index->slots[0], index, TM_CACHED_DATA, 1, false));
    tm_cached *child = tm_cache_pin(&index->slots[0]);
    tm_cache_drop(c, &slot);
    ck_assert_ptr_null(tm_cache_load(&index->slots[0]));
    ck_assert(!put(c, &index->slots[0], index, TM_CACHED_DATA, 2, false));
    ck_assert_ptr_null(tm_cache_load(&index->slots[0]));
    tm_epoch_synchronize();
    ck_assert(!put(c, &index->slots[1], index, TM_CACHED_DATA, 3, false));
    // A new index in the place of the old one has nothing to do with the old one's children.
    ck_assert(put(c, &slot, NULL, TM_CACHED_INDEX, 4, false));
    tm_cached_unref(index);
    ck_assert_uint_eq(id_of(child), 1);
    tm_cached_unref(child);
    tm_cache_drop(c, &slot);
    end_cache(c);
}
END_TEST

START_TEST(a_large_tree_is_dropped_whole)
{
    tm_cache *c = new_cache(100000);
    tm_cache_slot top = NULL;
    fake *f = tm_calloc(1, sizeof *f);
    enum { WIDE = 3000 };
    tm_cache_slot *wide = tm_calloc(WIDE, sizeof *wide);
    ck_assert(f != NULL && wide != NULL);
    tm_cached_init(&f->head, c, TM_CACHED_TOP, BLOCK, fake_destroy);
    f->alive = ALIVE;
    f->head.slots = wide;
    f->head.slot_count = WIDE;
    atomic_fetch_add(&live, 1);
    tm_cached *t = tm_cache_insert(c, &top, NULL, &f->head, false);
    for (uint32_t i = 0; i < WIDE; i++) ck_assert(put(c, &wide[i], t, TM_CACHED_FILTER, i, false));
    tm_cached_unref(t);
    tm_cache_drop(c, &top);
    ck_assert_uint_eq(count_set(wide, WIDE), 0);
    end_cache(c);
    tm_free(wide);
}
END_TEST

// ---- Budget ------------------------------------------------------------------------------------

START_TEST(charges_push_blocks_out)
{
    tm_cache *c = new_cache(100);
    static tm_cache_slot slots[100];
    memset(slots, 0, sizeof slots);
    for (uint32_t i = 0; i < 80; i++) put(c, &slots[i], NULL, TM_CACHED_DATA, i, false);
    tm_cache_charge(c, 60 * BLOCK);
    ck_assert_uint_le(used_bytes(c), 100 * BLOCK);
    ck_assert_uint_ge(count_set(slots, 100), 25);
    tm_cache_keep(c, TM_CACHED_RANGE, 20 * BLOCK);
    tm_cache_usage u;
    tm_cache_usage_get(c, &u);
    ck_assert_uint_eq(u.charged, 60 * BLOCK);
    ck_assert_uint_eq(u.bytes[TM_CACHED_RANGE], 20 * BLOCK);
    ck_assert_uint_le(count_set(slots, 100), 20);
    // More than there is: nothing is left, and nothing more comes in.
    tm_cache_charge(c, 60 * BLOCK);
    ck_assert_uint_eq(count_set(slots, 100), 0);
    ck_assert(!put(c, &slots[0], NULL, TM_CACHED_DATA, 0, false));
    tm_cache_charge(c, -120 * BLOCK);
    tm_cache_keep(c, TM_CACHED_RANGE, -20 * BLOCK);
    ck_assert(put(c, &slots[0], NULL, TM_CACHED_DATA, 0, false));
    tm_cache_charge(c, INT64_MIN); // not below nothing
    tm_cache_usage_get(c, &u);
    ck_assert_uint_eq(u.charged, 0);
    tm_cache_set_budget(c, 0);
    ck_assert_uint_eq(count_set(slots, 100), 0);
    end_cache(c);
}
END_TEST

// ---- Readers -----------------------------------------------------------------------------------

typedef struct guest {
    tm_cache_slot *slot;
    tm_mutex m;
    tm_cond changed;
    int stage; // 1: inside, with a block; 2: may leave
} guest;

static void *stay_inside(void *arg)
{
    guest *g = arg;
    tm_epoch_slot *e = tm_epoch_enter();
    tm_cached *b = tm_cache_load(g->slot);
    ck_assert_ptr_nonnull(b);
    tm_mutex_lock(&g->m);
    g->stage = 1;
    tm_cond_broadcast(&g->changed);
    while (g->stage != 2) tm_cond_wait(&g->changed, &g->m);
    tm_mutex_unlock(&g->m);
    ck_assert_uint_eq(id_of(b), 42);
    tm_epoch_exit(e);
    return NULL;
}

START_TEST(a_reader_inside_keeps_what_it_sees)
{
    tm_cache *c = new_cache(100);
    tm_cache_slot slot = NULL;
    put(c, &slot, NULL, TM_CACHED_DATA, 42, false);
    guest g = {.slot = &slot};
    tm_thread t;
    ck_assert_int_eq(tm_mutex_init(&g.m, NULL), TAMIS_OK);
    ck_assert_int_eq(tm_cond_init(&g.changed, NULL), TAMIS_OK);
    ck_assert_int_eq(tm_thread_start(&t, stay_inside, &g, "guest", NULL), TAMIS_OK);
    tm_mutex_lock(&g.m);
    while (g.stage != 1) tm_cond_wait(&g.changed, &g.m);
    tm_mutex_unlock(&g.m);
    tm_cache_drop(c, &slot);
    for (int i = 0; i < 200; i++) tm_epoch_collect();
    tm_cache_usage u;
    tm_cache_usage_get(c, &u);
    ck_assert_uint_eq(u.retired, BLOCK);
    ck_assert_int_eq(live, 1);
    tm_mutex_lock(&g.m);
    g.stage = 2;
    tm_cond_broadcast(&g.changed);
    tm_mutex_unlock(&g.m);
    tm_thread_join(&t);
    tm_cond_deinit(&g.changed);
    tm_mutex_deinit(&g.m);
    end_cache(c);
}
END_TEST

enum { TOPS = 4, ROUNDS = 10000 };
static tm_cache_slot stress_tops[TOPS];

// A lookup without pins, as far as it gets in memory.
static void read_in_epoch(tm_random *r)
{
    tm_epoch_slot *e = tm_epoch_enter();
    uint32_t i = (uint32_t)tm_random_below(r, TOPS), j = (uint32_t)tm_random_below(r, CHILDREN);
    uint32_t k = (uint32_t)tm_random_below(r, CHILDREN);
    tm_cached *top = tm_cache_load(&stress_tops[i]), *index = NULL, *data = NULL, *kept = NULL;
    if (top != NULL) {
        ck_assert_uint_eq(id_of(top), i);
        index = tm_cache_load(&top->slots[j]);
    }
    if (index != NULL) {
        ck_assert_uint_eq(id_of(index), i * 100 + j);
        data = tm_cache_load(&index->slots[k]);
    }
    if (data != NULL) {
        ck_assert_uint_eq(id_of(data), (i * 100 + j) * 100 + k);
        if (k % 4 == 0) tm_cached_ref(kept = data);
    }
    tm_epoch_exit(e);
    if (kept != NULL) ck_assert_uint_eq(id_of(kept), (i * 100 + j) * 100 + k);
    tm_cached_unref(kept);
}

static tm_cached *pin_or_insert(tm_cache *c, tm_cache_slot *slot, tm_cached *parent,
                                tm_cached_kind kind, uint32_t id)
{
    tm_cached *b = tm_cache_pin(slot);
    if (b == NULL) b = tm_cache_insert(c, slot, parent, fake_new(c, kind, id, BLOCK), id % 3 == 0);
    ck_assert_uint_eq(id_of(b), id);
    return b;
}

static void read_with_pins(tm_cache *c, tm_random *r)
{
    uint32_t i = (uint32_t)tm_random_below(r, TOPS), j = (uint32_t)tm_random_below(r, CHILDREN);
    uint32_t k = (uint32_t)tm_random_below(r, CHILDREN);
    tm_cached *top = pin_or_insert(c, &stress_tops[i], NULL, TM_CACHED_TOP, i);
    tm_cached *index = pin_or_insert(c, &top->slots[j], top, TM_CACHED_INDEX, i * 100 + j);
    if (k % 5 == 0) {
        tm_cached_unref(top);
        top = NULL;
    }
    tm_cached *data =
        pin_or_insert(c, &index->slots[k], index, TM_CACHED_DATA, (i * 100 + j) * 100 + k);
    tm_cached_unref(data);
    tm_cached_unref(index);
    tm_cached_unref(top);
}

typedef struct worker {
    tm_cache *cache;
    uint64_t seed;
    int kind;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    tm_random r = tm_random_seed(w->seed);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (w->kind == 0) read_in_epoch(&r);
        if (w->kind == 1) read_with_pins(w->cache, &r);
        if (w->kind == 2) {
            if (i % 4 == 0) tm_cache_charge(w->cache, i % 8 == 0 ? 30 * BLOCK : -30 * BLOCK);
            if (i % 16 == 0) tm_cache_drop(w->cache, &stress_tops[i / 16 % TOPS]);
            read_with_pins(w->cache, &r);
        }
    }
    return NULL;
}

START_TEST(many_threads)
{
    tm_cache *c = new_cache(100);
    tm_thread threads[5];
    worker workers[5];
    for (int i = 0; i < 5; i++) {
        workers[i] = (worker){c, (uint64_t)i + 1, i < 2 ? 0 : i < 4 ? 1 : 2};
        ck_assert_int_eq(tm_thread_start(&threads[i], work, &workers[i], "worker", NULL), TAMIS_OK);
    }
    for (int i = 0; i < 5; i++) tm_thread_join(&threads[i]);
    ck_assert(tm_cache_check(c));
    ck_assert_uint_le(used_bytes(c), 100 * BLOCK);
    drop_all(c, stress_tops, TOPS);
    end_cache(c);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("block_cache");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, insert_load_drop);
    tcase_add_test(t, the_first_of_two_inserts_stays);
    tcase_add_test(t, without_room_a_block_lives_by_its_pin);
    tcase_add_test(t, creation_without_memory);
    tcase_add_test(t, the_budget_holds);
    tcase_add_test(t, touched_blocks_are_spared_once);
    tcase_add_test(t, cold_blocks_go_first);
    tcase_add_test(t, data_leaves_before_filters_and_indexes);
    tcase_add_test(t, tops_are_kept_up_to_a_quarter);
    tcase_add_test(t, pinned_blocks_stay);
    tcase_add_test(t, pins_of_evicted_blocks_count);
    tcase_add_test(t, children_leave_before_their_parent);
    tcase_add_test(t, nothing_is_linked_below_a_parent_that_has_left);
    tcase_add_test(t, a_large_tree_is_dropped_whole);
    tcase_add_test(t, charges_push_blocks_out);
    tcase_add_test(t, a_reader_inside_keeps_what_it_sees);
    tcase_add_test(t, many_threads);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
