// SPDX-License-Identifier: BSD-2-Clause
#define _GNU_SOURCE // pthread_setname_np, sched_getaffinity

#include "base/sync.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

// The calls below fail for misuse only, which is ours.
#define MUST(call)                                                                                 \
    do {                                                                                           \
        int must_ = (call);                                                                        \
        assert(must_ == 0);                                                                        \
        (void)must_;                                                                               \
    } while (0)

// ---- Mutex and condition -----------------------------------------------------------------------

int tm_mutex_init(tm_mutex *m, tamis_error *err)
{
    int rc = pthread_mutex_init(&m->m, NULL);
    return rc == 0 ? TAMIS_OK : tm_fail_sys(err, rc, 0, 0, "make a mutex");
}

void tm_mutex_deinit(tm_mutex *m)
{
    MUST(pthread_mutex_destroy(&m->m));
}

void tm_mutex_lock(tm_mutex *m)
{
    MUST(pthread_mutex_lock(&m->m));
}

bool tm_mutex_trylock(tm_mutex *m)
{
    return pthread_mutex_trylock(&m->m) == 0;
}

void tm_mutex_unlock(tm_mutex *m)
{
    MUST(pthread_mutex_unlock(&m->m));
}

int tm_cond_init(tm_cond *c, tamis_error *err)
{
    pthread_condattr_t attr;
    int rc = pthread_condattr_init(&attr);
    if (rc == 0) {
        rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        if (rc == 0) rc = pthread_cond_init(&c->c, &attr);
        pthread_condattr_destroy(&attr);
    }
    return rc == 0 ? TAMIS_OK : tm_fail_sys(err, rc, 0, 0, "make a condition variable");
}

void tm_cond_deinit(tm_cond *c)
{
    MUST(pthread_cond_destroy(&c->c));
}

void tm_cond_wait(tm_cond *c, tm_mutex *m)
{
    MUST(pthread_cond_wait(&c->c, &m->m));
}

bool tm_cond_wait_us(tm_cond *c, tm_mutex *m, uint64_t us)
{
    const uint64_t century_s = (uint64_t)100 * 366 * 86400; // keeps time_t from overflowing
    uint64_t s = TM_MIN(us / 1000000, century_s);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)s;
    until.tv_nsec += (long)(us % 1000000) * 1000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    int rc = pthread_cond_timedwait(&c->c, &m->m, &until);
    assert(rc == 0 || rc == ETIMEDOUT);
    return rc != ETIMEDOUT;
}

void tm_cond_signal(tm_cond *c)
{
    MUST(pthread_cond_signal(&c->c));
}

void tm_cond_broadcast(tm_cond *c)
{
    MUST(pthread_cond_broadcast(&c->c));
}

// ---- Threads -----------------------------------------------------------------------------------

// Signals raised by a thread's own instruction cannot be held back; blocked, they would end the
// process behind the back of the host's handler.
static void fill_blocked(sigset_t *set)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigfillset(set);
    for (size_t i = 0; i < TM_COUNT(own); i++) sigdelset(set, own[i]);
}

int tm_thread_start(tm_thread *t, void *(*run)(void *), void *arg, const char *name,
                    tamis_error *err)
{
    sigset_t blocked, before;
    fill_blocked(&blocked);
    // The new thread inherits the mask: set it here, so that there is no moment without.
    int rc = pthread_sigmask(SIG_SETMASK, &blocked, &before);
    if (rc == 0) {
        rc = pthread_create(&t->t, NULL, run, arg);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (rc != 0) return tm_fail_sys(err, rc, 0, 0, "start thread %s", name);
#ifdef __linux__
    char shown[16]; // longer ones are refused
    size_t n = TM_MIN(strlen(name), sizeof(shown) - 1);
    memcpy(shown, name, n);
    shown[n] = 0;
    (void)pthread_setname_np(t->t, shown);
#endif
    return TAMIS_OK;
}

void tm_thread_join(tm_thread *t)
{
    MUST(pthread_join(t->t, NULL));
}

void tm_thread_yield(void)
{
    sched_yield();
}

// ---- The process -------------------------------------------------------------------------------

uint32_t tm_cpu_count(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) { // fails beyond CPU_SETSIZE processors
        int n = CPU_COUNT(&set);
        if (n > 0) return (uint32_t)n;
    }
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

// A generation that every fork raises in the child: one load, where getpid is a system call.
static _Atomic uint64_t fork_generation = 1;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
    // Relaxed: the child has one thread, and those it starts see it.
    atomic_fetch_add_explicit(&fork_generation, 1, memory_order_relaxed);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

uint64_t tm_process_id_first(void)
{
    (void)pthread_once(&fork_once, watch_forks);
    return tm_process_id();
}

uint64_t tm_process_id(void)
{
    return atomic_load_explicit(&fork_generation, memory_order_relaxed);
}
