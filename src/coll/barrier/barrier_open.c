/* barrier_open.c: opens the barrier between nodes of a communicator: leaders, their partners, and the memory
 * of flags that partners set. Registering memory takes as long as hundreds of barriers, so it is done once,
 * and only for communicators that call barriers repeatedly.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/log.h"
#include "boot/boot.h"
#include "coll/barrier/barrier_internal.h"

#define FLAGS_SIZE  (HBARRIER_PARTNERS * HBARRIER_LANES)
#define MEMORY_SIZE (FLAGS_SIZE + HBARRIER_LANES * sizeof(uint64_t))
#define BLOCK_NONE  UINT64_MAX
/* Limit of leaders with METHOD_COUNTER: all partners must fit in HBARRIER_PARTNERS. */
#define COUNTER_LEADERS 96

static COUNTER(no_group, "coll_switch_full",
               "Communicators whose barriers are not done by the switch or the barrier network, because all "
               "their groups are in use.");

COLL_ALGORITHM(barrier_switch, .name = "switch", .kind = COLL_BARRIER, .needs = NEED_NODES | NEED_TWO,
               .doc = "flags in shared memory within a node; between nodes the barrier unit of the switch, "
                      "where the network "
                      "has one, else as rdma");
COLL_ALGORITHM(barrier_wires, .name = "wires", .kind = COLL_BARRIER, .needs = NEED_NODES | NEED_TWO,
               .doc =
                   "flags in shared memory within a node; between nodes the two wires that a barrier network "
                   "gives each, where there is one, for MPI_COMM_WORLD; else as rdma");
COLL_ALGORITHM(barrier_rdma, .name = "rdma", .kind = COLL_BARRIER, .needs = NEED_NODES | NEED_TWO,
               .parameter = {{"n", 1, 8, 1}},
               .doc = "flags in shared memory within a node; between nodes dissemination with n partners in "
                      "each round, by RDMA writes into memory that is polled. Chosen by a rule where ranks "
                      "share processors, it uses the barrier unit of the switch instead, or messages");

static uint32_t node_of_rank(const struct comm *c, int rank)
{
    return c->proc->boot->node_of[group_job_rank(c->group, rank)];
}

COLL_ALGORITHM(barrier_rdma_pairs, .name = "rdma_pairwise", .kind = COLL_BARRIER,
               .needs = NEED_NODES | NEED_TWO,
               .doc = "as rdma, but pairwise exchange with recursive doubling");
COLL_ALGORITHM(
    barrier_rdma_counter, .name = "rdma_counter", .kind = COLL_BARRIER, .needs = NEED_NODES | NEED_TWO,
    .doc = "flags in shared memory within a node; adapters add 1 to a counter of the first node "
           "(fetch-and-add), which then releases the others by RDMA writes; as rdma where adapters "
           "have no atomics, and with more than 96 nodes");

/* Finds the leaders, in the order of their ranks, and the ranks of this node. */
static int find_leaders(struct hbarrier *w)
{
    const struct comm *c = w->comm;
    const uint32_t mine = node_of_rank(c, c->rank);
    bool *known = calloc(c->proc->boot->nnodes, sizeof(*known));
    w->local = malloc((size_t)c->size * sizeof(*w->local));
    w->leader_rank = malloc((size_t)c->size * sizeof(*w->leader_rank));
    if (!known || !w->local || !w->leader_rank) {
        free(known);
        return MPI_ERR_NO_MEM;
    }
    for (int r = 0; r < c->size; r++) {
        const uint32_t node = node_of_rank(c, r);
        if (!known[node]) {
            known[node] = true;
            if (node == mine)
                w->leader = w->leaders;
            w->leader_rank[w->leaders++] = r;
        }
        if (node != mine)
            continue;
        if (r == c->rank)
            w->place = w->nlocal;
        w->local[w->nlocal++] = r;
    }
    free(known);
    w->leads = w->place == 0;
    return 0;
}

