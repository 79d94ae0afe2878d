/* pmix_answer.c: waits for a status from a thread of the PMIx library.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "boot/pmix_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "boot/backend.h"

void pmix_answer_complete(int status, void *ctx)
{
    struct pmix_answer *a = ctx;
    pthread_mutex_lock(&a->lock);
    a->status = status;
    a->done = true;
    pthread_cond_signal(&a->change);
    pthread_mutex_unlock(&a->lock);
}

bool pmix_answer_wait(struct pmix_answer *a)
{
    uint64_t end = boot_deadline();
    struct timespec at = {.tv_sec = (time_t)(end / 1000000000u), .tv_nsec = (long)(end % 1000000000u)};
    pthread_mutex_lock(&a->lock);
    while (!a->done && pthread_cond_timedwait(&a->change, &a->lock, &at) != ETIMEDOUT)
        ;
    bool done = a->done;
    pthread_mutex_unlock(&a->lock);
    return done;
}

struct pmix_answer *pmix_answer_new(void)
{
    struct pmix_answer *a = calloc(1, sizeof(*a));
    pthread_condattr_t attr;
    if (!a)
        return NULL;
    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&a->change, &attr);
    pthread_condattr_destroy(&attr);
    return a;
}

void pmix_answer_free(struct pmix_answer *a)
{
    pthread_cond_destroy(&a->change);
    pthread_mutex_destroy(&a->lock);
    free(a);
}
