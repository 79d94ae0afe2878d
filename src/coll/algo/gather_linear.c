/* gather_linear.c: everyone sends its block to the root. Serves gatherv too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/phases.h"

static void generate(const struct coll_shape *shape, struct sched *s)
{
    if (shape->rank != shape->root) {
        sched_send(s, shape->root, loc_make(BUF_SEND, 0), 1);
        return;
    }
    int started = 0;
    for (int k = 1; k < shape->size; k++) {
        int r = ring(shape->rank + k, shape->size);
        if (shape->window > 0 && started++ % shape->window == 0)
            sched_fence(s);
        sched_recv(s, r, loc_make(BUF_RECV, r), 1);
    }
    if (!shape->in_place)
        sched_copy(s, loc_make(BUF_SEND, 0), loc_make(BUF_RECV, shape->rank), 1);
}

COLL_ALGORITHM(gather_linear, .name = "linear", .kind = COLL_GATHER, .window = true, .generate = generate,
               .doc = "everyone sends to the root");

static void generate_inter(const struct coll_shape *shape, struct sched *s)
{
    if (shape->root == ROOT_SELF)
        for (int r = 0; r < shape->remote_size; r++)
            sched_recv(s, PEER_REMOTE(r), loc_make(BUF_RECV, r), 1);
    else if (shape->root != ROOT_NONE)
        sched_send(s, PEER_REMOTE(shape->root), loc_make(BUF_SEND, 0), 1);
}

COLL_ALGORITHM(gather_inter, .name = "inter", .kind = COLL_GATHER, .needs = NEED_INTER,
               .generate = generate_inter, .doc = "everyone in the other group sends to the root");
