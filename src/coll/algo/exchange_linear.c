/* exchange_linear.c: allgather: every rank sends its block to every rank; alltoall: every rank sends each
 * rank another block. At most `window` messages are in flight at a time. Each rank starts with the next rank,
 * so that the senders do not all start with the same receiver. On an intercommunicator the receivers are the
 * ranks of the other group. Serves the v and w variants too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/alltoall.h"

static void exchange_linear_generate(const struct coll_shape *shape, struct sched *s)
{
    const int size = shape->size, rank = shape->rank;
    const bool each = shape->kind == COLL_ALLTOALL;
    const struct loc in =
        each ? alltoall_input(shape, s) : loc_add(shape_input(shape), shape->in_place ? rank : 0);
    for (int k = 1; k < size; k++) {
        int from = ring(rank - k, size), to = ring(rank + k, size);
        if (shape->window > 0 && (k - 1) % shape->window == 0)
            sched_fence(s);
        sched_recv(s, from, loc_make(BUF_RECV, from), 1);
        sched_send(s, to, loc_add(in, each ? to : 0), 1);
    }
    if (!each || !shape->in_place)
        sched_copy(s, loc_add(in, each ? rank : 0), loc_make(BUF_RECV, rank), 1);
}

COLL_ALGORITHM(allgather_linear, .name = "linear", .kind = COLL_ALLGATHER, .window = true,
               .generate = exchange_linear_generate, .doc = "everyone sends to everyone");
COLL_ALGORITHM(alltoall_linear, .name = "linear", .kind = COLL_ALLTOALL, .window = true,
               .generate = exchange_linear_generate, .doc = "everyone sends to everyone, a window at a time");

static void exchange_inter_generate(const struct coll_shape *shape, struct sched *s)
{
    const bool each = shape->kind == COLL_ALLTOALL;
    for (int k = 0; k < shape->remote_size; k++) {
        int r = ring(shape->rank + k, shape->remote_size);
        sched_recv(s, PEER_REMOTE(r), loc_make(BUF_RECV, r), 1);
        sched_send(s, PEER_REMOTE(r), loc_make(BUF_SEND, each ? r : 0), 1);
    }
}

COLL_ALGORITHM(allgather_inter, .name = "inter", .kind = COLL_ALLGATHER, .needs = NEED_INTER,
               .generate = exchange_inter_generate, .doc = "everyone sends to everyone in the other group");
COLL_ALGORITHM(alltoall_inter, .name = "inter", .kind = COLL_ALLTOALL, .needs = NEED_INTER,
               .generate = exchange_inter_generate, .doc = "everyone sends to everyone in the other group");
