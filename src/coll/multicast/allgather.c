/* allgather.c: MPI_Allgather and MPI_Allreduce by multicast [Liu04 7]. Allgather: the leader of each node
 * multicasts the blocks of its ranks, so that every block crosses the network once and no leader waits for
 * another. Allreduce: the result of a reduction to rank 0 is multicast. Only for blocking calls; other calls
 * use schedules.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "coll/multicast/multicast_internal.h"

static COUNTER(gathers, "coll_allgather_multicast", "Calls of MPI_Allgather between nodes by multicast.");
static COUNTER(reductions, "coll_allreduce_multicast",
               "Calls of MPI_Allreduce between nodes whose result was sent by multicast.");

COLL_ALGORITHM(allgather_multicast, .name = "multicast", .kind = COLL_ALLGATHER,
               .needs = NEED_NODES | NEED_TWO | NEED_ADJACENT,
               .doc =
                   "the leader of each node multicasts its ranks' blocks, shared memory within nodes; blocks "
                   "that receivers might have no buffers for go as without multicast");
COLL_ALGORITHM(allreduce_multicast, .name = "multicast", .kind = COLL_ALLREDUCE,
               .needs = NEED_NODES | NEED_TWO, .doc = "a reduction to rank 0, whose result is multicast");

/* ---- allgather ---- */

struct gathering {
    struct multicast *m;
    struct comm *comm;
    struct list link;     /* in multicast.runs */
    char *all;            /* all blocks, ordered by node and by rank in the node */
    size_t block;         /* bytes of one block */
    size_t *start;        /* by member: offset of its blocks in `all`; one more entry for the end */
    uint32_t members, me; /* number of members (nodes); index of this node */
    struct net_group_want *want;
    size_t at; /* bytes of this node's blocks that were sent */
};

static size_t member_bytes(const struct gathering *g, uint32_t member)
{
    return g->start[member + 1] - g->start[member];
}

static char *rank_block(const struct gathering *g, int rank)
{
    return g->all + g->start[g->m->member_of[rank]] + (size_t)g->m->place_of[rank] * g->block;
}

static void gathering_free(struct gathering *g)
{
    free(g->all);
    free(g->start);
    free(g->want);
}

static int gathering_make(struct gathering *g, struct coll_state *state, struct multicast *m, size_t block)
{
    struct comm *c = state->comm;
    *g = (struct gathering){.m = m, .comm = c, .block = block, .me = m->member_of[c->rank]};
    for (int r = 0; r < c->size; r++)
        g->members = MAX(g->members, m->member_of[r] + 1);
    g->all = malloc((size_t)c->size * block);
    g->start = calloc(g->members + 1, sizeof(*g->start));
    g->want = calloc(g->members, sizeof(*g->want));
    if (!g->all || !g->start || !g->want) {
        gathering_free(g);
        return err_set(MPI_ERR_NO_MEM, "out of memory for %d blocks of %zu bytes", c->size, block);
    }
    for (int r = 0; r < c->size; r++)
        g->start[m->member_of[r] + 1] += block;
    for (uint32_t i = 0; i < g->members; i++)
        g->start[i + 1] += g->start[i];
    return 0;
}

/* Gathers the node's blocks at the leader, the first rank of its node. */
static int gather_within_node(struct gathering *g, char *mine)
{
    struct comm *node = g->m->node;
    char *blocks = g->all + g->start[g->me];
    const struct coll_args args = {.kind = COLL_GATHER,
                                   .name = "MPI_Allgather",
                                   .comm = node,
                                   .send = make_bytes_side(mine, g->block),
                                   .recv = make_bytes_side(blocks, g->block)};
    if (node->size > 1)
        return coll_run(&args);
    memcpy(blocks, mine, g->block);
    return 0;
}

static int broadcast_to_node(struct gathering *g)
{
    const struct coll_args args = {.kind = COLL_BCAST,
                                   .name = "MPI_Allgather",
                                   .comm = g->m->node,
                                   .recv = make_bytes_side(g->all, g->start[g->members])};
    return g->m->node->size > 1 ? coll_run(&args) : 0;
}

static bool is_my_turn(void *arg)
{
    const struct gathering *g = arg;
    return list_first(&g->m->runs) == &g->link;
}

static bool has_all_blocks(const struct gathering *g)
{
    for (uint32_t i = 0; i < g->members; i++)
        if (i != g->me && !g->want[i].complete)
            return false;
    return true;
}

static bool can_advance(void *arg)
{
    const struct gathering *g = arg;
    const bool sends = g->at < member_bytes(g, g->me);
    return sends ? (!g->m->sending || g->m->sending == g) && net_group_can_send(g->m->group)
                 : has_all_blocks(g);
}

