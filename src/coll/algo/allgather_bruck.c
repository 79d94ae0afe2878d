/* allgather_bruck.c: log2(n) rounds for any n: the number of gathered blocks doubles in each round. Blocks
 * are stored in rank order starting with the own block, and are rotated at the end. For short blocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void allgather_bruck_generate(const struct coll_shape *shape, struct sched *s)
{
    const int size = shape->size, rank = shape->rank;
    struct loc own = shape->in_place ? loc_make(BUF_RECV, rank) : loc_make(BUF_SEND, 0);
    struct loc temp = sched_temp(s, size);
    sched_copy(s, own, temp, 1);
    for (int64_t have = 1; have < size; have *= 2) {
        int64_t n = have < size - have ? have : size - have;
        sched_recv(s, ring((int)(rank + have), size), loc_add(temp, have), n);
        sched_send(s, ring((int)(rank - have), size), temp, n);
        sched_fence(s);
    }
    sched_copy(s, temp, loc_make(BUF_RECV, rank), size - rank);
    sched_copy(s, loc_add(temp, size - rank), loc_make(BUF_RECV, 0), rank);
}

COLL_ALGORITHM(allgather_bruck, .name = "bruck", .kind = COLL_ALLGATHER, .needs = NEED_ADJACENT,
               .generate = allgather_bruck_generate,
               .doc = "doubles what is gathered each round; any number of ranks");
