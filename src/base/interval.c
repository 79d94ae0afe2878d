/* interval.c: an AVL tree of ranges, ordered by start, then end, then address of the node. Depth is at most
 * 1.44 log2(n), so plain recursion is safe.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/interval.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

static int interval_height(const struct interval *n)
{
    return n ? n->height : 0;
}

static bool interval_is_before(const struct interval *a, const struct interval *b)
{
    if (a->start != b->start)
        return a->start < b->start;
    if (a->end != b->end)
        return a->end < b->end;
    return (uintptr_t)a < (uintptr_t)b;
}

/* Updates a node's summary of its subtree from its children. */
static void interval_update(struct interval *n)
{
    n->height = 1 + MAX(interval_height(n->left), interval_height(n->right));
    n->reach = n->end;
    if (n->left && n->left->reach > n->reach)
        n->reach = n->left->reach;
    if (n->right && n->right->reach > n->reach)
        n->reach = n->right->reach;
}

static struct interval *rotate_right(struct interval *n)
{
    struct interval *up = n->left;
    n->left = up->right;
    up->right = n;
    interval_update(n);
    interval_update(up);
    return up;
}

static struct interval *rotate_left(struct interval *n)
{
    struct interval *up = n->right;
    n->right = up->left;
    up->left = n;
    interval_update(n);
    interval_update(up);
    return up;
}

/* Balances a subtree whose heights differ by at most two, so that they differ by at most one. Returns its
 * root. */
static struct interval *interval_balance(struct interval *n)
{
    int lean = interval_height(n->left) - interval_height(n->right);
    if (lean > 1) {
        if (interval_height(n->left->left) < interval_height(n->left->right))
            n->left = rotate_left(n->left);
        return rotate_right(n);
    }
    if (lean < -1) {
        if (interval_height(n->right->right) < interval_height(n->right->left))
            n->right = rotate_right(n->right);
        return rotate_left(n);
    }
    interval_update(n);
    return n;
}

static struct interval *interval_insert_below(struct interval *root, struct interval *node)
{
    if (!root)
        return node;
    if (interval_is_before(node, root))
        root->left = interval_insert_below(root->left, node);
    else
        root->right = interval_insert_below(root->right, node);
    return interval_balance(root);
}

void interval_insert(struct interval_tree *t, struct interval *node)
{
    ASSERT(node->start < node->end);
    node->left = node->right = NULL;
    interval_update(node);
    t->root = interval_insert_below(t->root, node);
}

static struct interval *detach_leftmost(struct interval *root, struct interval **first)
{
    if (!root->left) {
        *first = root;
        return root->right;
    }
    root->left = detach_leftmost(root->left, first);
    return interval_balance(root);
}

static struct interval *remove_from_subtree(struct interval *root, struct interval *node)
{
    CHECK(root != NULL, "an address range is removed that was never added");
    if (root == node) {
        struct interval *successor;
        if (!node->right)
            return node->left;
        struct interval *right = detach_leftmost(node->right, &successor);
        successor->left = node->left;
        successor->right = right;
        return interval_balance(successor);
    }
    if (interval_is_before(node, root))
        root->left = remove_from_subtree(root->left, node);
    else
        root->right = remove_from_subtree(root->right, node);
    return interval_balance(root);
}

void interval_remove(struct interval_tree *t, struct interval *node)
{
    t->root = remove_from_subtree(t->root, node);
}

/* If a node starts at or before `start`, so do all nodes of its left subtree, which then covers the range if
 * its largest end is at or beyond `end`. Therefore the search follows a single path. */
struct interval *interval_find_covering(const struct interval_tree *t, uintptr_t start, uintptr_t end)
{
    struct interval *n = t->root;
    while (n && n->reach >= end) {
        if (n->start > start)
            n = n->left;
        else if (n->end >= end)
            return n;
        else
            n = n->left && n->left->reach >= end ? n->left : n->right;
    }
    return NULL;
}

/* Finds the first node behind `after` (NULL: the first of all nodes) that ends beyond `start`. Subtrees whose
 * largest end is at most `start` are skipped, so that each level costs at most one fruitless step. */
static struct interval *find_first_ending_after(struct interval *n, const struct interval *after,
                                                uintptr_t start)
{
    if (!n || n->reach <= start)
        return NULL;
    if (after && !interval_is_before(after, n))
        return find_first_ending_after(n->right, after, start);
    struct interval *found = find_first_ending_after(n->left, after, start);
    if (found)
        return found;
    if (n->end > start)
        return n;
    return find_first_ending_after(n->right, after, start);
}

struct interval *interval_overlap_next(const struct interval_tree *t, const struct interval *node,
                                       uintptr_t start, uintptr_t end)
{
    struct interval *found = find_first_ending_after(t->root, node, start);
    return found && found->start < end ? found : NULL;
}

struct interval *interval_overlap(const struct interval_tree *t, uintptr_t start, uintptr_t end)
{
    return interval_overlap_next(t, NULL, start, end);
}