/* Sends more of this node's blocks. True if all have been put into the send window. */
static bool gathering_is_sent(struct gathering *g)
{
    struct multicast *m = g->m;
    const size_t bytes = member_bytes(g, g->me);
    if (g->at == bytes)
        return true;
    if (m->sending && m->sending != g)
        return false;
    g->at += net_group_send(m->group, 0, g->all + g->start[g->me], g->at, bytes);
    m->sending = g->at == bytes ? NULL : g;
    return g->at == bytes;
}

/* Waits until done(g), which also advances the call. ready: true if done() can make progress. */
static void wait_until(struct gathering *g, bool (*ready)(void *), bool (*done)(void *))
{
    struct net *net = g->comm->proc->net;
    struct net_waiter w = {.ready = ready, .arg = g, .awaited_kind = NET_MEMBERS, .awaited = g->comm};
    while (!done(g))
        net_wait_step(net, &w);
    net_wait_end(net, &w);
}

static bool is_exchanged(void *g)
{
    return gathering_is_sent(g) && has_all_blocks(g);
}

static int exchange_between_nodes(struct gathering *g)
{
    int rc = 0;
    if (!g->m->group)
        return 0;
    for (uint32_t i = 0; i < g->members; i++) {
        g->want[i] = (struct net_group_want){
            .from = i, .message = g->all + g->start[i], .length = member_bytes(g, i), .complete = i == g->me};
        if (i != g->me)
            net_group_post_receive(g->m->group, &g->want[i]);
    }
    wait_until(g, can_advance, is_exchanged);
    for (uint32_t i = 0; i < g->members && !rc; i++)
        if (i != g->me && g->want[i].total != g->want[i].length)
            rc = err_set(MPI_ERR_TRUNCATE,
                         "an allgather of %zu bytes from a node was called for %zu bytes here",
                         g->want[i].total, g->want[i].length);
    return rc;
}

/* True if the receive buffers suffice for all leaders to send at once; the same at all ranks. */
static bool gathering_fits(const struct gathering *g)
{
    size_t packets = 0;
    for (uint32_t i = 0; i < g->members; i++)
        packets += (member_bytes(g, i) + g->m->payload - 1) / g->m->payload;
    return packets <= g->m->burst;
}

bool multicast_allgather(const struct call *call, int *rc)
{
    const struct coll_args *args = call->args;
    struct coll_state *state = call->state;
    const struct coll_choice choice = multicast_preset();
    const struct coll_side *out = &args->recv;
    const size_t block = call->where.bytes, stride = (size_t)(out->count * out->type->extent);
    struct multicast *m = multicast_get(state, block, &choice, true, rc);
    struct comm *c = args->comm;
    struct gathering g;
    if (!m || (*rc = gathering_make(&g, state, m, block)) != 0)
        return *rc != 0;
    if (!gathering_fits(&g)) {
        gathering_free(&g);
        return false;
    }
    char *mine = rank_block(&g, c->rank);
    coll_number_call(state, args, FORM_BLOCKING, COLL_PAST_OTHER);
    if (args->in_place)
        dt_pack_all(out->type, out->count, (char *)out->buf + (size_t)c->rank * stride, mine);
    else
        dt_pack_all(args->send.type, args->send.count, args->send.buf, mine);
    list_append(&m->runs, &g.link);
    /* the calls within the node must also run in the same order at all ranks */
    wait_until(&g, is_my_turn, is_my_turn);
    *rc = gather_within_node(&g, mine);
    *rc = *rc ? *rc : exchange_between_nodes(&g);
    *rc = *rc ? *rc : broadcast_to_node(&g);
    list_remove(&g.link);
    for (int r = 0; r < c->size && !*rc; r++)
        dt_unpack_all(out->type, out->count, (char *)out->buf + (size_t)r * stride, rank_block(&g, r), block);
    counter_add(&gathers, 1);
    gathering_free(&g);
    return true;
}

/* ---- allreduce ---- */

bool multicast_allreduce(const struct call *call, int *rc)
{
    const struct coll_args *args = call->args;
    struct coll_state *state = call->state;
    const struct coll_choice choice = multicast_preset();
    if (!multicast_get(state, call->where.bytes, &choice, true, rc))
        return *rc != 0;
    struct coll_args reduction = *args;
    reduction.kind = COLL_REDUCE;
    reduction.root = 0;
    if (args->in_place && args->comm->rank != 0) {
        reduction.send = args->recv;
        reduction.in_place = false;
    }
    *rc = coll_run(&reduction);
    if (*rc)
        return true;
    const struct coll_args result = {
        .kind = COLL_BCAST, .name = args->name, .comm = args->comm, .recv = args->recv};
    struct call half;
    *rc = call_make(&half, &result, state, FORM_BLOCKING);
    if (*rc)
        return true;
    multicast_bcast(&half, &choice, NULL, rc);
    call_free(&half);
    counter_add(&reductions, 1);
    return true;
}
