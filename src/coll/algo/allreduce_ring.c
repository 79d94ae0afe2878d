/* allreduce_ring.c: a reduce-scatter round a ring of ranks, then an allgather round the same ring. For very
 * long vectors: each rank sends only to its neighbour, and the minimum of data.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void allreduce_ring_generate(const struct coll_shape *shape, struct sched *s)
{
    const int size = shape->size, rank = shape->rank;
    const int64_t n = shape->count;
    const struct loc in = shape_input(shape), out = loc_make(BUF_RECV, 0);
    if (copy_if_single_rank(shape, s, in, out, n))
        return;
    struct loc temp = sched_temp(s, part_size(n, size, 0));
    for (int k = 0; k < size - 1; k++) {
        int give = ring(rank - k, size), take = ring(rank - k - 1, size),
            idle = ring_count_idle_rounds(give, take, n);
        if (idle >= 0) {
            k += idle;
            continue;
        }
        int64_t at = part_start(n, size, take), len = part_size(n, size, take);
        sched_recv(s, ring(rank - 1, size), temp, len);
        sched_send(s, ring(rank + 1, size), loc_add(k == 0 ? in : out, part_start(n, size, give)),
                   part_size(n, size, give));
        sched_fence(s);
        sched_reduce(s, temp, loc_add(in, at), loc_add(out, at), len);
    }
    ring_allgather(s, rank, size, ring(rank + 1, size), out, n);
}

COLL_ALGORITHM(allreduce_ring, .name = "ring", .kind = COLL_ALLREDUCE, .needs = NEED_COMMUTATIVE,
               .generate = allreduce_ring_generate, .doc = "reduce-scatter and allgather round a ring");
