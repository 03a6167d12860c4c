// SPDX-License-Identifier: BSD-2-Clause
//
// THE SCHEME
// tm_epoch_now counts up from 1. A reader writes its value into the reader's slot when it enters,
// and 0 when it leaves. retire stamps an object with it, under the lock. A round of the reclaimer:
//
//     advance   under the lock: target = now, now = target + 1
//     fence     on all processors
//     scan      oldest = the smallest slot that is not 0
//     free      what is stamped <= target and < oldest
//
// WHY NO READER HOLDS WHAT A ROUND FREES
// Let r be freed in a round, so that it was unlinked, then retired, then the round advanced. Take
// any stay of a reader in its epoch, and what the round's scan found in its slot:
//
//  1. The stay's own value e. Then e > r's stamp. So e was written by an advance that came after
//     r's retirement (both are under the lock, and now was still r's stamp then), thus after r was
//     unlinked. The reader acquired e from the release of that advance: it sees r unlinked.
//  2. 0, or a later stay's value. The stay is over. The scan acquired what its exit released, or
//     what a later enter or exit on this slot did (perhaps of another thread, which got the slot
//     under the lock): all that the reader did comes before the freeing.
//  3. 0, or an earlier stay's value: the scan missed the store of this stay. The reader has a fence
//     between this store and its loads of pointers, the round one between the unlinking and the
//     scan. Of two such fences one comes first. Not the reader's, or the scan would have found the
//     store. So it is the round's, and the reader's loads find r unlinked.
//
// In 3 the reader's fence is only a compiler's where membarrier runs: the system call returns after
// every running thread of the process has been through a full fence, somewhere between two of its
// instructions. That point stands before the stay's loads or behind its store; both will do.
//
// A reader on a slot that the scan did not know (a new chunk) registered after the advance, under
// the lock, and sees all that was unlinked before.
//
// An object that a fence has been paid for and a reader held back is freed by the next round.
//
// FORK
// The lock is held across fork, so that the child finds the lists whole and the lock free (it would
// hang otherwise, hence pthread_atfork). The child clears the slots of threads that it has not, or
// it would wait for them forever. The lock is never held while memory is allocated or a free
// function runs: an allocator's own fork handlers cannot come across it.
//
// LIMIT
// membarrier is taken to keep working once it was registered (it may fail for want of memory, and
// is then called again). A sandbox that forbids it must be set up before the first use.
#ifdef __linux__
#define _GNU_SOURCE // syscall
#endif

#include "base/epoch.h"

#ifdef __linux__
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/mem.h"
#include "base/sync.h"

enum {
    CHUNK_SLOTS = 32,
    ROUND_EVERY = 64, // retirements and calls of collect
    SPINS = 64,
    YIELDS = 128,
    NAP_US = 200
};

typedef struct slot_line { // a cache line each: a reader writes to its own only
    tm_epoch_slot slot;
    bool used; // under the lock
} TM_ALIGNED(TM_CACHE_LINE) slot_line;

typedef struct chunk { // never freed, so that scans need no lock
    struct chunk *_Atomic next;
    slot_line lines[CHUNK_SLOTS];
} chunk;

typedef struct batch { // objects being freed, on the stack of the one who does it
    struct batch *next, **link;
    uint64_t oldest; // stamp
} batch;

_Thread_local tm_epoch_slot *tm_epoch_self;
// Read by every enter, hence away from what retire writes.
TM_ALIGNED(TM_CACHE_LINE) _Atomic uint64_t tm_epoch_now = 1;
bool tm_epoch_asymmetric;

static chunk first_chunk; // up to 32 threads need no memory

static struct {
    TM_ALIGNED(TM_CACHE_LINE) tm_mutex m;
    tm_cond changed;  // a batch has ended
    tm_retired *head; // first retired, first freed: stamps ascend
    tm_retired **tail;
    batch *batches;
} mu = {.m = {PTHREAD_MUTEX_INITIALIZER}, .changed = {PTHREAD_COND_INITIALIZER}, .tail = &mu.head};

// Hints: relaxed, since the lock decides.
static _Atomic size_t waiting;  // objects in the list
static _Atomic size_t pressure; // retirements and calls since the last round
static atomic_bool collecting;  // a collect is at work; acquired and released by it

static _Thread_local bool freeing; // this thread is in a free function

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; // its destructor gives the slot back
static bool have_key;

static chunk *next_of(chunk *c)
{
    return atomic_load_explicit(&c->next, memory_order_acquire); // pairs with take_slot
}

// ---- Fence -------------------------------------------------------------------------------------

#if defined(__linux__) && !defined(TM_EPOCH_SANITIZED)

