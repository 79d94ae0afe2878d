/* udp.h: datagrams between machines: sockets (udp.c), received datagrams (udp_in.c), datagrams to ports
 * whose address is not known yet (udp_wait.c), multicast (udp_group.c).
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

/* defined in udp.c */
bool udp_bind(uint16_t port); /* false: the port number is in use */
bool udp_start(void (*ready)(struct watch *w, uint32_t events));
void udp_reset_after_fork(void);
void udp_send(int fd, const struct sockaddr_in *to, uint32_t qpn, const struct request *r,
              const struct iovec *iov, int n);
/* Sends to a port whose address is known. */
void udp_send_port(uint32_t node, uint32_t port, uint32_t qpn, const struct request *r,
                   const struct iovec *iov, int n);
void udp_send_head(const struct sockaddr_in *to, const struct frame *f); /* a frame without payload */
int udp_socket_at(struct in_addr me); /* the socket bound to this local address; -1: none */
int udp_first_socket(void);

/* defined in udp_in.c */
void udp_drain(int fd);
void udp_ready(struct watch *w, uint32_t events);

/* defined in udp_wait.c */
enum answer udp_send_datagram(uint32_t node, uint32_t qpn, const struct request *r, const struct iovec *iov,
                              int n);
/* The port was reached or cannot be reached: sends or drops waiting datagrams. */
void udp_release_waiting(uint32_t linear);
void udp_tick(void);

/* defined in udp_group.c */
/* Sets the local address from which other nodes are reached, for multicast. */
void group_set_source_address(struct in_addr me);
void group_send(struct qp *q, const struct path *to, const struct request *r, const struct iovec *iov, int n);
void group_join(const uint8_t gid[16], bool join); /* acquires the lock */
void group_reset_after_fork(void);

#endif
