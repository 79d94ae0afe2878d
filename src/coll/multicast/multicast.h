/* multicast.h: broadcast among ranks on several nodes by the network's multicast [Liu04 7]: one rank of each
 * node is a member of a group (net/group.h), the others get the data from it through the node's shared
 * memory.
 *
 * The first use of multicast waits for all ranks, which nonblocking calls must not: until a blocking or
 * persistent broadcast was called they are left to a schedule.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_MULTICAST_MULTICAST_H
#define FP_COLL_MULTICAST_MULTICAST_H

#include "coll/executor.h"

extern const struct coll_executor multicast_executor;

/* The choice of multicast for an operation that the tuner may examine; false: there is none. */
bool multicast_candidate(enum coll_kind kind, struct coll_choice *out);

#endif
