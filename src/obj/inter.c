/* inter.c: intercommunicators: joining two groups through their leaders, and merging the two sides into one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "net/guest.h"
#include "obj/create.h"
#include "obj/hints.h"

static int check_disjoint(const struct group *local, const struct group *remote)
{
    struct group_index index;
    int rc = group_index_open(&index, local);
    for (int i = 0; i < remote->size && !rc; i++)
        if (group_index_find(&index, group_job_rank(remote, i)) != MPI_UNDEFINED)
            rc = err_set(MPI_ERR_COMM, "the two groups of an intercommunicator have a process in common");
    group_index_close(&index);
    return rc;
}

/* Result: the groups span several jobs, so the exchange must be repeated with process descriptors. */
#define NEED_CARDS ERR_AGAIN

/* Fills in the job ranks of the remote group from the records: process names, or descriptors (names with
 * addresses) if the groups belong to different jobs. */
static int inter_fill_remote_table(const struct creation *c, uint32_t *table)
{
    const struct assembly *round = &c->agree.round;
    struct net *net = round->gang.proc->net;
    const int mine = round->gang.members->size, n = mine + round->others;
    int rc = 0;
    for (int i = 0; i < n && !rc; i++) {
        uint32_t number = 0;
        if (round->received_record_size == sizeof(struct net_card)) {
            rc = net_guest_add(net, (const struct net_card *)(const void *)round->records + i, &number);
            if (!rc)
                net_guest_watch(net, number);
            rc = rc ? rc : net_guest_check_reachable(net, number);
        } else {
            struct net_name name = ((const struct net_name *)(const void *)round->records)[i];
            rc = name.world == net->world ? 0 : NEED_CARDS;
            number = (uint32_t)name.rank;
        }
        if (i >= mine)
            table[i - mine] = number;
    }
    return rc;
}

static int build_inter(struct creation *c)
{
    const struct gang *gang = &c->agree.round.gang;
    uint32_t *table = malloc(((size_t)c->agree.round.others + 1) * sizeof(*table));
    if (!table)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a group of %d processes", c->agree.round.others);
    struct group *remote;
    int rc = inter_fill_remote_table(c, table);
    rc = rc ? rc : group_from_table(gang->proc->rank, table, c->agree.round.others, &remote);
    free(table);
    if (rc == NEED_CARDS) {
        c->mixed = true;
        return MPI_SUCCESS;
    }
    if (rc)
        return rc;
    rc = check_disjoint(gang->members, remote);
    if (rc) {
        group_release(remote);
        return rc;
    }
    return creation_build_comm(c, group_retain(gang->members), remote);
}

/* Prepares the record to exchange: a short process name, or a descriptor with addresses if the groups
 * belong to different jobs. */
static void inter_prepare(struct creation *c, int leader, bool cards)
{
    struct proc *p = c->agree.round.gang.proc;
    _Static_assert(sizeof(struct net_card) <= sizeof(c->record), "a card fits into a record");
    c->agree.round.gang.leader = leader;
    c->agree.wanted = 2;
    if (cards) {
        c->agree.local_error = net_fill_card(p->net, (struct net_card *)(void *)c->record);
        c->agree.round.record_size = sizeof(struct net_card);
    } else {
        struct net_name name = net_process_name(p->net, p->rank);
        memcpy(c->record, &name, sizeof(name));
        c->agree.round.record_size = sizeof(struct net_name);
    }
}

/* Called at the local leader: sets the remote leader (rank other_leader of `other`) and the envelope of
 * the messages between the leaders. */
static void inter_set_bridge(struct creation *c, const struct group *other, int other_leader, int own_number,
                             uint32_t context, int tag)
{
    struct gang *gang = &c->agree.round.gang;
    if (other_leader < 0 || other_leader >= other->size) {
        c->agree.local_error = err_set(MPI_ERR_RANK, "remote_leader is %d; it must be a rank from 0 to %d",
                                       other_leader, other->size - 1);
        return;
    }
    gang->bridged = true;
    gang->other_leader = group_job_rank(other, other_leader);
    gang->bridge_me = own_number;
    gang->bridge_other = other_leader;
    gang->bridge_context = context;
    gang->bridge_tag = tag;
}

static int build_nothing(struct creation *c)
{
    (void)c;
    return MPI_SUCCESS;
}

enum inter_step { EXCHANGE_NAMES, EXCHANGE_CARDS, SYNCHRONISE };

