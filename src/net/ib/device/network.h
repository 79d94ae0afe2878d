/* network.h: all ranks of a job agree on one network before any rank opens a port. The first rank of each node
 * publishes the ports of its node, rank 0 chooses (choose.h), and all ranks read the decision.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_AGREE_H
#define FP_NET_IB_AGREE_H

#include "net/ib/policy/choose.h"

struct boot;

/* The ports that a node offers. */
struct ib_offer {
    const struct net_port *ports;
    uint32_t count;
    bool softib;   /* the user requested softib by name; then there are no ports yet */
    bool fallback; /* where no node has a port, softib will do */
};

enum ib_agreed {
    IB_AGREED_PORTS,  /* on a network of the ports offered */
    IB_AGREED_SOFTIB, /* all ranks requested softib */
    IB_AGREED_NOTHING /* no node has a port that can be used */
};

/* Collective over all ranks. 0; or MPI_ERR_OTHER with a sentence when the nodes have nothing in common. `why` is
 * the reason why this rank offers no port, or "". When softib is to be used, its library may be loaded afterwards: the nodes
 * have been described to it. */
int ib_network_agree(struct boot *b, const struct ib_offer *mine, const char *why, enum ib_agreed *out,
                     struct choose_network *network);

#endif
