// SPDX-License-Identifier: BSD-2-Clause
#include "base/sched.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/sync.h"

enum { LANES = 2, THREADS_MAX = 1024 };

typedef struct lane { // first come, first served
    tm_job *head;
    tm_job **tail; // where the next one is linked in
} lane;

struct tm_sched {
    uint32_t threads; // fixed
    uint32_t low_max; // LOW jobs on threads at once; fixed
    struct {
        tm_mutex m;
        tm_cond work; // a job may be ready for a thread
        tm_cond idle; // running went down
        lane lanes[LANES];
        size_t queued, running;
        uint32_t low_running; // on threads
        bool stop;
        tm_random random; // step mode
    } mu;
    tm_thread thread[]; // of the creating and destroying thread
};

// ---- Queues: under the mutex -------------------------------------------------------------------

static void push(tm_sched *s, tm_lane l, tm_job *job)
{
    job->next = NULL;
    job->queued = true;
    *s->mu.lanes[l].tail = job;
    s->mu.lanes[l].tail = &job->next;
    s->mu.queued++;
}

// Takes out the job that *link points to.
static tm_job *unlink_job(tm_sched *s, lane *l, tm_job **link)
{
    tm_job *job = *link;
    *link = job->next;
    if (l->tail == &job->next) l->tail = link;
    job->next = NULL;
    job->queued = false;
    s->mu.queued--;
    return job;
}

static tm_job *pop(tm_sched *s, tm_lane l)
{
    lane *from = &s->mu.lanes[l];
    return from->head != NULL ? unlink_job(s, from, &from->head) : NULL;
}

// The n-th of all that wait.
static tm_job *take_nth(tm_sched *s, uint64_t n)
{
    for (int l = 0; l < LANES; l++) {
        lane *from = &s->mu.lanes[l];
        for (tm_job **link = &from->head; *link != NULL; link = &(*link)->next) {
            if (n-- == 0) return unlink_job(s, from, link);
        }
    }
    return NULL;
}

// Leaves the mutex for the time of the run. The job may be gone once it was entered.
static void run_job(tm_sched *s, tm_job *job)
{
    s->mu.running++;
    tm_mutex_unlock(&s->mu.m);
    job->run(job);
    tm_mutex_lock(&s->mu.m);
    s->mu.running--;
    tm_cond_broadcast(&s->mu.idle);
}

// ---- Threads -----------------------------------------------------------------------------------

static void *worker(void *arg)
{
    tm_sched *s = arg;
    tm_mutex_lock(&s->mu.m);
    while (!s->mu.stop) {
        tm_job *job = pop(s, TM_LANE_HIGH);
        if (job != NULL) {
            run_job(s, job);
        } else if (s->mu.low_running < s->low_max && (job = pop(s, TM_LANE_LOW)) != NULL) {
            s->mu.low_running++;
            run_job(s, job);
            s->mu.low_running--; // this thread looks next: no other has to be told
        } else {
            tm_cond_wait(&s->mu.work, &s->mu.m);
        }
    }
    tm_mutex_unlock(&s->mu.m);
    return NULL;
}

static void stop_threads(tm_sched *s, uint32_t started)
{
    tm_mutex_lock(&s->mu.m);
    s->mu.stop = true;
    for (int l = 0; l < LANES; l++) {
        while (pop(s, (tm_lane)l) != NULL) {}
    }
    tm_cond_broadcast(&s->mu.work);
    tm_cond_broadcast(&s->mu.idle);
    tm_mutex_unlock(&s->mu.m);
    for (uint32_t i = 0; i < started; i++) tm_thread_join(&s->thread[i]);
}

static int start_threads(tm_sched *s, tamis_error *err)
{
    for (uint32_t i = 0; i < s->threads; i++) {
        int st = tm_thread_start(&s->thread[i], worker, s, "tamis", err);
        if (st == TAMIS_OK) continue;
        stop_threads(s, i);
        return st;
    }
    return TAMIS_OK;
}

// ---- Life --------------------------------------------------------------------------------------

