/* coll_persistent.c: the persistent collectives. No info key is known; they are made to be started often.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/coll.h"
#include "impl.h"

int impl_Barrier_init(struct comm *comm, struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_barrier(&a, comm);
    return args_init(&a, rc, "MPI_Barrier_init", request);
}

int impl_Bcast_init(void *buffer, MPI_Count count, struct dtype *datatype, int root, struct comm *comm,
                    struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_bcast(&a, buffer, count, datatype, root, comm);
    return args_init(&a, rc, "MPI_Bcast_init", request);
}

int impl_Gather_init(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                     MPI_Count recvcount, struct dtype *recvtype, int root, struct comm *comm,
                     struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_gather(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
    return args_init(&a, rc, "MPI_Gather_init", request);
}

int impl_Gatherv_init(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                      struct ivec recvcounts, struct ivec displs, struct dtype *recvtype, int root,
                      struct comm *comm, struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc =
        args_gatherv(&a, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm);
    return args_init(&a, rc, "MPI_Gatherv_init", request);
}

int impl_Scatter_init(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                      MPI_Count recvcount, struct dtype *recvtype, int root, struct comm *comm,
                      struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_scatter(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
    return args_init(&a, rc, "MPI_Scatter_init", request);
}

int impl_Scatterv_init(const void *sendbuf, struct ivec sendcounts, struct ivec displs,
                       struct dtype *sendtype, void *recvbuf, MPI_Count recvcount, struct dtype *recvtype,
                       int root, struct comm *comm, struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc =
        args_scatterv(&a, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm);
    return args_init(&a, rc, "MPI_Scatterv_init", request);
}

int impl_Allgather_init(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                        MPI_Count recvcount, struct dtype *recvtype, struct comm *comm, struct info *info,
                        MPI_Request *request)
{
    struct coll_args a;
    int rc = args_allgather(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    return args_init(&a, rc, "MPI_Allgather_init", request);
}

int impl_Allgatherv_init(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                         struct ivec recvcounts, struct ivec displs, struct dtype *recvtype,
                         struct comm *comm, struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_allgatherv(&a, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
    return args_init(&a, rc, "MPI_Allgatherv_init", request);
}

int impl_Alltoall_init(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                       MPI_Count recvcount, struct dtype *recvtype, struct comm *comm, struct info *info,
                       MPI_Request *request)
{
    struct coll_args a;
    int rc = args_alltoall(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    return args_init(&a, rc, "MPI_Alltoall_init", request);
}

int impl_Alltoallv_init(const void *sendbuf, struct ivec sendcounts, struct ivec sdispls,
                        struct dtype *sendtype, void *recvbuf, struct ivec recvcounts, struct ivec rdispls,
                        struct dtype *recvtype, struct comm *comm, struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_alltoallv(&a, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                            recvtype, comm);
    return args_init(&a, rc, "MPI_Alltoallv_init", request);
}

int impl_Alltoallw_init(const void *sendbuf, struct ivec sendcounts, struct ivec sdispls,
                        const MPI_Datatype sendtypes[], void *recvbuf, struct ivec recvcounts,
                        struct ivec rdispls, const MPI_Datatype recvtypes[], struct comm *comm,
                        struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_alltoallw(&a, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                            recvtypes, comm);
    return args_init(&a, rc, "MPI_Alltoallw_init", request);
}

int impl_Reduce_init(const void *sendbuf, void *recvbuf, MPI_Count count, struct dtype *datatype,
                     struct op *op, int root, struct comm *comm, struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_reduce(&a, COLL_REDUCE, sendbuf, recvbuf, count, datatype, op, root, comm);
    return args_init(&a, rc, "MPI_Reduce_init", request);
}

int impl_Allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count, struct dtype *datatype,
                        struct op *op, struct comm *comm, struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_reduce(&a, COLL_ALLREDUCE, sendbuf, recvbuf, count, datatype, op, 0, comm);
    return args_init(&a, rc, "MPI_Allreduce_init", request);
}

int impl_Scan_init(const void *sendbuf, void *recvbuf, MPI_Count count, struct dtype *datatype, struct op *op,
                   struct comm *comm, struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_reduce(&a, COLL_SCAN, sendbuf, recvbuf, count, datatype, op, 0, comm);
    return args_init(&a, rc, "MPI_Scan_init", request);
}

int impl_Exscan_init(const void *sendbuf, void *recvbuf, MPI_Count count, struct dtype *datatype,
                     struct op *op, struct comm *comm, struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_reduce(&a, COLL_EXSCAN, sendbuf, recvbuf, count, datatype, op, 0, comm);
    return args_init(&a, rc, "MPI_Exscan_init", request);
}

int impl_Reduce_scatter_init(const void *sendbuf, void *recvbuf, struct ivec recvcounts,
                             struct dtype *datatype, struct op *op, struct comm *comm, struct info *info,
                             MPI_Request *request)
{
    struct coll_args a;
    int rc = args_reduce_scatter(&a, sendbuf, recvbuf, recvcounts, datatype, op, comm);
    return args_init(&a, rc, "MPI_Reduce_scatter_init", request);
}

int impl_Reduce_scatter_block_init(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                   struct dtype *datatype, struct op *op, struct comm *comm,
                                   struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_reduce_scatter_block(&a, sendbuf, recvbuf, recvcount, datatype, op, comm);
    return args_init(&a, rc, "MPI_Reduce_scatter_block_init", request);
}
