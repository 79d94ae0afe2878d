/* address.h: the IP addresses of the fabric's ports, for connection managers such as rdmacm/. Each address
 * corresponds to an entry of a port's GID table. RoCE ports have the addresses of their GIDs. An
 * InfiniBand port has the addresses that IP over InfiniBand would have: a link-local IPv6 address like its
 * GID, and a synthetic IPv4 address.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_ADDRESS_H
#define SOFTIB_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct softib_address {
    struct in6_addr ip; /* IPv4 addresses are mapped: ::ffff:a.b.c.d */
    uint32_t node;
    uint64_t node_guid; /* node GUID of the port's adapter, as ibv_get_device_guid returns it */
    uint32_t port;
    uint32_t gid_index;
    uint8_t gid[16];
    uint16_t lid;
    uint16_t vlan;
    bool ethernet;
};

struct softib_place {
    uint64_t key; /* prefix of the names of this fabric's sockets */
    uint32_t node, nodes;
    bool tcp; /* wire=tcp: each node is a machine of its own */
};

#define SOFTIB_SECRET_BYTES   32
#define SOFTIB_NODE_ADDRESSES 32

/* Joins the fabric that SOFTIB_FABRIC describes. On failure prints a message and returns false. */
bool softib_join(struct softib_place *out);
/* Stores address number `nth` of the fabric, in order of ports. Returns false if there are fewer
 * addresses. */
bool softib_address_get(uint32_t nth, struct softib_address *out);
/* With wire=tcp: stores the addresses to which a node's sockets are bound in `out`; returns their number. */
unsigned softib_node_addresses(uint32_t node, struct in_addr out[SOFTIB_NODE_ADDRESSES]);
/* With wire=tcp: derives a secret for a purpose from the key of the fabric. */
void softib_secret(const char *purpose, uint8_t out[SOFTIB_SECRET_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
