/* ft.c: fault tolerance, the functions of mpi-ext.h, over src/ft and src/obj/fault.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ft/ft.h"

#include <limits.h>

#include "api/forward.h"
#include "impl.h"
#include "obj/fault.h"
#include "obj/handle.h"

int impl_Comm_revoke(struct comm *comm)
{
    /* Without recovery, ranks that wait in shared memory would not notice the revocation. */
    if (!comm_outlives_deaths(comm) && comm->size > 1)
        return err_set(MPI_ERR_UNSUPPORTED_OPERATION,
                       "%s cannot be revoked in this job: start it with mpiexec -enable-recovery",
                       comm_label(comm));
    ft_revoke(comm);
    return MPI_SUCCESS;
}

int impl_Comm_shrink(struct comm *comm, MPI_Comm *newcomm)
{
    struct comm *made = NULL;
    int rc = ft_shrink(comm, &made);
    *newcomm = made ? comm_handle(made) : MPI_COMM_NULL;
    return rc;
}

int impl_Comm_ishrink(struct comm *comm, MPI_Comm *newcomm, MPI_Request *request)
{
    struct request *r;
    *newcomm = MPI_COMM_NULL;
    int rc = ft_shrink_start(comm, newcomm, &r);
    if (rc)
        return rc;
    r->comm = comm_retain(comm);
    *request = request_handle(r);
    return MPI_SUCCESS;
}

int impl_Comm_iagree(struct comm *comm, int *flag, MPI_Request *request)
{
    struct request *r;
    int rc = ft_agree_start(comm, flag, &r);
    if (rc)
        return rc;
    r->comm = comm_retain(comm);
    *request = request_handle(r);
    return MPI_SUCCESS;
}

/* Returns the group of failed processes. Makes progress first, to receive the launcher's notices: a program
 * may poll only this function in a loop. */
int group_return_failed(struct comm *comm, bool acked, MPI_Group *group)
{
    struct group *g;
    net_progress(comm->proc->net);
    int rc = comm_failed_group(comm, acked, &g);
    if (rc)
        return rc;
    *group = g->size ? group_handle(g) : MPI_GROUP_EMPTY;
    if (!g->size)
        group_release(g);
    return MPI_SUCCESS;
}

int impl_Comm_ack_failed(struct comm *comm, int num_to_ack, int *num_acked)
{
    *num_acked = comm_acknowledge(comm, num_to_ack);
    return MPI_SUCCESS;
}

int impl_Comm_failure_ack(struct comm *comm)
{
    net_progress(comm->proc->net);
    comm_acknowledge(comm, INT_MAX);
    return MPI_SUCCESS;
}
