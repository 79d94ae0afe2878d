/* test_biglock.c: the big lock excludes threads, may be taken twice by one thread, and lets other threads
 * in when a thread that polls all the time shares it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/biglock.h"

#include <sched.h>

#include "test.h"

enum { THREADS = 4, ROUNDS = 5000 };

static struct biglock lock;
static long shared_count;
static int arrived; /* shared_count and arrived are protected by the lock */

static void *count_under_lock(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        biglock_lock(&lock);
        biglock_lock(&lock);
        shared_count++;
        biglock_unlock(&lock);
        biglock_unlock(&lock);
    }
    return NULL;
}

static void test_lock_excludes_threads(void)
{
    pthread_t threads[THREADS];
    biglock_init(&lock);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, count_under_lock, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    EXPECT_EQ(shared_count, (long)THREADS * ROUNDS);
    EXPECT(!biglock_share_with_waiters(&lock)); /* no thread waits */
    biglock_destroy(&lock);
}

static void *count_arrival_under_lock(void *arg)
{
    (void)arg;
    biglock_lock(&lock);
    arrived++;
    biglock_unlock(&lock);
    return NULL;
}

/* The polling thread releases the lock only by sharing it; the test ends only if the other threads get the
 * lock. */
static void test_sharing_admits_waiters(void)
{
    pthread_t threads[THREADS];
    biglock_init(&lock);
    biglock_lock(&lock);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, count_arrival_under_lock, NULL);
    while (arrived < THREADS)
        biglock_share_with_waiters(&lock);
    biglock_unlock(&lock);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    biglock_destroy(&lock);
}

static void *use_trylock(void *arg)
{
    (void)arg;
    while (pthread_mutex_trylock(&lock.mutex) != 0)
        sched_yield();
    arrived++;
    pthread_mutex_unlock(&lock.mutex);
    return NULL;
}

/* A thread that polls without success yields the lock even if no thread waits, once other threads have
 * used the lock: here a thread that uses only trylock gets it. */
static void test_sharing_admits_trylock(void)
{
    pthread_t other;
    biglock_init(&lock);
    biglock_lock(&lock);
    arrived = 0;
    pthread_create(&other, NULL, count_arrival_under_lock, NULL); /* from now on the lock has several users */
    while (arrived == 0)
        biglock_count_empty_poll(&lock);
    pthread_join(other, NULL);
    pthread_create(&other, NULL, use_trylock, NULL);
    while (arrived == 1)
        biglock_count_empty_poll(&lock);
    biglock_unlock(&lock);
    pthread_join(other, NULL);
    biglock_destroy(&lock);
}

int main(void)
{
    TEST_RUN(test_lock_excludes_threads);
    TEST_RUN(test_sharing_admits_waiters);
    TEST_RUN(test_sharing_admits_trylock);
    return test_result();
}
