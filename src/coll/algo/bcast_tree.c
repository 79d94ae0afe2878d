/* bcast_binomial.c: down a binomial tree; in segments if a segment size is given.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void bcast_binomial_generate(const struct coll_shape *shape, struct sched *s)
{
    struct tree t = tree_binomial(shape->rank, shape->size, shape->root);
    tree_bcast(s, &t, loc_make(BUF_RECV, 0), shape->count, shape->segment);
}

COLL_ALGORITHM(bcast_binomial, .name = "binomial", .kind = COLL_BCAST, .segment = true,
               .generate = bcast_binomial_generate, .doc = "down a binomial tree");
