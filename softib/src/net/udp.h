/* udp.h: datagrams between machines: the sockets (udp.c), incoming datagrams (udp_in.c), datagrams that wait
 * until an address is known (udp_wait.c), multicast (udp_group.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_UDP_H
#define SOFTIB_UDP_H

#include "engine/engine.h"
#include "hca/responder.h"
#include "net/frame.h"
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/uio.h>

struct udp_socket {
    struct watch w;
    int fd;
    struct in_addr addr;
};

/* udp.c */
bool udp_bind(uint16_t port); /* false: the number is taken */
bool udp_start(void (*ready)(struct watch *w, uint32_t events));
void udp_reset_after_fork(void);
void udp_send(int fd, const struct sockaddr_in *to, uint32_t qpn, const struct request *r,
              const struct iovec *iov, int n);
/* To a port whose address is known. */
void udp_send_port(uint32_t node, uint32_t port, uint32_t qpn, const struct request *r,
                   const struct iovec *iov, int n);
void udp_send_head(const struct sockaddr_in *to, const struct frame *f); /* a frame without payload */
int udp_socket_at(struct in_addr me); /* our socket at that address of ours, -1: none */
int udp_first_socket(void);

/* udp_in.c */
void udp_drain(int fd);
void udp_ready(struct watch *w, uint32_t events);

/* udp_wait.c */
enum answer udp_datagram(uint32_t node, uint32_t qpn, const struct request *r, const struct iovec *iov,
                         int n);
void udp_release(uint32_t linear); /* a way to that port was found, or none was: datagrams need not wait */
void udp_tick(void);

/* udp_group.c */
void group_route(struct in_addr me); /* our address that leads to the others: multicast leaves there */
void group_send(struct qp *q, const struct path *to, const struct request *r, const struct iovec *iov, int n);
void group_join(const uint8_t gid[16], bool join); /* takes the lock */
void group_reset_after_fork(void);

#endif
