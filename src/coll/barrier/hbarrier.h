/* hbarrier.h: the barrier of ranks on several nodes: flags in shared memory within a node, RDMA writes (or
 * messages) between the leaders of nodes. It is a collective executor for blocking, nonblocking and
 * persistent calls.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_BARRIER_HBARRIER_H
#define FP_COLL_BARRIER_HBARRIER_H

#include "base/list.h"
#include "coll/executor.h"
#include "net/mcast_group.h"

/* A barrier that is in progress or waits for an earlier one. */
struct hbarrier_run {
    struct request base;  /* first; unused by blocking calls */
    struct net_hook hook; /* linked while a nonblocking or persistent barrier is in progress */
    struct list link;     /* in the list of runs of its lane */
    struct hbarrier *w;
    struct comm *comm;
    uint64_t number; /* the call's number on its communicator, shown by `fishplate why`; 0: not numbered */
    int lane;
    int method; /* enum hbarrier_method */
    int tag;
    int pending; /* messages in flight */
    int error;
    bool crossed;               /* the switch, or the multicast, has completed the barrier between nodes */
    bool tree;                  /* use METHOD_MULTICAST (the same at all ranks) */
    char byte;                  /* payload of the multicast: the number of the barrier */
    struct net_group_want want; /* a leader's receive of `byte` */
    struct net_op add;          /* METHOD_COUNTER: this leader's fetch-and-add */
    bool over;                  /* the barrier is complete at this rank */
};

extern const struct request_ops hbarrier_ops, hbarrier_persistent_ops;

extern const struct coll_executor hbarrier_executor;

/* Closes the barriers of a communicator; requests that use them retain them until they are freed. */
void hbarrier_close(struct coll_state *state);

#endif
