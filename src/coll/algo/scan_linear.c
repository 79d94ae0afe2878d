/* scan_linear.c: each rank sends its prefix to the next rank. Scan and exscan.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void generate_scan(const struct coll_shape *shape, struct sched *s)
{
    const int64_t n = shape->count;
    const struct loc in = shape_input(shape), out = loc_make(BUF_RECV, 0);
    if (shape->rank == 0) {
        sched_copy(s, in, out, n);
    } else {
        struct loc before = sched_temp(s, n);
        sched_recv(s, shape->rank - 1, before, n);
        sched_fence(s);
        sched_reduce(s, before, in, out, n);
    }
    if (shape->rank + 1 < shape->size)
        sched_send(s, shape->rank + 1, out, n);
}

COLL_ALGORITHM(scan_linear, .name = "linear", .kind = COLL_SCAN, .generate = generate_scan,
               .doc = "from each rank to the next");

static void generate_exscan(const struct coll_shape *shape, struct sched *s)
{
    const int64_t n = shape->count;
    const bool last = shape->rank + 1 == shape->size;
    const struct loc in = shape_input(shape), out = loc_make(BUF_RECV, 0);
    if (shape->rank == 0) {
        if (!last)
            sched_send(s, 1, in, n);
        return;
    }
    struct loc before = shape->in_place && !last ? sched_temp(s, n) : out;
    sched_recv(s, shape->rank - 1, before, n);
    sched_fence(s);
    if (!last) {
        struct loc upto = sched_temp(s, n);
        sched_reduce(s, before, in, upto, n);
        sched_send(s, shape->rank + 1, upto, n);
    }
    sched_copy(s, before, out, n);
}

COLL_ALGORITHM(exscan_linear, .name = "linear", .kind = COLL_EXSCAN, .generate = generate_exscan,
               .doc = "from each rank to the next");
