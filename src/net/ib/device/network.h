/* network.h: all ranks of a job agree on one network before any rank opens a port. The first rank of each node
 * publishes the ports of its node, rank 0 chooses (choose.h), and all ranks read the decision.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_NETWORK_H
#define FP_NET_IB_NETWORK_H

#include "net/ib/policy/choose.h"

struct boot;

/* The ports that this rank's node offers. */
struct ib_offer {
    const struct net_port *ports;
    uint32_t count;
    bool softib;   /* the user requested softib by name; its ports are not known yet */
    bool fallback; /* softib may be used if no node has a usable port */
};

enum ib_agreed {
    IB_AGREED_PORTS,  /* the job uses a network of the offered ports */
    IB_AGREED_SOFTIB, /* all ranks requested softib */
    IB_AGREED_NOTHING /* no node has a port that can be used */
};

/* Agrees on one network. Collective over all ranks. 0; or MPI_ERR_OTHER with a message if the nodes have no
 * network in common. `why`: the reason why this rank offers no port, or "". If softib is to be
 * used, this call describes the job's nodes in its environment, so its library must be loaded afterwards. */
int ib_network_agree(struct boot *b, const struct ib_offer *mine, const char *why, enum ib_agreed *out,
                     struct choose_network *network);

#endif
