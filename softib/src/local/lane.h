/* lane.h: multicast within a machine. The sender writes a packet once, to the lane of its group in the
 * registry. Each member copies packets from there when it polls, so that the cost for the sender does not
 * depend on the number of members. A member whose program sleeps until an event does not poll. Other
 * processes deliver to it: the sender to one such member, and each member that takes a packet to two more.
 *
 * A lane contains LANE_PACKETS packets. Before the sender overwrites a packet that a member has not taken
 * (its program computes, or is stopped), the sender delivers to that member, as an adapter would.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_LANE_H
#define SOFTIB_LANE_H

#include "hca/wire.h"

/* lane_open: a QP of this process, whose number is stored in the registry, becomes member i of the group
 * in that row. False: no memory. lane_close: the QP, whose number was removed, leaves the group. The
 * registry's lock is held. */
bool lane_open(int row, int i, struct ibv_qp *v);
void lane_close(int row, int i);
void lane_update_members(int row); /* called when members have joined or left */
void lane_reuse_for_group(int row,
                          const uint8_t gid[16]); /* called when the row is reused for another group */
void lane_reset_after_fork(void);                 /* in a forked child */

void lane_send(uint32_t from, const uint8_t gid[16], const struct request *r, const struct iovec *iov, int n,
               uint32_t not_qpn);

/* Called by threads that poll: delivers new packets to all QPs of this process. */
void lane_deliver_new_packets(void);
extern _Atomic uint64_t lane_delivered;
extern atomic_uint lane_memberships;
static inline void lane_poll(void)
{
    if (UNLIKELY(atomic_load_explicit(&lane_memberships, memory_order_relaxed) &&
                 atomic_load_explicit(&proc.reg->multicasts, memory_order_acquire) !=
                     atomic_load_explicit(&lane_delivered, memory_order_relaxed)))
        lane_deliver_new_packets();
}
void lane_check_armed(void); /* called when a CQ was armed: the program may sleep until its event */
void lane_mark_dozing(void); /* called when the program fetched an event */

#endif
