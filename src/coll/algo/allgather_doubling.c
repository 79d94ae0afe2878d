/* allgather_doubling.c: partners at distance 1, 2, 4, ... exchange all blocks gathered so far, in place.
 * Powers of two only.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void allgather_doubling_generate(const struct coll_shape *shape, struct sched *s)
{
    const int rank = shape->rank;
    if (!shape->in_place)
        sched_copy(s, loc_make(BUF_SEND, 0), loc_make(BUF_RECV, rank), 1);
    for (int mask = 1; mask < shape->size; mask *= 2) {
        int partner = rank ^ mask, mine = rank & ~(mask - 1), theirs = partner & ~(mask - 1);
        sched_recv(s, partner, loc_make(BUF_RECV, theirs), mask);
        sched_send(s, partner, loc_make(BUF_RECV, mine), mask);
        sched_fence(s);
    }
}

COLL_ALGORITHM(allgather_doubling, .name = "recursive_doubling", .kind = COLL_ALLGATHER,
               .needs = NEED_ADJACENT | NEED_POW2, .generate = allgather_doubling_generate,
               .doc = "exchange all at distances 1, 2, 4, ...; powers of two");
