/* barrier_nway.c: n-way dissemination: in round k everyone signals the ranks i * (n + 1)^k further on, for i from 1 to n, and
 * awaits those as far before [Hoefler05 2.2.6.1]. Where the network takes n messages at a time, fewer rounds cost less. A
 * distance of the size or more would reach a rank that has had a signal already, so it is left out.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void barrier_nway_generate(const struct coll_shape *shape, struct sched *s)
{
    const int n = shape->parameter[0], rank = shape->rank, size = shape->size;
    for (int64_t step = 1; step < size; step *= n + 1) {
        for (int64_t distance = step; distance <= n * step && distance < size; distance += step) {
            sched_signal(s, ring((int)(rank + distance), size));
            sched_await(s, ring((int)(rank - distance), size));
        }
        sched_fence(s);
    }
}

COLL_ALGORITHM(barrier_nway, .name = "nway", .kind = COLL_BARRIER, .generate = barrier_nway_generate,
               .parameter = {{"n", 1, BARRIER_PARTNERS_MAX, 2}},
               .doc = "dissemination with n partners in each round");
