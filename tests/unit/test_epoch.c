// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/epoch.h"
#include "base/mem.h"
#include "base/sync.h"

#define ALIVE  0x600df00d600df00du
#define POISON 0xdd

typedef struct item {
    uint64_t magic, twin; // twin = ~magic: torn or stale reads show
    tm_retired retired;   // not first, as the header allows
    int number;
} item;

static atomic_int freed;     // items so far
static int last_freed = -1;  // number of the last one
static atomic_bool disorder; // one was freed before an older one

static item *item_new(int number)
{
    item *i = tm_alloc(sizeof(*i));
    ck_assert_ptr_nonnull(i);
    *i = (item){.magic = ALIVE, .twin = ~ALIVE, .number = number};
    return i;
}

static void item_free(tm_retired *r)
{
    item *i = TM_CONTAINER(r, item, retired);
    if (i->magic != ALIVE) atomic_store(&disorder, true);
    memset(i, POISON, sizeof(*i));
    tm_free(i);
    atomic_fetch_add(&freed, 1);
}

static void item_free_in_order(tm_retired *r)
{
    int number = TM_CONTAINER(r, item, retired)->number;
    if (number != last_freed + 1) atomic_store(&disorder, true);
    last_freed = number;
    item_free(r);
}

static void retire_new(void)
{
    tm_epoch_retire(&item_new(0)->retired, item_free);
}

// Enough for any round that may be due.
static void collect_hard(void)
{
    for (int i = 0; i < 1000; i++) tm_epoch_collect();
}

static void start(tm_thread *t, void *(*run)(void *), void *arg)
{
    tamis_error err;
    ck_assert_int_eq(tm_thread_start(t, run, arg, "test", &err), TAMIS_OK);
}

// ---- One thread --------------------------------------------------------------------------------

START_TEST(synchronize_frees_all_in_order)
{
    for (int i = 0; i < 1000; i++) tm_epoch_retire(&item_new(i)->retired, item_free_in_order);
    ck_assert_int_eq(atomic_load(&freed), 0); // retire frees nothing, however many there are
    tm_epoch_synchronize();
    ck_assert_int_eq(atomic_load(&freed), 1000);
    ck_assert(!atomic_load(&disorder));
    tm_epoch_synchronize(); // nothing to do
    ck_assert_int_eq(atomic_load(&freed), 1000);
}
END_TEST

START_TEST(collect_works_every_64th_time)
{
    tm_epoch_synchronize(); // begins to count
    tm_epoch_collect();     // nothing waits: does not count
    retire_new();           // 1
    for (int i = 2; i < 64; i++) tm_epoch_collect();
    ck_assert_int_eq(atomic_load(&freed), 0);
    tm_epoch_collect();
    ck_assert_int_eq(atomic_load(&freed), 1);
    for (int i = 0; i < 63; i++) retire_new();
    ck_assert_int_eq(atomic_load(&freed), 1);
    tm_epoch_collect();
    ck_assert_int_eq(atomic_load(&freed), 64);
    retire_new(); // it has begun to count anew
    tm_epoch_collect();
    ck_assert_int_eq(atomic_load(&freed), 64);
}
END_TEST

START_TEST(own_stay_protects_nested_too)
{
    tm_epoch_slot *s = tm_epoch_enter();
    ck_assert_ptr_nonnull(s);
    ck_assert_ptr_eq(tm_epoch_enter(), s);
    retire_new();
    collect_hard();
    tm_epoch_exit(s);
    collect_hard();
    ck_assert_int_eq(atomic_load(&freed), 0);
    tm_epoch_exit(s);
    collect_hard();
    ck_assert_int_eq(atomic_load(&freed), 1);
}
END_TEST

START_TEST(a_later_stay_does_not_protect)
{
    retire_new();
    tm_epoch_slot *s = tm_epoch_enter();
    collect_hard(); // begins a new epoch; the stay is in the old one
    ck_assert_int_eq(atomic_load(&freed), 0);
    tm_epoch_exit(s);
    s = tm_epoch_enter();
    collect_hard();
    ck_assert_int_eq(atomic_load(&freed), 1);
    tm_epoch_exit(s);
}
END_TEST

