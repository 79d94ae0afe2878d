/* hbarrier.h: the barrier of ranks on several nodes: flags in shared memory within a node, RDMA writes (or messages) between the
 * leaders of nodes. An executor of its own, as the shared block is within a node; blocking, nonblocking and persistent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_BARRIER_HBARRIER_H
#define FP_COLL_BARRIER_HBARRIER_H

#include "base/list.h"
#include "coll/executor.h"
#include "net/group.h"

/* A barrier that is in progress or waits for an earlier one. */
struct hbarrier_run {
    struct request base;  /* first; unused by blocking calls */
    struct net_hook hook; /* linked while a nonblocking one is under way */
    struct list link;     /* of its lane */
    struct hbarrier *w;
    struct comm *comm;
    uint64_t number; /* of the call on its communicator, for the doctor; 0: not numbered */
    int lane;
    int method; /* enum hbarrier_method */
    int tag;
    int pending; /* messages */
    int error;
    bool crossed; /* the network has said that its barrier is over */
    bool tree;    /* by multicast: decided by its place among the calls, so the same at all ranks */
    char byte;    /* that the multicast carries: the number of the barrier */
    struct net_group_want want; /* of a leader, for that byte */
    struct net_op add;          /* METHOD_COUNTER: pending until its previous value is here */
    bool over;
};

extern const struct request_ops hbarrier_ops, hbarrier_persistent_ops;

extern const struct coll_executor hbarrier_executor;

/* Closes the barrier's state; requests that use it keep it until they are freed. */
void hbarrier_close(struct coll_state *state);

#endif
