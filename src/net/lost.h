/* lost.h: processes that have died while the job continues (mpiexec -enable-recovery). The launcher reports a
 * death (boot/notice.h), or a transport detects that it cannot reach a peer any more. Nothing is received
 * from a lost peer, and every send to it fails with MPIX_ERR_PROC_FAILED: its table of operations is
 * replaced, so that sends to living peers need no additional check.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_LOST_H
#define FP_NET_LOST_H

#include "net/net.h"

struct net_lost;

/* Called after the transports are open. Does nothing if a death ends the job. */
int net_lost_open(struct net *net);
/* Called before the transports close: the death watcher rings their doorbell. */
void net_lost_close(struct net *net);

/* Processes the deaths that the launcher has published since the last call; returns the number of processes that were lost. */
int net_lost_process_notices(struct net *net);

/* Called when a transport gives up a peer. Returns false if this job does not continue without it. Upper layers are
 * notified at the next progress. */
bool net_lost_give_up_peer(struct net *net, uint32_t number);

/* True if the process is known here to have died, also for guests that were never connected. */
bool net_is_lost(const struct net *net, uint32_t number);

/* True if the launcher has reported the end of this process, even if this process has not processed the
 * report yet. The launcher reports after it has reaped the process, which therefore writes nothing any more.
 * (net_is_lost is also true for processes that a transport or another rank has given up.) Always false if a
 * death ends the job. */
bool net_lost_is_reported(const struct net *net, uint64_t world, uint32_t rank);

/* Gives up a guest whose only connection has failed, even if a death ends the job. */
void net_lost_mark_guest(struct net *net, uint32_t number);

/* Called when the kernel reports that a guest's process has ended in the middle of MPI. Frames that it sent are
 * delivered first. */
void net_lost_process_ended(struct net *net, uint32_t number);

/* True if this process continues after deaths (mpiexec -enable-recovery), or has continued after the death of
 * a process of another job. */
static inline bool net_outlives_deaths(const struct net *net)
{
    return net->lost || net->ndead != 0;
}

/* Called when `number` is assigned to this process of another job, which may have died before. */
void net_lost_check_new_guest(struct net *net, uint64_t world, uint32_t rank, uint32_t number);

/* A peer that replaces those of a revoked communicator: everything sent to it fails with MPIX_ERR_REVOKED. */
struct peer *net_get_revoked_peer(struct net *net);

/* Operations of a lost peer: each fails. Also used by net_get_revoked_peer. */
extern const struct transport_ops lost_transport;
static inline bool peer_is_lost(const struct peer *peer)
{
    return peer->ops == &lost_transport;
}

#endif
