/* coll_neighbor.c: neighbourhood collectives: blocking, nonblocking, persistent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/coll.h"
#include "impl.h"

int impl_Neighbor_allgather(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                            MPI_Count recvcount, struct dtype *recvtype, struct comm *comm)
{
    struct coll_args a;
    int rc = args_neighbor(
        &a, args_allgather(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));
    return args_run(&a, rc, "MPI_Neighbor_allgather");
}

int impl_Neighbor_allgatherv(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                             struct ivec recvcounts, struct ivec displs, struct dtype *recvtype,
                             struct comm *comm)
{
    struct coll_args a;
    int rc = args_neighbor(
        &a, args_allgatherv(&a, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm));
    return args_run(&a, rc, "MPI_Neighbor_allgatherv");
}

int impl_Neighbor_alltoall(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                           MPI_Count recvcount, struct dtype *recvtype, struct comm *comm)
{
    struct coll_args a;
    int rc = args_neighbor(
        &a, args_alltoall(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));
    return args_run(&a, rc, "MPI_Neighbor_alltoall");
}

int impl_Neighbor_alltoallv(const void *sendbuf, struct ivec sendcounts, struct ivec sdispls,
                            struct dtype *sendtype, void *recvbuf, struct ivec recvcounts,
                            struct ivec rdispls, struct dtype *recvtype, struct comm *comm)
{
    struct coll_args a;
    int rc = args_neighbor(&a, args_alltoallv(&a, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                                              rdispls, recvtype, comm));
    return args_run(&a, rc, "MPI_Neighbor_alltoallv");
}

int impl_Neighbor_alltoallw(const void *sendbuf, struct ivec sendcounts, const MPI_Aint sdispls[],
                            const MPI_Datatype sendtypes[], void *recvbuf, struct ivec recvcounts,
                            const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], struct comm *comm)
{
    struct coll_args a;
    int rc = args_neighbor(&a, args_alltoallw(&a, sendbuf, sendcounts, ivec_wide(sdispls), sendtypes, recvbuf,
                                              recvcounts, ivec_wide(rdispls), recvtypes, comm));
    return args_run(&a, rc, "MPI_Neighbor_alltoallw");
}

int impl_Ineighbor_allgather(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                             MPI_Count recvcount, struct dtype *recvtype, struct comm *comm,
                             MPI_Request *request)
{
    struct coll_args a;
    int rc = args_neighbor(
        &a, args_allgather(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));
    return args_start(&a, rc, "MPI_Ineighbor_allgather", request);
}

int impl_Ineighbor_allgatherv(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                              struct ivec recvcounts, struct ivec displs, struct dtype *recvtype,
                              struct comm *comm, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_neighbor(
        &a, args_allgatherv(&a, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm));
    return args_start(&a, rc, "MPI_Ineighbor_allgatherv", request);
}

int impl_Ineighbor_alltoall(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype, void *recvbuf,
                            MPI_Count recvcount, struct dtype *recvtype, struct comm *comm,
                            MPI_Request *request)
{
    struct coll_args a;
    int rc = args_neighbor(
        &a, args_alltoall(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));
    return args_start(&a, rc, "MPI_Ineighbor_alltoall", request);
}

int impl_Ineighbor_alltoallv(const void *sendbuf, struct ivec sendcounts, struct ivec sdispls,
                             struct dtype *sendtype, void *recvbuf, struct ivec recvcounts,
                             struct ivec rdispls, struct dtype *recvtype, struct comm *comm,
                             MPI_Request *request)
{
    struct coll_args a;
    int rc = args_neighbor(&a, args_alltoallv(&a, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                                              rdispls, recvtype, comm));
    return args_start(&a, rc, "MPI_Ineighbor_alltoallv", request);
}

int impl_Ineighbor_alltoallw(const void *sendbuf, struct ivec sendcounts, const MPI_Aint sdispls[],
                             const MPI_Datatype sendtypes[], void *recvbuf, struct ivec recvcounts,
                             const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], struct comm *comm,
                             MPI_Request *request)
{
    struct coll_args a;
    int rc = args_neighbor(&a, args_alltoallw(&a, sendbuf, sendcounts, ivec_wide(sdispls), sendtypes, recvbuf,
                                              recvcounts, ivec_wide(rdispls), recvtypes, comm));
    return args_start(&a, rc, "MPI_Ineighbor_alltoallw", request);
}

int impl_Neighbor_allgather_init(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype,
                                 void *recvbuf, MPI_Count recvcount, struct dtype *recvtype,
                                 struct comm *comm, struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_neighbor(
        &a, args_allgather(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));
    return args_init(&a, rc, "MPI_Neighbor_allgather_init", request);
}

int impl_Neighbor_allgatherv_init(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype,
                                  void *recvbuf, struct ivec recvcounts, struct ivec displs,
                                  struct dtype *recvtype, struct comm *comm, struct info *info,
                                  MPI_Request *request)
{
    struct coll_args a;
    int rc = args_neighbor(
        &a, args_allgatherv(&a, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm));
    return args_init(&a, rc, "MPI_Neighbor_allgatherv_init", request);
}

int impl_Neighbor_alltoall_init(const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype,
                                void *recvbuf, MPI_Count recvcount, struct dtype *recvtype, struct comm *comm,
                                struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_neighbor(
        &a, args_alltoall(&a, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));
    return args_init(&a, rc, "MPI_Neighbor_alltoall_init", request);
}

int impl_Neighbor_alltoallv_init(const void *sendbuf, struct ivec sendcounts, struct ivec sdispls,
                                 struct dtype *sendtype, void *recvbuf, struct ivec recvcounts,
                                 struct ivec rdispls, struct dtype *recvtype, struct comm *comm,
                                 struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_neighbor(&a, args_alltoallv(&a, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                                              rdispls, recvtype, comm));
    return args_init(&a, rc, "MPI_Neighbor_alltoallv_init", request);
}

int impl_Neighbor_alltoallw_init(const void *sendbuf, struct ivec sendcounts, const MPI_Aint sdispls[],
                                 const MPI_Datatype sendtypes[], void *recvbuf, struct ivec recvcounts,
                                 const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], struct comm *comm,
                                 struct info *info, MPI_Request *request)
{
    struct coll_args a;
    int rc = args_neighbor(&a, args_alltoallw(&a, sendbuf, sendcounts, ivec_wide(sdispls), sendtypes, recvbuf,
                                              recvcounts, ivec_wide(rdispls), recvtypes, comm));
    return args_init(&a, rc, "MPI_Neighbor_alltoallw_init", request);
}
