/* switch.h: the switch. Its state is in the registry, and the process that delivers a packet to it runs its
 * logic under its lock. The wires deliver packets and carry the answers to the mailboxes of the hosts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_SWITCH_H
#define SOFTIB_SWITCH_H

#include "fabric/proc.h"

void switch_handle_packet(const struct softib_packet *p); /* the switch takes a packet; its lock is held */
void switch_tick(void); /* repeats what was not acknowledged; takes the lock */
void switch_store_packet(
    uint32_t port, const struct softib_packet *p);   /* a packet from the switch, for the host at that port */
uint64_t switch_read_mailbox(uint32_t row, int box); /* our own mailbox */

#define SWITCH_ACKS   0
#define SWITCH_READY  1
#define SWITCH_ID_ROW SOFTIB_SWITCH_BARRIERS

#endif
