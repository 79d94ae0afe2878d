/* allgather_linear.c: everyone sends its block to everyone; on an intercommunicator, to everyone in the other
 * group.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void allgather_linear_generate(const struct coll_shape *shape, struct sched *s)
{
    const int size = shape->size, rank = shape->rank;
    struct loc own = shape->in_place ? loc_make(BUF_RECV, rank) : loc_make(BUF_SEND, 0);
    for (int k = 1; k < size; k++) {
        int from = ring(rank - k, size), to = ring(rank + k, size);
        if (shape->window > 0 && (k - 1) % shape->window == 0)
            sched_fence(s);
        sched_recv(s, from, loc_make(BUF_RECV, from), 1);
        sched_send(s, to, own, 1);
    }
    sched_copy(s, own, loc_make(BUF_RECV, rank), 1);
}

COLL_ALGORITHM(allgather_linear, .name = "linear", .kind = COLL_ALLGATHER, .window = true,
               .generate = allgather_linear_generate, .doc = "everyone sends to everyone");

/* Every rank starts with a partner derived from its own rank, so that no rank is the first partner of all. */
static void generate_inter(const struct coll_shape *shape, struct sched *s)
{
    for (int k = 0; k < shape->remote_size; k++) {
        int r = ring(shape->rank + k, shape->remote_size);
        sched_recv(s, PEER_REMOTE(r), loc_make(BUF_RECV, r), 1);
        sched_send(s, PEER_REMOTE(r), loc_make(BUF_SEND, 0), 1);
    }
}

COLL_ALGORITHM(allgather_inter, .name = "inter", .kind = COLL_ALLGATHER, .needs = NEED_INTER,
               .generate = generate_inter, .doc = "everyone sends to everyone in the other group");
