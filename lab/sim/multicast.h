/* multicast.h: broadcasts by hardware multicast on a simulated machine: the library's own state machines
 * (src/net/mcast) at every node, packets copied by the simulated switches, acknowledgements as small messages
 * [Liu04 7].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_MULTICAST_H
#define FP_SIM_MULTICAST_H

#include "net/mcast/rules.h"
#include "network.h"

struct multicast_order {
    const struct machine *machine; /* `loss` is the loss of each link */
    uint32_t nodes;
    uint32_t collectors; /* number of nodes that collect acknowledgements: the root and the co-roots */
    uint32_t packets;    /* consecutive broadcasts of one packet each */
    uint32_t bytes;
    struct mcast_rules rules; /* times in ns */
};

struct multicast_report {
    double us;      /* time until every node has every packet */
    double root_us; /* time until the root has all acknowledgements */
    /* acks: acknowledgements; again: packets repeated, to one node or to all; lost: packets and copies */
    uint64_t acks, again, lost;
    uint32_t most_children; /* largest number of nodes from which one node collects acknowledgements */
    uint64_t events;
    const char *failed; /* NULL, or the reason why there is no result */
};

/* The library's rules with a given window, number of packets for each acknowledgement, and timeout. */
struct mcast_rules multicast_rules(uint32_t window, uint32_t aggregate, double timeout_us);

void multicast_simulate(const struct multicast_order *order, struct multicast_report *out);

#endif
