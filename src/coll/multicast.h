/* multicast.h: broadcast among ranks on several nodes by the network's multicast [Liu04 7]: one rank of each node is a member
 * of a group (net/group.h), the others get the data from it through the node's shared memory. An executor of its own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_MULTICAST_H
#define FP_COLL_MULTICAST_H

#include "coll/call.h"

/* Both return false when the call is left to a schedule, and then it is false at all ranks. */
bool multicast_run(const struct coll_args *args, struct coll_state *state, const struct call *call,
                   const struct coll_choice *choice, int *rc);
/* The request of a nonblocking one, which is under way when this returns, or of a persistent one. The first use of multicast waits
 * for all ranks, which nonblocking calls must not: until a blocking or persistent broadcast was called they are left to a
 * schedule. */
bool multicast_make(const struct coll_args *args, struct coll_state *state, const struct call *call,
                    const struct coll_choice *choice, enum coll_form form, struct request **out, int *rc);

/* Blocking ones; false as above. */
bool multicast_allgather(const struct coll_args *args, struct coll_state *state, const struct call *call,
                         int *rc);
bool multicast_allreduce(const struct coll_args *args, struct coll_state *state, const struct call *call,
                         int *rc);

void multicast_close(struct coll_state *state);
/* Another choice may be made from now on, at all ranks. What requests still use is kept for them. */
void multicast_forget(struct coll_state *state);

#endif
