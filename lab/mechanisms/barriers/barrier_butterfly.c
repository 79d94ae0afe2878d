/* barrier_butterfly.c: in stage k every node exchanges signals with the one whose number differs in bit k
 * [Hoefler05 2.2.2.1]. Where the number of ranks is not a power of two, the missing nodes are virtual: rank v
 * - size acts as node v in addition to its own, so that these ranks have two partners in each stage.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

/* One node of this rank exchanges signals with its partner; two nodes of the same rank need no message. */
static void butterfly_exchange_pair(struct sched *s, const struct coll_shape *shape, int64_t node,
                                    int64_t distance)
{
    int64_t other = node ^ distance;
    int player = (int)(other < shape->size ? other : other - shape->size);
    if (player == shape->rank)
        return;
    sched_signal(s, player);
    sched_await(s, player);
}

static void barrier_butterfly_generate(const struct coll_shape *shape, struct sched *s)
{
    int64_t nodes = 1;
    while (nodes < shape->size)
        nodes *= 2;
    for (int64_t distance = 1; distance < nodes; distance *= 2) {
        butterfly_exchange_pair(s, shape, shape->rank, distance);
        if (shape->rank + (int64_t)shape->size < nodes)
            butterfly_exchange_pair(s, shape, shape->rank + (int64_t)shape->size, distance);
        sched_fence(s);
    }
}

COLL_ALGORITHM(barrier_butterfly, .name = "butterfly", .kind = COLL_BARRIER,
               .generate = barrier_butterfly_generate,
               .doc = "log2(n) stages of pairs; some ranks play two where n is no power of two");
