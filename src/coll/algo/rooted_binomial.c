/* rooted_binomial.c: gather: packed blocks move up a binomial tree, so that the root receives log2(n)
 * messages; scatter: they move down. A subtree whose ranks wrap around is exchanged with the root in two
 * messages, since its blocks are not adjacent in the root's buffer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static int binomial_subtree_size(int me, int size)
{
    int low = me & -me;
    return me + low < size ? low : size - me;
}

static void generate_root(const struct coll_shape *shape, struct sched *s)
{
    const bool gather = shape->kind == COLL_GATHER;
    const int size = shape->size, root = shape->root;
    const enum sched_buf all = gather ? BUF_RECV : BUF_SEND;
    struct tree t = tree_binomial(root, size, root);
    for (int c = t.nchildren - 1; c >= 0; c--) {
        int first = t.child[c], n = binomial_subtree_size(ring(first - root, size), size);
        int head = first + n <= size ? n : size - first;
        sched_move(s, gather, first, loc_make(all, first), head);
        sched_move(s, gather, first, loc_make(all, 0), n - head);
    }
    if (!shape->in_place)
        copy_root_block(shape, s, gather);
}

/* Exchanges blocks between the children and this rank's packed buffer. */
static void move_with_children(const struct coll_shape *shape, struct sched *s, const struct tree *t,
                               struct loc data)
{
    const bool gather = shape->kind == COLL_GATHER;
    const int size = shape->size, me = ring(shape->rank - shape->root, size);
    for (int c = t->nchildren - 1; c >= 0; c--) {
        int child = ring(t->child[c] - shape->root, size);
        sched_move(s, gather, t->child[c], loc_add(data, child - me), binomial_subtree_size(child, size));
    }
}

static void move_with_parent(const struct coll_shape *shape, struct sched *s, const struct tree *t,
                             struct loc data, int n)
{
    const bool gather = shape->kind == COLL_GATHER;
    int head = t->parent != shape->root || shape->rank + n <= shape->size ? n : shape->size - shape->rank;
    sched_move(s, !gather, t->parent, data, head);
    sched_move(s, !gather, t->parent, loc_add(data, head), n - head);
}

static void rooted_binomial_generate(const struct coll_shape *shape, struct sched *s)
{
    if (shape->rank == shape->root) {
        generate_root(shape, s);
        return;
    }
    const bool gather = shape->kind == COLL_GATHER;
    const struct loc own = loc_make(gather ? BUF_SEND : BUF_RECV, 0);
    struct tree t = tree_binomial(shape->rank, shape->size, shape->root);
    const int n = binomial_subtree_size(ring(shape->rank - shape->root, shape->size), shape->size);
    const struct loc data = n > 1 ? sched_temp(s, n) : own;
    if (gather) {
        move_with_children(shape, s, &t, data);
        sched_copy(s, own, data, 1);
        sched_fence(s);
        move_with_parent(shape, s, &t, data, n);
    } else {
        move_with_parent(shape, s, &t, data, n);
        sched_fence(s);
        move_with_children(shape, s, &t, data);
        sched_copy(s, data, own, 1);
    }
}

COLL_ALGORITHM(gather_binomial, .name = "binomial", .kind = COLL_GATHER, .needs = NEED_ADJACENT,
               .generate = rooted_binomial_generate, .doc = "up a binomial tree, packed");
COLL_ALGORITHM(scatter_binomial, .name = "binomial", .kind = COLL_SCATTER, .needs = NEED_ADJACENT,
               .generate = rooted_binomial_generate, .doc = "down a binomial tree, packed");
