/* multicast_open.c: opens multicast for a communicator: a communicator of each node, a communicator of the
 * leaders of nodes, and the multicast group that the leaders join. They are opened at the first use and
 * closed with the communicator.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <sys/random.h>

#include "base/log.h"
#include "boot/boot.h"
#include "coll/multicast/multicast_internal.h"
#include "net/thread.h"
#include "obj/create.h"

#define WINDOW     64 /* default send window in packets */
#define WINDOW_MAX 1024

static uint32_t node_of_rank(const struct comm *c, int rank)
{
    return c->proc->boot->node_of[group_job_rank(c->group, rank)];
}

/* Numbers the members: the nodes in the order of their first ranks. */
static int find_members(struct multicast *m, const struct comm *c)
{
    const uint32_t nodes = c->proc->boot->nnodes;
    uint32_t *number = malloc(nodes * sizeof(*number)), members = 0;
    int *ranks = calloc(nodes, sizeof(*ranks));
    m->member_of = malloc((size_t)c->size * sizeof(*m->member_of));
    m->place_of = malloc((size_t)c->size * sizeof(*m->place_of));
    const bool good = number && ranks && m->member_of && m->place_of;
    for (int r = 0; good && r < c->size; r++) {
        const uint32_t node = node_of_rank(c, r);
        if (ranks[node] == 0)
            number[node] = members++;
        m->place_of[r] = ranks[node]++;
        m->member_of[r] = number[node];
    }
    free(number);
    free(ranks);
    return good ? 0 : err_set(MPI_ERR_NO_MEM, "out of memory for broadcasts among %d ranks", c->size);
}

/* Creates a communicator whose own collectives use messages. */
static int make_comm(struct comm *parent, int color, struct comm **out)
{
    struct coll_state *state;
    int rc = comm_split(parent, color, parent->rank, out);
    if (rc || !*out)
        return rc;
    rc = coll_state(*out, &state);
    if (!rc)
        state->nodes = false;
    return rc;
}

static int multicast_broadcast_terms(struct comm *c, void *what, size_t len)
{
    const struct coll_args args = {
        .kind = COLL_BCAST, .name = "MPI_Bcast", .comm = c, .recv = make_bytes_side(what, len)};
    return coll_run(&args);
}

static int get_member_peer(void *arg, uint32_t member, struct peer **out)
{
    return comm_get_peer(arg, (int)member, out);
}

/* Returns the transport that multicasts to all other leaders, or NULL. *packet: frame payload (bytes). */
static struct transport *find_transport(struct comm *leaders, size_t *packet)
{
    struct transport *t = NULL;
    *packet = SIZE_MAX;
    for (int r = 0; r < leaders->size; r++) {
        struct peer *to;
        if (r == leaders->rank)
            continue;
        if (comm_get_peer(leaders, r, &to) != 0 || (t && to->transport != t))
            return NULL;
        t = to->transport;
        *packet = MIN(*packet, to->caps.frame_max);
    }
    return t && t->multicast ? t : NULL;
}

/* Returns a random id for a new group; 0 if the kernel has no random bytes. Only the id distinguishes
 * packets of this group from those of other jobs on the network; counters could collide. */
static uint64_t name_group(void)
{
    uint64_t id;
    return getrandom(&id, sizeof(id), 0) == (ssize_t)sizeof(id) ? MAX(id, 1u) : 0;
}

static int multicast_join(struct multicast *m, const struct multicast_terms *terms,
                          struct net_group_card *card)
{
    struct comm *leaders = m->leaders;
    size_t packet;
    struct transport *t = find_transport(leaders, &packet);
    const uint32_t members = (uint32_t)leaders->size;
    struct net_group_setup setup = {
        .members = members,
        .me = (uint32_t)leaders->rank,
        .collectors = MIN(terms->collectors, members),
        .deliver = terms->deliver,
        .rules = net_group_make_rules(terms->window, terms->aggregate, terms->skew, terms->timeout_us),
        /* RDMA writes ring no doorbell, which a sleeping progress thread needs */
        .by_write = !net_thread_is_enabled(),
        .peer = get_member_peer,
        .arg = leaders};
    *card = (struct net_group_card){0};
    setup.rules.piggyback = terms->piggyback;
    setup.id = leaders->rank == 0 ? name_group() : 0;
    int rc = multicast_broadcast_terms(leaders, &setup.id, sizeof(setup.id));
    if (rc)
        return rc;
    if (!t)
        m->join_error = err_set(MPI_ERR_OTHER, "the network between the nodes has no multicast");
    else if (setup.id == 0)
        m->join_error =
            err_set(MPI_ERR_OTHER, "the kernel gave no random bytes (getrandom) for the name of the group");
    else
        m->join_error = net_group_open(leaders->proc->net, t, &setup, &m->group);
    if (!m->join_error) {
        net_group_fill_card(m->group, card);
        card->packet = (uint32_t)MIN(card->packet, packet);
    }
    return 0;
}

