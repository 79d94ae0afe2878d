/* coll.h: describes collective calls: one function per operation checks the rules of that operation
 * (MPI_IN_PLACE, operator and type) and fills in the arguments that its blocking, nonblocking and persistent
 * forms share. The forms themselves are generated (api/gen/bodies.py).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_COLL_H
#define FP_API_COLL_H

#include "coll/coll.h"

struct info;

int args_barrier(struct coll_args *a, struct comm *comm);
int args_bcast(struct coll_args *a, void *buffer, MPI_Count count, struct dtype *type, int root,
               struct comm *comm);

int args_gather(struct coll_args *a, const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype,
                void *recvbuf, MPI_Count recvcount, struct dtype *recvtype, int root, struct comm *comm);
int args_gatherv(struct coll_args *a, const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype,
                 void *recvbuf, struct ivec recvcounts, struct ivec displs, struct dtype *recvtype, int root,
                 struct comm *comm);
int args_scatter(struct coll_args *a, const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype,
                 void *recvbuf, MPI_Count recvcount, struct dtype *recvtype, int root, struct comm *comm);
int args_scatterv(struct coll_args *a, const void *sendbuf, struct ivec sendcounts, struct ivec displs,
                  struct dtype *sendtype, void *recvbuf, MPI_Count recvcount, struct dtype *recvtype,
                  int root, struct comm *comm);

int args_allgather(struct coll_args *a, const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype,
                   void *recvbuf, MPI_Count recvcount, struct dtype *recvtype, struct comm *comm);
int args_allgatherv(struct coll_args *a, const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype,
                    void *recvbuf, struct ivec recvcounts, struct ivec displs, struct dtype *recvtype,
                    struct comm *comm);
int args_alltoall(struct coll_args *a, const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype,
                  void *recvbuf, MPI_Count recvcount, struct dtype *recvtype, struct comm *comm);
int args_alltoallv(struct coll_args *a, const void *sendbuf, struct ivec sendcounts, struct ivec sdispls,
                   struct dtype *sendtype, void *recvbuf, struct ivec recvcounts, struct ivec rdispls,
                   struct dtype *recvtype, struct comm *comm);
int args_alltoallw(struct coll_args *a, const void *sendbuf, struct ivec sendcounts, struct ivec sdispls,
                   const MPI_Datatype *sendtypes, void *recvbuf, struct ivec recvcounts, struct ivec rdispls,
                   const MPI_Datatype *recvtypes, struct comm *comm);

/* Turns a described allgather or alltoall into its neighbourhood form; `rc`: result of the description. */
int args_neighbor(struct coll_args *a, int rc);

/* Describes a reduce or, by `kind`, an allreduce, scan or exscan, whose root is 0. */
int args_reduce(struct coll_args *a, enum coll_kind kind, const void *sendbuf, void *recvbuf, MPI_Count count,
                struct dtype *type, struct op *op, int root, struct comm *comm);
int args_reduce_scatter(struct coll_args *a, const void *sendbuf, void *recvbuf, struct ivec recvcounts,
                        struct dtype *type, struct op *op, struct comm *comm);
int args_reduce_scatter_block(struct coll_args *a, const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                              struct dtype *type, struct op *op, struct comm *comm);

/* Executes the described call in one of three forms. `rc` is the result of the description; `name` is the
 * name of the MPI function. */
int args_run(struct coll_args *a, int rc, const char *name);
int args_start(struct coll_args *a, int rc, const char *name, MPI_Request *request);
int args_init(struct coll_args *a, int rc, const char *name, MPI_Request *request);

#endif
