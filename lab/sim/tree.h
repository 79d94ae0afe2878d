/* tree.h: a fat tree: its switches and links, and the route from any place to any node. Pure arithmetic, no
 * state: a tree of 10,000 nodes is a few numbers. A switch has as many links up as down, except at the top
 * level, where all ports lead down. With half = radix / 2, a node's number in base `half` names its port at
 * the leaf, the leaf's port one level higher, and so on. Routes are static, by destination: the port up at
 * level l is the destination's digit l, so nodes of one leaf are spread over all routes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_TREE_H
#define FP_SIM_TREE_H

#include <stdbool.h>
#include <stdint.h>

enum { TREE_LEVELS_MAX = 12 };

struct tree {
    uint32_t nodes, half, levels;
    uint32_t power[TREE_LEVELS_MAX + 1]; /* half^l */
    uint32_t subtrees[TREE_LEVELS_MAX];  /* groups of switches at level l: one for each half^(l + 1) nodes */
    uint32_t first_cable[TREE_LEVELS_MAX + 1]; /* first cable above level l; cables of nodes come first */
    uint32_t cables;                           /* each cable is a link up and a link down */
};

/* Place of a packet: a node or a switch. */
struct tree_place {
    int level; /* -1: the place is node number `group` */
    uint32_t group, way;
};

/* Makes the smallest tree for this number of nodes. Returns false if the radix is odd or the tree would have
 * too many levels. */
bool tree_make(struct tree *t, uint32_t nodes, uint32_t radix);
uint32_t tree_switches(const struct tree *t);

/* Link numbers are below 2 * cables; links with even numbers lead up. */
struct tree_place tree_link_end(const struct tree *t, uint32_t link); /* the place at the end of a link */
/* Next link on the route to a node. A destination has `paths` LIDs (2^LMC); `path` selects one of them and
 * rotates the ports up, so that the routes of two LIDs are disjoint if there are enough ports. */
uint32_t tree_next_link(const struct tree *t, struct tree_place at, uint32_t destination, uint32_t path,
                        uint32_t paths);

/* The multicast tree uses port 0 of the ports up. tree_up_link returns UINT32_MAX at the top;
 * tree_down_links returns the number of links. */
uint32_t tree_up_link(const struct tree *t, struct tree_place at);
uint32_t tree_down_links(const struct tree *t, struct tree_place at, uint32_t *links);

#endif
