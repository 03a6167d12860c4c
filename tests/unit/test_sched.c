// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "base/sched.h"
#include "base/sync.h"

static tm_sched *create(uint32_t threads, uint64_t seed)
{
    tm_sched *s = NULL;
    tamis_error err;
    ck_assert_int_eq(tm_sched_create(threads, seed, &s, &err), TAMIS_OK);
    ck_assert_ptr_nonnull(s);
    ck_assert_uint_eq(tm_sched_threads(s), threads);
    return s;
}

// ---- Step mode ---------------------------------------------------------------------------------

typedef struct note { // writes its name down
    tm_job job;
    char name;
} note;

static char story[64];
static size_t told;

static void tell(tm_job *job)
{
    story[told++] = TM_CONTAINER(job, note, job)->name;
    story[told] = 0;
}

enum { NOTES = 12 };

static void submit_notes(tm_sched *s, note notes[NOTES])
{
    told = 0;
    for (int i = 0; i < NOTES; i++) {
        notes[i] = (note){.job = {.run = tell}, .name = (char)('a' + i)};
        tm_sched_submit(s, i % 3 == 0 ? TM_LANE_HIGH : TM_LANE_LOW, &notes[i].job);
    }
}

static void steps(uint64_t seed, char out[64])
{
    note notes[NOTES];
    tm_sched *s = create(0, seed);
    submit_notes(s, notes);
    for (size_t left = NOTES; left > 0; left--) {
        ck_assert_uint_eq(tm_sched_pending(s), left);
        ck_assert(tm_sched_step(s));
    }
    ck_assert(!tm_sched_step(s));
    ck_assert_uint_eq(tm_sched_pending(s), 0);
    tm_sched_destroy(s);
    memcpy(out, story, sizeof(story));
}

START_TEST(a_seed_replays)
{
    char a[64], b[64];
    bool differ = false;
    bool first[NOTES] = {false};
    for (uint64_t seed = 0; seed < 200; seed++) {
        steps(seed, a);
        steps(seed, b);
        ck_assert_str_eq(a, b);
        for (int i = 0; i < NOTES; i++) ck_assert_ptr_nonnull(strchr(a, 'a' + i));
        ck_assert_uint_eq(strlen(a), NOTES);
        first[a[0] - 'a'] = true;
        steps(seed + 1000, b);
        differ = differ || strcmp(a, b) != 0;
    }
    ck_assert(differ);
    for (int i = 0; i < NOTES; i++) ck_assert(first[i]); // any job of any lane may come first
}
END_TEST

typedef struct chain { // submits itself, a few times
    tm_job job;
    tm_sched *s;
    int left, runs;
} chain;

static void chain_run(tm_job *job)
{
    chain *c = TM_CONTAINER(job, chain, job);
    c->runs++;
    if (c->left-- > 0) tm_sched_submit(c->s, TM_LANE_LOW, job);
}

START_TEST(drain_runs_what_comes_up_too)
{
    static const uint32_t threads[] = {0, 1, 3};
    for (size_t i = 0; i < TM_COUNT(threads); i++) {
        tm_sched *s = create(threads[i], 1);
        chain a = {.job = {.run = chain_run}, .s = s, .left = 5}, b = a;
        tm_sched_submit(s, TM_LANE_HIGH, &a.job);
        tm_sched_submit(s, TM_LANE_LOW, &b.job);
        tm_sched_drain(s);
        ck_assert_int_eq(a.runs, 6);
        ck_assert_int_eq(b.runs, 6);
        ck_assert_uint_eq(tm_sched_pending(s), 0);
        tm_sched_drain(s);
        tm_sched_destroy(s);
    }
}
END_TEST

START_TEST(a_queued_job_is_queued_once)
{
    tm_sched *s = create(0, 1);
    note n = {.job = {.run = tell}, .name = 'n'};
    told = 0;
    tm_sched_submit(s, TM_LANE_HIGH, &n.job);
    tm_sched_submit(s, TM_LANE_HIGH, &n.job);
    tm_sched_submit(s, TM_LANE_LOW, &n.job);
    ck_assert_uint_eq(tm_sched_pending(s), 1);
    tm_sched_drain(s);
    ck_assert_uint_eq(told, 1);
    tm_sched_submit(s, TM_LANE_LOW, &n.job); // and again once it has run
    tm_sched_drain(s);
    ck_assert_uint_eq(told, 2);
    tm_sched_destroy(s);
}
END_TEST

