/* gid.h: the GIDs of ports. A port of InfiniBand has one, made of its GUID. A RoCE port has a table: each address of
 * its network interface stands there for RoCE v1 and for RoCE v2, and so does the address of the VLAN, if it has one.
 *
 * The MAC address is made up, and so are the IPv4 addresses of a port without `netdev=`. The link-local address comes
 * from the MAC address, so that all machines compute the same one for each port. With `netdev=` the IPv4 addresses are
 * those of the interface; a port of another machine has the addresses that the text names with `addr=`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_GID_H
#define SOFTIB_GID_H

#include "fabric/fabric.h"

enum gid_type { GID_INFINIBAND, GID_ROCE_V1, GID_ROCE_V2 }; /* the values of enum ibv_gid_type */

#define MAC_BYTES 6

struct gid {
    uint8_t raw[16];
    enum gid_type type;
    uint16_t vlan; /* 0: none */
};

uint32_t gid_table_size(const struct fabric *f, uint32_t linear);
bool gid_table_entry(const struct fabric *f, uint32_t linear, uint32_t index, struct gid *out);

/* The LID of the port that `dgid` names, seen from the port `from` with entry `sgid_index` of its table; 0: no port of
 * the same network has such a GID of the same type. */
uint16_t gid_resolve(const struct fabric *f, uint32_t from, uint32_t sgid_index, const uint8_t dgid[16]);

bool gid_is_v4(const uint8_t raw[16]); /* it stands for an IPv4 address */
/* True for a multicast GID, also that of an IPv4 group on RoCE. */
bool gid_is_multicast(const uint8_t raw[16]);

/* The nth IP address under which a connection manager finds the port, IPv4 as ::ffff:a.b.c.d, and the entry of the GID
 * table it belongs to; false: there are no more. Those of RoCE are its GIDs. A port of InfiniBand has a made-up IPv4
 * address and its GID. With `wire=tcp` the addresses of `addr=` follow. */
bool gid_get_ip(const struct fabric *f, uint32_t linear, uint32_t nth, uint8_t ip[16], uint32_t *gid_index);

void gid_get_mac(uint32_t linear, uint8_t mac[MAC_BYTES]);

/* Reads the addresses of the interfaces that `netdev=` names; on failure returns false and a sentence in err. */
bool gid_read_interfaces(struct fabric *f, char *err, size_t errlen);

#endif
