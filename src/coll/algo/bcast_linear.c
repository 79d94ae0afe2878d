/* bcast_linear.c: the root sends to everyone.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void bcast_linear_generate(const struct coll_shape *shape, struct sched *s)
{
    struct loc data = loc_make(BUF_RECV, 0);
    if (shape->rank != shape->root) {
        sched_recv(s, shape->root, data, shape->count);
        return;
    }
    for (int k = 1; k < shape->size; k++)
        sched_send(s, ring(shape->root + k, shape->size), data, shape->count);
}

COLL_ALGORITHM(bcast_linear, .name = "linear", .kind = COLL_BCAST, .generate = bcast_linear_generate,
               .doc = "the root sends to everyone");
