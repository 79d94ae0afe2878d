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
void switch_frame(const struct frame *f,
                  const struct sockaddr_in *from); /* handles a received frame; lock held */
void switch_net_tick(uint64_t now);

#endif
