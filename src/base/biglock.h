/* biglock.h: the one lock of a threaded MPI process. Who waits inside a call polls with the lock held and
 * gives it away only when somebody wants it: without the count, a polling thread would retake a mutex before
 * the woken one arrives.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_BIGLOCK_H
#define FP_BASE_BIGLOCK_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

struct biglock {
    pthread_mutex_t mutex;
    _Atomic int wanted;
};

static inline void biglock_init(struct biglock *l)
{
    pthread_mutex_init(&l->mutex, NULL);
    l->wanted = 0;
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
}

static inline void biglock_drop(struct biglock *l)
{
    pthread_mutex_unlock(&l->mutex);
}

/* Lets one of those who wait have the lock, if any. */
static inline void biglock_share(struct biglock *l)
{
    if (atomic_load_explicit(&l->wanted, memory_order_relaxed) == 0)
        return;
    biglock_drop(l);
    sched_yield();
    biglock_take(l);
}

#endif