int tm_sched_create(uint32_t threads, uint64_t seed, tm_sched **out, tamis_error *err)
{
    *out = NULL;
    if (threads > THREADS_MAX) {
        return tm_fail(err, TAMIS_INVALID, "%u background threads, at most %d are possible",
                       (unsigned)threads, THREADS_MAX);
    }
    tm_sched *s = tm_calloc(1, sizeof(*s) + threads * sizeof(s->thread[0]));
    if (s == NULL) return tm_fail_nomem(err);
    int made = 0;
    s->threads = threads;
    s->low_max = threads > 1 ? threads - 1 : threads;
    s->mu.random = tm_random_seed(seed);
    for (int l = 0; l < LANES; l++) s->mu.lanes[l].tail = &s->mu.lanes[l].head;

    int st;
    TM_GOTO(tm_mutex_init(&s->mu.m, err));
    made = 1;
    TM_GOTO(tm_cond_init(&s->mu.work, err));
    made = 2;
    TM_GOTO(tm_cond_init(&s->mu.idle, err));
    made = 3;
    TM_GOTO(start_threads(s, err));
    *out = s;
    return TAMIS_OK;
out:
    if (made >= 3) tm_cond_deinit(&s->mu.idle);
    if (made >= 2) tm_cond_deinit(&s->mu.work);
    if (made >= 1) tm_mutex_deinit(&s->mu.m);
    tm_free(s);
    return st;
}

void tm_sched_destroy(tm_sched *s)
{
    if (s == NULL) return;
    stop_threads(s, s->threads);
    tm_mutex_lock(&s->mu.m);
    while (s->mu.running > 0) tm_cond_wait(&s->mu.idle, &s->mu.m); // steps of other threads
    tm_mutex_unlock(&s->mu.m);
    tm_cond_deinit(&s->mu.idle);
    tm_cond_deinit(&s->mu.work);
    tm_mutex_deinit(&s->mu.m);
    tm_free(s);
}

// ---- Jobs --------------------------------------------------------------------------------------

void tm_sched_submit(tm_sched *s, tm_lane l, tm_job *job)
{
    tm_mutex_lock(&s->mu.m);
    if (!job->queued && !s->mu.stop) {
        push(s, l, job);
        tm_cond_signal(&s->mu.work);
    }
    tm_mutex_unlock(&s->mu.m);
}

bool tm_sched_cancel(tm_sched *s, tm_job *job)
{
    bool found = false;
    tm_mutex_lock(&s->mu.m);
    for (int l = 0; l < LANES && !found; l++) {
        tm_job **link = &s->mu.lanes[l].head;
        while (*link != NULL && *link != job) link = &(*link)->next;
        found = *link != NULL;
        if (found) unlink_job(s, &s->mu.lanes[l], link);
    }
    if (found) tm_cond_broadcast(&s->mu.idle); // a drain may have waited for it
    tm_mutex_unlock(&s->mu.m);
    return found;
}

// With the mutex held.
static bool step_locked(tm_sched *s)
{
    if (s->mu.queued == 0) return false;
    run_job(s, take_nth(s, tm_random_below(&s->mu.random, s->mu.queued)));
    return true;
}

bool tm_sched_step(tm_sched *s)
{
    tm_mutex_lock(&s->mu.m);
    bool ran = step_locked(s);
    tm_mutex_unlock(&s->mu.m);
    return ran;
}

void tm_sched_drain(tm_sched *s)
{
    tm_mutex_lock(&s->mu.m);
    while (s->mu.queued + s->mu.running > 0) {
        if (s->threads == 0 && step_locked(s)) continue;
        tm_cond_wait(&s->mu.idle, &s->mu.m);
    }
    tm_mutex_unlock(&s->mu.m);
}

size_t tm_sched_pending(tm_sched *s)
{
    tm_mutex_lock(&s->mu.m);
    size_t n = s->mu.queued + s->mu.running;
    tm_mutex_unlock(&s->mu.m);
    return n;
}

uint32_t tm_sched_threads(const tm_sched *s)
{
    return s->threads;
}
