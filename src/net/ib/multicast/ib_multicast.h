/* ib_multicast.h: packets to and from multicast groups (packets.c); joining a group, for each kind of network
 * (join.c, and subnet_join.c for the subnet administrator of InfiniBand).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_MULTICAST_H
#define FP_NET_IB_MULTICAST_H

#include "net/ib/device/device.h"

struct ib;

extern const struct transport_multicast ib_multicast;
bool ib_multicast_arm(struct ib *ib); /* false: a packet has arrived already */

struct ib_multicast_group {
    union ibv_gid gid;
    uint16_t lid;
    int membership;    /* RoCE: socket with the kernel's membership; -1: none */
    void *subnet_join; /* InfiniBand: state of the join through librdmacm; NULL: none */
    bool attached;
};

/* Joins the group, attaches the queue pair, and returns the route of packets. An error has a text. */
int ib_multicast_join(const struct ib_device *d, struct ibv_qp *qp, uint64_t number,
                      struct ib_multicast_group *g, struct ibv_ah_attr *route);
void ib_multicast_leave(const struct ib_device *d, struct ibv_qp *qp, struct ib_multicast_group *g);

#endif
