/* meet.c: connects two groups of processes (meet.h). The roots gather the addresses of all processes,
 * exchange them over the channel and broadcast them. Every process checks whether it can reach the other
 * group, and the roots exchange the result. Only then do the two groups agree on context ids, over the
 * network, so no process waits for a message that cannot arrive. The channel stays open until both roots have
 * agreed and exchanged a final message: if it closes earlier, the other side has failed, which no launcher
 * reports for another job, and the call fails at this side too. Afterwards the kernel (net_guest_watch) or the
 * transport reports the end of a process of another job.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "dyn/meet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/err.h"
#include "base/kill_point.h"
#include "base/tunable.h"
#include "coll/coll.h"
#include "dyn/port.h"
#include "dyn/verdict.h"
#include "net/lost.h"
#include "obj/create.h"

static struct coll_side make_bytes_side(const void *data, size_t len)
{
    return (struct coll_side){
        .buf = (void *)(uintptr_t)data, .count = (MPI_Count)len, .type = dtype_from_handle(MPI_BYTE)};
}

int broadcast_bytes(struct comm *comm, int root, void *data, size_t len)
{
    struct coll_args a = {.kind = COLL_BCAST,
                          .name = "MPI_Bcast",
                          .comm = comm,
                          .root = root,
                          .recv = make_bytes_side(data, len)};
    return coll_run(&a);
}

static int share_error(struct comm *comm, int root, int error)
{
    struct verdict v = verdict_from_error(error);
    int rc = broadcast_bytes(comm, root, &v, sizeof(v));
    return rc ? rc : verdict_error(&v);
}

/* Entry of one process in the gathered records. */
struct entry {
    struct net_card card;
    struct verdict verdict;
};

/* Gathers the entries of all ranks at the root. *all is allocated at the root, and NULL at other ranks. */
static int meet_gather_entries(struct comm *comm, int root, const struct entry *mine, struct entry **all)
{
    const bool is_root = comm->rank == root;
    *all = is_root ? calloc((size_t)comm->size, sizeof(**all)) : NULL;
    CHECK_MEMORY(*all || !is_root, "the processes of this job that connect to another one");
    struct coll_args a = {.kind = COLL_GATHER,
                          .name = "MPI_Gather",
                          .comm = comm,
                          .root = root,
                          .send = make_bytes_side(mine, sizeof(*mine)),
                          .recv = is_root ? make_bytes_side(*all, sizeof(*mine)) : (struct coll_side){0}};
    return coll_run(&a);
}

static int first_error(const struct entry *all, int n)
{
    for (int i = 0; i < n; i++)
        if (all[i].verdict.error)
            return verdict_error(&all[i].verdict);
    return 0;
}

/* Called at the root: exchanges verdicts with the other root. *their_cards is allocated; their_cards is
 * NULL if no process descriptors are expected. */
static int meet_exchange_verdicts(struct channel *c, const struct verdict *mine, const struct net_card *cards,
                                  struct verdict *theirs, struct net_card **their_cards)
{
    const size_t size = sizeof(*mine) + mine->count * sizeof(*cards);
    const struct net_card *came;
    size_t len;
    char *out = malloc(size);
    void *in = NULL;
    if (!out)
        return err_set(MPI_ERR_NO_MEM, "out of memory: cannot send the addresses of %u processes",
                       mine->count);
    memcpy(out, mine, sizeof(*mine));
    if (mine->count)
        memcpy(out + sizeof(*mine), cards, mine->count * sizeof(*cards));
    int rc = channel_send(c, out, size);
    free(out);
    KILL_POINT(meet_verdict_sent);
    rc = rc ? rc : channel_receive(c, &in, &len);
    if (rc)
        return rc;
    rc = verdict_decode(in, len, their_cards != NULL, theirs, &came);
    if (!rc && their_cards) {
        memmove(in, came, theirs->count * sizeof(*came));
        *their_cards = in;
    } else {
        free(in);
    }
    return rc;
}

