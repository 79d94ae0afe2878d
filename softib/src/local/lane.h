/* lane.h: multicast within a machine. The sender writes a packet once, into the lane of its group: memory of the registry that stands
 * for the switch. Each member takes its copies from there when it polls, so a packet costs its sender the same for any number of
 * members. A member whose program sleeps until an event comes does not poll. Others deliver to it: the sender to
 * one such member, and everybody who takes a packet to two more.
 *
 * A lane holds LANE_PACKETS. Before the sender overwrites a packet that a member has not taken (its program computes, or is
 * stopped), it delivers to that member, as an adapter would.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_LANE_H
#define SOFTIB_LANE_H

#include "hca/wire.h"

/* A QP of ours becomes member i of a group, and its number is stored in the registry; or ceases to be, after its number was removed. The
 * registry's lock is held. False: no memory. */
bool lane_open(int row, int i, struct ibv_qp *v);
void lane_close(int row, int i);
void lane_renumber_members(int row);              /* members have come or gone */
void lane_rename(int row, const uint8_t gid[16]); /* the row is for another group from now on */
void lane_reset_after_fork(void);                 /* in a forked child */

void lane_send(uint32_t from, const uint8_t gid[16], const struct request *r, const struct iovec *iov, int n,
               uint32_t not_qpn);

/* Called by threads that poll: delivers new packets to all QPs of this process. */
void lane_take_all(void);
extern _Atomic uint64_t lane_delivered;
extern atomic_uint lane_memberships;
static inline void lane_poll(void)
{
    if (UNLIKELY(atomic_load_explicit(&lane_memberships, memory_order_relaxed) &&
                 atomic_load_explicit(&proc.reg->multicasts, memory_order_acquire) !=
                     atomic_load_explicit(&lane_delivered, memory_order_relaxed)))
        lane_take_all();
}
void lane_check_armed(void); /* a CQ was armed: the program may sleep until an event comes */
void lane_mark_awake(void);  /* it fetched an event */

#endif
