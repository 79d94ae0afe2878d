/* shared.c: the block of shared memory of a communicator: agreeing on it, and giving it back; and which calls
 * go through it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/shared.h"

#include <stdlib.h>

#include "base/counter.h"
#include "coll/exec.h"

static COUNTER(runs, "coll_shared", "Collectives done through the node's shared memory.");

#define BIG_NONE    UINT64_MAX
#define OFFSET_NONE UINT64_MAX

COLL_ALGORITHM(barrier_shared, .name = "shared", .kind = COLL_BARRIER, .needs = NEED_NODE | NEED_TWO,
               .doc = "flags in memory that all ranks of the node share");
COLL_ALGORITHM(bcast_shared, .name = "shared", .kind = COLL_BCAST, .needs = NEED_NODE | NEED_TWO,
               .doc = "pieces through memory that all ranks of the node share");
COLL_ALGORITHM(reduce_shared, .name = "shared", .kind = COLL_REDUCE, .needs = NEED_NODE | NEED_TWO,
               .doc = "the root combines pieces in shared memory, in rank order");
COLL_ALGORITHM(allreduce_shared, .name = "shared", .kind = COLL_ALLREDUCE, .needs = NEED_NODE | NEED_TWO,
               .doc = "everyone combines pieces in shared memory, in rank order");
COLL_ALGORITHM(allgather_shared, .name = "shared", .kind = COLL_ALLGATHER,
               .needs = NEED_NODE | NEED_TWO | NEED_ADJACENT,
               .doc = "short blocks laid down in shared memory");
COLL_ALGORITHM(alltoall_shared, .name = "shared", .kind = COLL_ALLTOALL,
               .needs = NEED_NODE | NEED_TWO | NEED_ADJACENT,
               .doc = "short blocks laid down in shared memory");

static size_t block_length(int size)
{
    return sizeof(struct shared_head) + (size_t)size * sizeof(struct shared_rank);
}

/* Rank 0 allocates and tells the others where, or that there is nothing. */
static int agree(struct comm *c, uint64_t *offset)
{
    struct p2p *p2p = c->proc->p2p;
    if (c->rank != 0)
        return p2p_recv(p2p, offset, sizeof(*offset), byte_type(), comm_coll_envelope(c, 0, COLL_TAG_AGREE),
                        NULL);
    if (net_area_alloc(c->proc->net, block_length(c->size), offset) != 0)
        *offset = OFFSET_NONE;
    if (*offset != OFFSET_NONE) {
        struct shared_head *head = (struct shared_head *)(c->proc->net->area + *offset);
        head->big_size = c->proc->net->oversubscribed ? 65536 : 16384;
        atomic_store_explicit(&head->users, (uint32_t)c->size, memory_order_release);
    }
    for (int r = 1; r < c->size; r++) {
        struct peer *peer;
        int rc = comm_peer(c, r, &peer);
        if (!rc)
            rc = p2p_send(p2p, offset, sizeof(*offset), byte_type(), peer,
                          comm_coll_envelope(c, 0, COLL_TAG_AGREE), SEND_STANDARD);
        if (rc)
            return rc;
    }
    return 0;
}

struct shared *shared_open(struct coll_state *state)
{
    struct comm *c = state->comm;
    if (state->shared_tried)
        return state->shared;
    state->shared_tried = true;
    if (c->size > SHARED_RANKS_MAX)
        return NULL;
    struct shared *b = calloc(1, sizeof(*b));
    CHECK(b != NULL, "out of memory for a communicator's shared block");
    uint64_t offset = OFFSET_NONE;
    if (agree(c, &offset) != 0 || offset == OFFSET_NONE) {
        free(b);
        return NULL;
    }
    b->comm = c;
    b->offset = offset;
    b->length = block_length(c->size);
    b->head = (struct shared_head *)(c->proc->net->area + offset);
    return state->shared = b;
}

static bool big_answered(void *arg)
{
    struct shared_head *head = arg;
    return atomic_load_explicit(&head->big, memory_order_acquire) != 0;
}