typedef struct tree {
    tm_retired retired;
    struct tree *left, *right;
} tree;

static int depth, deepest; // of free functions inside free functions

static void tree_free(tm_retired *r)
{
    tree *t = (tree *)r;
    depth++;
    deepest = TM_MAX(depth, deepest);
    if (t->left != NULL) tm_epoch_retire(&t->left->retired, tree_free);
    if (t->right != NULL) tm_epoch_retire(&t->right->retired, tree_free);
    tm_free(t);
    atomic_fetch_add(&freed, 1);
    for (int i = 0; i < 100; i++) tm_epoch_collect();
    depth--;
}

static tree *tree_new(int height)
{
    tree *t = tm_calloc(1, sizeof(*t));
    ck_assert_ptr_nonnull(t);
    if (height > 1) {
        t->left = tree_new(height - 1);
        t->right = tree_new(height - 1);
    }
    return t;
}

START_TEST(free_functions_may_retire_and_collect)
{
    tm_epoch_retire(&tree_new(10)->retired, tree_free);
    collect_hard();
    ck_assert_int_eq(deepest, 1); // the stack does not grow with the tree
    for (int i = 0; i < 10; i++) tm_epoch_synchronize();
    ck_assert_int_eq(atomic_load(&freed), 1023);
}
END_TEST

// ---- Guests: threads that stay until they are told ---------------------------------------------

typedef struct guest {
    tm_thread t;
    atomic_bool inside, leave, left;
    uint32_t index;
} guest;

static void *guest_run(void *arg)
{
    guest *g = arg;
    tm_epoch_slot *s = tm_epoch_enter();
    g->index = tm_epoch_thread_index();
    atomic_store(&g->inside, true);
    while (!atomic_load(&g->leave)) tm_thread_yield();
    if (s != NULL) tm_epoch_exit(s);
    atomic_store(&g->left, true);
    return NULL;
}

static void guest_come(guest *g)
{
    atomic_store(&g->inside, false);
    atomic_store(&g->leave, false);
    atomic_store(&g->left, false);
    start(&g->t, guest_run, g);
    while (!atomic_load(&g->inside)) tm_thread_yield();
}

static void guest_go(guest *g)
{
    atomic_store(&g->leave, true);
    tm_thread_join(&g->t);
}

static atomic_bool synchronized;

static void *synchronize_run(void *arg)
{
    (void)arg;
    tm_epoch_synchronize();
    atomic_store(&synchronized, true);
    return NULL;
}

START_TEST(a_guest_protects)
{
    static guest g;
    guest_come(&g);
    retire_new();
    collect_hard();
    ck_assert_int_eq(atomic_load(&freed), 0);
    guest_go(&g);
    collect_hard();
    ck_assert_int_eq(atomic_load(&freed), 1);
}
END_TEST

START_TEST(synchronize_waits_for_the_old_not_for_the_new)
{
    static guest old, new;
    guest_come(&old);
    retire_new();
    uint64_t before = atomic_load(&tm_epoch_now);
    tm_thread t;
    start(&t, synchronize_run, NULL);
    while (atomic_load(&tm_epoch_now) == before) tm_thread_yield();
    guest_come(&new); // after it began
    for (int i = 0; i < 1000; i++) tm_thread_yield();
    ck_assert(!atomic_load(&synchronized));
    ck_assert_int_eq(atomic_load(&freed), 0);
    guest_go(&old);
    tm_thread_join(&t); // new is still inside
    ck_assert(atomic_load(&synchronized));
    ck_assert_int_eq(atomic_load(&freed), 1);
    guest_go(&new);
}
END_TEST

static atomic_bool slow_began, slow_may_end;

static void slow_free(tm_retired *r)
{
    atomic_store(&slow_began, true);
    while (!atomic_load(&slow_may_end)) tm_thread_yield();
    item_free(r);
}