static bool register_membarrier(void)
{
    const long need = MEMBARRIER_CMD_PRIVATE_EXPEDITED | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
    long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    return known >= 0 && (known & need) == need &&
           syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static bool fence_all(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

#else

static bool register_membarrier(void)
{
    return false;
}

static bool fence_all(void)
{
    return false;
}

#endif

// False: there was no fence, nothing may be freed.
static bool fence(void)
{
    if (tm_epoch_asymmetric) return fence_all();
        // In the sanitized build the exchange in advance is the fence.
#ifndef TM_EPOCH_SANITIZED
    atomic_thread_fence(memory_order_seq_cst); // pairs with tm_epoch_announce
#endif
    return true;
}

// ---- Life --------------------------------------------------------------------------------------

static void release_slot(void *arg)
{
    slot_line *line = TM_CONTAINER(arg, slot_line, slot);
    line->slot.depth = 0;
    atomic_store_explicit(&line->slot.epoch, 0, memory_order_release);
    tm_mutex_lock(&mu.m);
    line->used = false;
    tm_mutex_unlock(&mu.m);
    tm_epoch_self = NULL; // destructors of others may enter again
}

static void before_fork(void)
{
    tm_mutex_lock(&mu.m);
}

static void after_fork(void)
{
    tm_mutex_unlock(&mu.m);
}

static void after_fork_in_child(void)
{
    for (chunk *c = &first_chunk; c != NULL; c = next_of(c)) {
        for (size_t i = 0; i < CHUNK_SLOTS; i++) {
            slot_line *line = &c->lines[i];
            if (&line->slot == tm_epoch_self) continue;
            line->slot.depth = 0;
            line->used = false;
            atomic_store_explicit(&line->slot.epoch, 0, memory_order_relaxed);
        }
    }
    mu.batches = NULL;
    TM_IGNORE(tm_cond_init(&mu.changed, NULL)); // threads of the parent may have been waiting
    atomic_store_explicit(&collecting, false, memory_order_relaxed);
    if (tm_epoch_asymmetric) tm_epoch_asymmetric = register_membarrier();
    tm_mutex_unlock(&mu.m);
}

static void set_up(void)
{
    for (uint32_t i = 0; i < CHUNK_SLOTS; i++) first_chunk.lines[i].slot.index = i;
    // Without the monotonic clock naps are short, that is all.
    TM_IGNORE(tm_cond_init(&mu.changed, NULL));
    have_key = pthread_key_create(&key, release_slot) == 0;
    tm_epoch_asymmetric = register_membarrier();
    (void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

static void set_up_once(void)
{
    (void)pthread_once(&once, set_up);
}

// ---- Slots -------------------------------------------------------------------------------------

// The first free slot, so that indices stay small; with *last the end of the list. Under the lock.
static slot_line *find_free(chunk **last)
{
    for (chunk *c = &first_chunk; c != NULL; c = next_of(c)) {
        *last = c;
        for (size_t i = 0; i < CHUNK_SLOTS; i++) {
            if (!c->lines[i].used) return &c->lines[i];
        }
    }
    return NULL;
}

// Takes the memory spare if no slot is free, and clears the pointer then.
static slot_line *take_slot(chunk **spare)
{
    chunk *last = NULL;
    tm_mutex_lock(&mu.m);
    slot_line *line = find_free(&last);
    if (line == NULL && *spare != NULL) {
        uint32_t index = last->lines[CHUNK_SLOTS - 1].slot.index;
        for (size_t i = 0; i < CHUNK_SLOTS; i++) (*spare)->lines[i].slot.index = ++index;
        line = &(*spare)->lines[0];
        // Pairs with next_of: a chunk that is found is set up.
        atomic_store_explicit(&last->next, *spare, memory_order_release);
        *spare = NULL;
    }
    if (line != NULL) line->used = true;
    tm_mutex_unlock(&mu.m);
    return line;
}

tm_epoch_slot *tm_epoch_register(void)
{
    set_up_once();
    if (!have_key) return NULL;
    chunk *spare = NULL;
    slot_line *line = take_slot(&spare);
    if (line == NULL) { // memory is taken without the lock: see FORK
        spare = tm_alloc_aligned(TM_CACHE_LINE, sizeof(*spare));
        if (spare == NULL) return NULL;
        memset(spare, 0, sizeof(*spare));
        line = take_slot(&spare);
        tm_free(spare); // another thread was faster, or has left
    }
    if (pthread_setspecific(key, &line->slot) != 0) {
        release_slot(&line->slot);
        return NULL;
    }
    tm_epoch_self = &line->slot;
    return &line->slot;
}

uint32_t tm_epoch_thread_index(void)
{
    tm_epoch_slot *s = tm_epoch_self;
    if (s == NULL) s = tm_epoch_register();
    return s != NULL ? s->index : 0;
}

// ---- Rounds ------------------------------------------------------------------------------------

// Begins a new epoch and returns the one that is over.
static uint64_t advance(void)
{
    tm_mutex_lock(&mu.m);
    // Release: pairs with the acquire in tm_epoch_enter. Sequentially consistent: the sanitized
    // build's fence between the unlinking and the scan.
    uint64_t target = atomic_fetch_add_explicit(&tm_epoch_now, 1, memory_order_seq_cst);
    atomic_store_explicit(&pressure, 0, memory_order_relaxed);
    tm_mutex_unlock(&mu.m);
    return target;
}

// The oldest epoch that a reader is in; UINT64_MAX if none is in any.
static uint64_t scan(void)
{
    uint64_t oldest = UINT64_MAX;
    for (chunk *c = &first_chunk; c != NULL; c = next_of(c)) {
        for (size_t i = 0; i < CHUNK_SLOTS; i++) {
            // Acquire: pairs with the release in tm_epoch_exit.
            uint64_t e = atomic_load_explicit(&c->lines[i].slot.epoch, memory_order_seq_cst);
            if (e != 0 && e < oldest) oldest = e;
        }
    }
    return oldest;
}

// Takes what is stamped at most limit out of the list, as a batch under way. Under the lock.
static tm_retired *begin_batch(batch *b, uint64_t limit)
{
    tm_retired *taken = mu.head;
    if (taken == NULL || taken->epoch > limit) return NULL;
    size_t n = 0;
    tm_retired **link = &mu.head;
    for (; *link != NULL && (*link)->epoch <= limit; n++) link = &(*link)->next;
    mu.head = *link;
    *link = NULL;
    if (mu.head == NULL) mu.tail = &mu.head;
    atomic_fetch_sub_explicit(&waiting, n, memory_order_relaxed);

    *b = (batch){.next = mu.batches, .link = &mu.batches, .oldest = taken->epoch};
    if (b->next != NULL) b->next->link = &b->next;
    mu.batches = b;
    return taken;
}

// Frees what is stamped at most limit.
static void free_until(uint64_t limit)
{
    batch b;
    tm_mutex_lock(&mu.m);
    tm_retired *r = begin_batch(&b, limit);
    if (r != NULL) {
        tm_mutex_unlock(&mu.m);
        bool nested = freeing; // a free function called collect
        freeing = true;
        while (r != NULL) {
            tm_retired *next = r->next;
            r->free(r);
            r = next;
        }
        freeing = nested;
        tm_mutex_lock(&mu.m);
        *b.link = b.next;
        if (b.next != NULL) b.next->link = b.link;
        tm_cond_broadcast(&mu.changed);
    }
    tm_mutex_unlock(&mu.m);
}

void tm_epoch_retire(tm_retired *r, void (*free_fn)(tm_retired *self))
{
    set_up_once(); // so that fork finds the lock free
    r->next = NULL;
    r->free = free_fn;
    tm_mutex_lock(&mu.m);
    // Relaxed: only ever written under the lock.
    r->epoch = atomic_load_explicit(&tm_epoch_now, memory_order_relaxed);
    *mu.tail = r;
    mu.tail = &r->next;
    atomic_fetch_add_explicit(&waiting, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&pressure, 1, memory_order_relaxed);
    tm_mutex_unlock(&mu.m);
}

void tm_epoch_collect(void)
{
    if (atomic_load_explicit(&waiting, memory_order_relaxed) == 0) return;
    size_t before = atomic_fetch_add_explicit(&pressure, 1, memory_order_relaxed);
    if (before + 1 < ROUND_EVERY) return;
    // One thread at a time; also keeps a free function that collects from going deeper and deeper.
    if (atomic_exchange_explicit(&collecting, true, memory_order_acquire)) return;
    uint64_t target = advance();
    if (fence()) free_until(TM_MIN(target, scan() - 1));
    atomic_store_explicit(&collecting, false, memory_order_release);
}

// For the n-th time nothing has changed. Readers leave soon, unless they are not running.
static void wait_a_little(unsigned n)
{
    if (n < SPINS) {
        tm_cpu_relax();
    } else if (n < YIELDS) {
        tm_thread_yield();
    } else {
        tm_mutex_lock(&mu.m);
        (void)tm_cond_wait_us(&mu.changed, &mu.m, NAP_US);
        tm_mutex_unlock(&mu.m);
    }
}

// Under the lock.
static bool batch_under_way(uint64_t limit)
{
    for (const batch *b = mu.batches; b != NULL; b = b->next) {
        if (b->oldest <= limit) return true;
    }
    return false;
}

void tm_epoch_synchronize(void)
{
    assert(tm_epoch_self == NULL || tm_epoch_self->depth == 0);
    assert(!freeing); // it would wait for itself
    set_up_once();
    uint64_t target = advance();
    for (unsigned n = 0; !fence(); n++) wait_a_little(n);
    for (unsigned n = 0; scan() <= target; n++) wait_a_little(n);
    free_until(target);
    tm_mutex_lock(&mu.m);
    while (batch_under_way(target)) tm_cond_wait(&mu.changed, &mu.m);
    tm_mutex_unlock(&mu.m);
}
