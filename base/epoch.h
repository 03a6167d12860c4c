// SPDX-License-Identifier: BSD-2-Clause
//
// epoch.h - memory that readers may still see is freed after they have left.
//
// A short call enters, follows shared pointers (versions, memtables, cached blocks) without taking
// references, and exits. Who unlinks an object retires it; its free function runs after every call
// that could have seen it has left. Epoch-based reclamation after Fraser, "Practical lock-freedom"
// (2004), with an asymmetric fence: entering is a plain store, and the reclaimer makes it visible
// with membarrier(2). Where that is missing, and under the thread sanitizer, entering has a fence
// of its own. The proof is in epoch.c.
//
// INVARIANTS
//  E1  Nothing blocks inside an epoch: no file call, no callback of the user, no lock that is held
//      across one. What must outlive the exit gets a counted reference inside.
//  E2  An object is retired once, after the last pointer to it that a new reader could load has
//      been cleared.
//  E3  tm_epoch_retire only queues; free functions run in tm_epoch_collect and
//      tm_epoch_synchronize, on the calling thread, which holds no lock then. They may take locks,
//      and may retire and collect, but not synchronize.
//
// Threads: one process-wide domain. A thread registers at its first enter and gives its slot back
// at its exit. Nesting is allowed. A child of fork goes on with the one thread that it has; what
// other threads were just freeing is never freed there.
// Cost: enter and exit are a few loads and stores to the thread's own line, with no fence.
#ifndef TM_EPOCH_H
#define TM_EPOCH_H

#include <stdatomic.h>

#include "base/base.h"

// gcc and clang say it each in its own way.
#if defined(__SANITIZE_THREAD__)
#define TM_EPOCH_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TM_EPOCH_SANITIZED 1
#endif
#endif

typedef struct tm_epoch_slot {
    _Atomic uint64_t epoch; // 0 = outside
    uint32_t depth;         // own thread only
    uint32_t index;         // small number of this thread among those alive; for sharded counters
} tm_epoch_slot;

typedef struct tm_retired { // first member, or any, of what is to be freed
    struct tm_retired *next;
    void (*free)(struct tm_retired *self);
    uint64_t epoch;
} tm_retired;

// NULL until the thread's first enter. With this model a shared library needs no call to find it.
extern __attribute__((tls_model("initial-exec"))) _Thread_local tm_epoch_slot *tm_epoch_self;
extern _Atomic uint64_t tm_epoch_now;
extern bool tm_epoch_asymmetric; // set once, before the first slot is given out

// Registers this thread; NULL if out of memory (the caller then takes its slow, counted path).
tm_epoch_slot *tm_epoch_register(void);

// The store comes before every later load of this thread, for the reclaimer too.
static inline void tm_epoch_announce(tm_epoch_slot *s, uint64_t now)
{
#ifdef TM_EPOCH_SANITIZED
    // The sanitizer knows no fences. It turns this into an exchange that is one.
    (void)atomic_exchange_explicit(&s->epoch, now, memory_order_seq_cst);
#else
    atomic_store_explicit(&s->epoch, now, memory_order_release); // see 2 in epoch.c
    atomic_thread_fence(memory_order_seq_cst);                   // pairs with the reclaimer's fence
#endif
}

// Returns the slot, for tm_epoch_exit; NULL if the thread could not be registered.
static inline tm_epoch_slot *tm_epoch_enter(void)
{
    tm_epoch_slot *s = tm_epoch_self;
    if (TM_UNLIKELY(s == NULL) && (s = tm_epoch_register()) == NULL) return NULL;
    if (s->depth++ == 0) {
        // Pairs with the release in the reclaimer: who enters at an epoch sees all that was
        // unlinked before it began.
        uint64_t now = atomic_load_explicit(&tm_epoch_now, memory_order_acquire);
        if (TM_LIKELY(tm_epoch_asymmetric)) {
            atomic_store_explicit(&s->epoch, now, memory_order_release); // see 2 in epoch.c
            atomic_signal_fence(memory_order_seq_cst); // pairs with membarrier in the reclaimer
        } else {
            tm_epoch_announce(s, now);
        }
    }
    return s;
}
static inline void tm_epoch_exit(tm_epoch_slot *s)
{
    if (--s->depth == 0) atomic_store_explicit(&s->epoch, 0, memory_order_release);
}

// Queues r to be freed later. Cheap, runs nothing; may be called with locks held.
void tm_epoch_retire(tm_retired *r, void (*free_fn)(tm_retired *self));
// To be called now and then by those who retire, holding no lock. Every 64th retirement or call
// (counted together) pays for a fence on all processors and frees what no reader can see; the
// others return at once. For what is large, or must be gone, there is tm_epoch_synchronize.
void tm_epoch_collect(void);
// Waits until every call that is inside now has left, and all that was retired before is freed,
// also where another thread is just doing it. Not inside an epoch, and holding no lock.
void tm_epoch_synchronize(void);
// A small number for this thread, unique among living threads and reused: for sharded counters.
uint32_t tm_epoch_thread_index(void);

#endif // TM_EPOCH_H
