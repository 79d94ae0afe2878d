/* adapter_port.h: description of a port of a network adapter for users: in `fishplate info --devices`, in the log,
 * and in benchmark output. It also travels between processes (boot), so that all ranks of a job can choose
 * one network.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_ADAPTER_PORT_H
#define FP_NET_ADAPTER_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kinds of devices, in order of preference: real adapters before software. */
enum net_made { NET_HARDWARE, NET_SOFT_ROCE, NET_SOFTIB_MEMORY, NET_SOFTIB_TCP };
enum net_link { NET_INFINIBAND, NET_ROCE, NET_IWARP, NET_WIRES }; /* NET_WIRES: only barriers */
enum net_state { NET_UNKNOWN, NET_DOWN, NET_INIT, NET_ARMED, NET_ACTIVE, NET_DEFERRED }; /* as in verbs */

/* Fixed layout, little-endian. */
struct net_port {
    char device[40];
    char firmware[32]; /* "" if the adapter does not report it */
    uint8_t gid[16];   /* the GID that is used */
    uint64_t subnet;   /* InfiniBand: GID prefix; RoCE: network and prefix length of the IP address */
    uint32_t rate;     /* Mb/s, nominal */
    uint16_t mtu;      /* bytes */
    uint16_t lid;      /* 0 on RoCE */
    int16_t gid_index; /* index of `gid` in the port's GID table; -1: none */
    int16_t numa;      /* NUMA node of the adapter; -1: unknown, or none */
    int16_t place;     /* index in the user's list of devices, 0 is best; -1: excluded by the list */
    uint8_t port;      /* 0: a device of a barrier network, which has no ports */
    uint8_t made;      /* enum net_made */
    uint8_t link;      /* enum net_link */
    uint8_t state;     /* enum net_state */
    uint8_t near;      /* close to the GPU that the process uses, else to its processors */
    uint8_t chosen;
    char why[192]; /* the reason why the port is used or not (choose.h); not sent */
};

#define NET_PORT_SENT offsetof(struct net_port, why)

/* For users: "InfiniBand hardware", "softib over TCP (software)". */
const char *net_port_kind(const struct net_port *p);

/* For machine-readable output: "hardware", "soft-roce", "softib-memory", "softib-tcp". */
const char *net_port_implementation(const struct net_port *p);

const char *net_port_state(const struct net_port *p);

/* "InfiniBand", "RoCE", "iWARP", "barrier network". */
const char *net_port_link(const struct net_port *p);

/* "mlx5_0 port 1", "softwire0". */
void net_port_name(const struct net_port *p, char *out, size_t size);

/* "mlx5_0 port 1, InfiniBand hardware, 200 Gb/s"; the nominal rate of a software device is omitted. */
void net_port_describe(const struct net_port *p, char *out, size_t size);

/* Formats the subnet of a port: "subnet fe80:0000:0000:0000", "network 10.1.0.0/16". */
void net_port_subnet(const struct net_port *p, char *out, size_t size);

/* Converts the link width and speed codes of verbs to Mb/s; 0: unknown. */
uint32_t net_link_rate(unsigned width, unsigned speed);

#endif