/* First exchange between the roots: descriptors of all processes of both groups. */
static int exchange_cards(struct comm *comm, struct channel *c, const struct entry *all,
                          struct verdict *theirs, struct net_card **their_cards)
{
    struct verdict mine = {.count = (uint32_t)comm->size, .root = comm->rank};
    struct net_card *cards = malloc((size_t)comm->size * sizeof(*cards));
    int rc = cards ? first_error(all, comm->size)
                   : err_set(MPI_ERR_NO_MEM,
                             "out of memory for the addresses "
                             "of %d processes",
                             comm->size);
    if (rc)
        mine = verdict_from_error(rc);
    for (int i = 0; i < comm->size && !rc; i++)
        cards[i] = all[i].card;
    if (getrandom(&mine.tag, sizeof(mine.tag), 0) < 0)
        mine.tag = (int32_t)comm->proc->net->world;
    mine.tag &= 0x3fffffff;
    int swapped = meet_exchange_verdicts(c, &mine, cards, theirs, their_cards);
    free(cards);
    if (c->accepts)
        theirs->tag = mine.tag;
    return rc ? verdict_error(&mine) : swapped;
}

/* Adds the other group's processes to the peers and retains them until the communicator retains them:
 * another thread may disconnect meanwhile and remove processes without references. */
static int add_remote_processes(struct comm *comm, const struct verdict *v, const struct net_card *cards,
                                bool independent, uint32_t *numbers)
{
    struct net *net = comm->proc->net;
    int rc = 0;
    for (uint32_t i = 0; i < v->count && !rc; i++) {
        rc = net_guest_add(net, &cards[i], &numbers[i]);
        if (rc)
            break;
        net_guest_retain(net, numbers[i]);
        if (independent)
            net_guest_watch(net, numbers[i]);
        rc = net_guest_check_reachable(net, numbers[i]);
    }
    return rc;
}

/* Second exchange between the roots: can all processes of both groups reach each other? */
static int meet_check_reachable(struct comm *comm, int root, struct channel *c, int error)
{
    struct entry mine = {.verdict = verdict_from_error(error)};
    struct entry *all;
    int rc = meet_gather_entries(comm, root, &mine, &all);
    if (comm->rank == root) {
        struct verdict theirs;
        rc = rc ? rc : first_error(all, comm->size);
        struct verdict v = verdict_from_error(rc);
        int swapped = meet_exchange_verdicts(c, &v, NULL, &theirs, NULL);
        rc = rc ? verdict_error(&v) : swapped;
    }
    free(all);
    return share_error(comm, root, rc);
}

static int build_connected_comm(struct creation *c)
{
    return creation_build_comm(c, group_retain(c->agree.round.gang.members), group_retain(c->group));
}

/* Called at the root: waits until the agreement is complete. If the channel closes before, the agreement
 * fails at all ranks of this side. */
static void watch_channel(struct creation *c, struct channel *channel)
{
    struct assembly *round = &c->agree.round;
    struct net *net = channel->proc->net;
    const struct net_named what = {"other group of processes, at a connection", NET_NOBODY, false};
    struct net_waiter w = {.awaited_kind = NET_NAMED, .awaited = &what};
    const uint32_t other = round->gang.other_leader; /* the completed creation frees its gang */
    bool lost = false;
    net->unrung++; /* the end of a channel rings no doorbell */
    while (!atomic_load_explicit(&c->request.complete, memory_order_acquire)) {
        if (!lost && channel_is_lost(channel)) {
            lost = true;
            assembly_mark_other_lost(round);
            net_lost_mark_guest(net, other);
        }
        net_wait_step(net, &w);
    }
    net->unrung--;
    net_wait_end(net, &w);
}

/* Exchanges empty final messages on the channel. Fails if the call has failed at the other root. */
static int exchange_final_messages(struct channel *channel)
{
    struct verdict theirs;
    const struct verdict mine = verdict_from_error(0);
    return meet_exchange_verdicts(channel, &mine, NULL, &theirs, NULL);
}

/* Releases the communicator if the call failed at one of the two roots: no process may wait for another one
 * whose call failed. The result of a root, and so that of the other side, does not depend on deaths of other
 * processes from here on. */
static int confirm_with_other_root(struct comm *comm, int root, struct channel *channel, int error,
                                   struct comm **out)
{
    const bool is_root = comm->rank == root;
    int rc = error || !is_root ? error : exchange_final_messages(channel);
    const int shared = share_error(comm, root, rc);
    rc = rc || is_root ? rc : shared;
    if (rc && !error) {
        comm_release_failed(*out);
        *out = NULL;
    }
    return rc;
}

