/* reduce_scatter_ring.c: blocks move round a ring towards their rank and are summed on the way; the operator
 * must be commutative.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void reduce_scatter_ring_generate(const struct coll_shape *shape, struct sched *s)
{
    const int size = shape->size, rank = shape->rank;
    const int64_t *starts = shape->starts, mine = starts[rank + 1] - starts[rank];
    const struct loc in = shape_input(shape), out = loc_make(BUF_RECV, 0);
    if (copy_if_single_rank(shape, s, in, out, mine))
        return;
    int64_t longest = 0;
    for (int r = 0; r < size; r++)
        longest = starts[r + 1] - starts[r] > longest ? starts[r + 1] - starts[r] : longest;
    struct loc sum[2] = {sched_temp(s, longest), sched_temp(s, longest)};
    for (int k = 0; k < size - 1; k++) {
        int give = ring(rank - 1 - k, size), take = ring(rank - 2 - k, size);
        sched_recv(s, ring(rank - 1, size), sum[k % 2], starts[take + 1] - starts[take]);
        sched_send(s, ring(rank + 1, size), k == 0 ? loc_add(in, starts[give]) : sum[(k + 1) % 2],
                   starts[give + 1] - starts[give]);
        sched_fence(s);
        sched_reduce(s, sum[k % 2], loc_add(in, starts[take]), sum[k % 2], starts[take + 1] - starts[take]);
    }
    sched_copy(s, sum[size % 2], out, mine);
}

COLL_ALGORITHM(reduce_scatter_ring, .name = "ring", .kind = COLL_REDUCE_SCATTER, .needs = NEED_COMMUTATIVE,
               .generate = reduce_scatter_ring_generate,
               .doc = "blocks go round a ring and are summed on the way");
