/* reduce_scatter_pairwise.c: in each round every rank sends one other rank its block and adds the received
 * block to its own. For long vectors; the operator must be commutative.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void reduce_scatter_pairwise_generate(const struct coll_shape *shape, struct sched *s)
{
    const int size = shape->size, rank = shape->rank;
    const int64_t *starts = shape->starts;
    const struct blocks b = shape_blocks(shape);
    if (copy_if_single_rank(shape, s, b.own, b.out, b.mine))
        return;
    struct loc temp = sched_temp(s, b.mine), sum = shape->in_place ? sched_temp(s, b.mine) : b.out;
    for (int k = 1; k < size; k++) {
        int to = ring(rank + k, size), from = ring(rank - k, size);
        sched_recv(s, from, temp, b.mine);
        sched_send(s, to, loc_add(b.in, starts[to]), starts[to + 1] - starts[to]);
        sched_fence(s);
        sched_reduce(s, temp, k == 1 ? b.own : sum, sum, b.mine);
    }
    sched_copy(s, sum, b.out, b.mine);
}

COLL_ALGORITHM(reduce_scatter_pairwise, .name = "pairwise", .kind = COLL_REDUCE_SCATTER,
               .needs = NEED_COMMUTATIVE, .generate = reduce_scatter_pairwise_generate,
               .doc = "one partner at a time");
