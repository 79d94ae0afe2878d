/* neighbor_linear.c: neighbourhood collectives: a message along every edge. The shape specifies the order of
 * receives, because two ranks may be joined by several edges, whose messages match in order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void neighbor_linear_generate(const struct coll_shape *shape, struct sched *s)
{
    const bool one_block = shape->kind == COLL_NEIGHBOR_ALLGATHER;
    for (int i = 0; i < shape->nsources; i++) {
        int which = shape->receive_order ? shape->receive_order[i] : i;
        if (shape->sources[which] >= 0)
            sched_recv(s, shape->sources[which], loc_make(BUF_RECV, which), 1);
    }
    for (int i = 0; i < shape->ndestinations; i++)
        if (shape->destinations[i] >= 0)
            sched_send(s, shape->destinations[i], loc_make(BUF_SEND, one_block ? 0 : i), 1);
}

COLL_ALGORITHM(neighbor_allgather_linear, .name = "linear", .kind = COLL_NEIGHBOR_ALLGATHER,
               .generate = neighbor_linear_generate, .doc = "a message along every edge");
COLL_ALGORITHM(neighbor_alltoall_linear, .name = "linear", .kind = COLL_NEIGHBOR_ALLTOALL,
               .generate = neighbor_linear_generate, .doc = "a message along every edge");