// From the front, the middle and the end of a lane; what is left stays linked.
START_TEST(cancelled_jobs_do_not_run)
{
    for (unsigned mask = 0; mask < 1u << 6; mask++) {
        note notes[NOTES];
        tm_sched *s = create(0, mask);
        submit_notes(s, notes);
        for (int i = 0; i < 6; i++) {
            if (mask >> i & 1) ck_assert(tm_sched_cancel(s, &notes[i * 2].job));
        }
        for (int i = 0; i < 6; i++) {
            if (mask >> i & 1) ck_assert(!tm_sched_cancel(s, &notes[i * 2].job));
        }
        note late = {.job = {.run = tell}, .name = 'z'};
        tm_sched_submit(s, TM_LANE_HIGH, &late.job);
        tm_sched_drain(s);
        ck_assert_ptr_nonnull(strchr(story, 'z'));
        for (int i = 0; i < NOTES; i++) {
            bool cancelled = i % 2 == 0 && (mask >> i / 2 & 1);
            ck_assert_int_eq(strchr(story, 'a' + i) == NULL, cancelled);
        }
        ck_assert(!tm_sched_cancel(s, &notes[0].job)); // ran, or was cancelled
        tm_sched_destroy(s);
    }
}
END_TEST

START_TEST(destroy_cancels)
{
    note notes[NOTES];
    tm_sched *s = create(0, 1);
    submit_notes(s, notes);
    tm_sched_destroy(s);
    ck_assert_uint_eq(told, 0);
    for (int i = 0; i < NOTES; i++) ck_assert(!notes[i].job.queued); // may go to another one
    s = create(0, 1);
    for (int i = 0; i < NOTES; i++) tm_sched_submit(s, TM_LANE_LOW, &notes[i].job);
    tm_sched_drain(s);
    ck_assert_uint_eq(told, NOTES);
    tm_sched_destroy(s);
    tm_sched_destroy(NULL);
}
END_TEST

// ---- Threads -----------------------------------------------------------------------------------

typedef struct gate_job { // stays inside until the gate opens
    tm_job job;
    atomic_bool *open;
    atomic_int *inside, *done;
} gate_job;

static void gate_run(tm_job *job)
{
    gate_job *g = TM_CONTAINER(job, gate_job, job);
    atomic_fetch_add(g->inside, 1);
    while (!atomic_load(g->open)) tm_thread_yield();
    atomic_fetch_sub(g->inside, 1);
    atomic_fetch_add(g->done, 1);
}

static void wait_for(atomic_int *v, int value)
{
    while (atomic_load(v) != value) tm_thread_yield(); // the test's time limit ends it
}

START_TEST(a_thread_is_kept_for_flushes)
{
    tm_sched *s = create(3, 1);
    atomic_bool low_open = false, high_open = false;
    atomic_int low_in = 0, high_in = 0, low_done = 0, high_done = 0;
    gate_job low[5], high[3];
    for (int i = 0; i < 5; i++) {
        low[i] = (gate_job){{.run = gate_run}, &low_open, &low_in, &low_done};
        tm_sched_submit(s, TM_LANE_LOW, &low[i].job);
    }
    wait_for(&low_in, 2);
    for (int i = 0; i < 1000; i++) tm_thread_yield();
    ck_assert_int_eq(atomic_load(&low_in), 2); // never three
    for (int i = 0; i < 3; i++) {
        high[i] = (gate_job){{.run = gate_run}, &high_open, &high_in, &high_done};
        tm_sched_submit(s, TM_LANE_HIGH, &high[i].job);
    }
    wait_for(&high_in, 1);
    ck_assert_uint_eq(tm_sched_pending(s), 8);   // running ones too
    ck_assert(!tm_sched_cancel(s, &low[0].job)); // it runs
    atomic_store(&high_open, true);
    wait_for(&high_done, 3); // one after another, while no LOW job ends
    ck_assert_int_eq(atomic_load(&low_done), 0);
    atomic_store(&low_open, true);
    tm_sched_drain(s);
    ck_assert_int_eq(atomic_load(&low_done), 5);
    tm_sched_destroy(s);
}
END_TEST

