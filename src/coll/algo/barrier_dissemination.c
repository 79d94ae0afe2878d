/* barrier_dissemination.c: in round k every rank signals the ranks i * (n + 1)^k after it, for i from 1 to n,
 * and awaits signals from the ranks at the same distances before it; after the last round every rank knows,
 * directly or indirectly, that all others have arrived [Hoefler05 2.2.2.3, n-way: 2.2.6.1]. On a network that
 * sends n messages in parallel, fewer rounds cost less. Distances of `size` or more are skipped, because they
 * would wrap around.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void barrier_disseminate(const struct coll_shape *shape, struct sched *s, int n)
{
    const int rank = shape->rank, size = shape->size;
    for (int64_t step = 1; step < size; step *= n + 1) {
        for (int64_t distance = step; distance <= n * step && distance < size; distance += step) {
            sched_signal(s, ring((int)(rank + distance), size));
            sched_await(s, ring((int)(rank - distance), size));
        }
        sched_fence(s);
    }
}

static void barrier_dissemination_generate(const struct coll_shape *shape, struct sched *s)
{
    barrier_disseminate(shape, s, 1);
}

COLL_ALGORITHM(barrier_dissemination, .name = "dissemination", .kind = COLL_BARRIER,
               .generate = barrier_dissemination_generate,
               .doc = "log2(n) rounds; everyone signals and awaits in each");

static void barrier_nway_generate(const struct coll_shape *shape, struct sched *s)
{
    barrier_disseminate(shape, s, shape->parameter[0]);
}

COLL_ALGORITHM(barrier_nway, .name = "nway", .kind = COLL_BARRIER, .generate = barrier_nway_generate,
               .parameter = {{"n", 1, BARRIER_PARTNERS_MAX, 2}},
               .doc = "dissemination with n partners in each round");
