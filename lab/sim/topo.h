/* topo.h: the switches that connect the nodes: a regular fat tree (tree.h) or what a file describes (graph.h), behind one face.
 *
 * Multicast packets and the barrier in the switches take a tree of links that reaches every node once: up to one switch at the
 * top, and down from it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_TOPO_H
#define FP_SIM_TOPO_H

#include "graph.h"
#include "tree.h"

struct topo {
    struct tree tree;
    const struct graph *graph; /* NULL: the tree */
    uint32_t nodes, cables; /* link 2c is a cable's way up or from a to b, 2c + 1 back; node n has cable n */
    uint32_t switches;      /* on the tree of multicasts */
    uint32_t most_copies;   /* of a multicast packet in one switch */
    uint32_t paths;         /* 2^LMC: routes that a sender can choose from */
};

/* False when there is no tree of such switches for this number of nodes, or the file has fewer. */
bool topo_make(struct topo *t, const struct graph *graph, uint32_t nodes, uint32_t radix, uint32_t lmc);
struct tree_place topo_end(const struct topo *t, uint32_t link);
uint32_t topo_next(const struct topo *t, struct tree_place at, uint32_t destination, uint32_t path);
double topo_rate(const struct topo *t, uint32_t link); /* GB/s; 0: the machine's */

/* The tree of multicasts: the number of a switch on it, below `switches`; its link up, UINT32_MAX at the top; its links down. */
uint32_t topo_number(const struct topo *t, struct tree_place at);
uint32_t topo_up(const struct topo *t, struct tree_place at);
uint32_t topo_down(const struct topo *t, struct tree_place at,
                   uint32_t *links); /* how many; at most most_copies */

#endif
