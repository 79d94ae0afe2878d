/*
 * The datagram sockets of wire (b): udp.c, those that wait in udp_wait.c, multicast in udp_group.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SOFTIB_UDP_H
#define SOFTIB_UDP_H

#include "engine.h"
#include "responder.h"
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/uio.h>

struct udp_socket {
    struct watch w;
    int fd;
    struct in_addr addr;
};

bool udp_bind(uint16_t port); /* false: the number is taken */
bool udp_start(void);
void udp_forget(void);
void udp_drain(int fd);
void udp_send(int fd, const struct sockaddr_in *to, uint32_t qpn, const struct request *r,
              const struct iovec *iov, int n);
void udp_route(struct in_addr me); /* our address that leads to the others: multicast leaves there */
int udp_any(void);

void udp_keep(uint32_t node, uint32_t port, uint32_t qpn, const struct request *r, const struct iovec *iov,
              int n);
void udp_release(uint32_t linear); /* a way to that port was found, or none was: datagrams need not wait */
void udp_tick(void);

void group_route(int fd, struct in_addr me);
void group_forget(void);

#endif
