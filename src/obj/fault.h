/* fault.h: communicators that have lost members or were revoked. From then on their collectives fail, and
 * each receive is checked for whether it can still complete. Messages between living members work until the
 * communicator is revoked.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_FAULT_H
#define FP_OBJ_FAULT_H

#include "obj/comm.h"

/* State of a communicator that lost a member or was revoked. `dead` lists job ranks in the order in which
 * the deaths became known. */
struct comm_fault {
    uint32_t *dead;
    int ndead;
    int nacked; /* number of failures that the program has acknowledged: dead[0 .. nacked) */
    bool revoked;
};

/* Returns an error class if a receive with this envelope can no longer be matched, else 0 (p2p_on_fault).
 * `proc` is a struct proc. */
int comm_check_envelope(void *proc, struct envelope env);
void comm_member_died(void *proc, uint32_t number);

/* Called when a communicator gets its context: records members that died earlier. */
void comm_fault_check(struct comm *c);
void comm_fault_free(struct comm *c);

/* Revokes the communicator: nothing is sent or received on it any more. Returns true if it was not revoked
 * before. */
bool comm_revoke(struct comm *c);
static inline bool comm_is_revoked(const struct comm *c)
{
    return c->fault && c->fault->revoked;
}

/* Creates the group of all failed members (acked: of the acknowledged ones). */
int comm_failed_group(struct comm *c, bool acked, struct group **out);
/* Acknowledges the first n failures; returns how many are acknowledged now. */
int comm_acknowledge(struct comm *c, int n);

/* Returns the error for a call that needs all members; 0 if none has died and c is not revoked. */
int comm_check_not_broken(struct comm *c);

#endif
