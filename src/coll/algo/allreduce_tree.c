/* allreduce_tree.c: reduces up a binomial tree to rank 0 and broadcasts down the tree. On an
 * intercommunicator each group reduces to its rank 0, the two exchange results, and each broadcasts the
 * result of the other group.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void allreduce_reduce_bcast_generate(const struct coll_shape *shape, struct sched *s)
{
    struct tree t = tree_binomial(shape->rank, shape->size, 0);
    struct loc out = loc_make(BUF_RECV, 0);
    tree_reduce(s, &t, shape->commutative, shape_input(shape), out, shape->count, shape->segment);
    tree_bcast(s, &t, out, shape->count, shape->segment);
}

COLL_ALGORITHM(allreduce_reduce_bcast, .name = "reduce_bcast", .kind = COLL_ALLREDUCE, .segment = true,
               .generate = allreduce_reduce_bcast_generate, .doc = "up a binomial tree and down again");

static void allreduce_inter_generate(const struct coll_shape *shape, struct sched *s)
{
    struct tree t = tree_binomial(shape->rank, shape->size, 0);
    struct loc out = loc_make(BUF_RECV, 0), sum = group_reduce(shape, s, &t);
    if (shape->rank == 0) {
        sched_recv(s, PEER_REMOTE(0), out, shape->count);
        sched_send(s, PEER_REMOTE(0), sum, shape->count);
        sched_fence(s);
    }
    tree_bcast(s, &t, out, shape->count, 0);
}

COLL_ALGORITHM(allreduce_inter, .name = "inter", .kind = COLL_ALLREDUCE, .needs = NEED_INTER,
               .generate = allreduce_inter_generate,
               .doc = "a tree in each group; the roots exchange results");
