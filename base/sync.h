// SPDX-License-Identifier: BSD-2-Clause
//
// sync.h - mutex, condition, once and threads: the only users of pthreads.
#ifndef TM_SYNC_H
#define TM_SYNC_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/status.h"

typedef struct tm_mutex {
    pthread_mutex_t m;
} tm_mutex;
typedef struct tm_cond {
    pthread_cond_t c; // waits on the monotonic clock
} tm_cond;
typedef struct tm_thread {
    pthread_t t;
} tm_thread;

int tm_mutex_init(tm_mutex *m, tamis_error *err) TM_CHECK_RESULT;
void tm_mutex_deinit(tm_mutex *m);
void tm_mutex_lock(tm_mutex *m);
bool tm_mutex_trylock(tm_mutex *m);
void tm_mutex_unlock(tm_mutex *m);

int tm_cond_init(tm_cond *c, tamis_error *err) TM_CHECK_RESULT;
void tm_cond_deinit(tm_cond *c);
void tm_cond_wait(tm_cond *c, tm_mutex *m);
bool tm_cond_wait_us(tm_cond *c, tm_mutex *m, uint64_t us); // false: the time passed
void tm_cond_signal(tm_cond *c);
void tm_cond_broadcast(tm_cond *c);

// All signals but those that a thread raises itself (SIGSEGV, SIGBUS...) are blocked in the new
// thread: it never takes the host's signals.
int tm_thread_start(tm_thread *t, void *(*run)(void *), void *arg, const char *name,
                    tamis_error *err) TM_CHECK_RESULT;
void tm_thread_join(tm_thread *t);
void tm_thread_yield(void);

uint32_t tm_cpu_count(void); // processors this process may use, at least 1
// A number that changes in a child of fork, from the first call of the former on, which must come
// before the fork. The latter costs one load.
uint64_t tm_process_id_first(void);
uint64_t tm_process_id(void);

// The CPU's pause instruction in a spin loop.
static inline void tm_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif // TM_SYNC_H
