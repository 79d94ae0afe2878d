/* reduce_chain.c: from each rank to the one before it, in segments, for long vectors. Ends at the root, or at
 * rank 0 when operands must keep their places.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void reduce_chain_generate(const struct coll_shape *shape, struct sched *s)
{
    const int top = shape->commutative ? shape->root : 0;
    struct tree t = tree_chain(shape->rank, shape->size, top);
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

COLL_ALGORITHM(reduce_chain, .name = "chain", .kind = COLL_REDUCE, .segment = true,
               .generate = reduce_chain_generate, .doc = "pipelined along a chain of ranks");