START_TEST(all_threads_may_flush)
{
    tm_sched *s = create(3, 1);
    atomic_bool open = false;
    atomic_int in = 0, done = 0;
    gate_job high[3];
    for (int i = 0; i < 3; i++) {
        high[i] = (gate_job){{.run = gate_run}, &open, &in, &done};
        tm_sched_submit(s, TM_LANE_HIGH, &high[i].job);
    }
    wait_for(&in, 3);
    atomic_store(&open, true);
    tm_sched_drain(s);
    ck_assert_int_eq(atomic_load(&done), 3);
    tm_sched_destroy(s);
}
END_TEST

START_TEST(high_goes_before_low)
{
    tm_sched *s = create(1, 1); // one thread serves both
    atomic_bool open = false;
    atomic_int in = 0, done = 0;
    gate_job first = {{.run = gate_run}, &open, &in, &done};
    note notes[NOTES];
    tm_sched_submit(s, TM_LANE_LOW, &first.job);
    wait_for(&in, 1);
    submit_notes(s, notes);
    atomic_store(&open, true);
    tm_sched_drain(s);
    ck_assert_str_eq(story, "adgjbcefhikl"); // first come, first served, within a lane
    tm_sched_destroy(s);
}
END_TEST

START_TEST(destroy_waits_for_what_runs)
{
    tm_sched *s = create(2, 1);
    atomic_bool open = false;
    atomic_int in = 0, done = 0;
    gate_job jobs[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = (gate_job){{.run = gate_run}, &open, &in, &done};
        tm_sched_submit(s, i < 2 ? TM_LANE_HIGH : TM_LANE_LOW, &jobs[i].job);
    }
    wait_for(&in, 2);
    atomic_store(&open, true);
    tm_sched_destroy(s);
    ck_assert_int_eq(atomic_load(&in), 0);
    ck_assert_int_ge(atomic_load(&done), 2);
    for (int i = 0; i < 4; i++) ck_assert(!jobs[i].job.queued);
}
END_TEST

typedef struct heap_job { // frees itself at once, as owners may
    tm_job job;
    tm_sched *s;
    int depth;
    atomic_int *runs;
} heap_job;

static void heap_submit(tm_sched *s, int depth, atomic_int *runs);

static void heap_run(tm_job *job)
{
    heap_job h = *TM_CONTAINER(job, heap_job, job);
    tm_free(TM_CONTAINER(job, heap_job, job));
    atomic_fetch_add(h.runs, 1);
    if (h.depth == 0) return;
    heap_submit(h.s, h.depth - 1, h.runs);
    heap_submit(h.s, h.depth - 1, h.runs);
}

static void heap_submit(tm_sched *s, int depth, atomic_int *runs)
{
    heap_job *h = tm_calloc(1, sizeof(*h));
    if (h == NULL) return;
    *h = (heap_job){{.run = heap_run}, s, depth, runs};
    tm_sched_submit(s, depth % 2 ? TM_LANE_HIGH : TM_LANE_LOW, &h->job);
}

typedef struct submitter {
    tm_thread t;
    tm_sched *s;
    atomic_int *runs;
} submitter;

static void *submit_many(void *arg)
{
    submitter *u = arg;
    for (int i = 0; i < 20; i++) {
        heap_submit(u->s, 5, u->runs);
        (void)tm_sched_step(u->s); // steps help, with threads too
    }
    return NULL;
}

