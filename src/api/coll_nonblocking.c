/* coll_nonblocking.c: the nonblocking collectives.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/coll.h"
#include "impl.h"

int impl_Ibarrier(struct comm *comm, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_barrier(&a, comm);
    return args_start(&a, rc, "MPI_Ibarrier", request);
}

int impl_Ibcast(void *buffer, MPI_Count count, struct dtype *datatype, int root, struct comm *comm,
                MPI_Request *request)
{
    struct coll_args a;
    int rc = args_bcast(&a, buffer, count, datatype, root, comm);
    return args_start(&a, rc, "MPI_Ibcast", request);
}

int impl_Igather(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                 MPI_Count recvcount, struct dtype *recvtype, int root, struct comm *comm,
                 MPI_Request *request)
{
    struct coll_args a;
    int rc = args_gather(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
    return args_start(&a, rc, "MPI_Igather", request);
}

int impl_Igatherv(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                  struct ivec recvcounts, struct ivec displs, struct dtype *recvtype, int root,
                  struct comm *comm, MPI_Request *request)
{
    struct coll_args a;
    int rc =
        args_gatherv(&a, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm);
    return args_start(&a, rc, "MPI_Igatherv", request);
}

int impl_Iscatter(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                  MPI_Count recvcount, struct dtype *recvtype, int root, struct comm *comm,
                  MPI_Request *request)
{
    struct coll_args a;
    int rc = args_scatter(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
    return args_start(&a, rc, "MPI_Iscatter", request);
}

int impl_Iscatterv(const void *sendbuf, struct ivec sendcounts, struct ivec displs, struct dtype *sendtype,
                   void *recvbuf, MPI_Count recvcount, struct dtype *recvtype, int root, struct comm *comm,
                   MPI_Request *request)
{
    struct coll_args a;
    int rc =
        args_scatterv(&a, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm);
    return args_start(&a, rc, "MPI_Iscatterv", request);
}

int impl_Iallgather(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                    MPI_Count recvcount, struct dtype *recvtype, struct comm *comm, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_allgather(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    return args_start(&a, rc, "MPI_Iallgather", request);
}

int impl_Iallgatherv(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                     struct ivec recvcounts, struct ivec displs, struct dtype *recvtype, struct comm *comm,
                     MPI_Request *request)
{
    struct coll_args a;
    int rc = args_allgatherv(&a, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
    return args_start(&a, rc, "MPI_Iallgatherv", request);
}

int impl_Ialltoall(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                   MPI_Count recvcount, struct dtype *recvtype, struct comm *comm, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_alltoall(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    return args_start(&a, rc, "MPI_Ialltoall", request);
}

int impl_Ialltoallv(const void *sendbuf, struct ivec sendcounts, struct ivec sdispls, struct dtype *sendtype,
                    void *recvbuf, struct ivec recvcounts, struct ivec rdispls, struct dtype *recvtype,
                    struct comm *comm, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_alltoallv(&a, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                            recvtype, comm);
    return args_start(&a, rc, "MPI_Ialltoallv", request);
}

int impl_Ialltoallw(const void *sendbuf, struct ivec sendcounts, struct ivec sdispls,
                    const MPI_Datatype sendtypes[], void *recvbuf, struct ivec recvcounts,
                    struct ivec rdispls, const MPI_Datatype recvtypes[], struct comm *comm,
                    MPI_Request *request)
{
    struct coll_args a;
    int rc = args_alltoallw(&a, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                            recvtypes, comm);
    return args_start(&a, rc, "MPI_Ialltoallw", request);
}

int impl_Ireduce(const void *sendbuf, void *recvbuf, MPI_Count count, struct dtype *datatype, struct op *op,
                 int root, struct comm *comm, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_reduce(&a, COLL_REDUCE, sendbuf, recvbuf, count, datatype, op, root, comm);
    return args_start(&a, rc, "MPI_Ireduce", request);
}

int impl_Iallreduce(const void *sendbuf, void *recvbuf, MPI_Count count, struct dtype *datatype,
                    struct op *op, struct comm *comm, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_reduce(&a, COLL_ALLREDUCE, sendbuf, recvbuf, count, datatype, op, 0, comm);
    return args_start(&a, rc, "MPI_Iallreduce", request);
}

int impl_Iscan(const void *sendbuf, void *recvbuf, MPI_Count count, struct dtype *datatype, struct op *op,
               struct comm *comm, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_reduce(&a, COLL_SCAN, sendbuf, recvbuf, count, datatype, op, 0, comm);
    return args_start(&a, rc, "MPI_Iscan", request);
}

int impl_Iexscan(const void *sendbuf, void *recvbuf, MPI_Count count, struct dtype *datatype, struct op *op,
                 struct comm *comm, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_reduce(&a, COLL_EXSCAN, sendbuf, recvbuf, count, datatype, op, 0, comm);
    return args_start(&a, rc, "MPI_Iexscan", request);
}

int impl_Ireduce_scatter(const void *sendbuf, void *recvbuf, struct ivec recvcounts, struct dtype *datatype,
                         struct op *op, struct comm *comm, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_reduce_scatter(&a, sendbuf, recvbuf, recvcounts, datatype, op, comm);
    return args_start(&a, rc, "MPI_Ireduce_scatter", request);
}

int impl_Ireduce_scatter_block(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                               struct dtype *datatype, struct op *op, struct comm *comm, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_reduce_scatter_block(&a, sendbuf, recvbuf, recvcount, datatype, op, comm);
    return args_start(&a, rc, "MPI_Ireduce_scatter_block", request);
}
