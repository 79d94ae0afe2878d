/* lost.h: processes that have died while the job continues (mpiexec -enable-recovery). The news comes from the launcher
 * (boot/notice.h) or from a transport that cannot reach a peer any more. Nothing is received from a lost peer, and every
 * send to it fails with MPIX_ERR_PROC_FAILED: its table of operations is replaced, so that sends to living peers need no
 * additional check.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_LOST_H
#define FP_NET_LOST_H

#include "net/net.h"

struct net_lost;

/* After the transports are open. Nothing happens where a death ends the job. */
int net_lost_open(struct net *net);
/* Must precede the closing of transports: the death watcher rings their doorbell. */
void net_lost_close(struct net *net);

/* Processes the deaths that the launcher has published since the last call; returns the number of processes that were lost. */
int net_lost_look(struct net *net);

/* A transport gives a peer up. False: this job does not go on without it. Upper layers hear of it at the next progress. */
bool net_lost_peer(struct net *net, uint32_t number);

/* Has this process died, as far as is known here? Also for guests that were never connected. */
bool net_is_lost(const struct net *net, uint32_t number);

/* Has the launcher reported that this process ended? It does so after it has reaped the process, so that the process writes nothing any
 * more; net_is_lost is also true of processes that a transport or another rank gave up. Also true of a death of which this process
 * has not been notified yet. Always false where a death ends the job. */
bool net_lost_is_reported(const struct net *net, uint64_t world, uint32_t rank);

/* A guest that has no other connection than the one that has failed is given up, also where a death ends the job. */
void net_lost_guest(struct net *net, uint32_t number);

/* The kernel has reported that the process of this guest ended, in the middle of MPI. Frames that it sent are delivered first. */
void net_lost_ended(struct net *net, uint32_t number);

/* Number `number` stands for this process of another job from now on; it may have died before. */
void net_lost_meet(struct net *net, uint64_t world, uint32_t rank, uint32_t number);

/* Stands for the peers of a communicator that was revoked: refuses everything with MPIX_ERR_REVOKED. */
struct peer *net_revoked_peer(struct net *net);

/* Of a peer that has been lost. */
extern const struct transport_ops lost_transport;
static inline bool peer_is_lost(const struct peer *peer)
{
    return peer->ops == &lost_transport;
}

#endif
