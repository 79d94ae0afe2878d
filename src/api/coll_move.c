/* coll_move.c: the blocking collectives that move data, and the barrier.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/coll.h"
#include "impl.h"

int impl_Barrier(struct comm *comm)
{
    struct coll_args a;
    int rc = args_barrier(&a, comm);
    return args_run(&a, rc, "MPI_Barrier");
}

int impl_Bcast(void *buffer, MPI_Count count, struct dtype *datatype, int root, struct comm *comm)
{
    struct coll_args a;
    int rc = args_bcast(&a, buffer, count, datatype, root, comm);
    return args_run(&a, rc, "MPI_Bcast");
}

int impl_Gather(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                MPI_Count recvcount, struct dtype *recvtype, int root, struct comm *comm)
{
    struct coll_args a;
    int rc = args_gather(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
    return args_run(&a, rc, "MPI_Gather");
}

int impl_Gatherv(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                 struct ivec recvcounts, struct ivec displs, struct dtype *recvtype, int root,
                 struct comm *comm)
{
    struct coll_args a;
    int rc =
        args_gatherv(&a, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm);
    return args_run(&a, rc, "MPI_Gatherv");
}

int impl_Scatter(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                 MPI_Count recvcount, struct dtype *recvtype, int root, struct comm *comm)
{
    struct coll_args a;
    int rc = args_scatter(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
    return args_run(&a, rc, "MPI_Scatter");
}

int impl_Scatterv(const void *sendbuf, struct ivec sendcounts, struct ivec displs, struct dtype *sendtype,
                  void *recvbuf, MPI_Count recvcount, struct dtype *recvtype, int root, struct comm *comm)
{
    struct coll_args a;
    int rc =
        args_scatterv(&a, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm);
    return args_run(&a, rc, "MPI_Scatterv");
}

int impl_Allgather(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                   MPI_Count recvcount, struct dtype *recvtype, struct comm *comm)
{
    struct coll_args a;
    int rc = args_allgather(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    return args_run(&a, rc, "MPI_Allgather");
}

int impl_Allgatherv(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                    struct ivec recvcounts, struct ivec displs, struct dtype *recvtype, struct comm *comm)
{
    struct coll_args a;
    int rc = args_allgatherv(&a, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
    return args_run(&a, rc, "MPI_Allgatherv");
}

int impl_Alltoall(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                  MPI_Count recvcount, struct dtype *recvtype, struct comm *comm)
{
    struct coll_args a;
    int rc = args_alltoall(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    return args_run(&a, rc, "MPI_Alltoall");
}

int impl_Alltoallv(const void *sendbuf, struct ivec sendcounts, struct ivec sdispls, struct dtype *sendtype,
                   void *recvbuf, struct ivec recvcounts, struct ivec rdispls, struct dtype *recvtype,
                   struct comm *comm)
{
    struct coll_args a;
    int rc = args_alltoallv(&a, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                            recvtype, comm);
    return args_run(&a, rc, "MPI_Alltoallv");
}

int impl_Alltoallw(const void *sendbuf, struct ivec sendcounts, struct ivec sdispls,
                   const MPI_Datatype sendtypes[], void *recvbuf, struct ivec recvcounts, struct ivec rdispls,
                   const MPI_Datatype recvtypes[], struct comm *comm)
{
    struct coll_args a;
    int rc = args_alltoallw(&a, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                            recvtypes, comm);
    return args_run(&a, rc, "MPI_Alltoallw");
}
