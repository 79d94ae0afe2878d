/* barrier_dissemination.c: in round k every rank signals the rank 2^k after it and waits for the one 2^k
 * before it; after ceil(log2 size) rounds every rank knows, directly or indirectly, that all others have
 * arrived [Hoefler05 2.2.2.3].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void barrier_dissemination_generate(const struct coll_shape *shape, struct sched *s)
{
    for (int64_t distance = 1; distance < shape->size; distance *= 2) {
        sched_signal(s, ring((int)(shape->rank + distance), shape->size));
        sched_await(s, ring((int)(shape->rank - distance), shape->size));
        sched_fence(s);
    }
}

COLL_ALGORITHM(barrier_dissemination, .name = "dissemination", .kind = COLL_BARRIER,
               .generate = barrier_dissemination_generate,
               .doc = "log2(n) rounds; everyone signals and awaits in each");
