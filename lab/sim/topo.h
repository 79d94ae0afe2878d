/* topo.h: one interface to the switches that connect the nodes: a regular fat tree (tree.h) or a topology
 * from a file (graph.h). Multicast packets and the barrier in the switches use a tree of links that reaches
 * every node once: up to one switch at the top, and down from it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_TOPO_H
#define FP_SIM_TOPO_H

#include "graph.h"
#include "tree.h"

struct topo {
    struct tree tree;
    const struct graph *graph; /* NULL: the regular tree */
    /* link 2c of cable c leads up, or from a to b, and link 2c + 1 back; node n has cable n */
    uint32_t nodes, cables;
    uint32_t switches;    /* number of switches on the multicast tree */
    uint32_t most_copies; /* largest number of copies of a multicast packet in one switch */
    uint32_t paths;       /* 2^LMC: number of routes from which a sender can choose */
};

/* Returns false if switches of this radix cannot form a tree for this number of nodes, or if the file has
 * fewer nodes. */
bool topo_make(struct topo *t, const struct graph *graph, uint32_t nodes, uint32_t radix, uint32_t lmc);
struct tree_place topo_link_end(const struct topo *t, uint32_t link);
uint32_t topo_next_link(const struct topo *t, struct tree_place at, uint32_t destination, uint32_t path);
double topo_link_rate(const struct topo *t, uint32_t link); /* GB/s; 0: the machine's link_rate */

/* Multicast tree: number of a switch, less than `switches`; link up from a switch, UINT32_MAX at the top;
 * links down from a switch. */
uint32_t topo_switch_number(const struct topo *t, struct tree_place at);
uint32_t topo_up_link(const struct topo *t, struct tree_place at);
/* Returns the number of links, at most most_copies. */
uint32_t topo_down_links(const struct topo *t, struct tree_place at, uint32_t *links);

#endif
