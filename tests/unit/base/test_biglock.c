/* test_biglock.c: the big lock keeps threads apart, may be taken twice by one thread, and lets the others in
 * when a thread that never stops polling shares it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/biglock.h"

#include <sched.h>

#include "test.h"

enum { THREADS = 4, ROUNDS = 5000 };

static struct biglock lock;
static long shared_count;
static int arrived; /* both under the lock */

static void *biglock_count(void *arg)
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

static void test_excludes(void)
{
    pthread_t threads[THREADS];
    biglock_init(&lock);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, biglock_count, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    EXPECT_EQ(shared_count, (long)THREADS * ROUNDS);
    EXPECT(!biglock_share_with_waiters(&lock)); /* nobody is there */
    biglock_destroy(&lock);
}

static void *come_in(void *arg)
{
    (void)arg;
    biglock_lock(&lock);
    arrived++;
    biglock_unlock(&lock);
    return NULL;
}

/* The poller releases the lock only by sharing; the test ends only if the others get it. */
static void test_shares(void)
{
    pthread_t threads[THREADS];
    biglock_init(&lock);
    biglock_lock(&lock);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, come_in, NULL);
    while (arrived < THREADS)
        biglock_share_with_waiters(&lock);
    biglock_unlock(&lock);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    biglock_destroy(&lock);
}

static void *try_only(void *arg)
{
    (void)arg;
    while (pthread_mutex_trylock(&lock.mutex) != 0)
        sched_yield();
    arrived++;
    pthread_mutex_unlock(&lock.mutex);
    return NULL;
}

/* A thread that polls repeatedly without finding anything yields the lock even when nobody waits for the lock, as long as others have
 * used it: here for one that only tries. */
static void test_rests(void)
{
    pthread_t other;
    biglock_init(&lock);
    biglock_lock(&lock);
    arrived = 0;
    pthread_create(&other, NULL, come_in, NULL); /* from now on there are others */
    while (arrived == 0)
        biglock_count_empty_poll(&lock);
    pthread_join(other, NULL);
    pthread_create(&other, NULL, try_only, NULL);
    while (arrived == 1)
        biglock_count_empty_poll(&lock);
    biglock_unlock(&lock);
    pthread_join(other, NULL);
    biglock_destroy(&lock);
}

int main(void)
{
    TEST_RUN(test_excludes);
    TEST_RUN(test_shares);
    TEST_RUN(test_rests);
    return test_result();
}
