/* biglock.c: passes the lock from one thread to another. A thread that shares the lock sleeps until a
 * waiting thread has acquired it, since the running thread would acquire a plain mutex again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/biglock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

void biglock_init(struct biglock *l)
{
    pthread_mutexattr_t twice;
    pthread_mutexattr_init(&twice);
    pthread_mutexattr_settype(&twice, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&l->mutex, &twice);
    pthread_mutexattr_destroy(&twice);
    l->wanted = 0;
    l->turns = 0;
    l->sharers = 0;
    l->polls = 0;
}

void biglock_destroy(struct biglock *l)
{
    pthread_mutex_destroy(&l->mutex);
}

/* Waits for the lock. The waiter increments `turns` with the lock held; biglock_hand_over reads `turns`
 * before it unlocks, so that it detects every later acquisition by a waiter. */
void biglock_lock_contended(struct biglock *l)
{
    atomic_fetch_add_explicit(&l->wanted, 1, memory_order_relaxed);
    pthread_mutex_lock(&l->mutex);
    atomic_fetch_sub_explicit(&l->wanted, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->turns, 1, memory_order_relaxed);
    if (atomic_load_explicit(&l->sharers, memory_order_relaxed) != 0)
        syscall(SYS_futex, &l->turns, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void biglock_hand_over(struct biglock *l)
{
    unsigned turn = atomic_load_explicit(&l->turns, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->sharers, 1, memory_order_relaxed);
    pthread_mutex_unlock(&l->mutex);
    while (atomic_load_explicit(&l->turns, memory_order_relaxed) == turn)
        syscall(SYS_futex, &l->turns, FUTEX_WAIT_PRIVATE, turn, NULL, NULL, 0);
    biglock_lock(l);
    atomic_fetch_sub_explicit(&l->sharers, 1, memory_order_relaxed);
}

void biglock_yield_processor(struct biglock *l)
{
    pthread_mutex_unlock(&l->mutex);
    sched_yield();
    biglock_lock(l);
}
