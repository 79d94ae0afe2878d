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
bool wire_watch(int fd, struct watch *w);

#endif
