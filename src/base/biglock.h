/* biglock.h: the lock of a threaded MPI process. A thread that waits inside an MPI call polls with the
 * lock held and releases it only if another thread waits for it. The counts make sure that the other
 * thread gets it: a polling thread would acquire a plain mutex again before the woken thread runs. The
 * lock is recursive: a user's reduction function runs with the lock held and may call MPI_Type_size.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_BIGLOCK_H
#define FP_BASE_BIGLOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct biglock {
    pthread_mutex_t mutex;
    _Atomic int wanted;     /* threads that wait for the lock */
    _Atomic unsigned turns; /* acquisitions by threads that waited; a futex */
    _Atomic int sharers;    /* threads that released the lock and sleep until `turns` changes */
    unsigned polls;         /* unsuccessful polls of all threads; changed with the lock held */
};

void biglock_init(struct biglock *l);
void biglock_destroy(struct biglock *l);

/* Slow paths of biglock_lock (another thread holds the lock) and biglock_share_with_waiters (another
 * thread waits for it). */
void biglock_lock_contended(struct biglock *l);
void biglock_hand_over(struct biglock *l);

static inline void biglock_lock(struct biglock *l)
{
    if (pthread_mutex_trylock(&l->mutex) != 0)
        biglock_lock_contended(l);
}

/* Acquires the lock without incrementing `wanted`, so that the holder does not release it early; for threads
 * without urgency. */
static inline void biglock_lock_without_request(struct biglock *l)
{
    pthread_mutex_lock(&l->mutex);
}

static inline void biglock_unlock(struct biglock *l)
{
    pthread_mutex_unlock(&l->mutex);
}

static inline bool biglock_has_waiters(struct biglock *l)
{
    return atomic_load_explicit(&l->wanted, memory_order_relaxed) != 0;
}

/* If a thread waits for the lock, releases the lock, lets that thread acquire it, and acquires it again.
 * True if another thread had the lock: state that the caller read before may have changed. */
static inline bool biglock_share_with_waiters(struct biglock *l)
{
    if (!biglock_has_waiters(l))
        return false;
    biglock_hand_over(l);
    return true;
}

void biglock_yield_processor(struct biglock *l);

/* Called after an unsuccessful poll. On a shared processor, a thread that polls in a loop may prevent the
 * thread whose progress it needs from running; that thread then does not wait for the lock either. Therefore
 * every 64th poll of a threaded process yields the processor. */
static inline void biglock_count_empty_poll(struct biglock *l)
{
    if (!biglock_share_with_waiters(l) && atomic_load_explicit(&l->turns, memory_order_relaxed) != 0 &&
        ++l->polls % 64 == 0)
        biglock_yield_processor(l);
}

#endif