static int create_intercomm(struct comm *local, int local_leader, struct comm *peer, int remote_leader,
                            int tag, enum inter_step step, bool *mixed, struct comm **out)
{
    struct creation *c;
    int rc =
        creation_open(local, "intercommunicator from", step == SYNCHRONISE ? build_nothing : build_inter, &c);
    if (rc)
        return rc;
    inter_prepare(c, local_leader, step == EXCHANGE_CARDS);
    if (local->rank == local_leader && !peer)
        c->agree.local_error = err_set(MPI_ERR_COMM, "peer_comm is not a communicator at the leader");
    else if (local->rank == local_leader)
        inter_set_bridge(c, peer->remote ? peer->remote : peer->group, remote_leader, peer->rank,
                         peer->context + 1, ASSEMBLY_TAG_BRIDGE | (tag & 0x1fffffff));
    creation_start(c);
    return creation_wait(c, out, mixed);
}

int intercomm_create(struct comm *local, int local_leader, struct comm *peer, int remote_leader, int tag,
                     struct comm **out)
{
    bool mixed = false;
    struct comm *nothing;
    int rc = create_intercomm(local, local_leader, peer, remote_leader, tag, EXCHANGE_NAMES, &mixed, out);
    if (rc || !mixed)
        return rc;
    rc = create_intercomm(local, local_leader, peer, remote_leader, tag, EXCHANGE_CARDS, &mixed, out);
    if (rc)
        return rc;
    /* Frames of a process that the receiver does not know yet are dropped: wait until all know each other. */
    rc = create_intercomm(local, local_leader, peer, remote_leader, tag, SYNCHRONISE, &mixed, &nothing);
    if (rc) {
        comm_release_failed(*out);
        *out = NULL;
    }
    return rc;
}

static int group_concatenate(const struct group *first, const struct group *second, uint32_t me,
                             struct group **out)
{
    uint32_t *table = malloc(((size_t)first->size + (size_t)second->size + 1) * sizeof(*table));
    if (!table)
        return err_set(MPI_ERR_NO_MEM, "out of memory: cannot merge an intercommunicator");
    int n = 0;
    for (int i = 0; i < first->size; i++)
        table[n++] = group_job_rank(first, i);
    for (int i = 0; i < second->size; i++)
        table[n++] = group_job_rank(second, i);
    int rc = group_from_table(me, table, n, out);
    free(table);
    return rc;
}

/* True if the local group comes first in MPI_Intercomm_merge when both groups pass the same `high`. Both
 * sides compute consistent results. */
static bool is_low_group_of_merge(const struct comm *inter)
{
    struct net *net = inter->proc->net;
    struct net_name mine = net_process_name(net, group_job_rank(inter->group, 0));
    struct net_name theirs = net_process_name(net, group_job_rank(inter->remote, 0));
    return mine.world != theirs.world ? mine.world < theirs.world : mine.rank < theirs.rank;
}

static int build_merge(struct creation *c)
{
    struct comm *inter = c->parent;
    const int32_t *high = (const int32_t *)(void *)c->agree.round.records;
    int sides[2] = {high[0], high[inter->size]};
    for (int i = 0; i < inter->size + inter->remote->size; i++)
        if (high[i] != sides[i >= inter->size])
            return err_set(MPI_ERR_ARG, "processes of one group gave different values of high");
    bool mine_first = sides[0] != sides[1] ? sides[0] < sides[1] : is_low_group_of_merge(inter);
    struct group *merged;
    int rc = mine_first ? group_concatenate(inter->group, inter->remote, inter->proc->rank, &merged)
                        : group_concatenate(inter->remote, inter->group, inter->proc->rank, &merged);
    return rc ? rc : creation_build_comm(c, merged, NULL);
}

int intercomm_merge(struct comm *inter, bool high, struct comm **out)
{
    struct creation *c;
    int rc = creation_open(inter, "merge of", build_merge, &c);
    if (rc)
        return rc;
    c->record[0] = high;
    c->agree.round.record_size = sizeof(int32_t);
    return creation_run(c, out);
}

int intercomm_create_from_groups(struct proc *p, struct group *local, int local_leader, struct group *remote,
                                 int remote_leader, const char *stringtag, struct info *info,
                                 struct errhandler *errhandler, struct comm **out)
{
    struct creation *c;
    int rc = creation_open_from(p, local, stringtag, errhandler, build_inter, &c);
    if (rc)
        return rc;
    inter_prepare(c, local_leader, false);
    if (local->rank == local_leader)
        inter_set_bridge(c, remote, remote_leader, local_leader, context_of_id(CONTEXT_ID_BOOTSTRAP) + 1,
                         stringtag_hash(p->net, stringtag, NULL));
    bool mixed = false;
    creation_start(c);
    rc = creation_wait(c, out, &mixed);
    if (!rc && mixed)
        rc = err_set(MPI_ERR_GROUP,
                     "a process of another job is in one of the groups, which this call does not allow");
    return rc ? rc : hints_apply(&(*out)->info, info);
}