/* Splits the schedule into rounds at its fences. */
static int split_into_rounds(struct hbarrier *w)
{
    struct sched *s = &w->sched;
    sched_fence(s);
    w->round_at = malloc(((size_t)s->count + 1) * sizeof(*w->round_at));
    if (s->failed || !w->round_at)
        return MPI_ERR_NO_MEM;
    uint32_t rounds = 0;
    w->round_at[0] = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->steps[i].kind == STEP_FENCE)
            w->round_at[++rounds] = i + 1;
    w->rounds[METHOD_MESSAGE] = (int)rounds;
    return 0;
}

/* Creates the schedule of METHOD_MESSAGE: the algorithm that was chosen, or dissemination with n partners
 * if an RDMA barrier was chosen. */
static int make_schedule(struct hbarrier *w, const struct coll_choice *choice, int n)
{
    const struct coll_algorithm *a = w->may_write ? algorithm_find(COLL_BARRIER, "nway") : choice->algorithm;
    struct coll_shape shape = {.kind = COLL_BARRIER,
                               .rank = w->leader,
                               .size = w->leaders,
                               .count = 1,
                               .commutative = true,
                               .adjacent = true};
    for (int i = 0; i < COLL_PARAMETERS; i++)
        shape.parameter[i] = choice->parameter[i] ? choice->parameter[i] : a->parameter[i].preset;
    if (w->may_write)
        shape.parameter[0] = n;
    sched_init(&w->sched);
    a->generate(&shape, &w->sched);
    return split_into_rounds(w);
}

/* Returns the transport that reaches all partners, or NULL. */
static struct transport *find_transport(struct hbarrier *w)
{
    struct transport *t = NULL;
    for (int i = 0; i < w->partners; i++) {
        struct peer *to;
        if (w->partner_at[i].to < 0)
            continue;
        if (comm_get_peer(w->comm, w->leader_rank[w->partner_at[i].to], &to) != 0 ||
            (t && to->transport != t))
            return NULL;
        t = to->transport;
        w->partner[i].to = to;
    }
    return t;
}

/* Registers the flags. True if the leader and its partners can write to each other's memory. */
static bool can_write_flags(struct hbarrier *w)
{
    for (int i = 0; i < w->partners; i++) {
        const struct peer *to = w->partner[i].to;
        if (to && (!to->caps.put || to->caps.put_silent == 0))
            return false;
    }
    if (!mapping_open(&w->memory, "fishplate-barrier", MEMORY_SIZE))
        return false;
    w->flags = w->memory.at;
    w->counters = (_Atomic uint64_t *)(void *)((char *)w->memory.at + FLAGS_SIZE);
    int rc = w->transport->ops->mem_register(w->transport, w->memory.at, MEMORY_SIZE, &w->mem, &w->key);
    mapping_close_file(&w->memory);
    for (int i = 0; rc == 0 && i < w->partners; i++)
        w->partner[i].offer = (struct hbarrier_address){
            .address = (uintptr_t)w->flags + (uint64_t)i * HBARRIER_LANES, .key = w->key};
    return rc == 0;
}

/* True if this leader can use fetch-and-add on the counter of the first leader. */
static bool can_use_counter(struct hbarrier *w)
{
    struct peer *first;
    return w->may_count && w->transport->adds &&
           (w->leader == 0 ||
            (comm_get_peer(w->comm, w->leader_rank[0], &first) == 0 && first->transport == w->transport));
}

/* Describes the methods that this leader supports. If ranks share processors, each round needs all of them
 * to be scheduled. So unless the user names a barrier, they use the barrier unit of the switch, which has
 * one round, or messages, which wake sleeping ranks. The first leader enables the switch by requesting a
 * group. */
