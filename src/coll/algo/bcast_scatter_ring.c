/* bcast_scatter_ring.c: the root scatters parts down a binomial tree, then an allgather round a ring follows:
 * for long messages no rank sends much more than the data once. Parts that a rank received for its subtree
 * are not sent to it again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

/* Returns the number of parts that rank `me` (counted from the root) has after the scatter. */
static int scatter_count_parts(int me, int size)
{
    int64_t low = me == 0 ? size : me & -me;
    return (int)(me + low < size ? low : size - me);
}

static void generate_scatter(const struct coll_shape *shape, struct sched *s, int me, struct loc data)
{
    const int size = shape->size;
    if (me != 0) {
        int64_t from = part_start(shape->count, size, me),
                to = part_start(shape->count, size, me + scatter_count_parts(me, size));
        sched_recv(s, ring(me - (me & -me) + shape->root, size), loc_add(data, from), to - from);
        sched_fence(s);
    }
    struct tree t = tree_binomial(shape->rank, size, shape->root);
    for (int c = t.nchildren - 1; c >= 0; c--) {
        int child = ring(t.child[c] - shape->root, size);
        int64_t from = part_start(shape->count, size, child);
        sched_send(s, t.child[c], loc_add(data, from),
                   part_start(shape->count, size, child + scatter_count_parts(child, size)) - from);
    }
    sched_fence(s);
}

static void bcast_scatter_ring_generate(const struct coll_shape *shape, struct sched *s)
{
    const int size = shape->size, me = ring(shape->rank - shape->root, size);
    const int left = ring(me - 1, size), right = ring(me + 1, size);
    struct loc data = loc_make(BUF_RECV, 0);
    generate_scatter(shape, s, me, data);
    for (int k = 0; k < size - 1; k++) {
        int out = ring(me - k, size), in = ring(me - k - 1, size),
            idle = ring_count_idle_rounds(out, in, shape->count);
        if (idle >= 0) {
            k += idle;
            continue;
        }
        if (in < me || in >= me + scatter_count_parts(me, size))
            sched_recv(s, ring(left + shape->root, size), loc_add(data, part_start(shape->count, size, in)),
                       part_size(shape->count, size, in));
        if (out < right || out >= right + scatter_count_parts(right, size))
            sched_send(s, ring(right + shape->root, size), loc_add(data, part_start(shape->count, size, out)),
                       part_size(shape->count, size, out));
        sched_fence(s);
    }
}

COLL_ALGORITHM(bcast_scatter_ring, .name = "scatter_ring", .kind = COLL_BCAST, .splits = true,
               .generate = bcast_scatter_ring_generate,
               .doc = "scatter down a binomial tree, then allgather round a ring");
