/* ack_tree.h: who acknowledges to whom [Liu04 7.2.3]. The root and k - 1 co-roots collect acknowledgements, each from the
 * leaves of its block of members; co-roots acknowledge to the root. Places are counted from the root, so that
 * the trees of all roots have the same shape. k = 1: all acknowledge to the root. With `deliver` the root and
 * the co-roots are a binomial tree: each packet is also sent along it over connections, and a co-root reports
 * its room to its parent there.
 *
 *     place     0      1   2   3      4   5   6   7        n = 8, k = 2
 *               root   leaves         co-root, leaves
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MCAST_ACK_TREE_H
#define FP_NET_MCAST_ACK_TREE_H

#include <stdbool.h>
#include <stdint.h>

struct mcast_tree {
    uint32_t members, root, collectors; /* number of collectors, 1 to members; includes the root */
    bool deliver;
};

/* Returns the member to which this one acknowledges; for the root, the root itself. */
uint32_t mcast_tree_parent(const struct mcast_tree *t, uint32_t member);
/* The number of members that acknowledge to `member`; the index-th of these; and the index of `member` among
 * those of its parent. */
uint32_t mcast_tree_children(const struct mcast_tree *t, uint32_t member);
uint32_t mcast_tree_child(const struct mcast_tree *t, uint32_t member, uint32_t index);
uint32_t mcast_tree_index(const struct mcast_tree *t, uint32_t member);
/* The number of children that are leaves: these have the first indices. */
uint32_t mcast_tree_leaves(const struct mcast_tree *t, uint32_t member);
/* Returns the member's distance from the root. Over the trees of all roots, no two children of one parent
 * have the same distance, so it can index acknowledgements. */
uint32_t mcast_tree_place(const struct mcast_tree *t, uint32_t member);

#endif
