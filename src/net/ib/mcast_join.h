/* mcast_join.h: a queue pair becomes a member of a multicast group, on each kind of network in its own way.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_MCAST_JOIN_H
#define FP_NET_IB_MCAST_JOIN_H

#include "net/ib/device.h"

struct ib_mcast_group {
    union ibv_gid gid;
    uint16_t lid;
    int membership;    /* RoCE: the socket through which the kernel has joined; -1: none */
    void *subnet_join; /* InfiniBand: librdmacm's part; NULL: none */
    bool attached;
};

/* Joins, attaches the queue pair, and tells how packets get there. An error has a sentence that says why not. */
int ib_mcast_join(const struct ib_device *d, struct ibv_qp *qp, uint64_t number, struct ib_mcast_group *g,
                  struct ibv_ah_attr *route);
void ib_mcast_leave(const struct ib_device *d, struct ibv_qp *qp, struct ib_mcast_group *g);

#endif
