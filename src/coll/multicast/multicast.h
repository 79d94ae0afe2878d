/* multicast.h: broadcast among ranks on several nodes by the network's multicast [Liu04 7]: one rank of each
 * node is a member of a group (net/mcast_group.h), the other ranks receive the data from this rank through the
 * node's shared memory.
 *
 * The first use of multicast waits for all ranks, which nonblocking calls must not do: until the first
 * blocking or persistent broadcast they use a schedule.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_MULTICAST_MULTICAST_H
#define FP_COLL_MULTICAST_MULTICAST_H

#include "coll/executor.h"

extern const struct coll_executor multicast_executor;

/* Returns in *out the multicast algorithm that the tuner may measure; false if there is none. */
bool multicast_candidate(enum coll_kind kind, struct coll_choice *out);

#endif
