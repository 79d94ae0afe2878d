/* bcast_inter.c: the root sends to rank 0 of the other group, which passes it down a binomial tree.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void bcast_inter_generate(const struct coll_shape *shape, struct sched *s)
{
    struct loc data = loc_make(BUF_RECV, 0);
    if (shape->root == ROOT_NONE)
        return;
    if (shape->root == ROOT_SELF) {
        sched_send(s, PEER_REMOTE(0), data, shape->count);
        return;
    }
    struct tree t = tree_binomial(shape->rank, shape->size, 0);
    if (shape->rank == 0)
        sched_recv(s, PEER_REMOTE(shape->root), data, shape->count);
    sched_fence(s);
    tree_bcast(s, &t, data, shape->count, 0);
}

COLL_ALGORITHM(bcast_inter, .name = "inter", .kind = COLL_BCAST, .needs = NEED_INTER,
               .generate = bcast_inter_generate,
               .doc = "root to the other group's rank 0, then a binomial tree");
