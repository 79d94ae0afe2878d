/* reduce_tree.c: up a binomial tree, or along a chain from each rank to the one before it, in segments if a
 * segment size is given. The tree is rooted at the root if the operator is commutative, otherwise at rank 0,
 * which sends the result to the root. On an intercommunicator the other group reduces to its rank 0, which
 * sends the result to the root.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void generate_tree_reduce(const struct coll_shape *shape, struct sched *s,
                                 struct tree (*make_tree)(int rank, int size, int root))
{
    const int top = shape->commutative ? shape->root : 0;
    struct tree t = make_tree(shape->rank, shape->size, top);
    struct loc out = loc_make(BUF_RECV, 0);
    struct loc result = shape->rank == top && top != shape->root ? sched_temp(s, shape->count) : out;
    tree_reduce(s, &t, shape->commutative, shape_input(shape), result, shape->count, shape->segment);
    if (top == shape->root)
        return;
    if (shape->rank == top)
        sched_send(s, shape->root, result, shape->count);
    if (shape->rank == shape->root)
        sched_recv(s, top, out, shape->count);
}

static void reduce_binomial_generate(const struct coll_shape *shape, struct sched *s)
{
    generate_tree_reduce(shape, s, tree_binomial);
}

COLL_ALGORITHM(reduce_binomial, .name = "binomial", .kind = COLL_REDUCE, .segment = true,
               .generate = reduce_binomial_generate, .doc = "up a binomial tree");

static void reduce_chain_generate(const struct coll_shape *shape, struct sched *s)
{
    generate_tree_reduce(shape, s, tree_chain);
}

COLL_ALGORITHM(reduce_chain, .name = "chain", .kind = COLL_REDUCE, .segment = true,
               .generate = reduce_chain_generate, .doc = "pipelined along a chain of ranks");

static void reduce_inter_generate(const struct coll_shape *shape, struct sched *s)
{
    if (shape->root == ROOT_NONE)
        return;
    if (shape->root == ROOT_SELF) {
        sched_recv(s, PEER_REMOTE(0), loc_make(BUF_RECV, 0), shape->count);
        return;
    }
    struct tree t = tree_binomial(shape->rank, shape->size, 0);
    struct loc result = group_reduce(shape, s, &t);
    if (t.parent < 0)
        sched_send(s, PEER_REMOTE(shape->root), result, shape->count);
}

COLL_ALGORITHM(reduce_inter, .name = "inter", .kind = COLL_REDUCE, .needs = NEED_INTER,
               .generate = reduce_inter_generate,
               .doc = "binomial tree in one group, result sent to the root in the other");
