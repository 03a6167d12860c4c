// SPDX-License-Identifier: BSD-2-Clause
//
// sched.h - background work: a pool of threads, or steps on the caller's thread.
//
// A job is run once for each submit. Two lanes: HIGH (flushes) is served before LOW (compactions),
// and with two threads or more, one is kept from LOW jobs so that a flush never waits for a
// compaction. With 0 threads nothing runs until tm_sched_step, which takes a job chosen by the seed
// among all that wait, of either lane: whole runs replay from one number.
//
// Threads: all functions by any thread, but destroy last, by one. A job's run may submit further
// jobs, itself too (another thread may then enter it before this run has ended); it may not drain
// or destroy. What is submitted while destroy runs is dropped.
#ifndef TM_SCHED_H
#define TM_SCHED_H

#include "base/status.h"

typedef struct tm_sched tm_sched;
typedef enum tm_lane { TM_LANE_HIGH = 0, TM_LANE_LOW = 1 } tm_lane;

// Embedded by the owner; must live until run was entered or it was cancelled.
typedef struct tm_job {
    struct tm_job *next;
    void (*run)(struct tm_job *self);
    bool queued; // the scheduler's
} tm_job;

// threads = 0: step mode. The name is shown in thread lists ("tamis").
int tm_sched_create(uint32_t threads, uint64_t seed, tm_sched **out,
                    tamis_error *err) TM_CHECK_RESULT;
void tm_sched_submit(tm_sched *s, tm_lane lane, tm_job *job); // already queued: nothing happens
bool tm_sched_cancel(tm_sched *s, tm_job *job);               // true: it was queued, now it is not
bool tm_sched_step(tm_sched *s);                              // runs one; false if none waits
size_t tm_sched_pending(tm_sched *s);                         // queued and running
uint32_t tm_sched_threads(const tm_sched *s);
void tm_sched_drain(tm_sched *s);   // waits until none is queued or running (step mode: runs them)
void tm_sched_destroy(tm_sched *s); // cancels what is queued, waits for what runs; NULL is fine

#endif // TM_SCHED_H
