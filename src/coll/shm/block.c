/* block.c: allocates and frees the block of shared memory of a communicator.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/shm/block.h"

#include <stdlib.h>

#include "coll/shm/shared_transfer.h"

#define BIG_ALONE   8192  /* bytes of a big slot: small, so that sender and receiver copy at the same time */
#define BIG_CROWDED 32768 /* bytes of a big slot if ranks share processors: large, to need fewer switches */
#define OFFSET_NONE UINT64_MAX

COLL_ALGORITHM(barrier_shared, .name = "shared", .kind = COLL_BARRIER, .needs = NEED_NODE | NEED_TWO,
               .doc = "flags in memory that all ranks of the node share");
COLL_ALGORITHM(
    bcast_shared, .name = "shared", .kind = COLL_BCAST, .needs = NEED_NODE | NEED_TWO,
    .doc = "pieces through memory that all ranks of the node share, or read from the root's memory");
COLL_ALGORITHM(reduce_shared, .name = "shared", .kind = COLL_REDUCE, .needs = NEED_NODE | NEED_TWO,
               .doc = "the root combines pieces in shared memory, in rank order");
COLL_ALGORITHM(allreduce_shared, .name = "shared", .kind = COLL_ALLREDUCE, .needs = NEED_NODE | NEED_TWO,
               .doc = "everyone combines pieces in shared memory, in rank order");
COLL_ALGORITHM(allgather_shared, .name = "shared", .kind = COLL_ALLGATHER,
               .needs = NEED_NODE | NEED_TWO | NEED_ADJACENT,
               .doc = "blocks through shared memory, or read from each other's memory");
COLL_ALGORITHM(alltoall_shared, .name = "shared", .kind = COLL_ALLTOALL,
               .needs = NEED_NODE | NEED_TWO | NEED_ADJACENT,
               .doc = "blocks through shared memory, or read from each other's memory");
COLL_ALGORITHM(gather_shared, .name = "shared", .kind = COLL_GATHER,
               .needs = NEED_NODE | NEED_TWO | NEED_ADJACENT,
               .doc = "blocks through shared memory, or read from the senders' memory");
COLL_ALGORITHM(scatter_shared, .name = "shared", .kind = COLL_SCATTER,
               .needs = NEED_NODE | NEED_TWO | NEED_ADJACENT,
               .doc = "blocks through shared memory, or read from the root's memory");
COLL_ALGORITHM(reduce_scatter_shared, .name = "shared", .kind = COLL_REDUCE_SCATTER,
               .needs = NEED_NODE | NEED_TWO,
               .doc = "everyone combines its block in shared memory, in rank order");

static size_t block_length(int size)
{
    return sizeof(struct shared_head) + (size_t)size * sizeof(struct shared_rank);
}

/* Rank 0 allocates the block and sends its offset, or OFFSET_NONE, to the other ranks. */
static int block_agree_offset(struct comm *c, const struct coll_args *args, uint32_t number, uint64_t *offset)
{
    struct p2p *p2p = c->proc->p2p;
    const struct envelope env =
        comm_coll_envelope(c, 0, coll_make_tag(COLL_KIND_AGREE, 0, FORM_BLOCKING, number));
    struct coll_agreement agreement = {.offset = OFFSET_NONE, .kind = args->kind, .root = args->root};
    if (c->rank != 0) {
        int rc = p2p_recv(p2p, &agreement, sizeof(agreement), byte_type(), env, NULL);
        *offset = agreement.offset;
        return rc;
    }
    if (net_area_alloc(c->proc->net, block_length(c->size), &agreement.offset) != 0)
        agreement.offset = OFFSET_NONE;
    if (agreement.offset != OFFSET_NONE) {
        struct shared_head *head = (struct shared_head *)(c->proc->net->area + agreement.offset);
        head->big_size = c->proc->net->oversubscribed ? BIG_CROWDED : BIG_ALONE;
        atomic_store_explicit(&head->users, (uint32_t)c->size, memory_order_release);
    }
    *offset = agreement.offset;
    for (int r = 1; r < c->size; r++) {
        struct peer *peer;
        int rc = comm_get_peer(c, r, &peer);
        if (!rc)
            rc = p2p_send(p2p, &agreement, sizeof(agreement), byte_type(), peer, env, SEND_STANDARD);
        if (rc)
            return rc;
    }
    return 0;
}

struct shared *shared_open(struct coll_state *state, const struct coll_args *args, uint32_t number)
{
    struct comm *c = state->comm;
    state->shared_tried = true;
    if (c->size > SHARED_RANKS_MAX)
        return NULL;
    struct shared *b = calloc(1, sizeof(*b));
    CHECK_MEMORY(b != NULL, "a communicator's shared block");
    uint64_t offset = OFFSET_NONE;
    if (block_agree_offset(c, args, number, &offset) != 0 || offset == OFFSET_NONE) {
        free(b);
        return NULL;
    }
    b->comm = c;
    b->offset = offset;
    b->length = block_length(c->size);
    b->head = (struct shared_head *)(c->proc->net->area + offset);
    for (int r = 0; r < c->size; r++)
        b->bell[r] = net_bell_local(c->proc->net, group_job_rank(c->group, r));
    return state->shared = b;
}

struct shared_get {
    struct net_op op;
    int status;
};

static void block_read_completed(struct net_op *op, int status)
{
    container_of(op, struct shared_get, op)->status = status;
}

/* Detaches from the block; the last rank frees it. */
void shared_close(struct coll_state *state)
{
    struct shared *b = state->shared;
    if (!b)
        return;
    struct net *net = state->comm->proc->net;
    struct shared_head *head = b->head;
    if (net->area && atomic_fetch_sub_explicit(&head->users, 1, memory_order_acq_rel) == 1) {
        shared_close_big(b);
        net_area_free(net, b->offset, b->length);
    }
    shared_method_close(b);
    free(b->scratch);
    free(b);
    state->shared = NULL;
}

int shared_read(struct shared *b, int rank, void *to, uint64_t from, size_t len)
{
    struct shared_get get = {.op.done = block_read_completed};
    const struct net_key key = {{0}};
    struct peer *peer;
    int rc = comm_get_peer(b->comm, rank, &peer);
    if (!rc)
        rc = peer->ops->get(peer, to, NULL, from, &key, len, &get.op);
    return rc ? rc : get.status;
}

int shared_write(struct shared *b, int rank, uint64_t to, const void *from, size_t len)
{
    struct shared_get put = {.op.done = block_read_completed};
    const struct net_key key = {{0}};
    struct peer *peer;
    int rc = comm_get_peer(b->comm, rank, &peer);
    if (!rc && !peer->caps.put)
        rc = err_set(MPI_ERR_OTHER, "the memory of rank %d cannot be written", rank);
    if (!rc)
        rc = peer->ops->put(peer, from, NULL, to, &key, len, &put.op);
    return rc ? rc : put.status;
}

char *shared_scratch(struct shared *b)
{
    if (unlikely(!b->scratch)) {
        b->scratch = aligned_alloc(4096, 3 * SHARED_SCRATCH);
        CHECK_MEMORY(b->scratch != NULL, "the pieces of a collective");
    }
    return b->scratch;
}
