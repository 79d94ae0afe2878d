/* reduce_scatter_pairwise.c: in each round everyone sends one rank its block and adds what it gets to its
 * own. For long vectors; operands change places.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/phases.h"

static void generate(const struct coll_shape *shape, struct sched *s)
{
    const int size = shape->size, rank = shape->rank;
    const int64_t *starts = shape->starts, mine = starts[rank + 1] - starts[rank];
    const struct loc in = shape_input(shape), out = loc_make(BUF_RECV, 0), own = loc_add(in, starts[rank]);
    if (size == 1) {
        sched_copy(s, own, out, mine);
        return;
    }
    struct loc temp = sched_temp(s, mine), sum = shape->in_place ? sched_temp(s, mine) : out;
    for (int k = 1; k < size; k++) {
        int to = ring(rank + k, size), from = ring(rank - k, size);
        sched_recv(s, from, temp, mine);
        sched_send(s, to, loc_add(in, starts[to]), starts[to + 1] - starts[to]);
        sched_fence(s);
        sched_reduce(s, temp, k == 1 ? own : sum, sum, mine);
    }
    sched_copy(s, sum, out, mine);
}

COLL_ALGORITHM(reduce_scatter_pairwise, .name = "pairwise", .kind = COLL_REDUCE_SCATTER,
               .needs = NEED_COMMUTATIVE, .generate = generate, .doc = "one partner at a time");