/* Agrees whether all leaders have joined the group. If not, the first leader that failed prints the
 * reason, if the user requested multicast. */
static int multicast_agree_joined(struct multicast *m, const char *otherwise, struct net_group_card *mine,
                                  uint64_t found[2])
{
    struct comm *leaders = m->leaders;
    const int members = leaders->size;
    struct net_group_card *cards = calloc((size_t)members, sizeof(*cards));
    const struct coll_args args = {.kind = COLL_ALLGATHER,
                                   .name = "MPI_Allgather",
                                   .comm = leaders,
                                   .send = make_bytes_side(mine, sizeof(*mine)),
                                   .recv = make_bytes_side(cards, sizeof(*mine))};
    int rc = cards ? coll_run(&args) : err_set(MPI_ERR_NO_MEM, "out of memory for %d leaders", members);
    int first = 0;
    while (!rc && first < members && cards[first].receives > 0)
        first++;
    if (!rc && first == members) {
        net_group_connect_members(m->group, cards);
        found[0] = net_group_max_payload(m->group);
        found[1] = net_group_max_burst(m->group);
        return 0;
    }
    const bool known = leaders->proc->net->multicast_refused; /* already reported for another communicator */
    leaders->proc->net->multicast_refused = true;
    if (!rc && first == leaders->rank && otherwise && !known)
        log_warn("%s instead of multicast: %s.", otherwise, err_detail(m->join_error));
    free(cards);
    return rc;
}

int multicast_open(struct comm *c, const struct multicast_terms *terms, struct multicast **out)
{
    struct multicast *m = calloc(1, sizeof(*m));
    struct net_group_card card;
    uint64_t found[2] = {0}; /* payload (bytes) and burst (packets); 0: some leader could not join */
    if (!m)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the multicast group of a communicator");
    list_init(&m->runs);
    list_init(&m->requests);
    int rc = find_members(m, c);
    rc = rc ? rc : make_comm(c, (int)m->member_of[c->rank], &m->node);
    rc = rc ? rc : make_comm(c, m->place_of[c->rank] == 0 ? 0 : MPI_UNDEFINED, &m->leaders);
    if (!rc && m->leaders) {
        rc = multicast_join(m, terms, &card);
        rc = rc ? rc : multicast_agree_joined(m, terms->otherwise, &card, found);
    }
    rc = rc ? rc : multicast_broadcast_terms(m->node, found, sizeof(found));
    if (rc) {
        multicast_free(m);
        return rc;
    }
    m->failed = found[0] == 0;
    m->payload = (size_t)found[0];
    m->burst = (size_t)found[1];
    *out = m;
    return 0;
}

void multicast_free(struct multicast *m)
{
    if (m->group)
        net_group_close(m->group);
    comm_release(m->node);
    comm_release(m->leaders);
    free(m->member_of);
    free(m->place_of);
    free(m);
}

static struct multicast_terms make_terms(const struct coll_choice *choice)
{
    return (struct multicast_terms){.otherwise = choice->named ? "Broadcasts go by trees of messages" : NULL,
                                    .window =
                                        choice->window ? (uint32_t)MIN(choice->window, WINDOW_MAX) : WINDOW,
                                    .collectors = (uint32_t)multicast_parameter(choice, PARAMETER_COROOTS),
                                    .aggregate = (uint32_t)multicast_parameter(choice, PARAMETER_AGGREGATE),
                                    .skew = multicast_parameter(choice, PARAMETER_SKEW) != 0,
                                    .deliver = multicast_parameter(choice, PARAMETER_DELIVER) != 0,
                                    .piggyback = multicast_parameter(choice, PARAMETER_PIGGYBACK) != 0,
                                    .timeout_us = (uint64_t)multicast_parameter(choice, PARAMETER_TIMEOUT)};
}

struct multicast *multicast_get(struct coll_state *state, uint64_t bytes, const struct coll_choice *choice,
                                bool open, int *rc)
{
    *rc = 0;
    if (bytes == 0 || bytes > (uint64_t)multicast_parameter(choice, PARAMETER_MAX))
        return NULL;
    if (state->multicast_opening)
        return NULL;
    if (!state->multicast && open) {
        state->multicast_opening = true;
        const struct multicast_terms terms = make_terms(choice);
        *rc = multicast_open(state->comm, &terms, &state->multicast);
        state->multicast_opening = false;
    }
    return *rc || !state->multicast || state->multicast->failed ? NULL : state->multicast;
}

void multicast_forget(struct coll_state *state)
{
    struct multicast *m = state->multicast;
    state->multicast = NULL;
    if (m && list_empty(&m->runs) && list_empty(&m->requests) && m->persistent == 0) {
        multicast_free(m);
    } else if (m) {
        m->older = state->multicast_older;
        state->multicast_older = m;
    }
}

void multicast_close(struct coll_state *state)
{
    multicast_forget(state);
    while (state->multicast_older) {
        struct multicast *m = state->multicast_older;
        state->multicast_older = m->older;
        multicast_free(m);
    }
}
