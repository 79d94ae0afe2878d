/* join.c: joins a multicast group. softib and soft-RoCE need only ibv_attach_mcast. On Ethernet the group is
 * an IP address that the kernel must join, so that the interface and the switches forward its packets. On
 * InfiniBand the subnet administrator creates the group; librdmacm sends the request. softib has a subnet
 * manager only if it is configured (sm=1), to test this. If joining fails, broadcasts use point-to-point
 * messages.
 *
 * SPDX-License-Identifier: Apache-2.0 */

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/util.h"
#include "net/ib/multicast/ib_multicast.h"
#include "net/ib/multicast/subnet_join.h"

#define GROUP_LID \
    0xC000u /* LID of groups to which no subnet administrator has assigned one: softib uses only the GID */

static bool gid_is_ipv4(const uint8_t gid[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

/* Builds the group's GID: for RoCE over IPv4 an address in 239/8 (administratively scoped), else a transient
 * group of site-local scope. */
static void make_group_gid(const struct ib_device *d, uint64_t number, union ibv_gid *gid)
{
    memset(gid, 0, sizeof(*gid));
    if (d->address.ethernet && gid_is_ipv4(d->address.gid)) {
        const uint32_t folded = htonl((uint32_t)(number ^ number >> 24 ^ number >> 48) & 0xffffff);
        memcpy(gid->raw + 12, &folded, sizeof(folded));
        gid->raw[10] = gid->raw[11] = 0xff;
        gid->raw[12] = 239;
        return;
    }
    gid->raw[0] = 0xff;
    gid->raw[1] = 0x15;
    memcpy(gid->raw + 8, &number, sizeof(number));
}

/* Returns the index of the network interface with this address; 0: none. */
static unsigned find_interface_index(const uint8_t gid[16])
{
    struct ifaddrs *all;
    unsigned index = 0;
    if (getifaddrs(&all) != 0)
        return 0;
    for (const struct ifaddrs *i = all; i && !index; i = i->ifa_next) {
        if (!i->ifa_addr)
            continue;
        const struct sockaddr_in *v4 = (const void *)i->ifa_addr;
        const struct sockaddr_in6 *v6 = (const void *)i->ifa_addr;
        if ((i->ifa_addr->sa_family == AF_INET && gid_is_ipv4(gid) &&
             memcmp(&v4->sin_addr, gid + 12, 4) == 0) ||
            (i->ifa_addr->sa_family == AF_INET6 && memcmp(&v6->sin6_addr, gid, 16) == 0))
            index = if_nametoindex(i->ifa_name);
    }
    freeifaddrs(all);
    return index;
}

/* Joins the IP group through a socket; the kernel remains a member while the socket is open. */
static int join_ip_group(const struct ib_device *d, struct ib_multicast_group *g)
{
    const bool v4 = gid_is_ipv4(d->address.gid);
    const unsigned interface = find_interface_index(d->address.gid);
    struct ip_mreqn four = {.imr_ifindex = (int)interface};
    struct ipv6_mreq six = {.ipv6mr_interface = interface};
    memcpy(&four.imr_multiaddr, g->gid.raw + 12, 4);
    memcpy(&six.ipv6mr_multiaddr, g->gid.raw, 16);
    g->membership = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int rc = g->membership < 0 ? -1
             : v4              ? setsockopt(g->membership, IPPROTO_IP, IP_ADD_MEMBERSHIP, &four, sizeof(four))
                               : setsockopt(g->membership, IPPROTO_IPV6, IPV6_JOIN_GROUP, &six, sizeof(six));
    return rc == 0 ? 0
                   : err_set(MPI_ERR_OTHER, "%s: the kernel cannot join an IP multicast group (%s)", d->name,
                             err_reason(errno));
}

int ib_multicast_join(const struct ib_device *d, struct ibv_qp *qp, uint64_t number,
                      struct ib_multicast_group *g, struct ibv_ah_attr *route)
{
    *g = (struct ib_multicast_group){.membership = -1, .lid = GROUP_LID};
    *route = (struct ibv_ah_attr){.dlid = GROUP_LID, .is_global = 1, .port_num = d->port};
    make_group_gid(d, number, &g->gid);
    int rc = 0;
    if (d->address.ethernet)
        rc = join_ip_group(d, g);
    else if (!d->verbs.softib || d->port_attr.sm_lid != 0)
        rc = ib_multicast_subnet_join(d, &g->gid, &g->lid, route, &g->subnet_join);
    if (rc != 0)
        return rc;
    route->grh.dgid = g->gid;
    route->grh.sgid_index = d->gid_index;
    route->grh.hop_limit = (uint8_t)MAX(route->grh.hop_limit, 64);
    rc = d->verbs.attach_mcast(qp, &g->gid, g->lid);
    if (rc != 0)
        return err_set(MPI_ERR_OTHER, "%s cannot receive from a multicast group (%s)", d->name,
                       rc == ENOMEM ? "all groups, or all places in this one, are in use" : err_reason(rc));
    g->attached = true;
    return 0;
}

void ib_multicast_leave(const struct ib_device *d, struct ibv_qp *qp, struct ib_multicast_group *g)
{
    if (g->attached)
        d->verbs.detach_mcast(qp, &g->gid, g->lid);
    if (g->membership >= 0)
        close(g->membership);
    if (g->subnet_join)
        ib_multicast_subnet_leave(g->subnet_join);
    *g = (struct ib_multicast_group){.membership = -1};
}
