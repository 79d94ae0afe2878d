/* link.h: the connection between the connection managers of two processes: a Unix socket within one
 * machine, a TCP connection with wire=tcp. Over TCP each message has an authentication code over two
 * challenges and its number, computed with the key of the fabric. The called side sends its challenge
 * first.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_RDMACM_LINK_H
#define SOFTIB_RDMACM_LINK_H

#include "message.h"
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define LINK_NONCE_BYTES 16
#define LINK_CODE_BYTES  32
#define LINK_MAX_PACKET  (LINK_NONCE_BYTES + MESSAGE_BYTES + LINK_CODE_BYTES)

enum link_state {
    LINK_NONE,
    LINK_CONNECTING, /* TCP: connect() has not completed */
    LINK_GREETING,   /* TCP: waits for the challenge of the other side */
    LINK_UP,
};

struct cm_link {
    int fd;
    enum link_state state;
    bool tcp, caller;
    uint8_t nonce[2][LINK_NONCE_BYTES]; /* challenges of the called side and of the caller */
    uint64_t sent, received;            /* number of messages sent and received */
    uint8_t in[LINK_MAX_PACKET];
    size_t got;
};

enum link_result { LINK_MESSAGE, LINK_NOTHING, LINK_DOWN };

/* The address of a service: a port number in a port space of a node, on one address or on all addresses. */
struct link_service {
    uint32_t node;
    uint16_t ps, port;
    const struct in6_addr *ip; /* NULL: all addresses of the node */
};
socklen_t link_unix_name(struct sockaddr_un *a, uint64_t key, const struct link_service *s);
uint16_t link_tcp_port(uint16_t ps, uint16_t port);

/* Initialises a link on the socket `fd`, a TCP or a Unix socket, connected or still connecting. */
void link_init(struct cm_link *l, int fd, bool tcp, bool caller, bool connecting);
bool link_is_same_user(int fd); /* true if the other end of a Unix socket belongs to this user */
/* Handles input. If the link of a caller comes up, returns LINK_NOTHING with state LINK_UP. */
enum link_result link_receive(struct cm_link *l, struct message *m);
bool link_send(struct cm_link *l, const struct message *m);
void link_reset(struct cm_link *l); /* does not close the socket */

void link_random(void *out, size_t n);

#endif
