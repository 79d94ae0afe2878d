/* allgather_neighbor.c: neighbour exchange: ranks exchange messages with their left and right neighbours in
 * turn and forward the two blocks received last. Half the rounds of a ring; even numbers of ranks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void neighbor_exchange(struct sched *s, int peer, int give, int take)
{
    for (int i = 0; i < 2; i++) {
        sched_recv(s, peer, loc_make(BUF_RECV, take + i), 1);
        sched_send(s, peer, loc_make(BUF_RECV, give + i), 1);
    }
    sched_fence(s);
}

static void allgather_neighbor_generate(const struct coll_shape *shape, struct sched *s)
{
    const int size = shape->size, rank = shape->rank;
    const bool even = rank % 2 == 0;
    const int first = ring(even ? rank + 1 : rank - 1, size), second = ring(even ? rank - 1 : rank + 1, size);
    if (!shape->in_place)
        sched_copy(s, loc_make(BUF_SEND, 0), loc_make(BUF_RECV, rank), 1);
    sched_recv(s, first, loc_make(BUF_RECV, first), 1);
    sched_send(s, first, loc_make(BUF_RECV, rank), 1);
    sched_fence(s);
    /* Blocks are exchanged in pairs that start at even ranks. Each pair from the second partner is 2 ranks
     * further away in its direction than the one before. */
    int pair = rank - rank % 2, give = pair;
    int from_second = pair, from_first = pair, away = even ? -2 : 2;
    for (int k = 1; k < size / 2; k++) {
        int take;
        if (k % 2 == 1)
            take = from_second = ring(from_second + away, size);
        else
            take = from_first = ring(from_first - away, size);
        neighbor_exchange(s, k % 2 == 1 ? second : first, give, take);
        give = take;
    }
}

COLL_ALGORITHM(allgather_neighbor, .name = "neighbor_exchange", .kind = COLL_ALLGATHER, .needs = NEED_EVEN,
               .generate = allgather_neighbor_generate,
               .doc = "pairs of blocks between left and right neighbours; even numbers of ranks");
