/* adapter_port.c: texts that describe a port of an adapter; see adapter_port.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/adapter_port.h"

#include <stdio.h>

#include "base/util.h"

const char *net_port_kind(const struct net_port *p)
{
    if (p->link == NET_WIRES)
        return "softib's barrier network (software)";
    switch ((enum net_made)p->made) {
    case NET_SOFT_ROCE:
        return "soft-RoCE of the kernel (software)";
    case NET_SOFTIB_MEMORY:
        return "softib in shared memory (software)";
    case NET_SOFTIB_TCP:
        return "softib over TCP (software)";
    default:
        break;
    }
    return p->link == NET_INFINIBAND ? "InfiniBand hardware"
           : p->link == NET_ROCE     ? "RoCE hardware"
                                     : "iWARP hardware";
}

const char *net_port_implementation(const struct net_port *p)
{
    static const char *const names[] = {"hardware", "soft-roce", "softib-memory", "softib-tcp"};
    return p->made < COUNT_OF(names) ? names[p->made] : "unknown";
}

const char *net_port_state(const struct net_port *p)
{
    static const char *const names[] = {"unknown", "down", "initialising", "armed", "active", "deferred"};
    return p->state < COUNT_OF(names) ? names[p->state] : "unknown";
}

const char *net_port_link(const struct net_port *p)
{
    static const char *const names[] = {"InfiniBand", "RoCE", "iWARP", "barrier network"};
    return p->link < COUNT_OF(names) ? names[p->link] : "unknown";
}

void net_port_name(const struct net_port *p, char *out, size_t size)
{
    if (p->port == 0)
        snprintf(out, size, "%.*s", (int)sizeof(p->device), p->device);
    else
        snprintf(out, size, "%.*s port %u", (int)sizeof(p->device), p->device, p->port);
}

void net_port_describe(const struct net_port *p, char *out, size_t size)
{
    char name[64];
    net_port_name(p, name, sizeof(name));
    int n = snprintf(out, size, "%s, %s", name, net_port_kind(p));
    if (p->made == NET_HARDWARE && p->rate && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, ", %g Gb/s", p->rate / 1000.0);
}

void net_port_subnet(const struct net_port *p, char *out, size_t size)
{
    uint64_t s = p->subnet;
    if (p->link == NET_INFINIBAND || s >> 40) /* an IPv6 prefix never begins with three zero bytes */
        snprintf(out, size, "subnet %04x:%04x:%04x:%04x", (unsigned)(s >> 48), (unsigned)(s >> 32 & 0xffff),
                 (unsigned)(s >> 16 & 0xffff), (unsigned)(s & 0xffff));
    else
        snprintf(out, size, "network %u.%u.%u.%u/%u", (unsigned)(s >> 24 & 0xff), (unsigned)(s >> 16 & 0xff),
                 (unsigned)(s >> 8 & 0xff), (unsigned)(s & 0xff), (unsigned)(s >> 32));
}

uint32_t net_link_rate(unsigned width, unsigned speed)
{
    static const struct {
        unsigned code, mbits;
    } speeds[] = {{1, 2500},   {2, 5000},   {4, 10000},    {8, 10000},   {16, 14000},
                  {32, 25000}, {64, 50000}, {128, 100000}, {256, 200000}};
    static const struct {
        unsigned code, lanes;
    } widths[] = {{1, 1}, {16, 2}, {2, 4}, {4, 8}, {8, 12}};
    uint32_t lanes = 0, mbits = 0;
    for (size_t i = 0; i < COUNT_OF(widths); i++)
        lanes = widths[i].code == width ? widths[i].lanes : lanes;
    for (size_t i = 0; i < COUNT_OF(speeds); i++)
        mbits = speeds[i].code == speed ? speeds[i].mbits : mbits;
    return lanes * mbits;
}
