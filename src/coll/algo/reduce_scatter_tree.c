/* reduce_scatter_tree.c: reduce to rank 0 up a binomial tree, which sends everyone its block; also between
 * the two groups of an intercommunicator, whose roots exchange results before they scatter them. Preserves
 * the operand order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void tree_scatter(const struct coll_shape *shape, struct sched *s, struct loc sum)
{
    const int64_t *starts = shape->starts;
    if (shape->rank != 0) {
        sched_recv(s, 0, loc_make(BUF_RECV, 0), starts[shape->rank + 1] - starts[shape->rank]);
        return;
    }
    for (int r = 1; r < shape->size; r++)
        sched_send(s, r, loc_add(sum, starts[r]), starts[r + 1] - starts[r]);
    sched_copy(s, sum, loc_make(BUF_RECV, 0), starts[1]);
}

static void reduce_scatter_tree_generate(const struct coll_shape *shape, struct sched *s)
{
    const int64_t total = shape->starts[shape->size];
    struct tree t = tree_binomial(shape->rank, shape->size, 0);
    struct loc sum = shape->rank == 0 ? sched_temp(s, total) : loc_make(BUF_NONE, 0);
    tree_reduce(s, &t, shape->commutative, shape_input(shape), sum, total, 0);
    tree_scatter(shape, s, sum);
}

COLL_ALGORITHM(reduce_scatter_tree, .name = "tree", .kind = COLL_REDUCE_SCATTER,
               .generate = reduce_scatter_tree_generate,
               .doc = "reduce up a binomial tree, then rank 0 scatters");

static void generate_inter(const struct coll_shape *shape, struct sched *s)
{
    const int64_t total = shape->starts[shape->size];
    struct tree t = tree_binomial(shape->rank, shape->size, 0);
    struct loc sum = shape->rank == 0 ? sched_temp(s, total) : loc_make(BUF_NONE, 0), theirs = sum;
    tree_reduce(s, &t, shape->commutative, loc_make(BUF_SEND, 0), sum, total, 0);
    if (shape->rank == 0) {
        theirs = sched_temp(s, total);
        sched_recv(s, PEER_REMOTE(0), theirs, total);
        sched_send(s, PEER_REMOTE(0), sum, total);
        sched_fence(s);
    }
    tree_scatter(shape, s, theirs);
}

COLL_ALGORITHM(reduce_scatter_inter, .name = "inter", .kind = COLL_REDUCE_SCATTER, .needs = NEED_INTER,
               .generate = generate_inter,
               .doc = "a tree in each group; the roots exchange results and scatter them");