START_TEST(many_submit_at_once)
{
    static const uint32_t threads[] = {0, 1, 2, 4};
    for (size_t i = 0; i < TM_COUNT(threads); i++) {
        atomic_int runs = 0;
        submitter u[3];
        tamis_error err;
        tm_sched *s = create(threads[i], 1);
        for (int k = 0; k < 3; k++) {
            u[k] = (submitter){.s = s, .runs = &runs};
            int st = tm_thread_start(&u[k].t, submit_many, &u[k], "submit", &err);
            ck_assert_int_eq(st, TAMIS_OK);
        }
        tm_sched_drain(s); // at any time
        for (int k = 0; k < 3; k++) tm_thread_join(&u[k].t);
        tm_sched_drain(s);
        ck_assert_int_eq(atomic_load(&runs), 3 * 20 * 63);
        tm_sched_destroy(s);
    }
}
END_TEST

static void *drain_it(void *arg)
{
    tm_sched_drain(arg);
    return NULL;
}

START_TEST(cancelling_the_last_one_ends_a_drain)
{
    tm_sched *s = create(2, 1);
    atomic_bool open = false;
    atomic_int in = 0, done = 0;
    gate_job jobs[3];
    for (int i = 0; i < 3; i++) {
        jobs[i] = (gate_job){{.run = gate_run}, &open, &in, &done};
        tm_sched_submit(s, TM_LANE_LOW, &jobs[i].job);
    }
    wait_for(&in, 1);
    tm_thread t;
    tamis_error err;
    ck_assert_int_eq(tm_thread_start(&t, drain_it, s, "drain", &err), TAMIS_OK);
    ck_assert(tm_sched_cancel(s, &jobs[1].job));
    ck_assert(tm_sched_cancel(s, &jobs[2].job));
    atomic_store(&open, true);
    tm_thread_join(&t);
    ck_assert_int_eq(atomic_load(&done), 1);
    tm_sched_destroy(s);
}
END_TEST

typedef struct late { // waits until destroy has begun, then submits itself
    tm_job job;
    tm_sched *s;
    atomic_int runs, begun, go;
} late;

static void late_run(tm_job *job)
{
    late *l = TM_CONTAINER(job, late, job);
    atomic_fetch_add(&l->runs, 1);
    atomic_store(&l->begun, 1);
    wait_for(&l->go, 1);                                   // another job is queued
    while (tm_sched_pending(l->s) != 1) tm_thread_yield(); // and was cancelled
    tm_sched_submit(l->s, TM_LANE_HIGH, job);
}

START_TEST(what_comes_during_destroy_is_dropped)
{
    static const uint32_t threads[] = {1, 2};
    for (size_t i = 0; i < TM_COUNT(threads); i++) {
        tm_sched *s = create(threads[i], 1);
        late l = {.job = {.run = late_run}, .s = s};
        note other = {.job = {.run = tell}};
        told = 0;
        tm_sched_submit(s, TM_LANE_LOW, &l.job);
        wait_for(&l.begun, 1);
        tm_sched_submit(s, TM_LANE_LOW, &other.job);
        atomic_store(&l.go, 1);
        tm_sched_destroy(s);
        ck_assert_int_eq(atomic_load(&l.runs), 1);
        ck_assert(!l.job.queued);
        ck_assert_uint_eq(told, 0);
    }
}
END_TEST

typedef struct opener {
    tm_sched *s;
    atomic_bool *open;
} opener;

static void *step_it(void *arg)
{
    (void)tm_sched_step(((opener *)arg)->s);
    return NULL;
}

static void *open_later(void *arg)
{
    for (int i = 0; i < 2000; i++) tm_thread_yield();
    atomic_store(((opener *)arg)->open, true);
    return NULL;
}

START_TEST(destroy_waits_for_steps_of_others)
{
    tm_sched *s = create(0, 1);
    atomic_bool open = false;
    atomic_int in = 0, done = 0;
    gate_job g = {{.run = gate_run}, &open, &in, &done};
    opener o = {s, &open};
    tm_thread stepper, t;
    tamis_error err;
    tm_sched_submit(s, TM_LANE_HIGH, &g.job);
    ck_assert_int_eq(tm_thread_start(&stepper, step_it, &o, "step", &err), TAMIS_OK);
    wait_for(&in, 1);
    ck_assert_uint_eq(tm_sched_pending(s), 1);
    ck_assert_int_eq(tm_thread_start(&t, open_later, &o, "open", &err), TAMIS_OK);
    tm_sched_destroy(s);
    ck_assert_int_eq(atomic_load(&done), 1);
    tm_thread_join(&stepper);
    tm_thread_join(&t);
}
END_TEST

