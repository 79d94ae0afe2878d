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

/* Returns an error class if a receive with this envelope can no longer be matched, else 0. Passed to p2p_on_fault;
 * proc is the process. */
int comm_check_envelope(void *proc, struct envelope env);
void comm_member_died(void *proc, uint32_t number);

/* Called when a communicator gets its context: takes into account members that died before. */
void comm_fault_check(struct comm *c);
void comm_fault_free(struct comm *c);

/* Revokes the communicator: nothing is sent or received on it any more. Returns true if it was not revoked before. */
bool comm_revoke(struct comm *c);
static inline bool comm_is_revoked(const struct comm *c)
{
    return c->fault && c->fault->revoked;
}

/* The group of failed members, or of those that were acknowledged. */
int comm_failed_group(struct comm *c, bool acked, struct group **out);
/* Acknowledges the first n failures; returns how many are acknowledged now. */
int comm_acknowledge(struct comm *c, int n);

/* Returns the error of a call that needs all members, 0 if none has failed. */
int comm_check_not_broken(struct comm *c);

#endif
