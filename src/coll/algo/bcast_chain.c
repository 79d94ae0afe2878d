/* bcast_chain.c: from each rank to the next, in segments: for long messages every link works all the time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void bcast_chain_generate(const struct coll_shape *shape, struct sched *s)
{
    struct tree t = tree_chain(shape->rank, shape->size, shape->root);
    tree_bcast(s, &t, loc_make(BUF_RECV, 0), shape->count, shape->segment);
}

COLL_ALGORITHM(bcast_chain, .name = "chain", .kind = COLL_BCAST, .segment = true,
               .generate = bcast_chain_generate, .doc = "pipelined along a chain of ranks");
