/* allreduce_doubling.c: recursive doubling: whole vectors are exchanged with partners at distance 1, 2, 4,
 * ... so the ranks whose operands are combined are always neighbouring ranges and order is kept. For short
 * vectors.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/phases.h"

static void generate(const struct coll_shape *shape, struct sched *s)
{
    const int64_t n = shape->count;
    struct fold f = fold_make(shape->rank, shape->size);
    struct loc out = loc_make(BUF_RECV, 0), temp = shape->size > 1 && f.index >= 0 ? sched_temp(s, n) : out;
    struct partial p = partial_start(shape, shape_input(shape), out, temp);
    fold_in(s, &f, shape->rank, &p, n);
    if (f.index >= 0) {
        for (int mask = 1; mask < f.pof2; mask *= 2) {
            int partner = fold_rank(&f, f.index ^ mask);
            sched_recv(s, partner, partial_theirs(&p), n);
            sched_send(s, partner, partial_mine(&p), n);
            sched_fence(s);
            partial_merge(s, &p, (f.index & mask) == 0, 0, n);
        }
        partial_settle(s, &p, 0, n);
    }
    fold_out(s, &f, shape->rank, out, n);
}

COLL_ALGORITHM(allreduce_doubling, .name = "recursive_doubling", .kind = COLL_ALLREDUCE, .generate = generate,
               .doc = "whole vectors exchanged at distances 1, 2, 4, ...");
