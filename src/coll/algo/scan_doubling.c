/* scan_doubling.c: partners at distance 1, 2, 4, ... exchange the sums of their ranges; a sum from a lower
 * rank is also added to the prefix. Scan and exscan, in log2(n) rounds; preserves the operand order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void scan_doubling_generate(const struct coll_shape *shape, struct sched *s)
{
    const int64_t n = shape->count;
    const bool inclusive = shape->kind == COLL_SCAN;
    const struct loc in = shape_input(shape), out = loc_make(BUF_RECV, 0);
    if (shape->size == 1) {
        if (inclusive)
            sched_copy(s, in, out, n);
        return;
    }
    struct partial sum = partial_start(shape, in, sched_temp(s, n), sched_temp(s, n));
    if (shape->in_place) { /* the prefix will overwrite the input */
        sched_copy(s, in, sum.buf[0], n);
        sum.at = 0;
    }
    bool have_prefix = false;
    for (int mask = 1; mask < shape->size; mask *= 2) {
        int partner = shape->rank ^ mask;
        if (partner >= shape->size)
            continue;
        struct loc theirs = partial_peer_data(&sum);
        sched_recv(s, partner, theirs, n);
        sched_send(s, partner, partial_own_data(&sum), n);
        sched_fence(s);
        if (partner < shape->rank) {
            if (have_prefix)
                sched_reduce(s, theirs, out, out, n);
            else if (inclusive)
                sched_reduce(s, theirs, in, out, n);
            else
                sched_copy(s, theirs, out, n);
            have_prefix = true;
        }
        partial_merge(s, &sum, partner > shape->rank, 0, n);
    }
    if (!have_prefix && inclusive)
        sched_copy(s, in, out, n);
}

COLL_ALGORITHM(scan_doubling, .name = "recursive_doubling", .kind = COLL_SCAN,
               .generate = scan_doubling_generate,
               .doc = "sums of ranges exchanged at distances 1, 2, 4, ...");
COLL_ALGORITHM(exscan_doubling, .name = "recursive_doubling", .kind = COLL_EXSCAN,
               .generate = scan_doubling_generate,
               .doc = "sums of ranges exchanged at distances 1, 2, 4, ...");
