/* subnet_join.h: multicast groups of an InfiniBand subnet, which its administrator makes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_MCAST_SA_H
#define FP_NET_IB_MCAST_SA_H

#include "net/ib/device/device.h"

/* Joins the group with this GID (which the answer may change) and returns its LID and route. */
int ib_multicast_subnet_join(const struct ib_device *d, union ibv_gid *gid, uint16_t *lid,
                             struct ibv_ah_attr *route, void **joined);
void ib_multicast_subnet_leave(void *joined);

#endif
