/* multicast.h: packets to and from multicast groups (packets.c); a queue pair joins a group on each kind of network in its own way
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
    int membership;    /* RoCE: the socket through which the kernel has joined; -1: none */
    void *subnet_join; /* InfiniBand: librdmacm's part; NULL: none */
    bool attached;
};

/* Joins the group, attaches the queue pair, and returns the route of packets. An error has a text with the reason. */
int ib_multicast_join(const struct ib_device *d, struct ibv_qp *qp, uint64_t number,
                      struct ib_multicast_group *g, struct ibv_ah_attr *route);
void ib_multicast_leave(const struct ib_device *d, struct ibv_qp *qp, struct ib_multicast_group *g);

#endif
