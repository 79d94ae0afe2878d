/* breaker.c: a libibverbs, named in FISHPLATE_VERBS, that wraps softib's and records the connected queue
 * pairs of the process, so that one of them can be moved to the error state, as by a failing adapter.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "../ib/real.h"

#define KNOWN 64

static struct ibv_qp *known[KNOWN];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Replaces the first entry of `known` that is `was` by `is`. */
static void replace_entry(struct ibv_qp *was, struct ibv_qp *is)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < KNOWN; i++)
        if (known[i] == was) {
            known[i] = is;
            break;
        }
    pthread_mutex_unlock(&lock);
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
    int (*modify)(struct ibv_qp *, struct ibv_qp_attr *, int) = find_real_function("ibv_modify_qp");
    int rc = modify(qp, a, mask);
    if (rc == 0 && qp->qp_type == IBV_QPT_RC && mask & IBV_QP_STATE && a->qp_state == IBV_QPS_RTS)
        replace_entry(NULL, qp);
    return rc;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
    int (*destroy)(struct ibv_qp *) = find_real_function("ibv_destroy_qp");
    replace_entry(qp, NULL);
    return destroy(qp);
}

/* Moves another recorded queue pair to the error state on each call. Returns false if none is recorded. */
EXPORT bool faults_break(void);
bool faults_break(void)
{
    int (*modify)(struct ibv_qp *, struct ibv_qp_attr *, int) = find_real_function("ibv_modify_qp");
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    static int next;
    bool broken = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < KNOWN && !broken; i++, next = (next + 1) % KNOWN)
        broken = known[next] && modify(known[next], &error, IBV_QP_STATE) == 0;
    pthread_mutex_unlock(&lock);
    return broken;
}