static void barrier_describe_leader(struct hbarrier *w)
{
    const bool turns = w->net->oversubscribed && !w->choice.named;
    w->mine = (struct hbarrier_setup){.group = HBARRIER_NO_GROUP};
    if (!w->may_write)
        return;
    w->transport = find_transport(w);
    if (!w->transport)
        return;
    if (!turns) {
        w->mine.all_write = can_write_flags(w);
        w->mine.all_add = w->mine.all_write && can_use_counter(w);
        if (w->leader == 0 && w->mine.all_add)
            w->mine.counter = (struct hbarrier_address){.address = (uintptr_t)w->counters, .key = w->key};
    }
    if (w->may_switch)
        w->unit = w->may_wire ? w->transport->wires : w->transport->barrier;
    w->mine.all_switch = w->unit != NULL;
    if (!w->unit || w->leader != 0 || (!w->choice.named && !turns) ||
        w->unit->get(w->unit, &w->mine.group) == 0)
        return;
    if (no_group.value == 0 && coll_is_forced(COLL_BARRIER)) /* no warning during a trial of the tuner */
        log_warn("%s: barriers of %s (%d nodes) are done by RDMA writes instead. This is said once; the "
                 "counter coll_switch_full counts such communicators.",
                 w->may_wire ? "There is no barrier network, or another job uses it"
                             : "All barrier groups of the switch are in use",
                 comm_label(w->comm), w->leaders);
    counter_add(&no_group, 1);
}

void hbarrier_join(struct hbarrier *w)
{
    const bool all = w->mine.all_switch && w->mine.group != HBARRIER_NO_GROUP;
    if (all)
        w->member = w->unit->join(w->unit, w->mine.group);
    else if (w->leader == 0 && w->mine.group != HBARRIER_NO_GROUP)
        w->unit->give_back(w->unit, w->mine.group);
    CHECK_MEMORY(!all || w->member, "a barrier group of the switch");
}

static size_t block_length(const struct hbarrier *w)
{
    return sizeof(struct hbarrier_block) + (size_t)w->nlocal * sizeof(struct hbarrier_line);
}

static void block_attach(struct hbarrier *w, uint64_t offset)
{
    w->block_offset = offset;
    w->block = offset == BLOCK_NONE ? NULL : (struct hbarrier_block *)(w->net->area + offset);
}

/* Plans which leader sets which flags in which round. The rounds of METHOD_MULTICAST or METHOD_COUNTER
 * follow the rounds of METHOD_WRITE. */
static void make_plan(struct hbarrier *w, int n)
{
    struct barrier_partner *at = w->partner_at;
    int rounds = 0, more = 0;
    if (w->choice.algorithm == &barrier_rdma_pairs)
        w->partners = barrier_partners_pairs(w->leader, w->leaders, at, HBARRIER_PARTNERS, &rounds);
    else
        do /* reduce n until the partners fit into the array */
            w->partners = barrier_partners(w->leader, w->leaders, n, at, HBARRIER_PARTNERS / 2, &rounds);
        while (w->partners < 0 && n-- > 1);
    if (w->may_multicast)
        more = barrier_tree(w->leader, w->leaders, w->fan, rounds, at + w->partners,
                            HBARRIER_PARTNERS - w->partners);
    else if (w->may_count)
        more = barrier_partners_star(w->leader, w->leaders, rounds, at + w->partners,
                                     HBARRIER_PARTNERS - w->partners);
    w->partners += more;
    w->rounds[METHOD_WRITE] = rounds;
}

/* Prepares this leader's part of METHOD_SETUP. */
static int prepare_leader(struct hbarrier *w, int n)
{
    struct net *net = w->net;
    w->fan = w->may_multicast ? hbarrier_tree_fan(w) : 0;
    make_plan(w, n);
    w->setups = barrier_partners(w->leader, w->leaders, 1, w->setup_at, HBARRIER_SETUPS, &w->setup_rounds);
    w->rounds[METHOD_SETUP] = 1 + (w->may_switch ? 2 : 1) * w->setup_rounds;
    w->rounds[METHOD_SWITCH] = 1;
    w->rounds[METHOD_MULTICAST] = w->rounds[METHOD_COUNTER] = 2;
    w->inbox = calloc((size_t)w->setups, sizeof(*w->inbox));
    if (!w->inbox)
        return MPI_ERR_NO_MEM;
    barrier_describe_leader(w);
    w->result.block = BLOCK_NONE;
    if (w->nlocal > 1 && net->area && net_area_alloc(net, block_length(w), &w->result.block) != 0)
        w->result.block = BLOCK_NONE;
    block_attach(w, w->result.block);
    if (w->block)
        atomic_store_explicit(&w->block->users, (uint32_t)w->nlocal, memory_order_release);
    return 0;
}

