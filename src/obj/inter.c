/* inter.c: intercommunicators: joining two groups through their leaders, and merging the two sides into one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "obj/create.h"
#include "obj/hints.h"

static const uint32_t *job_ranks(const struct creation *c)
{
    return (const uint32_t *)(void *)c->agree.round.records;
}

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

/* Records are job ranks: those of the other side are its group. */
static int build_inter(struct creation *c)
{
    const struct gang *gang = &c->agree.round.gang;
    struct group *remote;
    int rc = group_from_table(gang->proc->rank, job_ranks(c) + gang->members->size, c->agree.round.others,
                              &remote);
    if (rc)
        return rc;
    rc = check_disjoint(gang->members, remote);
    if (rc) {
        group_release(remote);
        return rc;
    }
    return creation_make(c, group_retain(gang->members), remote);
}

static void inter_prepare(struct creation *c, int leader)
{
    struct gang *gang = &c->agree.round.gang;
    gang->leader = leader;
    c->agree.wanted = 2;
    c->record[0] = (int32_t)gang->proc->rank;
    c->agree.round.record_size = sizeof(uint32_t);
}

int intercomm_create(struct comm *local, int local_leader, struct comm *peer, int remote_leader, int tag,
                     struct comm **out)
{
    struct creation *c;
    int rc = creation_open(local, "intercommunicator from", build_inter, &c);
    if (rc)
        return rc;
    inter_prepare(c, local_leader);
    if (local->rank == local_leader) {
        struct gang *gang = &c->agree.round.gang;
        if (!peer) {
            c->agree.local_error = err_set(MPI_ERR_COMM, "peer_comm is not a communicator at the leader");
        } else if (remote_leader < 0 || remote_leader >= comm_peers(peer)) {
            c->agree.local_error =
                err_set(MPI_ERR_RANK, "remote_leader is %d; the ranks of peer_comm are 0 to %d",
                        remote_leader, comm_peers(peer) - 1);
        } else {
            gang->bridged = true;
            gang->other_leader = group_job_rank(peer->remote ? peer->remote : peer->group, remote_leader);
            gang->bridge_context = peer->context + 1;
            gang->bridge_tag = ASSEMBLY_TAG_BRIDGE | (tag & 0x1fffffff);
        }
    }
    return creation_run(c, out);
}

static int compose(const struct group *first, const struct group *second, uint32_t me, struct group **out)
{
    uint32_t *table = malloc(((size_t)first->size + (size_t)second->size + 1) * sizeof(*table));
    if (!table)
        return err_set(MPI_ERR_NO_MEM, "no memory to merge an intercommunicator");
    int n = 0;
    for (int i = 0; i < first->size; i++)
        table[n++] = group_job_rank(first, i);
    for (int i = 0; i < second->size; i++)
        table[n++] = group_job_rank(second, i);
    int rc = group_from_table(me, table, n, out);
    free(table);
    return rc;
}

static int build_merge(struct creation *c)
{
    struct comm *inter = c->parent;
    const int32_t *high = (const int32_t *)(void *)c->agree.round.records;
    int sides[2] = {high[0], high[inter->size]};
    for (int i = 0; i < inter->size + inter->remote->size; i++)
        if (high[i] != sides[i >= inter->size])
            return err_set(MPI_ERR_ARG, "processes of one group gave different values of high");
    bool mine_first = sides[0] != sides[1]
                          ? sides[0] < sides[1]
                          : group_job_rank(inter->group, 0) < group_job_rank(inter->remote, 0);
    struct group *merged;
    int rc = mine_first ? compose(inter->group, inter->remote, inter->proc->rank, &merged)
                        : compose(inter->remote, inter->group, inter->proc->rank, &merged);
    return rc ? rc : creation_make(c, merged, NULL);
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
    inter_prepare(c, local_leader);
    if (local->rank == local_leader) {
        struct gang *gang = &c->agree.round.gang;
        if (remote_leader < 0 || remote_leader >= remote->size) {
            c->agree.local_error =
                err_set(MPI_ERR_RANK, "remote_leader is %d; the remote group's ranks are 0 to %d",
                        remote_leader, remote->size - 1);
        } else {
            gang->bridged = true;
            gang->other_leader = group_job_rank(remote, remote_leader);
            gang->bridge_context = context_of_id(CONTEXT_ID_BOOTSTRAP) + 1;
            gang->bridge_tag = stringtag_hash(stringtag, NULL);
        }
    }
    rc = creation_run(c, out);
    return rc ? rc : hints_apply(&(*out)->info, info);
}
