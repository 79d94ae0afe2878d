/* graph.h: switches and cables of a topology that a text file describes, for machines that are no regular fat
 * tree. Lines, in which names may have ranges in brackets:
 *
 *     switch leaf[0-17] spine[0-8]
 *     node 0-323 leaf[0-17]          # 18 nodes on each, in this order
 *     link leaf[0-17] spine[0-8] 2   # two cables between each of them
 *     link leaf0 leaf1 1 25          # one of 25 GB/s; others have the machine's link_rate
 *
 * Routes are static, by destination, and always shortest; the destinations are distributed over the cables of
 * the shortest routes, as a subnet manager distributes its LIDs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_GRAPH_H
#define FP_SIM_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    GRAPH_SWITCHES_MAX = 1024,
    GRAPH_NODES_MAX = 1 << 16,
    GRAPH_CABLES_MAX = 1 << 19,
    GRAPH_NAME_MAX = 32
};

/* Cables of nodes come first: cable n leads from node n up to its switch. Cable c consists of link 2c from
 * a to b and link 2c + 1 from b to a. */
struct graph_cable {
    uint32_t a, b; /* switches; for a node's cable `a` is the node */
    double rate;   /* GB/s; 0: the machine's link_rate */
};

struct graph {
    char (*names)[GRAPH_NAME_MAX];
    uint32_t switches, nodes, cables, capacity;
    struct graph_cable *cable;
    uint32_t *node_switch; /* switch of each node; UINT32_MAX: none */
    /* Links of switch s that lead towards switch t on shortest routes: next_links[first[s * switches + t]] up
     * to the first of the next entry. */
    uint32_t *first, *next_links;
    /* The tree for multicast, from a switch in the middle: the link from a switch up to its parent,
     * UINT32_MAX at the root, and links down: down[down_first[s]] up to the first of the next switch. */
    uint32_t *up, *down_first, *down;
    uint32_t most_links; /* largest number of links of a switch */
};

/* On failure returns false and stores in `why` a message with the line number. */
bool graph_read(struct graph *g, FILE *in, char *why, size_t size);
void graph_free(struct graph *g);

/* Next link of a packet from a switch to a node; `path` selects among routes of equal length. */
uint32_t graph_next_link(const struct graph *g, uint32_t at, uint32_t node, uint32_t path);

#endif
