/* barrier_nwise.c: n-wise exchange: the pairwise exchange with groups of n + 1 ranks in each round, among the
 * largest power of n + 1 ranks; the other ranks signal a partner first and receive its signal at the end
 * [Hoefler05 2.2.6.2]. The other ranks may outnumber the main group, which the printed bound overlooks; a
 * partner then has several of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/mechanisms/barriers/signal_tree.h"

static void nwise_exchange(struct sched *s, int rank, int64_t main_group, int n)
{
    for (int64_t step = 1; step < main_group; step *= n + 1) {
        const int64_t group = step * (n + 1), first = rank - rank % group;
        for (int i = 1; i <= n; i++) {
            sched_signal(s, (int)(first + (rank - first + i * step) % group));
            sched_await(s, (int)(first + (rank - first + group - i * step) % group));
        }
        sched_fence(s);
    }
}

static void barrier_nwise_generate(const struct coll_shape *shape, struct sched *s)
{
    const int n = shape->parameter[0], rank = shape->rank, size = shape->size;
    int64_t main_group = 1;
    while (main_group * (n + 1) <= size)
        main_group *= n + 1;
    if (rank >= main_group) {
        int partner = (int)(rank % main_group);
        sched_signal(s, partner);
        sched_await(s, partner);
        return;
    }
    for (int64_t r = rank + main_group; r < size; r += main_group)
        sched_await(s, (int)r);
    sched_fence(s);
    nwise_exchange(s, rank, main_group, n);
    for (int64_t r = rank + main_group; r < size; r += main_group)
        sched_signal(s, (int)r);
}

COLL_ALGORITHM(barrier_nwise, .name = "nwise", .kind = COLL_BARRIER, .generate = barrier_nwise_generate,
               .parameter = {{"n", 1, BARRIER_PARTNERS_MAX, 2}},
               .doc = "exchange in groups of n + 1; the ranks that are left over wait for a partner");
