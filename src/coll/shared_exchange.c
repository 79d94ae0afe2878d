/* shared_exchange.c: allgather and alltoall of short blocks through a shared block: everyone lays down what
 * it has, all meet, everyone picks up what is for it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/copy.h"
#include "coll/shared.h"

/* Block i of a side, into packed bytes and out of them. */
static void lay_down(const struct coll_side *side, int first, int blocks, char *slot)
{
    const MPI_Count n = side->count * blocks;
    const void *from = ptr_add(side->buf, first * side->count * side->type->extent);
    if (side->type->contiguous)
        copy_bytes(slot, from, (size_t)(n * side->type->size));
    else
        dt_pack_all(side->type, n, from, slot);
}

static void pick_up(const struct coll_side *side, int block, const char *slot)
{
    const size_t bytes = (size_t)(side->count * side->type->size);
    void *to = ptr_add(side->buf, block * side->count * side->type->extent);
    if (side->type->contiguous)
        copy_bytes(to, slot, bytes);
    else
        dt_unpack_all(side->type, side->count, to, slot, bytes);
}

void shared_allgather(struct shared *b, const struct coll_args *args, size_t bytes)
{
    const int me = b->comm->rank;
    const uint64_t step = shared_begin(b, bytes);
    char *mine = shared_slot(b, me, step, bytes);
    if (args->in_place)
        lay_down(&args->recv, me, 1, mine);
    else
        lay_down(&args->send, 0, 1, mine);
    if (!shared_meet(b, step))
        return;
    for (int r = 0; r < b->comm->size; r++)
        if (r != me || !args->in_place)
            pick_up(&args->recv, r, shared_slot(b, r, step, bytes));
}

void shared_alltoall(struct shared *b, const struct coll_args *args, size_t bytes)
{
    const int me = b->comm->rank, size = b->comm->size;
    const size_t all = bytes * (size_t)size;
    const uint64_t step = shared_begin(b, all);
    lay_down(args->in_place ? &args->recv : &args->send, 0, size, shared_slot(b, me, step, all));
    if (!shared_meet(b, step))
        return;
    for (int k = 0; k < size; k++) {
        int r = (me + k) % size;
        pick_up(&args->recv, r, shared_slot(b, r, step, all) + (size_t)me * bytes);
    }
}
