/* multicast.h: broadcasts by hardware multicast on a simulated machine: the library's own state machines (src/net/mcast) at
 * every node, packets copied by the simulated switches, acknowledgements as small messages [Liu04 7].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_MULTICAST_H
#define FP_SIM_MULTICAST_H

#include "net/mcast/rules.h"
#include "network.h"

struct multicast_order {
    const struct machine *machine; /* its `loss` is per link */
    uint32_t nodes;
    uint32_t collectors; /* the root and the co-roots: 1 is no co-root */
    uint32_t packets;    /* broadcasts of one packet each, one behind the other */
    uint32_t bytes;
    struct mcast_rules rules; /* times in ns */
};

struct multicast_report {
    double us;      /* until every node has every packet */
    double root_us; /* until the root may forget the last of them */
    uint64_t acks, again,
        lost;               /* acknowledgements; packets sent again, to one or to all; lost ones and copies */
    uint32_t most_children; /* that one node collects acknowledgements from */
    uint64_t events;
    const char *failed; /* NULL, or why there is no result */
};

/* The library's rules for a window, a number of packets for each acknowledgement, and a timeout. */
struct mcast_rules multicast_rules(uint32_t window, uint32_t aggregate, double timeout_us);

void multicast_simulate(const struct multicast_order *order, struct multicast_report *out);

#endif
