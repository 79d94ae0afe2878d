/* alltoall_bruck.c: log2(n) messages instead of n: in round k every block whose remaining distance has bit k
 * set moves 2^k ranks further, packed with others in one message. For short blocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void alltoall_bruck_generate(const struct coll_shape *shape, struct sched *s)
{
    const int size = shape->size, rank = shape->rank, half = (size + 1) / 2;
    struct loc in = loc_make(shape->in_place ? BUF_RECV : BUF_SEND, 0);
    struct loc blocks = sched_temp(s, size), out = sched_temp(s, half), back = sched_temp(s, half);
    /* blocks[d]: the data with remaining distance d ranks. */
    sched_copy(s, loc_add(in, rank), blocks, size - rank);
    sched_copy(s, in, loc_add(blocks, size - rank), rank);
    for (int64_t bit = 1; bit < size; bit *= 2) {
        int64_t n = 0;
        for (int d = 0; d < size; d++)
            if (d & bit)
                sched_copy(s, loc_add(blocks, d), loc_add(out, n++), 1);
        sched_recv(s, ring((int)(rank - bit), size), back, n);
        sched_send(s, ring((int)(rank + bit), size), out, n);
        sched_fence(s);
        n = 0;
        for (int d = 0; d < size; d++)
            if (d & bit)
                sched_copy(s, loc_add(back, n++), loc_add(blocks, d), 1);
    }
    for (int d = 0; d < size; d++)
        sched_copy(s, loc_add(blocks, d), loc_make(BUF_RECV, ring(rank - d, size)), 1);
}

COLL_ALGORITHM(alltoall_bruck, .name = "bruck", .kind = COLL_ALLTOALL, .needs = NEED_ADJACENT,
               .generate = alltoall_bruck_generate, .doc = "log2(n) packed messages");
