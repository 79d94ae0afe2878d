/* subnet_join.h: multicast groups of an InfiniBand subnet, which the subnet administrator creates.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_SUBNET_JOIN_H
#define FP_NET_IB_SUBNET_JOIN_H

#include "net/ib/device/device.h"

/* Joins the group with this GID (the administrator may assign another) and returns its LID and route. */
int ib_multicast_subnet_join(const struct ib_device *d, union ibv_gid *gid, uint16_t *lid,
                             struct ibv_ah_attr *route, void **joined);
void ib_multicast_subnet_leave(void *joined);

#endif
