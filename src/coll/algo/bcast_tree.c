/* bcast_tree.c: broadcasts down a binomial tree or along a chain of ranks, in segments if a segment size is
 * given, so that all links transfer at the same time. On an intercommunicator the root sends to rank 0 of the
 * other group, the root of a tree there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void bcast_down(const struct coll_shape *shape, struct sched *s, struct tree t)
{
    tree_bcast(s, &t, loc_make(BUF_RECV, 0), shape->count, shape->segment);
}

static void bcast_binomial_generate(const struct coll_shape *shape, struct sched *s)
{
    bcast_down(shape, s, tree_binomial(shape->rank, shape->size, shape->root));
}

COLL_ALGORITHM(bcast_binomial, .name = "binomial", .kind = COLL_BCAST, .segment = true,
               .generate = bcast_binomial_generate, .doc = "down a binomial tree");

static void bcast_chain_generate(const struct coll_shape *shape, struct sched *s)
{
    bcast_down(shape, s, tree_chain(shape->rank, shape->size, shape->root));
}

COLL_ALGORITHM(bcast_chain, .name = "chain", .kind = COLL_BCAST, .segment = true,
               .generate = bcast_chain_generate, .doc = "pipelined along a chain of ranks");

static void bcast_inter_generate(const struct coll_shape *shape, struct sched *s)
{
    struct loc data = loc_make(BUF_RECV, 0);
    if (shape->root == ROOT_NONE)
        return;
    if (shape->root == ROOT_SELF) {
        sched_send(s, PEER_REMOTE(0), data, shape->count);
        return;
    }
    if (shape->rank == 0)
        sched_recv(s, PEER_REMOTE(shape->root), data, shape->count);
    sched_fence(s);
    bcast_down(shape, s, tree_binomial(shape->rank, shape->size, 0));
}

COLL_ALGORITHM(bcast_inter, .name = "inter", .kind = COLL_BCAST, .needs = NEED_INTER,
               .generate = bcast_inter_generate,
               .doc = "root to the other group's rank 0, then a binomial tree");
