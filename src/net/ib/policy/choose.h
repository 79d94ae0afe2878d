/* choose.h: which network a job uses and which port a process uses on it. All ranks must choose the same network,
 * or they cannot reach each other: first a network that every node has, the user's order, hardware before software,
 * then the rate of the slowest node. On that network a process takes the user's order, then the fastest port, then
 * one beside the processors it may use.
 *
 * Pure: ports in, decisions and reasons out.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_CHOOSE_H
#define FP_NET_IB_CHOOSE_H

#include "net/port.h"

/* The offer of one node: its ports. */
struct choose_node {
    const struct net_port *ports;
    uint32_t count;
};

struct choose_network {
    uint64_t subnet;
    uint32_t rate;  /* of the node with the slowest port, Mb/s */
    uint8_t made;   /* enum net_made */
    uint8_t link;   /* enum net_link */
    uint8_t routed; /* no subnet is common to all: routers must connect them */
};

enum choose_verdict {
    CHOOSE_FOUND,
    CHOOSE_NOWHERE, /* no node has a usable port */
    CHOOSE_MISSING, /* some nodes have none */
    CHOOSE_APART    /* all nodes have ports, but no kind of network is common */
};

/* True if the port is active, wanted, and able to carry datagrams. */
bool choose_usable(const struct net_port *p);

/* The network of the job. *node is the first node that has no usable port (MISSING), or none of the kind that
 * node 0 prefers (APART). *out is set when a network was found. */
enum choose_verdict choose_network(const struct choose_node *nodes, uint32_t n, struct choose_network *out,
                                   uint32_t *node);

/* The home of this process on that network: the index of the port that carries its connections, or -1. `process` is its
 * number on the node: processes are spread over ports that are equally good. Marks it as chosen and gives every port its
 * reason. */
int choose_port(struct net_port *ports, uint32_t n, const struct choose_network *network, uint32_t process);

/* The other rails: ports of the same kind as the primary rail, on whatever subnet. Marks them as chosen and writes their indices,
 * at most `most`; returns how many. A port that is on no adapter of the first `adapters` is left out. */
uint32_t choose_rails(struct net_port *ports, uint32_t n, uint32_t home, uint32_t adapters, uint32_t most,
                      uint32_t *out);

/* Additional rails that are not active yet: writes the indices of such ports behind the `count` of choose_rails and
 * returns the total number. Only for ports that the user has named: many adapters have a port without a cable. */
uint32_t choose_waiting_ports(struct net_port *ports, uint32_t n, uint32_t home, uint32_t adapters,
                              uint32_t most, uint32_t count, uint32_t *out);

/* Without a common network: states for each port why it cannot be used, or that it could be. */
void choose_explain_unusable(struct net_port *ports, uint32_t n);

#endif
