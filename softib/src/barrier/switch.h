/* switch.h: the barrier unit of the switch. Its state is in the registry; the process that delivers a
 * packet to the switch executes its logic under its lock. The wires deliver packets to the switch and its
 * answers to the mailboxes of the hosts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_SWITCH_H
#define SOFTIB_SWITCH_H

#include "fabric/proc.h"

/* Handles a packet to the switch. The caller holds the switch's lock. */
void switch_handle_packet(const struct softib_packet *p);
void switch_tick(void); /* repeats packets that were not acknowledged; acquires the lock */
/* Stores a packet from the switch in the mailbox of the host at that port. */
void switch_store_packet(uint32_t port, const struct softib_packet *p);
uint64_t switch_read_mailbox(uint32_t row, int box); /* reads a mailbox of this process */

#define SWITCH_ACKS   0
#define SWITCH_READY  1
#define SWITCH_ID_ROW SOFTIB_SWITCH_BARRIERS

#endif
