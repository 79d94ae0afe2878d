/* written.h: the barrier of ranks on several nodes: flags in shared memory within a node, RDMA writes (or messages) between the
 * leaders of nodes. An executor of its own, as the shared block is within a node; blocking, nonblocking and persistent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_WRITTEN_H
#define FP_COLL_WRITTEN_H

#include "base/list.h"
#include "coll/call.h"
#include "net/group.h"

/* One barrier, under way or waiting for its turn. */
struct written_run {
    struct request base;  /* first; unused by blocking calls */
    struct net_hook hook; /* linked while a nonblocking one is under way */
    struct list link;     /* of its lane */
    struct written *w;
    struct comm *comm;
    uint64_t number; /* of the call on its communicator, for the doctor; 0: not numbered */
    int lane;
    int way; /* enum written_way */
    int tag;
    int pending; /* messages */
    int error;
    bool crossed; /* the network has said that its barrier is over */
    bool tree;    /* by multicast: decided by its place among the calls, so the same at all ranks */
    char byte;    /* that the multicast carries: the number of the barrier */
    struct net_group_want want; /* of a leader, for that byte */
    bool over;
};

extern const struct request_ops written_ops, written_persistent_ops;

/* Both return false when the call is left to a schedule, and then it is false at all ranks. */
bool written_run(const struct coll_args *args, struct coll_state *state, const struct coll_choice *choice,
                 int *rc);
/* The same for a blocking barrier when state->quick says so. False: not at this moment, at this rank. */
bool written_quick(const struct coll_args *args, struct coll_state *state, int *rc);
bool written_is_quick(const struct written *w);
/* Makes the request; a nonblocking one is under way when this returns. */
bool written_make(const struct coll_args *args, struct coll_state *state, const struct coll_choice *choice,
                  enum coll_form form, struct written_run **out, int *rc);

/* Requests that use it keep it until they are freed. */
void written_close(struct coll_state *state);
void written_give_up(struct written *w); /* or NULL */

#endif
