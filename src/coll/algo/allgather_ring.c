/* allgather_ring.c: each rank forwards blocks to its right neighbour. For long blocks, and for blocks of
 * different sizes (allgatherv).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void allgather_ring_generate(const struct coll_shape *shape, struct sched *s)
{
    const int size = shape->size, rank = shape->rank;
    if (!shape->in_place)
        sched_copy(s, loc_make(BUF_SEND, 0), loc_make(BUF_RECV, rank), 1);
    for (int k = 0; k < size - 1; k++) {
        sched_recv(s, ring(rank - 1, size), loc_make(BUF_RECV, ring(rank - k - 1, size)), 1);
        sched_send(s, ring(rank + 1, size), loc_make(BUF_RECV, ring(rank - k, size)), 1);
        sched_fence(s);
    }
}

COLL_ALGORITHM(allgather_ring, .name = "ring", .kind = COLL_ALLGATHER, .generate = allgather_ring_generate,
               .doc = "blocks go round a ring");