static void *collect_run(void *arg)
{
    (void)arg;
    collect_hard();
    return NULL;
}

START_TEST(synchronize_waits_for_what_others_are_freeing)
{
    tm_thread collector, t;
    tm_epoch_retire(&item_new(0)->retired, slow_free);
    start(&collector, collect_run, NULL);
    while (!atomic_load(&slow_began)) tm_thread_yield();
    start(&t, synchronize_run, NULL);
    retire_new(); // others are not held up meanwhile
    collect_hard();
    for (int i = 0; i < 1000; i++) tm_thread_yield();
    ck_assert(!atomic_load(&synchronized));
    atomic_store(&slow_may_end, true);
    tm_thread_join(&t);
    ck_assert_int_ge(atomic_load(&freed), 1);
    tm_thread_join(&collector);
}
END_TEST

typedef struct slow { // freed when it may
    tm_retired retired;
    atomic_bool began, may_end, ended;
} slow;

static void slow_one_free(tm_retired *r)
{
    slow *s = (slow *)r;
    atomic_store(&s->began, true);
    while (!atomic_load(&s->may_end)) tm_thread_yield();
    atomic_store(&s->ended, true);
}

// Two batches under way; the older ends first, the younger is still known.
START_TEST(batches_may_end_in_any_order)
{
    static slow a, b;
    tm_thread first, second, t;
    tm_epoch_retire(&a.retired, slow_one_free);
    start(&first, collect_run, NULL);
    while (!atomic_load(&a.began)) tm_thread_yield();
    tm_epoch_retire(&b.retired, slow_one_free);
    start(&second, synchronize_run, NULL); // takes b itself, then would wait for a
    while (!atomic_load(&b.began)) tm_thread_yield();
    atomic_store(&a.may_end, true);
    tm_thread_join(&first);
    start(&t, synchronize_run, NULL);
    for (int i = 0; i < 1000; i++) tm_thread_yield();
    ck_assert(!atomic_load(&synchronized));
    atomic_store(&b.may_end, true);
    tm_thread_join(&t);
    tm_thread_join(&second);
    ck_assert(atomic_load(&a.ended) && atomic_load(&b.ended));
}
END_TEST

// ---- Slots -------------------------------------------------------------------------------------

START_TEST(indices_are_small_unique_and_reused)
{
    enum { N = 100 };
    static guest g[N];
    bool seen[N + 1] = {false};
    seen[tm_epoch_thread_index()] = true;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            guest_come(&g[i]);
            ck_assert_uint_le(g[i].index, N);
            ck_assert(!seen[g[i].index]);
            seen[g[i].index] = true;
        }
        retire_new(); // every one of them protects it
        for (int i = 0; i < N; i++) {
            collect_hard();
            ck_assert_int_eq(atomic_load(&freed), round);
            guest_go(&g[i]);
            seen[g[i].index] = false;
        }
        collect_hard();
        ck_assert_int_eq(atomic_load(&freed), round + 1);
    }
}
END_TEST

static bool deny(void *ctx, size_t n)
{
    (void)n;
    atomic_fetch_add((atomic_int *)ctx, 1);
    return false;
}

static void *enter_fails(void *arg)
{
    bool *failed = arg;
    *failed = tm_epoch_enter() == NULL && tm_epoch_self == NULL && tm_epoch_thread_index() == 0;
    return NULL;
}

START_TEST(without_memory_a_thread_is_not_registered)
{
    enum { N = 40 };
    static guest g[N];
    atomic_int denied = 0;
    int inside = 0;
    tm_mem_set_hook(deny, &denied);
    while (inside < N && atomic_load(&denied) == 0) guest_come(&g[inside++]);
    ck_assert_int_gt(inside, 30); // so many need no memory
    ck_assert_int_lt(inside, N);
    bool failed = false;
    tm_thread t;
    start(&t, enter_fails, &failed);
    tm_thread_join(&t);
    ck_assert(failed);
    guest_go(&g[--inside]); // it was the one that got no slot: its exit is fine too
    guest_go(&g[--inside]); // this one had one, which the next gets
    int before = atomic_load(&denied);
    guest_come(&g[inside++]);
    ck_assert_int_eq(atomic_load(&denied), before);
    tm_mem_set_hook(NULL, NULL);
    guest_come(&g[inside++]);
    retire_new();
    collect_hard();
    ck_assert_int_eq(atomic_load(&freed), 0);
    while (inside > 0) guest_go(&g[--inside]);
    tm_epoch_synchronize();
    ck_assert_int_eq(atomic_load(&freed), 1);
}
END_TEST

