/* mismatch.c: makes mismatched collective calls, selected by its argument, after some calls that match.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, x[8] = {0}, y[8], which = argc > 1 ? atoi(argv[1]) : 99;
    double d[3] = {0}, e[3];
    MPI_Comm w = MPI_COMM_WORLD;
    MPI_Datatype four;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(w, &rank);
    MPI_Type_contiguous(4, MPI_INT, &four);
    MPI_Type_commit(&four);
    MPI_Barrier(w);
    MPI_Allreduce(x, y, 4, MPI_INT, MPI_SUM, w);
    /* The same data, described by another datatype. */
    MPI_Bcast(x, rank ? 4 : 1, rank ? MPI_INT : four, 0, w);
    if (which == 0 && rank == 1)
        MPI_Bcast(x, 4, MPI_INT, 0, w);
    else if (which == 0)
        MPI_Barrier(w);
    if (which == 1)
        MPI_Bcast(x, 4, MPI_INT, rank == 2, w);
    if (which == 2 && rank == 0)
        MPI_Allreduce(d, e, 3, MPI_DOUBLE, MPI_SUM, w);
    else if (which == 2)
        MPI_Allreduce(x, y, 4, MPI_INT, MPI_SUM, w);
    if (which == 3)
        MPI_Allreduce(x, y, 4, MPI_INT, rank == 1 ? MPI_MAX : MPI_SUM, w);
    if (which == 4) { /* both ranks send and receive nothing: only the next call reveals the mismatch */
        if (rank == 0)
            MPI_Bcast(x, 4, MPI_INT, 0, w);
        else
            MPI_Reduce(x, y, 4, MPI_INT, MPI_SUM, 0, w);
        MPI_Barrier(w);
    }
    if (which == 5 && rank == 0)
        MPI_Gather(x, 1, MPI_INT, y, 1, MPI_INT, 0, w);
    else if (which == 5)
        MPI_Allgather(x, 1, MPI_INT, y, 1, MPI_INT, w);
    if (which == 6 && rank == 0) /* one rank uses a schedule, the other one shared memory */
        MPI_Scan(x, y, 4, MPI_INT, MPI_SUM, w);
    else if (which == 6)
        MPI_Allreduce(x, y, 4, MPI_INT, MPI_SUM, w);
    if (which == 7 && rank == 0) /* both ranks send and receive nothing, and no other call follows */
        MPI_Bcast(x, 4, MPI_INT, 0, w);
    else if (which == 7)
        MPI_Reduce(x, y, 4, MPI_INT, MPI_SUM, 0, w);
    if (which == 8) { /* a blocking and a nonblocking call in different orders: the data is correct */
        MPI_Request r;
        const int first = rank == 0;
        for (int i = 0; i < 4; i++) {
            x[i] = first ? i : -1;
            y[i] = first ? 10 + i : -1;
        }
        if (first)
            MPI_Ibcast(y, 4, MPI_INT, 0, w, &r);
        MPI_Bcast(x, 4, MPI_INT, 0, w);
        if (!first)
            MPI_Ibcast(y, 4, MPI_INT, 0, w, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        for (int i = 0; i < 4; i++)
            if (x[i] != i || y[i] != 10 + i)
                MPI_Abort(w, 5);
    }
    if (which == 10) {
        MPI_Request r;
        if (rank == 0)
            MPI_Ibcast(x, 4, MPI_INT, 0, w, &r);
        else
            MPI_Iallreduce(x, y, 4, MPI_INT, MPI_SUM, w, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    if (which == 11 && rank == 0) /* each rank waits for a message of another rank, and none is sent */
        MPI_Reduce(x, y, 4, MPI_INT, MPI_SUM, 0, w);
    else if (which == 11)
        MPI_Bcast(x, 4, MPI_INT, 0, w);
    if (which == 12) { /* rank 0, the root, finishes its send and calls MPI_Finalize */
        MPI_Request r = MPI_REQUEST_NULL;
        if (rank == 0)
            MPI_Bcast(x, 4, MPI_INT, 0, w);
        else
            MPI_Ibcast(x, 4, MPI_INT, 0, w, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    if (which == 13) { /* rank 0 makes the blocking call, the others the nonblocking one: all ranks wait */
        MPI_Request r = MPI_REQUEST_NULL;
        if (rank == 0)
            MPI_Allreduce(x, y, 4, MPI_INT, MPI_SUM, w);
        else
            MPI_Iallreduce(x, y, 4, MPI_INT, MPI_SUM, w, &r);
        MPI_Waitall(1, &r, MPI_STATUSES_IGNORE);
    }
    if (which == 14 && rank > 0) /* rank 0 makes no call */
        MPI_Allreduce(x, y, 4, MPI_INT, MPI_SUM, w);
    if (which == 15) { /* rank 0 is late, by more than the time of the first queries, but its call matches */
        if (rank == 0)
            for (const double end = MPI_Wtime() + 3; MPI_Wtime() < end;)
                MPI_Iprobe(MPI_ANY_SOURCE, 0, w, &y[0], MPI_STATUS_IGNORE);
        MPI_Allreduce(x, y, 4, MPI_INT, MPI_SUM, w);
    }
    if (which == 9 && rank == 0) /* each rank waits for a message of the other, and none is sent */
        MPI_Gather(x, 1, MPI_INT, y, 1, MPI_INT, 0, w);
    else if (which == 9)
        MPI_Bcast(x, 1, MPI_INT, 0, w);
    MPI_Type_free(&four);
    MPI_Finalize();
    return 0;
}
