/* reduce_scatter_halving.c: recursive halving, the furthest partner first, so that each rank ends with its
 * own block. For short and medium vectors; the operator must be commutative.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static int64_t halving_edge(const struct coll_shape *shape, const struct fold *f, int index)
{
    return shape->starts[index < f->pof2 ? fold_rank(f, index) : shape->size];
}

static void reduce_scatter_halving_generate(const struct coll_shape *shape, struct sched *s)
{
    const int rank = shape->rank;
    const int64_t *starts = shape->starts, total = starts[shape->size],
                  mine = starts[rank + 1] - starts[rank];
    struct fold f = fold_init(rank, shape->size);
    const struct loc in = shape_input(shape), out = loc_make(BUF_RECV, 0);
    if (f.index < 0) {
        sched_send(s, rank - 1, in, total);
        sched_fence(s);
        sched_recv(s, rank - 1, out, mine);
        return;
    }
    if (copy_if_single_rank(shape, s, in, out, mine))
        return;
    struct partial p = partial_start(shape, in, sched_temp(s, total), sched_temp(s, total));
    fold_generate_reduce(s, &f, rank, &p, total);
    int lo = 0, hi = f.pof2;
    for (int mask = f.pof2 / 2; mask > 0; mask /= 2) {
        int partner = fold_rank(&f, f.index ^ mask), mid = lo + mask;
        bool low = (f.index & mask) == 0;
        int64_t a = halving_edge(shape, &f, lo), b = halving_edge(shape, &f, mid),
                c = halving_edge(shape, &f, hi);
        sched_recv(s, partner, loc_add(partial_peer_data(&p), low ? a : b), low ? b - a : c - b);
        sched_send(s, partner, loc_add(partial_own_data(&p), low ? b : a), low ? c - b : b - a);
        sched_fence(s);
        partial_merge(s, &p, low, low ? a : b, low ? b - a : c - b);
        lo = low ? lo : mid;
        hi = low ? mid : hi;
    }
    if (rank < 2 * f.rem)
        sched_send(s, rank + 1, loc_add(partial_own_data(&p), starts[rank + 1]),
                   starts[rank + 2] - starts[rank + 1]);
    sched_copy(s, loc_add(partial_own_data(&p), starts[rank]), out, mine);
}

COLL_ALGORITHM(reduce_scatter_halving, .name = "recursive_halving", .kind = COLL_REDUCE_SCATTER,
               .needs = NEED_COMMUTATIVE, .generate = reduce_scatter_halving_generate,
               .doc = "vectors halved at distances n/2, n/4, ...");
