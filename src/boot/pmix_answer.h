/* pmix_answer.h: waits for a status that a thread of the PMIx library reports, at most
 * FISHPLATE_INIT_TIMEOUT.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_PMIX_ANSWER_H
#define FP_BOOT_PMIX_ANSWER_H

#include <pthread.h>
#include <stdbool.h>

struct pmix_answer {
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool done;
    int status;
};

struct pmix_answer *pmix_answer_new(void); /* NULL: out of memory */
void pmix_answer_free(struct pmix_answer *a);

/* Called by the other thread: stores the status in the answer that `ctx` points to and wakes its waiter. */
void pmix_answer_complete(int status, void *ctx);

/* Waits for the answer. Returns false if there is none within FISHPLATE_INIT_TIMEOUT; the other thread
 * still has the pointer then, so do not free it. */
bool pmix_answer_wait(struct pmix_answer *a);

#endif