// ---- Fork --------------------------------------------------------------------------------------

static atomic_bool stop;

static void *busy_run(void *arg)
{
    (void)arg;
    for (int n = 0; !atomic_load(&stop); n++) {
        tm_epoch_slot *s = tm_epoch_enter();
        item *i = n < 10000 ? tm_alloc(sizeof(*i)) : NULL; // nothing is freed: the guest is inside
        if (i != NULL) {
            *i = (item){.magic = ALIVE};
            tm_epoch_retire(&i->retired, item_free);
        }
        if (s != NULL) tm_epoch_exit(s);
        tm_epoch_collect();
    }
    return NULL;
}

// In the child: all works although the other threads are gone, some of them inside.
static int child_run(int before)
{
    alarm(20); // a deadlock ends here
    tm_epoch_slot *s = tm_epoch_enter();
    if (s == NULL) return 1;
    tm_epoch_exit(s);
    item *i = tm_alloc(sizeof(*i));
    if (i == NULL) return 2;
    *i = (item){.magic = ALIVE};
    tm_epoch_retire(&i->retired, item_free);
    tm_epoch_collect();
    tm_epoch_synchronize();
    if (atomic_load(&freed) <= before) return 3;
    if (tm_epoch_thread_index() > 0) return 4;
    return 0;
}

START_TEST(the_child_of_a_fork_goes_on)
{
    static guest g;
    tm_thread busy[2];
    ck_assert_uint_eq(tm_epoch_thread_index(), 0);
    guest_come(&g); // is inside at the fork, and never leaves in the child
    for (int i = 0; i < 2; i++) start(&busy[i], busy_run, NULL);
    for (int i = 0; i < 20; i++) {
        int before = atomic_load(&freed);
        pid_t child = fork();
        if (child == 0) _exit(child_run(before));
        int status = -1;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) tm_thread_join(&busy[i]);
    guest_go(&g);
    tm_epoch_synchronize();
}
END_TEST

// What the parent's threads were freeing is not waited for.
START_TEST(a_fork_while_others_free)
{
    static slow a;
    tm_thread first;
    tm_epoch_retire(&a.retired, slow_one_free);
    start(&first, collect_run, NULL);
    while (!atomic_load(&a.began)) tm_thread_yield();
    pid_t child = fork();
    if (child == 0) _exit(child_run(0));
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    atomic_store(&a.may_end, true);
    tm_thread_join(&first);
}
END_TEST