bool shared_open_big(struct shared *b)
{
    struct shared_head *head = b->head;
    struct net *net = b->comm->proc->net;
    if (likely(b->big != NULL))
        return true;
    if (b->no_big)
        return false;
    size_t length = (size_t)b->comm->size * SHARED_DEPTH_BIG * head->big_size;
    if (b->comm->rank == 0) {
        uint64_t offset;
        bool got = length <= SHARED_AREA_MAX && net_area_alloc(net, length, &offset) == 0;
        atomic_store_explicit(&head->big, got ? offset + 1 : BIG_NONE, memory_order_release);
        shared_wake_all(b);
    }
    struct net_waiter w = {.ready = big_answered, .arg = head};
    while (!big_answered(head))
        net_wait_step(net, &w);
    uint64_t answer = atomic_load_explicit(&head->big, memory_order_acquire);
    b->no_big = answer == BIG_NONE;
    if (!b->no_big)
        b->big = net->area + (answer - 1);
    return !b->no_big;
}

/* Whoever leaves last gives the memory back. */
void shared_close(struct coll_state *state)
{
    struct shared *b = state->shared;
    if (!b)
        return;
    struct net *net = state->comm->proc->net;
    struct shared_head *head = b->head;
    if (net->area && atomic_fetch_sub_explicit(&head->users, 1, memory_order_acq_rel) == 1) {
        uint64_t big = atomic_load_explicit(&head->big, memory_order_acquire);
        if (big != 0 && big != BIG_NONE)
            net_area_free(net, big - 1, (size_t)state->comm->size * SHARED_DEPTH_BIG * head->big_size);
        net_area_free(net, b->offset, b->length);
    }
    free(b);
    state->shared = NULL;
}

/* Whole elements of at most one slot; short vectors need no big slots. */
size_t shared_piece(struct shared *b, uint64_t total, MPI_Count element)
{
    size_t slot = SHARED_SMALL;
    if (total > SHARED_SMALL) {
        if (!shared_open_big(b))
            return 0;
        slot = b->head->big_size;
    }
    return (uint64_t)element > slot ? 0 : slot / (size_t)element * (size_t)element;
}

/* What a rank puts into shared memory at a time; 0 when the call does not fit. */
static size_t piece_of(struct shared *b, const struct coll_args *args, uint64_t bytes)
{
    switch (args->kind) {
    case COLL_BCAST:
        return shared_piece(b, bytes, 1);
    case COLL_REDUCE:
    case COLL_ALLREDUCE:
        return shared_piece(b, bytes, args->send.type->size);
    case COLL_ALLGATHER:
        return shared_piece(b, bytes, 1) >= bytes ? bytes : 0;
    default:
        return shared_piece(b, bytes * (uint64_t)b->comm->size, 1) >= bytes * (uint64_t)b->comm->size ? bytes
                                                                                                      : 0;
    }
}

static int move(struct shared *b, const struct coll_args *args, size_t piece)
{
    switch (args->kind) {
    case COLL_BCAST:
        shared_bcast(b, args, piece);
        return 0;
    case COLL_REDUCE:
        return shared_reduce(b, args, piece);
    case COLL_ALLREDUCE:
        return shared_allreduce(b, args, piece);
    case COLL_ALLGATHER:
        shared_allgather(b, args, piece);
        return 0;
    default:
        shared_alltoall(b, args, piece);
        return 0;
    }
}

bool shared_run(const struct coll_args *args, struct coll_state *state, const struct call *call, int *rc)
{
    struct shared *b = state->shared;
    size_t piece = 0;
    *rc = 0;
    if (unlikely(!b) && !(b = shared_open(state)))
        return false;
    counter_add(&runs, 1);
    shared_enter(b, args->kind, args->root, call->where.bytes);
    if (args->kind == COLL_BARRIER) {
        shared_barrier(b);
    } else if (call->where.bytes != 0) {
        piece = piece_of(b, args, call->where.bytes);
        if (piece == 0)
            return false;
        *rc = move(b, args, piece);
    }
    if (unlikely(b->stranger))
        *rc = shared_mismatch(b);
    return true;
}
