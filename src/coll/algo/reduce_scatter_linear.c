/* reduce_scatter_linear.c: everyone sends everyone its block; each combines the received blocks in rank
 * order. Preserves the operand order. The latency is one message for any number of ranks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void reduce_scatter_linear_generate(const struct coll_shape *shape, struct sched *s)
{
    const int size = shape->size, rank = shape->rank;
    const int64_t *starts = shape->starts;
    const struct blocks b = shape_blocks(shape);
    if (copy_if_single_rank(shape, s, b.own, b.out, b.mine))
        return;
    struct loc slots = sched_temp(s, size * b.mine), sum = loc_add(slots, (size - 1) * b.mine);
    for (int k = 1; k < size; k++) {
        int to = ring(rank + k, size), from = ring(rank - k, size);
        sched_recv(s, from, loc_add(slots, from * b.mine), b.mine);
        sched_send(s, to, loc_add(b.in, starts[to]), starts[to + 1] - starts[to]);
    }
    if (rank == size - 1)
        sched_copy(s, b.own, sum, b.mine);
    sched_fence(s);
    for (int r = size - 2; r >= 0; r--)
        sched_reduce(s, r == rank ? b.own : loc_add(slots, r * b.mine), sum, sum, b.mine);
    sched_copy(s, sum, b.out, b.mine);
}

COLL_ALGORITHM(reduce_scatter_linear, .name = "linear", .kind = COLL_REDUCE_SCATTER,
               .generate = reduce_scatter_linear_generate,
               .doc = "everyone sends everyone its block; combined in rank order");
