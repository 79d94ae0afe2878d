/* allreduce_reduce_bcast.c: up a binomial tree to rank 0 and down again.
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
