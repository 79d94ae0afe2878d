/* alltoall_pairwise.c: one partner at a time; if the number of ranks is a power of two, pairs exchange
 * blocks, otherwise each rank sends to the right and receives from the left. For long blocks, and for
 * alltoallv and alltoallw.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/alltoall.h"

static void alltoall_pairwise_generate(const struct coll_shape *shape, struct sched *s)
{
    const int size = shape->size, rank = shape->rank;
    const bool pow2 = (size & (size - 1)) == 0;
    struct loc in = alltoall_input(shape, s);
    if (!shape->in_place)
        sched_copy(s, loc_add(in, rank), loc_make(BUF_RECV, rank), 1);
    for (int k = 1; k < size; k++) {
        int to = pow2 ? rank ^ k : ring(rank + k, size), from = pow2 ? to : ring(rank - k, size);
        sched_recv(s, from, loc_make(BUF_RECV, from), 1);
        sched_send(s, to, loc_add(in, to), 1);
        sched_fence(s);
    }
}

COLL_ALGORITHM(alltoall_pairwise, .name = "pairwise", .kind = COLL_ALLTOALL,
               .generate = alltoall_pairwise_generate, .doc = "one partner at a time");
