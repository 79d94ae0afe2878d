/* barrier_pairwise.c: pairwise exchange with recursive doubling among the largest power of two of ranks; each
 * rank above it signals its partner below first and receives its signal at the end [Hoefler05 2.2.2.2].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void barrier_pairwise_generate(const struct coll_shape *shape, struct sched *s)
{
    const int rank = shape->rank, size = shape->size;
    int main_group = 1;
    while (main_group <= size / 2)
        main_group *= 2;
    if (rank >= main_group) {
        sched_signal(s, rank - main_group);
        sched_await(s, rank - main_group);
        return;
    }
    const bool has_partner = rank < size - main_group;
    if (has_partner) {
        sched_await(s, rank + main_group);
        sched_fence(s);
    }
    for (int distance = 1; distance < main_group; distance *= 2) {
        sched_signal(s, rank ^ distance);
        sched_await(s, rank ^ distance);
        sched_fence(s);
    }
    if (has_partner)
        sched_signal(s, rank + main_group);
}

COLL_ALGORITHM(barrier_pairwise, .name = "pairwise", .kind = COLL_BARRIER,
               .generate = barrier_pairwise_generate,
               .doc = "recursive doubling; ranks above a power of two wait for a partner");
