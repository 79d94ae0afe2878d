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
/* Nonblocking: it is under way when this returns. */
bool multicast_start(const struct coll_args *args, struct coll_state *state, const struct call *call,
                     const struct coll_choice *choice, struct request **out, int *rc);

void multicast_close(struct coll_state *state);
/* The same when another choice may be made from now on, at all ranks: kept while requests use it. */
void multicast_forget(struct coll_state *state);

#endif
