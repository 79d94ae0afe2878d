/* allreduce_doubling.c: recursive doubling: whole vectors are exchanged with partners at distance 1, 2, 4,
 * ... so each combination joins adjacent ranges of ranks and preserves the operand order. For short vectors.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void doubling_exchange(struct sched *s, const struct fold *f, struct partial *p, struct loc out,
                              int64_t n)
{
    (void)out; /* partial_copy_to_result copies the result to `out` */
    for (int mask = 1; mask < f->pof2; mask *= 2) {
        int partner = fold_rank(f, f->index ^ mask);
        sched_recv(s, partner, partial_peer_data(p), n);
        sched_send(s, partner, partial_own_data(p), n);
        sched_fence(s);
        partial_merge(s, p, (f->index & mask) == 0, 0, n);
    }
    partial_copy_to_result(s, p, 0, n);
}

static void allreduce_doubling_generate(const struct coll_shape *shape, struct sched *s)
{
    fold_allreduce(shape, s, doubling_exchange);
}

COLL_ALGORITHM(allreduce_doubling, .name = "recursive_doubling", .kind = COLL_ALLREDUCE,
               .generate = allreduce_doubling_generate,
               .doc = "whole vectors exchanged at distances 1, 2, 4, ...");
