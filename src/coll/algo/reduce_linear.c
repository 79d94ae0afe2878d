/* reduce_linear.c: everyone sends to the root, which combines in rank order, from the last rank to the first,
 * so that every reduction is `in op inout`. IN_FLIGHT receives are active at a time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

#define IN_FLIGHT 4

static void reduce_linear_generate(const struct coll_shape *shape, struct sched *s)
{
    const int64_t n = shape->count;
    const struct loc in = shape_input(shape), out = loc_make(BUF_RECV, 0);
    if (shape->rank != shape->root) {
        sched_send(s, shape->root, in, n);
        return;
    }
    if (copy_if_single_rank(shape, s, in, out, n))
        return;
    /* In place, the root's contribution is in the result buffer, so partial sums are in temporary memory. */
    struct loc sum = shape->in_place ? sched_temp(s, n) : out;
    struct loc slots = sched_temp(s, IN_FLIGHT * n);
    const int last = shape->size - 1;
    if (last == shape->root)
        sched_copy(s, in, sum, n);
    else
        sched_recv(s, last, sum, n);
    for (int first = last - 1; first >= 0; first -= IN_FLIGHT) {
        int end = first - IN_FLIGHT < -1 ? -1 : first - IN_FLIGHT;
        for (int r = first; r > end; r--)
            if (r != shape->root)
                sched_recv(s, r, loc_add(slots, (first - r) * n), n);
        sched_fence(s);
        for (int r = first; r > end; r--)
            sched_reduce(s, r == shape->root ? in : loc_add(slots, (first - r) * n), sum, sum, n);
    }
    sched_copy(s, sum, out, n);
}

COLL_ALGORITHM(reduce_linear, .name = "linear", .kind = COLL_REDUCE, .generate = reduce_linear_generate,
               .doc = "the root combines everyone's vector in rank order");
