/* comm.c: queries about communicators: size, rank, groups, hints, comparison; and freeing them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"
#include "api/forward.h"
#include "coll/coll.h"
#include "impl.h"
#include "net/guest.h"
#include "obj/attr.h"
#include "obj/create.h"
#include "obj/errhandler.h"
#include "obj/handle.h"
#include "p2p/bsend.h"

static int check_is_inter(const struct comm *comm)
{
    return comm->remote ? MPI_SUCCESS
                        : err_set(MPI_ERR_COMM, "%s is not an intercommunicator", comm_label(comm));
}

int impl_Comm_remote_size(struct comm *comm, int *size)
{
    int rc = check_is_inter(comm);
    if (!rc)
        *size = comm->remote->size;
    return rc;
}

int impl_Comm_remote_group(struct comm *comm, MPI_Group *group)
{
    int rc = check_is_inter(comm);
    if (!rc)
        *group = group_handle(group_retain(comm->remote));
    return rc;
}

/* Compares two communicators. Intercommunicators are as different as the more different one of their two
 * pairs of groups. */
int impl_Comm_compare(struct comm *comm1, struct comm *comm2, int *result)
{
    int local, remote = MPI_IDENT;
    if (comm1 == comm2) {
        *result = MPI_IDENT;
        return MPI_SUCCESS;
    }
    if ((comm1->remote != NULL) != (comm2->remote != NULL)) {
        *result = MPI_UNEQUAL;
        return MPI_SUCCESS;
    }
    int rc = group_compare(comm1->group, comm2->group, &local);
    if (!rc && comm1->remote)
        rc = group_compare(comm1->remote, comm2->remote, &remote);
    if (rc)
        return rc;
    int worse = MAX(local, remote); /* MPI_IDENT < MPI_CONGRUENT < MPI_SIMILAR < MPI_UNEQUAL in the ABI */
    *result = worse == MPI_IDENT ? MPI_CONGRUENT : worse;
    return MPI_SUCCESS;
}

static int comm_check_freeable(const MPI_Comm *handle, struct comm **out)
{
    struct comm *c = comm_from(the_proc, *handle);
    if (!c)
        return bad_handle(HANDLE_COMM, "comm", *handle);
    if (c->obj.predefined)
        return err_set(MPI_ERR_COMM, "%s cannot be freed", comm_label(c));
    *out = c;
    return MPI_SUCCESS;
}

/* Calls the delete functions of the attributes; if one fails, the communicator is not freed. */
static int comm_delete_attributes(struct comm *c)
{
    int rc = attr_delete_all(c->proc, comm_handle(c), &c->attrs);
    if (!rc && c->bsend) {
        void *buffer;
        MPI_Count size;
        bsend_detach(c->bsend, &buffer, &size);
        c->bsend = NULL;
    }
    return rc;
}

/* Makes MPI_Comm_get_parent return MPI_COMM_NULL. */
static void clear_parent(const struct comm *c)
{
    if (c->proc->parent == c)
        c->proc->parent = NULL;
}

static int prepare_free(MPI_Comm *comm, struct comm **out)
{
    int rc = comm_check_freeable(comm, out);
    return rc ? rc : comm_delete_attributes(*out);
}

int impl_Comm_free(MPI_Comm *comm)
{
    struct comm *c;
    int rc = prepare_free(comm, &c);
    if (rc)
        return rc;
    clear_parent(c);
    comm_release(c);
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

/* Unlike MPI_Comm_free this waits until this rank's messages have been sent. */
int impl_Comm_disconnect(MPI_Comm *comm)
{
    struct comm *c;
    int rc = prepare_free(comm, &c);
    if (rc)
        return rc;
    proc_flush_pending_sends(c->proc);
    rc = comm_quiesce(c);
    if (rc)
        return rc;
    struct net *net = c->guests ? c->proc->net : NULL;
    clear_parent(c);
    comm_release(c);
    if (net)
        net_guests_disconnect_unused(net);
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

/* The functions that make communicators, over src/obj/create.h. */

int comm_return_handle(int rc, struct comm *made, MPI_Comm *newcomm)
{
    if (!rc && made && coll_laboratory_select_barrier)
        rc = coll_laboratory_select_barrier(made);
    *newcomm = !rc && made ? comm_handle(made) : MPI_COMM_NULL;
    return rc;
}

int impl_Comm_idup_with_info(struct comm *comm, struct info *info, MPI_Comm *newcomm, MPI_Request *request)
{
    struct creation *c;
    int rc = comm_dup_start(comm, info, &c);
    if (rc)
        return rc;
    c->request.comm = comm_retain(comm);
    *newcomm = c->made ? comm_handle(c->made) : MPI_COMM_NULL;
    *request = request_handle(&c->request);
    return MPI_SUCCESS;
}

int impl_Intercomm_create(struct comm *local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader,
                          int tag, MPI_Comm *newintercomm)
{
    struct comm *made = NULL;
    int rc = comm_check_intra(local_comm);
    if (rc)
        return rc;
    if (local_leader < 0 || local_leader >= local_comm->size)
        return err_set(MPI_ERR_RANK, "local_leader is %d; the ranks of local_comm are 0 to %d", local_leader,
                       local_comm->size - 1);
    /* peer_comm is significant at the local leader only. */
    struct comm *peer = local_comm->rank == local_leader ? comm_from(the_proc, peer_comm) : NULL;
    rc = intercomm_create(local_comm, local_leader, peer, remote_leader, tag, &made);
    return comm_return_handle(rc, made, newintercomm);
}

int impl_Intercomm_create_from_groups(struct group *local_group, int local_leader, struct group *remote_group,
                                      int remote_leader, const char *stringtag, struct info *info,
                                      struct errhandler *errhandler, MPI_Comm *newintercomm)
{
    struct comm *made = NULL;
    if (local_leader < 0 || local_leader >= local_group->size)
        return err_set(MPI_ERR_RANK, "local_leader is %d; the ranks of local_group are 0 to %d", local_leader,
                       local_group->size - 1);
    int rc = intercomm_create_from_groups(the_proc, local_group, local_leader, remote_group, remote_leader,
                                          stringtag, info, errhandler, &made);
    return comm_return_handle(rc, made, newintercomm);
}

int impl_Intercomm_merge(struct comm *intercomm, int high, MPI_Comm *newintracomm)
{
    struct comm *made = NULL;
    if (!intercomm->remote)
        return err_set(MPI_ERR_COMM, "%s is not an intercommunicator", comm_label(intercomm));
    int rc = intercomm_merge(intercomm, high != 0, &made);
    return comm_return_handle(rc, made, newintracomm);
}
