/* gid.h: the GIDs of ports. An InfiniBand port has one GID, computed from its GUID. A RoCE port has a
 * table with an entry for RoCE v1 and one for RoCE v2 for each address of its network interface and of its
 * VLAN.
 *
 * MAC addresses are synthetic, and so are the IPv4 addresses of ports without `netdev=`. The link-local
 * address is computed from the MAC address, so that all machines compute the same one. With `netdev=` a
 * port has the IPv4 addresses of the interface, and a port of another machine has the addresses that the
 * text gives with `addr=`.
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

/* Returns the LID of the port with the GID `dgid` in the network of entry `sgid_index` of the GID table of
 * port `from`; 0: no port of that network has this GID with the same type. */
uint16_t gid_resolve(const struct fabric *f, uint32_t from, uint32_t sgid_index, const uint8_t dgid[16]);

bool gid_is_v4(const uint8_t raw[16]); /* the GID is an IPv4-mapped address */
/* True for a multicast GID, including that of an IPv4 group on RoCE. */
bool gid_is_multicast(const uint8_t raw[16]);

/* The nth IP address of the port for connection managers (IPv4 as ::ffff:a.b.c.d) and the corresponding
 * entry of the GID table; false: there are fewer. The addresses of a RoCE port are its GIDs; those of an
 * InfiniBand port are a synthetic IPv4 address and its GID. With `wire=tcp` the addresses of `addr=`
 * follow. */
bool gid_get_ip(const struct fabric *f, uint32_t linear, uint32_t nth, uint8_t ip[16], uint32_t *gid_index);

void gid_get_mac(uint32_t linear, uint8_t mac[MAC_BYTES]);

/* Reads the addresses of the interfaces of `netdev=`. On failure returns false with a sentence in err. */
bool gid_read_interfaces(struct fabric *f, char *err, size_t errlen);

#endif
