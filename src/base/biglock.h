/* biglock.h: the one lock of a threaded MPI process. Who waits inside a call polls with the lock held and
 * gives it away only when somebody wants it: without the counts, a polling thread would retake a mutex before
 * the woken one arrives. A thread may take it twice: a user's reduction runs with the lock held and may ask
 * MPI for the size of a type.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_BIGLOCK_H
#define FP_BASE_BIGLOCK_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#define BIGLOCK_PATIENCE 64 /* yields to one who wants the lock but has not come yet */

struct biglock {
    pthread_mutex_t mutex;
    _Atomic int wanted;     /* threads that wait for it */
    _Atomic unsigned turns; /* how often one of them got it */
};

static inline void biglock_init(struct biglock *l)
{
    pthread_mutexattr_t twice;
    pthread_mutexattr_init(&twice);
    pthread_mutexattr_settype(&twice, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&l->mutex, &twice);
    pthread_mutexattr_destroy(&twice);
    l->wanted = 0;
    l->turns = 0;
}

static inline void biglock_destroy(struct biglock *l)
{
    pthread_mutex_destroy(&l->mutex);
}

static inline void biglock_take(struct biglock *l)
{
    if (pthread_mutex_trylock(&l->mutex) == 0)
        return;
    atomic_fetch_add_explicit(&l->wanted, 1, memory_order_relaxed);
    pthread_mutex_lock(&l->mutex);
    atomic_fetch_sub_explicit(&l->wanted, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->turns, 1, memory_order_relaxed);
}

static inline void biglock_drop(struct biglock *l)
{
    pthread_mutex_unlock(&l->mutex);
}

/* Lets one of those who wait have the lock, if any. True when it did: whatever the caller knew may have
 * changed. */
static inline bool biglock_share(struct biglock *l)
{
    if (atomic_load_explicit(&l->wanted, memory_order_relaxed) == 0)
        return false;
    unsigned turn = atomic_load_explicit(&l->turns, memory_order_relaxed);
    biglock_drop(l);
    for (int i = 0; i < BIGLOCK_PATIENCE; i++) {
        sched_yield();
        if (atomic_load_explicit(&l->turns, memory_order_relaxed) != turn)
            break;
    }
    biglock_take(l);
    return true;
}

#endif
