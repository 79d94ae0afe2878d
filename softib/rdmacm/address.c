/* address.c: maps IP addresses to ports of the fabric, and back.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cm.h"
#include <errno.h>
#include <ifaddrs.h>
#include <string.h>

static void map_v4(struct in_addr a, struct in6_addr *out)
{
    *out = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(out->s6_addr + 12, &a, 4);
}

static bool is_loopback(const struct in6_addr *ip)
{
    return IN6_IS_ADDR_LOOPBACK(ip) || (IN6_IS_ADDR_V4MAPPED(ip) && ip->s6_addr[12] == 127);
}

bool address_read(const struct sockaddr *a, struct cm_address *out)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    *out = (struct cm_address){.port = 0};
    if (a && a->sa_family == AF_INET) {
        memcpy(&v4, a, sizeof(v4));
        map_v4(v4.sin_addr, &out->ip);
        out->port = ntohs(v4.sin_port);
        out->any = v4.sin_addr.s_addr == INADDR_ANY;
        out->multicast = IN_MULTICAST(ntohl(v4.sin_addr.s_addr));
        return true;
    }
    if (a && a->sa_family == AF_INET6) {
        memcpy(&v6, a, sizeof(v6));
        out->ip = v6.sin6_addr;
        out->port = ntohs(v6.sin6_port);
        out->any = IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr);
        out->multicast = IN6_IS_ADDR_MULTICAST(&v6.sin6_addr);
        return true;
    }
    return false;
}

void address_write(struct sockaddr_storage *out, int family, const struct in6_addr *ip, uint16_t port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = *ip};
    memset(out, 0, sizeof(*out));
    if (family == AF_INET) {
        memcpy(&v4.sin_addr, ip->s6_addr + 12, 4);
        memcpy(out, &v4, sizeof(v4));
    } else {
        memcpy(out, &v6, sizeof(v6));
    }
}

bool address_port_up(const struct softib_address *a)
{
    struct cm_device *d = device_find_by_guid(a->node_guid);
    struct ibv_port_attr attr;
    return d && !ibv_query_port(d->verbs, (uint8_t)a->port, &attr) && attr.state == IBV_PORT_ACTIVE;
}

/* The first port address of the fabric with this IP address, of one node or of all nodes (-1). */
static bool address_find(const struct in6_addr *ip, int64_t node, struct softib_address *out)
{
    for (uint32_t i = 0; softib_address_get(i, out); i++)
        if (!memcmp(&out->ip, ip, sizeof(*ip)) && (node < 0 || out->node == node))
            return true;
    return false;
}

static bool address_find_first_of_node(uint32_t node, struct softib_address *out)
{
    struct softib_address a;
    bool found = false;
    for (uint32_t i = 0; softib_address_get(i, &a); i++) {
        /* Skips IPv6 addresses: programs for RoCE expect an IPv4 address. */
        if (a.node != node || !IN6_IS_ADDR_V4MAPPED(&a.ip) || !device_find_by_guid(a.node_guid))
            continue;
        if (!found || (!address_port_up(out) && address_port_up(&a)))
            *out = a;
        found = true;
    }
    return found;
}

/* True if the address belongs to an interface of this machine, whether or not a port of the fabric has it. */
static bool address_is_of_machine(const struct in6_addr *ip)
{
    struct ifaddrs *all = NULL;
    struct cm_address a;
    bool found = is_loopback(ip);
    if (found || getifaddrs(&all))
        return found;
    for (struct ifaddrs *i = all; i && !found; i = i->ifa_next)
        found = address_read(i->ifa_addr, &a) && !memcmp(&a.ip, ip, sizeof(*ip));
    freeifaddrs(all);
    return found;
}

bool address_find_local(const struct in6_addr *ip, struct softib_address *out)
{
    const uint32_t node = device_get_place()->node;
    return address_find(ip, node, out) ||
           (address_is_of_machine(ip) && address_find_first_of_node(node, out));
}

bool address_find_remote(const struct in6_addr *ip, struct softib_address *out)
{
    const uint32_t node = device_get_place()->node;
    if (is_loopback(ip) && address_find(ip, node, out))
        return true;
    return address_find(ip, -1, out) || (address_is_of_machine(ip) && address_find_first_of_node(node, out));
}

bool address_of_gid(const uint8_t gid[16], uint16_t lid, uint32_t gid_index, struct softib_address *out)
{
    for (uint32_t i = 0; softib_address_get(i, out); i++)
        if (out->lid == lid && out->gid_index == gid_index && !memcmp(out->gid, gid, sizeof(out->gid)))
            return true;
    return false;
}

/* True if packets can be sent from port a to port b: same type of network, and GIDs of the same version. */
static bool same_network(const struct softib_address *a, const struct softib_address *b)
{
    return a->ethernet == b->ethernet && a->vlan == b->vlan &&
           (!a->ethernet || IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)a->gid) ==
                                IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)b->gid));
}

/* Distance of the local port `a` from the port `there`; 0 is best. A port that is down counts most, then a
 * port other than `there` itself, then a port with another number. */
static unsigned address_distance(const struct softib_address *a, const struct softib_address *there)
{
    return (address_port_up(a) ? 0 : 8) + (there && a->lid != there->lid ? 4 : 0) +
           (there && a->port != there->port ? 2 : 0);
}

bool address_choose_source(const struct softib_address *there, struct softib_address *out)
{
    const uint32_t node = device_get_place()->node;
    struct softib_address a;
    bool found = false;
    if (!there)
        return address_find_first_of_node(node, out);
    for (uint32_t i = 0; softib_address_get(i, &a); i++) {
        if (a.node != node || !device_find_by_guid(a.node_guid) || !same_network(&a, there))
            continue;
        if (!found || address_distance(&a, there) < address_distance(out, there))
            *out = a;
        found = true;
    }
    return found;
}

