/* gid.c: computes the GIDs of ports.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/gid.h"
#include "base/base.h"
#include <endian.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>

/* Synthetic IPv4 addresses are from the range for benchmarks (RFC 2544). */
#define SYNTHETIC_NET 0xC6120000u /* 198.18.0.0; in the VLAN 198.19.0.0 */
#define VLAN_NET      0xC6130000u

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

/* The MAC address of a port; its last three bytes are the port's number. */
void gid_get_mac(uint32_t linear, uint8_t mac[MAC_BYTES])
{
    const uint32_t n = linear + 1;
    const uint8_t bytes[MAC_BYTES] = {0x02, 0x50, 0xf7, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    memcpy(mac, bytes, sizeof(bytes));
}

static void make_link_local(uint32_t linear, uint8_t raw[16])
{
    uint8_t mac[MAC_BYTES];
    gid_get_mac(linear, mac);
    const uint8_t bytes[16] = {0xfe, 0x80, [8] = mac[0] ^ 2, mac[1], mac[2],
                               0xff, 0xfe, mac[3],           mac[4], mac[5]};
    memcpy(raw, bytes, sizeof(bytes));
}

static void make_mapped_v4(uint32_t address, uint8_t raw[16])
{
    memcpy(raw, v4_prefix, sizeof(v4_prefix));
    for (int i = 0; i < 4; i++)
        raw[12 + i] = (uint8_t)(address >> (24 - 8 * i));
}

bool gid_is_v4(const uint8_t raw[16])
{
    return !memcmp(raw, v4_prefix, sizeof(v4_prefix));
}

bool gid_is_multicast(const uint8_t raw[16])
{
    return raw[0] == 0xff || (gid_is_v4(raw) && IN_MULTICAST((uint32_t)raw[12] << 24));
}

static uint32_t count_v4_addresses(const struct fab_port *p)
{
    return *p->netdev ? p->interface_addrs : 1;
}

uint32_t gid_table_size(const struct fabric *f, uint32_t linear)
{
    const struct fab_port *p = &f->port[linear];
    return p->ethernet ? 2 * (1 + count_v4_addresses(p) + (p->vlan != 0)) : 1;
}

bool gid_table_entry(const struct fabric *f, uint32_t linear, uint32_t index, struct gid *out)
{
    const struct fab_port *p = &f->port[linear];
    const uint32_t nth = index / 2, addresses = count_v4_addresses(p);
    if (index >= gid_table_size(f, linear))
        return false;
    *out = (struct gid){.type = index % 2 ? GID_ROCE_V2 : GID_ROCE_V1};
    if (!p->ethernet) {
        struct fab_place at = {0};
        fabric_find_lid(f, fabric_port_lid(f, linear), &at);
        const uint64_t half[2] = {htobe64(0xfe80000000000000ull),
                                  htobe64(fabric_port_guid(at.node, at.hca, at.port))};
        memcpy(out->raw, half, sizeof(half));
        out->type = GID_INFINIBAND;
    } else if (nth == 0) {
        make_link_local(linear, out->raw);
    } else if (nth <= addresses && *p->netdev) {
        make_mapped_v4(ntohl(p->interface_addr[nth - 1].s_addr), out->raw);
    } else if (nth <= addresses) {
        make_mapped_v4(SYNTHETIC_NET + linear + 1, out->raw);
    } else {
        make_mapped_v4(VLAN_NET + linear + 1, out->raw);
        out->vlan = p->vlan;
    }
    return true;
}

static bool port_has_gid(const struct fabric *f, uint32_t linear, const struct gid *mine,
                         const uint8_t dgid[16])
{
    struct gid e;
    for (uint32_t i = 0; f->port[linear].ethernet && gid_table_entry(f, linear, i, &e); i++)
        if (e.type == mine->type && e.vlan == mine->vlan && !memcmp(e.raw, dgid, sizeof(e.raw)))
            return true;
    return false;
}

uint16_t gid_resolve(const struct fabric *f, uint32_t from, uint32_t sgid_index, const uint8_t dgid[16])
{
    struct gid mine;
    if (!gid_table_entry(f, from, sgid_index, &mine))
        return 0;
    if (mine.type == GID_INFINIBAND) {
        uint64_t guid;
        struct fab_place at;
        memcpy(&guid, dgid + 8, sizeof(guid));
        uint16_t lid = fabric_guid_lid(f, be64toh(guid));
        return fabric_find_lid(f, lid, &at) && !f->port[at.linear].ethernet ? lid : 0;
    }
    for (uint32_t i = 0; i < f->nports; i++)
        if (port_has_gid(f, i, &mine, dgid))
            return fabric_port_lid(f, i);
    return 0;
}

bool gid_get_ip(const struct fabric *f, uint32_t linear, uint32_t nth, uint8_t ip[16], uint32_t *gid_index)
{
    const struct fab_port *p = &f->port[linear];
    const uint32_t own = p->ethernet ? gid_table_size(f, linear) / 2 : 2;
    struct gid g;
    if (nth < own) {
        *gid_index = p->ethernet ? 2 * nth + 1 : 0;
        gid_table_entry(f, linear, *gid_index, &g);
        memcpy(ip, g.raw, sizeof(g.raw));
        if (!p->ethernet && nth == 0)
            make_mapped_v4(SYNTHETIC_NET + linear + 1, ip);
        return true;
    }
    if (f->wire != WIRE_TCP || nth - own >= p->addrs)
        return false;
    *gid_index = !p->ethernet ? 0 : count_v4_addresses(p) ? 3 : 1;
    make_mapped_v4(ntohl(p->addr[nth - own].s_addr), ip);
    return true;
}

static bool add_address(struct fab_port *p, struct in_addr a)
{
    if (p->interface_addrs == FAB_ADDRS)
        return false;
    p->interface_addr[p->interface_addrs++] = a;
    return true;
}

/* Reads the IPv4 addresses of a port's interface; the index is 0 if this machine has no such interface. */
static void read_interface(struct fab_port *p, const struct ifaddrs *all)
{
    p->interface_index = if_nametoindex(p->netdev);
    for (; all; all = all->ifa_next)
        if (all->ifa_addr && all->ifa_addr->sa_family == AF_INET && !strcmp(all->ifa_name, p->netdev) &&
            !add_address(p, ((const struct sockaddr_in *)(const void *)all->ifa_addr)->sin_addr))
            return;
}

bool gid_read_interfaces(struct fabric *f, char *err, size_t errlen)
{
    struct ifaddrs *all = NULL;
    bool ok = true;
    for (uint32_t i = 0; ok && i < f->nports; i++) {
        struct fab_port *p = &f->port[i];
        struct fab_place at = {0};
        if (!*p->netdev)
            continue;
        fabric_find_lid(f, fabric_port_lid(f, i), &at);
        p->interface_addrs = 0;
        if (f->wire == WIRE_TCP && at.node != f->node) {
            for (unsigned k = 0; k < p->addrs; k++)
                add_address(p, p->addr[k]);
            continue;
        }
        ok = all || !getifaddrs(&all);
        if (ok)
            read_interface(p, all);
        ok = ok && p->interface_index;
        if (!ok)
            snprintf(err, errlen,
                     "SOFTIB_FABRIC: netdev=%s: this machine has no such network interface (see ip link)",
                     p->netdev);
    }
    if (all)
        freeifaddrs(all);
    return ok;
}