/* Creates the intercommunicator after both groups have exchanged process descriptors. */
static int meet_agree_groups(struct comm *comm, int root, struct channel *channel, const struct verdict *v,
                             const uint32_t *numbers, const struct meet_kind *kind, struct comm **out)
{
    struct creation *c;
    struct group *remote;
    int rc = group_from_table(comm->proc->rank, numbers, (int)v->count, &remote);
    if (rc)
        return rc;
    rc = creation_open(comm, kind->how, build_connected_comm, &c);
    if (rc) {
        group_release(remote);
        return rc;
    }
    struct gang *gang = &c->agree.round.gang;
    c->group = remote;
    c->agree.wanted = 2;
    gang->leader = root;
    if (comm->rank == root) {
        gang->bridged = true;
        gang->other_leader = numbers[v->root];
        gang->bridge_context = context_of_id(CONTEXT_ID_PARENT) + 1;
        gang->bridge_tag = v->tag;
    }
    creation_start(c);
    if (comm->rank == root)
        watch_channel(c, channel);
    rc = creation_wait(c, out, NULL);
    return confirm_with_other_root(comm, root, channel, rc, out);
}

static int connect_other_group(struct comm *comm, int root, struct channel *channel, struct verdict *v,
                               struct net_card *cards, const struct meet_kind *kind, struct comm **out)
{
    /* initially 0: process 0 of this job, which net_guest_release() ignores */
    uint32_t *numbers = calloc((size_t)v->count + 1, sizeof(*numbers));
    int rc = broadcast_bytes(comm, root, cards, v->count * sizeof(*cards));
    if (!rc)
        rc = numbers ? add_remote_processes(comm, v, cards, kind->independent, numbers)
                     : err_set(MPI_ERR_NO_MEM, "out of memory for %u processes", v->count);
    KILL_POINT(meet_cards_learned);
    rc = meet_check_reachable(comm, root, channel, rc);
    KILL_POINT(meet_settled);
    rc = rc ? rc : meet_agree_groups(comm, root, channel, v, numbers, kind, out);
    for (uint32_t i = 0; numbers && i < v->count; i++)
        net_guest_release(comm->proc->net, numbers[i]);
    free(numbers);
    return rc;
}

int meet_connect_groups(struct comm *comm, int root, struct channel *channel, int root_error,
                        const struct meet_kind *kind, struct comm **out)
{
    struct entry mine;
    struct entry *all;
    struct net_card *cards = NULL;
    struct verdict v = {0};
    bool is_root = comm->rank == root;
    memset(&mine, 0, sizeof(mine));
    int rc = share_error(comm, root, is_root ? root_error : 0);
    if (rc) {
        channel_close(channel); /* so that the other side does not wait if a process of this side has died */
        return rc;
    }
    mine.verdict = verdict_from_error(net_fill_card(comm->proc->net, &mine.card));
    rc = meet_gather_entries(comm, root, &mine, &all);
    if (is_root) {
        rc = rc ? rc : exchange_cards(comm, channel, all, &v, &cards);
        if (rc)
            v = verdict_from_error(rc);
    }
    free(all);
    rc = broadcast_bytes(comm, root, &v, sizeof(v));
    rc = rc ? rc : verdict_error(&v);
    if (!rc && !is_root) {
        cards = malloc(((size_t)v.count + 1) * sizeof(*cards));
        CHECK_MEMORY(cards, "the processes of another job");
    }
    rc = rc ? rc : connect_other_group(comm, root, channel, &v, cards, kind, out);
    free(cards);
    if (is_root)
        channel_close(channel);
    return rc;
}

static const struct meet_kind meet_clients = {"clients of", true};
const struct meet_kind meet_servers = {"server of", true};

int meet_accept_connection(struct comm *comm, int root, const char *port, struct comm **out)
{
    struct channel channel = {.fd = -1};
    int rc = comm->rank == root ? port_accept(comm->proc, port, NULL, &channel) : 0;
    return meet_connect_groups(comm, root, &channel, rc, &meet_clients, out);
}

static int connect_root(struct comm *comm, const char *port, const struct info *info, struct channel *channel)
{
    const char *text = info ? info_get(info, "timeout") : NULL;
    int64_t seconds = PORT_CONNECT_SECONDS;
    if (text && (!tunable_parse_number(text, false, &seconds) || seconds < 0 || seconds > UINT32_MAX))
        return err_set(MPI_ERR_INFO_VALUE,
                       "the info key timeout is \"%.60s\", which is not a number of seconds", text);
    return port_connect(comm->proc, port, (unsigned)seconds, channel);
}

int meet_connect(struct comm *comm, int root, const char *port, const struct info *info,
                 const struct meet_kind *kind, struct comm **out)
{
    struct channel channel = {.fd = -1};
    int rc = comm->rank == root ? connect_root(comm, port, info, &channel) : 0;
    return meet_connect_groups(comm, root, &channel, rc, kind, out);
}