static atomic_int drain_asked, drain_done;

static void *drain_when_asked(void *arg)
{
    for (int n = 1; n <= 3000; n++) {
        while (atomic_load(&drain_asked) < n) tm_cpu_relax();
        tm_sched_drain(arg);
        atomic_store(&drain_done, n);
    }
    return NULL;
}

static void nothing(tm_job *job)
{
    (void)job;
}

// A drain that waits for a job which is cancelled before any thread has taken it.
START_TEST(a_drain_notices_every_cancel)
{
    tm_sched *s = create(1, 1);
    tm_job job = {.run = nothing};
    tm_thread t;
    tamis_error err;
    ck_assert_int_eq(tm_thread_start(&t, drain_when_asked, s, "drain", &err), TAMIS_OK);
    for (int n = 1; n <= 3000; n++) {
        tm_sched_submit(s, TM_LANE_LOW, &job);
        atomic_store(&drain_asked, n);
        for (int k = 0; k < n % 1000; k++) tm_cpu_relax();
        (void)tm_sched_cancel(s, &job);
        wait_for(&drain_done, n);
    }
    tm_thread_join(&t);
    tm_sched_destroy(s);
}
END_TEST

// ---- Failures ----------------------------------------------------------------------------------

static bool deny(void *ctx, size_t n)
{
    (void)ctx;
    (void)n;
    return false;
}

START_TEST(what_cannot_be_made_is_told)
{
    tm_sched *s = NULL;
    tamis_error err;
    ck_assert_int_eq(tm_sched_create(UINT32_MAX, 1, &s, &err), TAMIS_INVALID);
    ck_assert_ptr_null(s);
    ck_assert_ptr_nonnull(strstr(err.message, "4294967295"));
    ck_assert_int_eq(tm_sched_create(1025, 1, &s, &err), TAMIS_INVALID);
    tm_mem_set_hook(deny, NULL);
    ck_assert_int_eq(tm_sched_create(2, 1, &s, &err), TAMIS_NOMEM);
    tm_mem_set_hook(NULL, NULL);
    ck_assert_int_eq(err.code, TAMIS_NOMEM);
    ck_assert_ptr_null(s);
}
END_TEST

// Address space for some of the threads' stacks only. (Sanitizers need all of it for themselves.)
START_TEST(threads_started_before_a_failure_are_stopped)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    return;
#endif
#endif
    struct rlimit limit = {.rlim_cur = 0};
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = (rlim_t)1 << 30;
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
    tm_sched *s = NULL;
    tamis_error err;
    ck_assert_int_eq(tm_sched_create(1024, 1, &s, &err), TAMIS_IO);
    ck_assert_ptr_null(s);
    ck_assert_int_ne(err.sys, 0);
    ck_assert_int_eq(strncmp(err.message, "start thread tamis: ", 20), 0);
    tm_sched_destroy(create(4, 1)); // their stacks are free again
#endif
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sched");
    TCase *t = tcase_create("sched");
    tcase_set_timeout(t, 30);
    tcase_add_test(t, a_seed_replays);
    tcase_add_test(t, drain_runs_what_comes_up_too);
    tcase_add_test(t, a_queued_job_is_queued_once);
    tcase_add_test(t, cancelled_jobs_do_not_run);
    tcase_add_test(t, destroy_cancels);
    tcase_add_test(t, a_thread_is_kept_for_flushes);
    tcase_add_test(t, all_threads_may_flush);
    tcase_add_test(t, high_goes_before_low);
    tcase_add_test(t, destroy_waits_for_what_runs);
    tcase_add_test(t, many_submit_at_once);
    tcase_add_test(t, cancelling_the_last_one_ends_a_drain);
    tcase_add_test(t, what_comes_during_destroy_is_dropped);
    tcase_add_test(t, destroy_waits_for_steps_of_others);
    tcase_add_test(t, a_drain_notices_every_cancel);
    tcase_add_test(t, what_cannot_be_made_is_told);
    tcase_add_test(t, threads_started_before_a_failure_are_stopped);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
