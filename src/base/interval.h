/* interval.h: half-open address ranges that may overlap, in a balanced tree (AVL) in which every node stores
 * how far its subtree reaches. Intrusive: a node lies in the caller's object, and nothing is allocated. Equal
 * ranges are distinguished by the address of their node.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_INTERVAL_H
#define FP_BASE_INTERVAL_H

#include <stdint.h>

struct interval {
    uintptr_t start, end; /* [start, end), never empty; not to be changed while in a tree */
    uintptr_t reach;      /* largest end in this subtree */
    struct interval *left, *right;
    int height;
};

struct interval_tree {
    struct interval *root;
};

void interval_insert(struct interval_tree *t, struct interval *node);
void interval_remove(struct interval_tree *t, struct interval *node); /* `node` must be in the tree */

/* A node that covers [start, end), or NULL. */
struct interval *interval_find_covering(const struct interval_tree *t, uintptr_t start, uintptr_t end);

/* The first node, in order of start, that overlaps [start, end); NULL: there is none. */
struct interval *interval_overlap(const struct interval_tree *t, uintptr_t start, uintptr_t end);

/* The next overlapping node behind `node`, which must still be in the tree. */
struct interval *interval_overlap_next(const struct interval_tree *t, const struct interval *node,
                                       uintptr_t start, uintptr_t end);

#endif
