/*
 * The datagram sockets of wire (b).
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SOFTIB_UDP_H
#define SOFTIB_UDP_H

#include "engine.h"
#include <netinet/in.h>
#include <stdbool.h>

bool udp_bind(const struct sockaddr_in *a);
bool udp_start(void);
void udp_forget(void);
void udp_release(uint32_t linear); /* a way to that port was found, or none was: datagrams need not wait */
void udp_tick(void);
void udp_route(struct in_addr me); /* our address that leads to the others: multicast leaves there */

#endif
