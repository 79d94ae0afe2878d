/* rooted_linear.c: gather: everyone sends its block to the root; scatter: the root sends everyone its block.
 * Both use the same steps with sends and receives exchanged. Serves gatherv and scatterv too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void rooted_linear_generate(const struct coll_shape *shape, struct sched *s)
{
    const bool gather = shape->kind == COLL_GATHER;
    const struct loc own = loc_make(gather ? BUF_SEND : BUF_RECV, 0);
    const enum sched_buf all = gather ? BUF_RECV : BUF_SEND;
    if (shape->rank != shape->root) {
        sched_move(s, !gather, shape->root, own, 1);
        return;
    }
    int started = 0;
    for (int k = 1; k < shape->size; k++) {
        int r = ring(shape->rank + k, shape->size);
        if (shape->window > 0 && started++ % shape->window == 0)
            sched_fence(s);
        sched_move(s, gather, r, loc_make(all, r), 1);
    }
    if (!shape->in_place)
        copy_root_block(shape, s, gather);
}

COLL_ALGORITHM(gather_linear, .name = "linear", .kind = COLL_GATHER, .window = true,
               .generate = rooted_linear_generate, .doc = "everyone sends to the root");
COLL_ALGORITHM(scatter_linear, .name = "linear", .kind = COLL_SCATTER, .window = true,
               .generate = rooted_linear_generate, .doc = "the root sends to everyone");

static void rooted_inter_generate(const struct coll_shape *shape, struct sched *s)
{
    const bool gather = shape->kind == COLL_GATHER;
    if (shape->root == ROOT_SELF)
        for (int r = 0; r < shape->remote_size; r++)
            sched_move(s, gather, PEER_REMOTE(r), loc_make(gather ? BUF_RECV : BUF_SEND, r), 1);
    else if (shape->root != ROOT_NONE)
        sched_move(s, !gather, PEER_REMOTE(shape->root), loc_make(gather ? BUF_SEND : BUF_RECV, 0), 1);
}

COLL_ALGORITHM(gather_inter, .name = "inter", .kind = COLL_GATHER, .needs = NEED_INTER,
               .generate = rooted_inter_generate, .doc = "everyone in the other group sends to the root");
COLL_ALGORITHM(scatter_inter, .name = "inter", .kind = COLL_SCATTER, .needs = NEED_INTER,
               .generate = rooted_inter_generate, .doc = "the root sends to everyone in the other group");
