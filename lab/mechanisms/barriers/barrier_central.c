/* barrier_central.c: rank 0 receives a signal from every rank, then sends one to every rank (the central
 * counter of [Hoefler05 2.2.1.1]).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void barrier_central_generate(const struct coll_shape *shape, struct sched *s)
{
    if (shape->rank != 0) {
        sched_signal(s, 0);
        sched_await(s, 0);
        return;
    }
    for (int r = 1; r < shape->size; r++)
        sched_await(s, r);
    sched_fence(s);
    for (int r = 1; r < shape->size; r++)
        sched_signal(s, r);
}

COLL_ALGORITHM(barrier_central, .name = "central", .kind = COLL_BARRIER, .generate = barrier_central_generate,
               .doc = "all ranks notify rank 0, which then notifies all");
