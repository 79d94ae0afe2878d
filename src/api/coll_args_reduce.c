/* coll_args_reduce.c: describes reductions: the operator must be defined for the type, and the buffers must
 * differ.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"
#include "api/coll.h"

static int args_check_reduce(struct coll_args *a, const void *recvbuf)
{
    if (recvbuf == MPI_IN_PLACE)
        return err_set(MPI_ERR_BUFFER, "recvbuf is MPI_IN_PLACE; only sendbuf may be");
    if (!a->comm->proc->check_args)
        return 0;
    MPI_Count count = a->send.count;
    if (!a->in_place && recvbuf && a->send.buf == recvbuf && count > 0 && a->send.type->size > 0)
        return err_set(MPI_ERR_BUFFER, "sendbuf and recvbuf are the same memory; use MPI_IN_PLACE");
    return op_check(a->op, a->send.type);
}

static int args_set_reduce_buffers(struct coll_args *a, const void *sendbuf, void *recvbuf, MPI_Count count,
                                   struct dtype *type)
{
    a->in_place = sendbuf == MPI_IN_PLACE;
    if (a->in_place && a->comm->remote)
        return err_set(MPI_ERR_BUFFER, "sendbuf is MPI_IN_PLACE, which an intercommunicator does not allow");
    a->send = (struct coll_side){
        .buf = a->in_place ? NULL : (void *)(uintptr_t)sendbuf, .count = count, .type = type};
    a->recv = (struct coll_side){.buf = recvbuf, .count = count, .type = type};
    return args_check_reduce(a, recvbuf);
}

int args_reduce(struct coll_args *a, enum coll_kind kind, const void *sendbuf, void *recvbuf, MPI_Count count,
                struct dtype *type, struct op *op, int root, struct comm *comm)
{
    *a = (struct coll_args){.kind = kind, .comm = comm, .op = op, .root = root};
    if (kind == COLL_REDUCE) {
        if (comm->remote && root == MPI_PROC_NULL)
            return 0;
        const bool is_root = api_is_root(comm, root);
        if (!is_root && sendbuf == MPI_IN_PLACE)
            return err_set(MPI_ERR_BUFFER, "sendbuf is MPI_IN_PLACE, which only the root may use");
        if (!is_root)
            recvbuf = NULL;
        else if (comm->remote)
            sendbuf = NULL;
    }
    if ((kind == COLL_SCAN || kind == COLL_EXSCAN) && comm->remote)
        return err_set(MPI_ERR_COMM, "there are no scans on intercommunicators");
    return args_set_reduce_buffers(a, sendbuf, recvbuf, count, type);
}

int args_reduce_scatter(struct coll_args *a, const void *sendbuf, void *recvbuf, struct ivec recvcounts,
                        struct dtype *type, struct op *op, struct comm *comm)
{
    *a = (struct coll_args){.kind = COLL_REDUCE_SCATTER, .comm = comm, .op = op, .vector = true};
    int rc = args_set_reduce_buffers(a, sendbuf, recvbuf, ivec_get(recvcounts, (size_t)comm->rank), type);
    a->recv.counts = recvcounts;
    return rc;
}

int args_reduce_scatter_block(struct coll_args *a, const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                              struct dtype *type, struct op *op, struct comm *comm)
{
    *a = (struct coll_args){.kind = COLL_REDUCE_SCATTER, .comm = comm, .op = op};
    return args_set_reduce_buffers(a, sendbuf, recvbuf, recvcount, type);
}
