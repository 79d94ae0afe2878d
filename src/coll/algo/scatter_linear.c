/* scatter_linear.c: the root sends everyone its block. Serves scatterv too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/phases.h"

static void generate(const struct coll_shape *shape, struct sched *s)
{
    if (shape->rank != shape->root) {
        sched_recv(s, shape->root, loc_make(BUF_RECV, 0), 1);
        return;
    }
    int started = 0;
    for (int k = 1; k < shape->size; k++) {
        int r = ring(shape->rank + k, shape->size);
        if (shape->window > 0 && started++ % shape->window == 0)
            sched_fence(s);
        sched_send(s, r, loc_make(BUF_SEND, r), 1);
    }
    if (!shape->in_place)
        sched_copy(s, loc_make(BUF_SEND, shape->rank), loc_make(BUF_RECV, 0), 1);
}

COLL_ALGORITHM(scatter_linear, .name = "linear", .kind = COLL_SCATTER, .window = true, .generate = generate,
               .doc = "the root sends to everyone");

static void generate_inter(const struct coll_shape *shape, struct sched *s)
{
    if (shape->root == ROOT_SELF)
        for (int r = 0; r < shape->remote_size; r++)
            sched_send(s, PEER_REMOTE(r), loc_make(BUF_SEND, r), 1);
    else if (shape->root != ROOT_NONE)
        sched_recv(s, PEER_REMOTE(shape->root), loc_make(BUF_RECV, 0), 1);
}

COLL_ALGORITHM(scatter_inter, .name = "inter", .kind = COLL_SCATTER, .needs = NEED_INTER,
               .generate = generate_inter, .doc = "the root sends to everyone in the other group");
