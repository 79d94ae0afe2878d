/* choose.h: which network a job uses and which port a process uses on that network. All ranks must choose the
 * same network to reach each other. Criteria of the network, in order: every node has it, the user's list,
 * hardware before software, the rate of the slowest node. Criteria of the port: the user's list, the rate,
 * the distance to the process's GPU or processors.
 *
 * Pure functions: ports in, decisions and reasons out.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_CHOOSE_H
#define FP_NET_IB_CHOOSE_H

#include "net/adapter_port.h"

/* The offer of one node: its ports. */
struct choose_node {
    const struct net_port *ports;
    uint32_t count;
};

struct choose_network {
    uint64_t subnet;
    uint32_t rate;  /* Mb/s, of the node with the slowest port */
    uint8_t made;   /* enum net_made */
    uint8_t link;   /* enum net_link */
    uint8_t routed; /* the nodes have no common subnet: routers must connect them */
};

enum choose_verdict {
    CHOOSE_FOUND,
    CHOOSE_NOWHERE, /* no node has a usable port */
    CHOOSE_MISSING, /* some nodes have no usable port */
    CHOOSE_APART    /* all nodes have ports, but no kind of network is common */
};

/* True if the port is active, not excluded by the user, and supports datagrams. */
bool choose_usable(const struct net_port *p);

/* Chooses the network of the job. *node: the first node without a usable port (CHOOSE_MISSING), or without
 * the kind of network that node 0 prefers (CHOOSE_APART). *out is set for CHOOSE_FOUND. */
enum choose_verdict choose_network(const struct choose_node *nodes, uint32_t n, struct choose_network *out,
                                   uint32_t *node);

/* Chooses the primary port of this process on that network: its index, or -1. `process` is the local rank:
 * processes of a node are spread over equally good ports. Sets `chosen` of that port and `why` of every
 * port. */
int choose_port(struct net_port *ports, uint32_t n, const struct choose_network *network, uint32_t process);

/* Chooses further rails: ports of the same kind as the primary rail, on any subnet. Sets `chosen`, writes up
 * to `most` indices and returns their number. Ports beyond the first `adapters` adapters are left out. */
uint32_t choose_rails(struct net_port *ports, uint32_t n, uint32_t home, uint32_t adapters, uint32_t most,
                      uint32_t *out);

/* Chooses additional rails that are not active yet: writes their indices after the `count` of choose_rails
 * and returns the total number. Only for ports in the user's list: many ports have no cable. */
uint32_t choose_waiting_ports(struct net_port *ports, uint32_t n, uint32_t home, uint32_t adapters,
                              uint32_t most, uint32_t count, uint32_t *out);

/* Sets `why` of every port if there is no common network: why it cannot be used, or that it could be. */
void choose_explain_unusable(struct net_port *ports, uint32_t n);

#endif
