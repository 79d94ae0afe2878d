/* comm.c: creates communicators from groups and context ids, finds peers, and frees a communicator with its
 * last reference (of a handle, a request or a parent).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/comm.h"

#include <stdio.h>
#include <stdlib.h>

#include "net/guest.h"
#include "obj/context.h"
#include "obj/epoch.h"
#include "obj/errhandler.h"
#include "obj/fault.h"
#include "obj/info.h"
#include "obj/topo.h"

/* Sets *found if a member belongs to another job. Returns an error if that job has disconnected. */
static int comm_find_remote_jobs(struct proc *p, const struct group *g, bool *found)
{
    for (int i = 0; g && i < g->size; i++) {
        uint32_t number = group_job_rank(g, i);
        if (likely(number < p->size))
            continue;
        if (!net_guest_get_card(p->net, number))
            return err_set(MPI_ERR_GROUP, "process %d of the group is of another job and no longer connected",
                           i);
        *found = true;
    }
    return MPI_SUCCESS;
}

static void group_call_for_members(struct proc *p, const struct group *g,
                                   void (*hold)(struct net *, uint32_t))
{
    for (int i = 0; g && i < g->size; i++)
        hold(p->net, group_job_rank(g, i));
}

int comm_alloc(struct proc *p, struct group *group, struct group *remote, struct comm **out)
{
    bool guests = false;
    int rc = comm_find_remote_jobs(p, group, &guests);
    rc = rc ? rc : comm_find_remote_jobs(p, remote, &guests);
    if (rc) {
        group_release(group);
        group_release(remote);
        return rc;
    }
    struct comm *c = objmem_new(sizeof(*c));
    int reach = remote ? remote->size : group->size;
    struct peer **peers = calloc((size_t)reach + 1, sizeof(struct peer *));
    if (!c || !peers) {
        objmem_free(c);
        free(peers);
        group_release(group);
        group_release(remote);
        return err_set(MPI_ERR_NO_MEM, "out of memory for a communicator of %d processes", reach);
    }
    c->obj = object_init(MAGIC_COMM);
    c->proc = p;
    c->rank = group->rank;
    c->size = group->size;
    c->group = group;
    c->remote = remote;
    c->peers = peers;
    c->session = group->session;
    c->guests = guests;
    if (guests) {
        group_call_for_members(p, group, net_guest_retain);
        group_call_for_members(p, remote, net_guest_retain);
    }
    *out = c;
    return MPI_SUCCESS;
}

void comm_set_context(struct comm *c, uint32_t number)
{
    c->context = context_of_id(number);
    c->proc->comms[context_id_of(c->context)] = c;
}

int comm_activate(struct comm *c, const uint32_t ids[2])
{
    if (c->remote) {
        int rc = comm_alloc(c->proc, group_retain(c->group), NULL, &c->local_comm);
        if (rc)
            return rc;
        comm_set_label(c->local_comm, "local side of", c);
        comm_set_context(c->local_comm, ids[1]);
        c->local_comm->owns_context = true;
        c->local_comm->errhandler = errhandler_retain(c->errhandler);
    }
    comm_set_context(c, ids[0]);
    c->owns_context = true;
    comm_fault_check(c);
    return MPI_SUCCESS;
}

void comm_release(struct comm *c)
{
    if (!c || --c->obj.refs > 0)
        return;
    if (c->proc->comm_closing)
        c->proc->comm_closing(c);
    comm_release(c->local_comm);
    if (c->proc->comms[context_id_of(c->context)] == c)
        c->proc->comms[context_id_of(c->context)] = NULL;
    if (c->owns_context && c->messages_may_arrive_later)
        context_retire(c->proc, c->context / 2);
    else if (c->owns_context)
        context_id_release(c->proc, c->context / 2);
    if (c->owns_context && c->agreements > 0 && c->proc->agreed_comm_freed)
        c->proc->agreed_comm_freed(c);
    comm_fault_free(c);
    errhandler_release(c->errhandler);
    info_release(c->info);
    topology_release(c->topology);
    if (c->guests) {
        group_call_for_members(c->proc, c->group, net_guest_release);
        group_call_for_members(c->proc, c->remote, net_guest_release);
    }
    group_release(c->group);
    group_release(c->remote);
    free(c->peers);
    c->obj.magic = MAGIC_FREED;
    objmem_free(c);
}

void comm_release_failed(struct comm *inter)
{
    inter->messages_may_arrive_later = inter->local_comm->messages_may_arrive_later = true;
    comm_release(inter);
}

void comm_set_label(struct comm *c, const char *how, const struct comm *parent)
{
    if (parent)
        snprintf(c->label, sizeof(c->label), "%s %.48s", how, comm_label(parent));
    else
        snprintf(c->label, sizeof(c->label), "%s", how);
}

int comm_check_intra(const struct comm *c)
{
    return c->remote ? err_set(MPI_ERR_COMM, "%s is an intercommunicator", comm_label(c)) : MPI_SUCCESS;
}

int comm_peer_connect(struct comm *c, int rank, struct peer **out)
{
    const struct group *reach = c->remote ? c->remote : c->group;
    if (unlikely(comm_is_revoked(c)))
        return comm_check_not_broken(c);
    int rc = net_peer(c->proc->net, group_job_rank(reach, rank), &c->peers[rank]);
    if (!rc)
        *out = c->peers[rank];
    return rc;
}

/* Returns the peer that sent a message with this envelope, or NULL. On contexts for communicator creation
 * and for partitioned messages the source field is not a rank, so the result is NULL. */
struct peer *comm_find_sender(void *proc, struct envelope env)
{
    struct proc *p = proc;
    struct comm *c = comm_of_context(p, env.context);
    struct peer *peer;
    if (!c || env.source < 0 || env.source >= comm_peers(c))
        return NULL;
    if ((env.context & 1) && env.tag >= ASSEMBLY_TAG_FIRST)
        return NULL;
    return comm_get_peer(c, env.source, &peer) == 0 ? peer : NULL;
}
