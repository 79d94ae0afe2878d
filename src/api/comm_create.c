/* comm_create.c: the functions that make communicators, over src/obj/create.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/forward.h"
#include "impl.h"
#include "coll/coll.h"
#include "obj/create.h"
#include "obj/errhandler.h"
#include "obj/handle.h"

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
