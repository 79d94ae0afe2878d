/* tree.h: who acknowledges to whom [Liu04 7.2.3]. The root and k - 1 co-roots collect acknowledgements, each from the
 * leaves of its block of members; co-roots acknowledge to the root. Members are counted from the root on, so that the
 * tree of another root is the same one turned. k = 1: all acknowledge to the root. With `deliver` the root and the co-roots
 * are a binomial tree: each packet is also sent along it over connections, and a co-root reports its room to its parent there.
 *
 *     place     0      1   2   3      4   5   6   7        n = 8, k = 2
 *               root   leaves         co-root, leaves
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MCAST_TREE_H
#define FP_NET_MCAST_TREE_H

#include <stdbool.h>
#include <stdint.h>

struct mcast_tree {
    uint32_t members, root, collectors; /* collectors: the root among them; 1 to members */
    bool deliver;
};

/* The member to which this one acknowledges; the root itself for the root. */
uint32_t mcast_tree_parent(const struct mcast_tree *t, uint32_t member);
/* The number of members that acknowledge to it; the index-th of them; and the index of a member at its parent. */
uint32_t mcast_tree_children(const struct mcast_tree *t, uint32_t member);
uint32_t mcast_tree_child(const struct mcast_tree *t, uint32_t member, uint32_t index);
uint32_t mcast_tree_index(const struct mcast_tree *t, uint32_t member);
/* How many of the children are leaves: they are the first ones. */
uint32_t mcast_tree_leaves(const struct mcast_tree *t, uint32_t member);
/* The member's distance from the root. A parent has no two children, of all its trees, at the same distance. */
uint32_t mcast_tree_place(const struct mcast_tree *t, uint32_t member);

#endif
