/* reduce_inter.c: the other group reduces to its rank 0, which sends the result to the root.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void reduce_inter_generate(const struct coll_shape *shape, struct sched *s)
{
    if (shape->root == ROOT_NONE)
        return;
    if (shape->root == ROOT_SELF) {
        sched_recv(s, PEER_REMOTE(0), loc_make(BUF_RECV, 0), shape->count);
        return;
    }
    struct tree t = tree_binomial(shape->rank, shape->size, 0);
    struct loc in = loc_make(BUF_SEND, 0), result = in;
    if (t.nchildren > 0 || t.parent >= 0) {
        if (t.parent < 0)
            result = sched_temp(s, shape->count);
        tree_reduce(s, &t, shape->commutative, in, result, shape->count, 0);
    }
    if (t.parent < 0)
        sched_send(s, PEER_REMOTE(shape->root), result, shape->count);
}

COLL_ALGORITHM(reduce_inter, .name = "inter", .kind = COLL_REDUCE, .needs = NEED_INTER,
               .generate = reduce_inter_generate,
               .doc = "binomial tree in one group, result sent to the root in the other");