int hbarrier_open(struct coll_state *state, const struct coll_choice *choice, struct hbarrier **out)
{
    struct hbarrier *w = calloc(1, sizeof(*w));
    if (!w)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the barrier of a communicator");
    w->comm = state->comm;
    w->choice = *choice;
    w->net = state->comm->proc->net;
    w->refs = 1;
    w->lanes = 1;
    w->may_write = !choice->by_node;
    w->may_wire = choice->algorithm == &barrier_wires && w->comm == w->comm->proc->world;
    w->may_switch = choice->algorithm == &barrier_switch || w->may_wire || (w->may_write && !choice->named);
    w->may_multicast = hbarrier_is_multicast(choice);
    w->may_count = choice->algorithm == &barrier_rdma_counter;
    for (int i = 0; i < HBARRIER_LANES; i++)
        list_init(&w->lane[i].runs);
    const int preset = barrier_rdma.parameter[0].preset;
    const int n = choice->parameter[0] && !w->may_multicast ? choice->parameter[0] : preset;
    int rc = find_leaders(w);
    w->may_count = w->may_count && w->leaders <= COUNTER_LEADERS;
    if (!rc && w->leads)
        rc = prepare_leader(w, n);
    if (!rc && w->leads)
        rc = make_schedule(w, choice, n);
    if (rc) {
        hbarrier_release(w);
        return err_set(MPI_ERR_NO_MEM, "out of memory for the barrier of a communicator of %d ranks",
                       state->comm->size);
    }
    counter_add(&coll_bytes, sizeof(*w) + (w->flags ? MEMORY_SIZE : 0) + (w->block ? block_length(w) : 0) +
                                 w->sched.count * sizeof(struct step));
    *out = w;
    return 0;
}

void hbarrier_adopt_result(struct hbarrier *w)
{
    if (!w->leads)
        block_attach(w, w->result.block);
    w->method = (enum hbarrier_method)w->result.method;
    w->switched = w->result.switched;
    free(w->inbox);
    w->inbox = NULL;
}

/* Detaches from the shared block of the node; the last rank frees it. */
static void block_release(struct hbarrier *w)
{
    if (w->block && w->net->area && atomic_fetch_sub_explicit(&w->block->users, 1, memory_order_acq_rel) == 1)
        net_area_free(w->net, w->block_offset, block_length(w));
}

/* Frees the barrier. No RDMA write to this rank's memory can be in flight: a rank leaves a barrier only
 * after all its flags have been set. */
void hbarrier_release(struct hbarrier *w)
{
    if (--w->refs > 0)
        return;
    block_release(w);
    hbarrier_close_multicast(w);
    if (w->member)
        w->unit->leave(w->unit, w->member);
    if (w->mem.length)
        w->transport->ops->mem_release(w->transport, &w->mem);
    mapping_close(&w->memory);
    sched_free(&w->sched);
    free(w->round_at);
    free(w->inbox);
    free(w->local);
    free(w->leader_rank);
    free(w);
}

void hbarrier_close(struct coll_state *state)
{
    for (int form = 0; form < FORM_PERSISTENT; form++) {
        if (state->hbarrier[form])
            hbarrier_release(state->hbarrier[form]);
        state->hbarrier[form] = NULL;
    }
    state->cached[COLL_BARRIER] = NULL;
}