void id_bind_device(struct cm_id *p, const struct softib_address *here)
{
    p->here = *here;
    p->device = device_find_by_guid(here->node_guid);
    p->id.verbs = p->device->verbs;
    p->id.port_num = (uint8_t)here->port;
    if (!p->id.pd)
        p->id.pd = device_pd(p->device);
    memcpy(&p->id.route.addr.addr.ibaddr.sgid, here->gid, sizeof(here->gid));
    p->id.route.addr.addr.ibaddr.pkey = htons(0xffff);
}

uint16_t address_ephemeral_port(void)
{
    uint16_t r;
    link_random(&r, sizeof(r));
    return (uint16_t)(32768u + r % 28232u); /* 32768 to 60999, as on Linux */
}

static int address_resolve(struct cm_id *p, const struct sockaddr *src, const struct cm_address *dst,
                           int family)
{
    struct rdma_addr *route = &p->id.route.addr;
    struct cm_address from = {.any = true};
    if (p->state == CM_BOUND) /* the bound address stays: the kernel ignores `src` too */
        address_read(&route->src_addr, &from);
    else if (src && !address_read(src, &from))
        return EAFNOSUPPORT;
    p->has_there = !dst->multicast && address_find_remote(&dst->ip, &p->there);
    if (!dst->multicast && !p->has_there)
        return EHOSTUNREACH;
    if (!p->device || !from.any) {
        struct softib_address here;
        if (from.any ? !address_choose_source(p->has_there ? &p->there : NULL, &here)
                     : !address_find_local(&from.ip, &here))
            return from.any ? EHOSTUNREACH : EADDRNOTAVAIL;
        id_bind_device(p, &here);
    }
    if (!from.port)
        from.port = address_ephemeral_port();
    /* As with sockets, a connection to an address of this machine has that address as its source. */
    if (from.any)
        from.ip = p->has_there && p->there.lid == p->here.lid ? dst->ip : p->here.ip;
    address_write(&route->src_storage, IN6_IS_ADDR_V4MAPPED(&from.ip) ? AF_INET : AF_INET6, &from.ip,
                  from.port);
    address_write(&route->dst_storage, family, &dst->ip, dst->port);
    if (p->has_there)
        memcpy(&route->addr.ibaddr.dgid, p->there.gid, sizeof(p->there.gid));
    return 0;
}

SOFTIB_API int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
                                 int timeout_ms)
{
    struct cm_id *p = CM_OF(id);
    struct cm_address to;
    (void)timeout_ms; /* addresses are computed without waiting */
    if (!address_read(dst, &to) || to.any)
        return cm_return_error(to.any ? EINVAL : EAFNOSUPPORT);
    pthread_mutex_lock(&cm_lock);
    bool legal = p->state == CM_IDLE || p->state == CM_BOUND;
    int error = legal ? address_resolve(p, src, &to, dst->sa_family) : 0;
    if (legal && !error)
        p->state = CM_ADDR_RESOLVED;
    bool reported =
        legal && channel_report(p, error ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, -error);
    pthread_mutex_unlock(&cm_lock);
    return !legal ? cm_return_error(EINVAL) : !reported ? -1 : id_wait(p);
}

void path_fill(struct cm_id *p)
{
    struct ibv_port_attr attr = {.active_mtu = IBV_MTU_256};
    struct ibv_sa_path_rec *r = &p->path;
    ibv_query_port(p->device->verbs, (uint8_t)p->here.port, &attr);
    *r = (struct ibv_sa_path_rec){.slid = htons(p->here.ethernet ? 0 : p->here.lid),
                                  .dlid = htons(p->here.ethernet ? 0 : p->there.lid),
                                  .pkey = htons(0xffff),
                                  .reversible = 1,
                                  .numb_path = 1,
                                  .hop_limit = p->here.ethernet ? 64 : 0,
                                  .mtu_selector = 2, /* 2: exactly this value */
                                  .mtu = (uint8_t)attr.active_mtu,
                                  .rate_selector = 2,
                                  .rate = IBV_RATE_100_GBPS,
                                  .packet_life_time_selector = 2,
                                  .packet_life_time = CM_DEFAULT_ACK_TIMEOUT - 1};
    memcpy(&r->sgid, p->here.gid, sizeof(r->sgid));
    memcpy(&r->dgid, p->there.gid, sizeof(r->dgid));
    p->id.route.path_rec = r;
    p->id.route.num_paths = 1;
}

SOFTIB_API int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
    struct cm_id *p = CM_OF(id);
    (void)timeout_ms;
    pthread_mutex_lock(&cm_lock);
    bool legal = p->state == CM_ADDR_RESOLVED && p->has_there, reported = false;
    if (legal) {
        bool up = address_port_up(&p->here);
        if (up) {
            path_fill(p);
            p->state = CM_ROUTE_RESOLVED;
        }
        reported = channel_report(p, up ? RDMA_CM_EVENT_ROUTE_RESOLVED : RDMA_CM_EVENT_ROUTE_ERROR,
                                  up ? 0 : -ENETDOWN);
    }
    pthread_mutex_unlock(&cm_lock);
    return !legal ? cm_return_error(EINVAL) : !reported ? -1 : id_wait(p);
}

SOFTIB_API __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    struct cm_address a;
    return address_read(&id->route.addr.src_addr, &a) ? htons(a.port) : 0;
}

SOFTIB_API __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
    struct cm_address a;
    return address_read(&id->route.addr.dst_addr, &a) ? htons(a.port) : 0;
}
