/* switch.h: see switch.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_NET_SWITCH_H
#define SOFTIB_NET_SWITCH_H

#include "net/frame.h"
#include "softib/barrier.h"
#include <netinet/in.h>

void net_to_switch(const struct softib_packet *p); /* acquires the lock of this wire */
void net_from_switch(const struct softib_packet *p);
/* Handles a received frame. The caller holds the lock of this wire. */
void switch_handle_frame(const struct frame *f, const struct sockaddr_in *from);
void switch_net_tick(uint64_t now);

#endif
