/* fault.h: communicators that have lost members or were revoked. From then on their collectives fail, and each receive
 * is checked for whether it can still complete. Messages between living members work until the communicator is revoked.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_FAULT_H
#define FP_OBJ_FAULT_H

#include "obj/comm.h"

/* Of a communicator in which something has failed. The dead are process numbers, in the order they became known. */
struct comm_fault {
    uint32_t *dead;
    int ndead;
    int nacked; /* the first `nacked` of them were acknowledged by the program */
    bool revoked;
};

/* For p2p_on_fault; arg is the process. */
int comm_judge(void *proc, struct envelope env);
void comm_member_died(void *proc, uint32_t number);

/* A communicator has its context: members may have died before. */
void comm_fault_check(struct comm *c);
void comm_fault_free(struct comm *c);

/* From now on nothing is sent or received on it. True when it was not revoked before. */
bool comm_revoke(struct comm *c);
static inline bool comm_is_revoked(const struct comm *c)
{
    return c->fault && c->fault->revoked;
}

/* The failed members, and those of them that were acknowledged. */
int comm_failed_group(struct comm *c, bool acked, struct group **out);
/* The first n are known to the program; returns how many are. */
int comm_acknowledge(struct comm *c, int n);

/* The error of a call that needs all members: 0 while all are well. */
int comm_whole(struct comm *c);

#endif
