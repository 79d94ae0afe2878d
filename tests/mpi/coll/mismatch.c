/* mismatch.c: collective calls with different lengths return an error at every rank whose data would be
 * incomplete, no rank waits forever, and the communicator remains usable.
 *
 * ranks: 2 4
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "mpitest.h"

#define SHORT 4
#define LONG  40

enum kind { BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, KINDS };

static const char *const names[] = {"bcast",   "reduce",    "allreduce", "gather",
                                    "scatter", "allgather", "alltoall"};

static int *in, *out;

/* Executes a call in which rank 0 passes length `mine` and the other ranks `theirs`. Received blocks have
 * this rank's own length, except where the call sends less than it receives. */
static int call_collective(enum kind kind, bool nonblocking, int mine, int theirs, MPI_Comm comm)
{
    const MPI_Datatype t = MPI_INT;
    const int n = mpitest_rank == 0 ? mine : theirs;
    MPI_Request r = MPI_REQUEST_NULL;
    int rc = MPI_SUCCESS;
    switch (kind) {
    case BCAST:
        rc = nonblocking ? MPI_Ibcast(out, n, t, 0, comm, &r) : MPI_Bcast(out, n, t, 0, comm);
        break;
    case REDUCE:
        rc = nonblocking ? MPI_Ireduce(in, out, n, t, MPI_SUM, 0, comm, &r)
                         : MPI_Reduce(in, out, n, t, MPI_SUM, 0, comm);
        break;
    case ALLREDUCE:
        rc = nonblocking ? MPI_Iallreduce(in, out, n, t, MPI_SUM, comm, &r)
                         : MPI_Allreduce(in, out, n, t, MPI_SUM, comm);
        break;
    case GATHER:
        rc = nonblocking ? MPI_Igather(in, n, t, out, n, t, 0, comm, &r)
                         : MPI_Gather(in, n, t, out, n, t, 0, comm);
        break;
    case SCATTER:
        rc = nonblocking ? MPI_Iscatter(in, n, t, out, n, t, 0, comm, &r)
                         : MPI_Scatter(in, n, t, out, n, t, 0, comm);
        break;
    case ALLGATHER:
        rc = nonblocking ? MPI_Iallgather(in, n, t, out, theirs, t, comm, &r)
                         : MPI_Allgather(in, n, t, out, theirs, t, comm);
        break;
    case ALLTOALL:
        rc = nonblocking ? MPI_Ialltoall(in, n, t, out, n, t, comm, &r)
                         : MPI_Alltoall(in, n, t, out, n, t, comm);
        break;
    default:
        break;
    }
    return rc ? rc : MPI_Wait(&r, MPI_STATUS_IGNORE);
}

/* True if this rank must get an error because it receives, directly or through others, other data than it
 * requested. */
static bool expects_error(enum kind kind)
{
    if (kind == REDUCE || kind == GATHER)
        return mpitest_rank == 0;
    return (kind != BCAST && kind != SCATTER) || mpitest_rank != 0;
}

static void test_mismatch(enum kind kind, bool nonblocking, int mine, int theirs)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    const int rc = call_collective(kind, nonblocking, mine, theirs, comm);
    if (expects_error(kind) && rc == MPI_SUCCESS && mpitest_failures++ < 20)
        fprintf(stderr,
                "rank %d: %s%s with length %d at rank 0 and %d at the other ranks returned no error\n",
                mpitest_rank, nonblocking ? "nonblocking " : "", names[kind], mine, theirs);

    /* The next calls on the communicator are correct. */
    int sum = 0, last = mpitest_rank;
    EXPECT_EQ(MPI_Allreduce(&mpitest_rank, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    EXPECT_EQ(sum, mpitest_size * (mpitest_size - 1) / 2);
    EXPECT_EQ(MPI_Bcast(&last, 1, MPI_INT, mpitest_size - 1, comm), MPI_SUCCESS);
    EXPECT_EQ(last, mpitest_size - 1);
    EXPECT_EQ(call_collective(kind, nonblocking, theirs, theirs, comm), MPI_SUCCESS);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    in = calloc((size_t)mpitest_size * LONG, sizeof(*in));
    out = calloc((size_t)mpitest_size * LONG, sizeof(*out));
    for (int kind = 0; kind < KINDS; kind++)
        for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
            test_mismatch((enum kind)kind, nonblocking, SHORT, LONG);
            test_mismatch((enum kind)kind, nonblocking, LONG, SHORT);
        }
    free(in);
    free(out);
    return mpitest_end();
}
