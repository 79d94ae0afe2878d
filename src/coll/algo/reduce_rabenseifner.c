/* reduce_rabenseifner.c: reduce-scatter by recursive halving, then the parts are gathered at the root: for
 * long vectors each rank sends about its vector once and reduces about one vector. Preserves the operand
 * order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

/* Gathers the parts in the reverse order of the halving: in the step of a bit, ranks whose fold index
 * differs from the root's index in this bit send their part. */
static void halving_gather(struct sched *s, const struct fold *f, const struct halving *h, int root_index,
                           struct loc data)
{
    int64_t lo = h->lo[h->steps], hi = h->hi[h->steps];
    for (int k = h->steps - 1; k >= 0; k--) {
        int mask = 1 << k, partner = fold_rank(f, f->index ^ mask);
        if ((f->index ^ root_index) & mask) {
            sched_send(s, partner, loc_add(data, lo), hi - lo);
            sched_fence(s);
            return;
        }
        if (lo == h->lo[k])
            sched_recv(s, partner, loc_add(data, hi), h->hi[k] - hi);
        else
            sched_recv(s, partner, loc_add(data, h->lo[k]), lo - h->lo[k]);
        sched_fence(s);
        lo = h->lo[k];
        hi = h->hi[k];
    }
}

static void reduce_rabenseifner_generate(const struct coll_shape *shape, struct sched *s)
{
    const int64_t n = shape->count;
    struct fold f = fold_init(shape->rank, shape->size), root = fold_init(shape->root, shape->size);
    struct loc in = shape_input(shape), out = loc_make(BUF_RECV, 0);
    const bool root_folded = root.index < 0;
    const int root_index = root_folded ? shape->root / 2 : root.index;
    const bool result_here = shape->rank == shape->root && !root_folded;
    if (f.index >= 0) {
        struct loc buf0 = result_here ? out : sched_temp(s, n);
        struct partial p = partial_start(shape, in, buf0, sched_temp(s, n));
        struct halving h;
        fold_generate_reduce(s, &f, shape->rank, &p, n);
        halving_reduce(s, &f, &p, n, &h);
        partial_copy_to_result(s, &p, h.lo[h.steps], h.hi[h.steps] - h.lo[h.steps]);
        halving_gather(s, &f, &h, root_index, p.buf[0]);
        if (root_folded && f.index == root_index)
            sched_send(s, shape->root, p.buf[0], n);
    } else {
        sched_send(s, shape->rank - 1, in, n);
        sched_fence(s);
        if (shape->rank == shape->root)
            sched_recv(s, shape->rank - 1, out, n);
    }
}

COLL_ALGORITHM(reduce_rabenseifner, .name = "rabenseifner", .kind = COLL_REDUCE,
               .generate = reduce_rabenseifner_generate,
               .doc = "reduce-scatter by recursive halving, then gather");
