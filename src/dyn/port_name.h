/* port_name.h: the name of a port: fishplate:2:<key>:<network>:<local>:<port>:<address>,<address>... A
 * process in the same network name space of the same machine connects to a Unix socket, others by TCP to one
 * of the addresses.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DYN_PORT_NAME_H
#define FP_DYN_PORT_NAME_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/un.h>

#include "dyn/handshake.h"

#define PORT_ADDRESSES 16

struct port_name {
    uint8_t key[HANDSHAKE_KEY];
    uint64_t network; /* hash of the machine and the network name space */
    uint64_t local;   /* number in the name of the Unix socket */
    uint16_t port;    /* port number of the TCP sockets */
    int count;
    struct in_addr addresses[PORT_ADDRESSES];
};

/* Formats a name; `text` has room for MPI_MAX_PORT_NAME characters. */
void port_name_write(const struct port_name *name, char *text);
bool port_name_parse(const char *text, struct port_name *out);

uint64_t port_name_network_id(void);

/* Writes the address of the Unix socket, in the abstract name space. Returns the length of the address. */
socklen_t port_name_local_address(uint64_t local, struct sockaddr_un *out);

/* True if the process at the other end of a Unix socket belongs to this user. */
bool port_name_peer_is_own(int fd);

#endif
