/* allreduce_rabenseifner.c: reduce-scatter by recursive halving, then allgather by the reverse steps. For
 * long vectors; preserves the operand order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void halving_allgather(struct sched *s, const struct fold *f, const struct halving *h, struct loc data)
{
    int64_t lo = h->lo[h->steps], hi = h->hi[h->steps];
    for (int k = h->steps - 1; k >= 0; k--) {
        int partner = fold_rank(f, f->index ^ (1 << k));
        if (lo == h->lo[k] && !(f->index & (1 << k)))
            sched_recv(s, partner, loc_add(data, hi), h->hi[k] - hi);
        else
            sched_recv(s, partner, loc_add(data, h->lo[k]), lo - h->lo[k]);
        sched_send(s, partner, loc_add(data, lo), hi - lo);
        sched_fence(s);
        lo = h->lo[k];
        hi = h->hi[k];
    }
}

static void halving_exchange(struct sched *s, const struct fold *f, struct partial *p, struct loc out,
                             int64_t n)
{
    struct halving h;
    halving_reduce(s, f, p, n, &h);
    partial_copy_to_result(s, p, h.lo[h.steps], h.hi[h.steps] - h.lo[h.steps]);
    halving_allgather(s, f, &h, out);
}

static void allreduce_rabenseifner_generate(const struct coll_shape *shape, struct sched *s)
{
    fold_allreduce(shape, s, halving_exchange);
}

COLL_ALGORITHM(allreduce_rabenseifner, .name = "rabenseifner", .kind = COLL_ALLREDUCE,
               .generate = allreduce_rabenseifner_generate,
               .doc = "reduce-scatter by recursive halving, allgather by recursive doubling");
