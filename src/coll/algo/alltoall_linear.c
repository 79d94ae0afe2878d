/* alltoall_linear.c: everyone sends to everyone, a window of messages at a time, starting with the next rank
 * so that the load is spread. Serves alltoallv and alltoallw too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/alltoall.h"

static void alltoall_linear_generate(const struct coll_shape *shape, struct sched *s)
{
    const int size = shape->size, rank = shape->rank;
    struct loc in = alltoall_input(shape, s);
    for (int k = 1; k < size; k++) {
        int from = ring(rank - k, size), to = ring(rank + k, size);
        if (shape->window > 0 && (k - 1) % shape->window == 0)
            sched_fence(s);
        sched_recv(s, from, loc_make(BUF_RECV, from), 1);
        sched_send(s, to, loc_add(in, to), 1);
    }
    if (!shape->in_place)
        sched_copy(s, loc_add(in, rank), loc_make(BUF_RECV, rank), 1);
}

COLL_ALGORITHM(alltoall_linear, .name = "linear", .kind = COLL_ALLTOALL, .window = true,
               .generate = alltoall_linear_generate, .doc = "everyone sends to everyone, a window at a time");

static void generate_inter(const struct coll_shape *shape, struct sched *s)
{
    for (int k = 0; k < shape->remote_size; k++) {
        int r = ring(shape->rank + k, shape->remote_size);
        sched_recv(s, PEER_REMOTE(r), loc_make(BUF_RECV, r), 1);
        sched_send(s, PEER_REMOTE(r), loc_make(BUF_SEND, r), 1);
    }
}

COLL_ALGORITHM(alltoall_inter, .name = "inter", .kind = COLL_ALLTOALL, .needs = NEED_INTER,
               .generate = generate_inter, .doc = "everyone sends to everyone in the other group");
