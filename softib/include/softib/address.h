/* address.h: the IP addresses of the fabric's ports, for a connection manager: rdmacm/ is one. Each address belongs to
 * one entry of a port's GID table. RoCE ports have the addresses of their GIDs. A port of InfiniBand has the address
 * that IP over InfiniBand would give it: IPv6 link-local as its GID, and a made-up IPv4 address.
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
    uint64_t node_guid; /* of its adapter, as ibv_get_device_guid returns it */
    uint32_t port;
    uint32_t gid_index;
    uint8_t gid[16];
    uint16_t lid;
    uint16_t vlan;
    bool ethernet;
};

struct softib_place {
    uint64_t key; /* begins the names of this fabric's sockets */
    uint32_t node, nodes;
    bool tcp; /* the nodes are machines of their own: wire=tcp */
};

#define SOFTIB_SECRET_BYTES   32
#define SOFTIB_NODE_ADDRESSES 32

/* Joins the fabric that SOFTIB_FABRIC describes; false after printing why not. */
bool softib_join(struct softib_place *out);
/* The nth address of the fabric; false: there are no more. Addresses of lower ports come first. */
bool softib_address_get(uint32_t nth, struct softib_address *out);
/* With wire=tcp: the addresses that the sockets of a node are bound to; returns how many. */
unsigned softib_node_addresses(uint32_t node, struct in_addr out[SOFTIB_NODE_ADDRESSES]);
/* With wire=tcp: a secret that only members of the fabric can compute, for that purpose. */
void softib_secret(const char *purpose, uint8_t out[SOFTIB_SECRET_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
