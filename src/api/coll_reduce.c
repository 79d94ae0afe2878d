/* coll_reduce.c: the blocking reductions.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/coll.h"
#include "impl.h"

int impl_Reduce(const void *sendbuf, void *recvbuf, MPI_Count count, struct dtype *datatype, struct op *op,
                int root, struct comm *comm)
{
    struct coll_args a;
    int rc = args_reduce(&a, COLL_REDUCE, sendbuf, recvbuf, count, datatype, op, root, comm);
    return args_run(&a, rc, "MPI_Reduce");
}

int impl_Allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, struct dtype *datatype, struct op *op,
                   struct comm *comm)
{
    struct coll_args a;
    int rc = args_reduce(&a, COLL_ALLREDUCE, sendbuf, recvbuf, count, datatype, op, 0, comm);
    return args_run(&a, rc, "MPI_Allreduce");
}

int impl_Scan(const void *sendbuf, void *recvbuf, MPI_Count count, struct dtype *datatype, struct op *op,
              struct comm *comm)
{
    struct coll_args a;
    int rc = args_reduce(&a, COLL_SCAN, sendbuf, recvbuf, count, datatype, op, 0, comm);
    return args_run(&a, rc, "MPI_Scan");
}

int impl_Exscan(const void *sendbuf, void *recvbuf, MPI_Count count, struct dtype *datatype, struct op *op,
                struct comm *comm)
{
    struct coll_args a;
    int rc = args_reduce(&a, COLL_EXSCAN, sendbuf, recvbuf, count, datatype, op, 0, comm);
    return args_run(&a, rc, "MPI_Exscan");
}

int impl_Reduce_scatter(const void *sendbuf, void *recvbuf, struct ivec recvcounts, struct dtype *datatype,
                        struct op *op, struct comm *comm)
{
    struct coll_args a;
    int rc = args_reduce_scatter(&a, sendbuf, recvbuf, recvcounts, datatype, op, comm);
    return args_run(&a, rc, "MPI_Reduce_scatter");
}

int impl_Reduce_scatter_block(const void *sendbuf, void *recvbuf, MPI_Count recvcount, struct dtype *datatype,
                              struct op *op, struct comm *comm)
{
    struct coll_args a;
    int rc = args_reduce_scatter_block(&a, sendbuf, recvbuf, recvcount, datatype, op, comm);
    return args_run(&a, rc, "MPI_Reduce_scatter_block");
}
