/* biglock.h: the one lock of a threaded MPI process. A thread that waits inside an MPI call polls with the
 * lock held and yields it only when another thread wants it: without the counts, a polling thread would
 * retake a mutex before the woken thread arrives. The lock is recursive: a user's reduction function runs
 * with the lock held and may ask MPI for the size of a type.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_BIGLOCK_H
#define FP_BASE_BIGLOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct biglock {
    pthread_mutex_t mutex;
    _Atomic int wanted;     /* threads that wait for it */
    _Atomic unsigned turns; /* how often one of them got it; a futex */
    _Atomic int sharers;    /* threads that sleep until one of them gets it */
    unsigned polls;         /* unsuccessful polls of all threads; changed with the lock held */
};

void biglock_init(struct biglock *l);
void biglock_destroy(struct biglock *l);

/* The slow paths: the lock is held by another thread; another thread waits for it. */
void biglock_lock_contended(struct biglock *l);
void biglock_hand_over(struct biglock *l);

static inline void biglock_lock(struct biglock *l)
{
    if (pthread_mutex_trylock(&l->mutex) != 0)
        biglock_lock_contended(l);
}

/* Takes the lock without requesting that its holder share it, for threads without urgency. */
static inline void biglock_lock_without_request(struct biglock *l)
{
    pthread_mutex_lock(&l->mutex);
}

static inline void biglock_unlock(struct biglock *l)
{
    pthread_mutex_unlock(&l->mutex);
}

/* True if a thread waits for the lock. */
static inline bool biglock_has_waiters(struct biglock *l)
{
    return atomic_load_explicit(&l->wanted, memory_order_relaxed) != 0;
}

/* Hands the lock to a waiting thread, if there is one, and takes it again. True if it did: state that the caller read before may have
 * changed. */
static inline bool biglock_share_with_waiters(struct biglock *l)
{
    if (!biglock_has_waiters(l))
        return false;
    biglock_hand_over(l);
    return true;
}

void biglock_yield_processor(struct biglock *l);

/* Called after a poll without result, before the next one. A thread that polls in a loop may keep the thread that it
 * waits for from running; that one then does not wait for the lock either. So every poller yields its processor now
 * and then. */
static inline void biglock_count_empty_poll(struct biglock *l)
{
    if (!biglock_share_with_waiters(l) && atomic_load_explicit(&l->turns, memory_order_relaxed) != 0 &&
        ++l->polls % 64 == 0)
        biglock_yield_processor(l);
}

#endif