START_TEST(a_fork_inside_leaves_the_child_inside)
{
    tm_epoch_slot *s = tm_epoch_enter();
    retire_new();
    pid_t child = fork();
    if (child == 0) {
        collect_hard();
        if (atomic_load(&freed) != 0) _exit(1);
        tm_epoch_exit(s);
        collect_hard();
        _exit(atomic_load(&freed) == 1 ? 0 : 2);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    tm_epoch_exit(s);
    collect_hard();
    ck_assert_int_eq(atomic_load(&freed), 1);
}
END_TEST

// ---- Stress ------------------------------------------------------------------------------------

enum { SHARED = 4, READERS = 3, WRITERS = 2, SWAPS = 15000 };

static item *_Atomic shared[SHARED];
static atomic_int writers_left, readers_here, bad_reads;
static atomic_long reads;

static void *reader_run(void *arg)
{
    unsigned x = *(unsigned *)arg;
    long n = 0;
    while (atomic_load_explicit(&writers_left, memory_order_relaxed) > 0) {
        tm_epoch_slot *s = tm_epoch_enter();
        for (int k = 0; k < 8; k++) {
            x = x * 1103515245 + 12345;
            item *i = atomic_load_explicit(&shared[(x >> 16) % SHARED], memory_order_acquire);
            if (i->magic != ALIVE || i->twin != ~ALIVE) atomic_fetch_add(&bad_reads, 1);
            if ((x >> 24) % 64 == 0) tm_thread_yield(); // be caught inside
            if (i->magic != ALIVE || i->twin != ~ALIVE) atomic_fetch_add(&bad_reads, 1);
            n++;
        }
        tm_epoch_exit(s);
        if (n == 8) atomic_fetch_add(&readers_here, 1);
    }
    atomic_fetch_add(&reads, n);
    return NULL;
}

static void *writer_run(void *arg)
{
    unsigned x = *(unsigned *)arg;
    while (atomic_load(&readers_here) < READERS) tm_thread_yield();
    for (int n = 0; n < SWAPS; n++) {
        x = x * 1103515245 + 12345;
        item *i = tm_alloc(sizeof(*i));
        if (i == NULL) break;
        *i = (item){.magic = ALIVE, .twin = ~ALIVE};
        i = atomic_exchange_explicit(&shared[(x >> 16) % SHARED], i, memory_order_acq_rel);
        tm_epoch_retire(&i->retired, item_free);
        tm_epoch_collect();
        if (n % 1000 == 0) tm_epoch_synchronize();
    }
    atomic_fetch_sub(&writers_left, 1);
    return NULL;
}

// Round 0 with membarrier where there is one, round 1 with fences.
START_TEST(no_reader_sees_what_was_freed)
{
    (void)tm_epoch_thread_index();
    if (_i == 1) tm_epoch_asymmetric = false; // no other thread has entered yet
    for (int i = 0; i < SHARED; i++) atomic_store(&shared[i], item_new(i));
    atomic_store(&writers_left, WRITERS);
    tm_thread t[READERS + WRITERS];
    unsigned seeds[READERS + WRITERS];
    for (unsigned i = 0; i < READERS + WRITERS; i++) {
        seeds[i] = i + 1;
        start(&t[i], i < READERS ? reader_run : writer_run, &seeds[i]);
    }
    for (int i = 0; i < READERS + WRITERS; i++) tm_thread_join(&t[i]);
    ck_assert_int_eq(atomic_load(&bad_reads), 0);
    ck_assert(!atomic_load(&disorder));
    ck_assert_int_gt(atomic_load(&reads), READERS * 8);
    // Collected on the way, not only at the end.
    ck_assert_int_gt(atomic_load(&freed), WRITERS * SWAPS / 2);
    tm_epoch_synchronize();
    ck_assert_int_eq(atomic_load(&freed), WRITERS * SWAPS);
    for (int i = 0; i < SHARED; i++) tm_free(atomic_load(&shared[i]));
}
END_TEST

// The store of the enter is held back behind stores that miss the cache, to be overtaken by the
// load of the pointer: without the fences the reader is not seen inside.
enum { PAGES = 4096, PAGE = 4096, DELAYS = 40, LINGER = 3000, FENCED_SWAPS = 20000 };

static void *delayed_reader_run(void *arg)
{
    volatile uint8_t *pages = arg;
    unsigned x = 1;
    while (atomic_load_explicit(&writers_left, memory_order_relaxed) > 0) {
        for (int k = 0; k < DELAYS; k++) {
            x = x * 1103515245 + 12345;
            pages[(size_t)((x >> 8) % PAGES) * PAGE + (x >> 24) / 64 * 64] = 1;
        }
        tm_epoch_slot *s = tm_epoch_enter();
        item *i = atomic_load_explicit(&shared[0], memory_order_acquire);
        for (int k = 0; k < LINGER; k++) {
            if (*(volatile uint64_t *)&i->magic != ALIVE) atomic_fetch_add(&bad_reads, 1);
        }
        tm_epoch_exit(s);
        atomic_store_explicit(&readers_here, 1, memory_order_relaxed);
    }
    return NULL;
}

START_TEST(an_enter_is_seen_at_once)
{
    uint8_t *pages = tm_alloc_large((size_t)PAGES * PAGE);
    ck_assert_ptr_nonnull(pages);
    atomic_store(&shared[0], item_new(0));
    atomic_store(&writers_left, 1);
    tm_thread t;
    start(&t, delayed_reader_run, pages);
    while (atomic_load(&readers_here) == 0) tm_thread_yield();
    for (int n = 0; n < FENCED_SWAPS; n++) {
        item *i = atomic_exchange_explicit(&shared[0], item_new(0), memory_order_acq_rel);
        tm_epoch_retire(&i->retired, item_free);
        tm_epoch_synchronize();
    }
    atomic_store(&writers_left, 0);
    tm_thread_join(&t);
    ck_assert_int_eq(atomic_load(&bad_reads), 0);
    ck_assert_int_eq(atomic_load(&freed), FENCED_SWAPS);
    tm_free(atomic_load(&shared[0]));
    tm_free_large(pages, (size_t)PAGES * PAGE);
}
END_TEST

enum { SYNCHRONIZERS = 4, SYNC_ROUNDS = 200 };

typedef struct own { // counted for one thread
    tm_retired retired;
    atomic_int *gone;
} own;

static void own_free(tm_retired *r)
{
    own *o = (own *)r;
    atomic_fetch_add(o->gone, 1);
    tm_free(o);
}

static void *synchronizer_run(void *arg)
{
    atomic_int gone = 0;
    bool *good = arg;
    *good = true;
    for (int n = 1; n <= SYNC_ROUNDS; n++) {
        for (int k = 0; k < 3; k++) {
            own *o = tm_alloc(sizeof(*o));
            if (o == NULL) *good = false;
            if (o == NULL) continue;
            o->gone = &gone;
            tm_epoch_retire(&o->retired, own_free);
        }
        if (n % 2) tm_epoch_collect();
        tm_epoch_slot *s = tm_epoch_enter();
        tm_epoch_exit(s);
        tm_epoch_synchronize();
        if (atomic_load(&gone) != 3 * n) *good = false; // all of its own are gone, at once
    }
    return NULL;
}

START_TEST(many_synchronize_at_once)
{
    tm_thread t[SYNCHRONIZERS];
    bool good[SYNCHRONIZERS] = {false};
    for (int i = 0; i < SYNCHRONIZERS; i++) start(&t[i], synchronizer_run, &good[i]);
    for (int i = 0; i < SYNCHRONIZERS; i++) tm_thread_join(&t[i]);
    for (int i = 0; i < SYNCHRONIZERS; i++) ck_assert(good[i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("epoch");
    TCase *t = tcase_create("epoch");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, synchronize_frees_all_in_order);
    tcase_add_test(t, collect_works_every_64th_time);
    tcase_add_test(t, own_stay_protects_nested_too);
    tcase_add_test(t, a_later_stay_does_not_protect);
    tcase_add_test(t, free_functions_may_retire_and_collect);
    tcase_add_test(t, a_guest_protects);
    tcase_add_test(t, synchronize_waits_for_the_old_not_for_the_new);
    tcase_add_test(t, synchronize_waits_for_what_others_are_freeing);
    tcase_add_test(t, batches_may_end_in_any_order);
    tcase_add_test(t, indices_are_small_unique_and_reused);
    tcase_add_test(t, without_memory_a_thread_is_not_registered);
    tcase_add_test(t, the_child_of_a_fork_goes_on);
    tcase_add_test(t, a_fork_while_others_free);
    tcase_add_test(t, a_fork_inside_leaves_the_child_inside);
    tcase_add_loop_test(t, no_reader_sees_what_was_freed, 0, 2);
    tcase_add_test(t, an_enter_is_seen_at_once);
    tcase_add_test(t, many_synchronize_at_once);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
