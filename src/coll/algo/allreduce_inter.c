/* allreduce_inter.c: each group reduces to its rank 0, the two exchange results, and each spreads what it
 * got.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void allreduce_inter_generate(const struct coll_shape *shape, struct sched *s)
{
    struct tree t = tree_binomial(shape->rank, shape->size, 0);
    struct loc in = loc_make(BUF_SEND, 0), out = loc_make(BUF_RECV, 0), sum = in;
    if (shape->size > 1) {
        if (shape->rank == 0)
            sum = sched_temp(s, shape->count);
        tree_reduce(s, &t, shape->commutative, in, sum, shape->count, 0);
    }
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
