/* known.c: a program for four ranks whose profile is exactly known; prof.sh contains the expected numbers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdlib.h>

enum { RANKS = 4, INTS = 250, LARGE = 32 * 1024, HUGE_INTS = 512 * 1024 };

static int rank, right, left;
static int out[INTS], in[INTS];
static char large[LARGE];

/* 10 messages of 1000 bytes to the right. */
static void test_ring(void)
{
    MPI_Request r[2];
    for (int i = 0; i < 10; i++) {
        MPI_Irecv(in, INTS, MPI_INT, left, 1, MPI_COMM_WORLD, &r[0]);
        MPI_Isend(out, INTS, MPI_INT, right, 1, MPI_COMM_WORLD, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    }
}

/* From rank 0 to 1: 3 messages of 32 KiB. To MPI_PROC_NULL: 2 calls, no message. */
static void test_blocking(void)
{
    for (int i = 0; i < 3; i++) {
        if (rank == 0)
            MPI_Send(large, LARGE, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        if (rank == 1)
            MPI_Recv(large, LARGE, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 2; i++)
        MPI_Send(large, LARGE, MPI_BYTE, MPI_PROC_NULL, 2, MPI_COMM_WORLD);
    MPI_Sendrecv_replace(large, 8, MPI_BYTE, right, 3, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* 5 messages of 4000 bytes to the left. */
static void test_persistent(void)
{
    static char room[2][4000];
    MPI_Request r[2];
    MPI_Send_init(room[0], 4000, MPI_BYTE, left, 4, MPI_COMM_WORLD, &r[0]);
    MPI_Recv_init(room[1], 4000, MPI_BYTE, right, 4, MPI_COMM_WORLD, &r[1]);
    for (int i = 0; i < 5; i++) {
        MPI_Startall(2, r);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

/* In each half of the ranks, the first sends 48 bytes, not contiguous, to the second: 0 to 2, 1 to 3. */
static void test_halves(void)
{
    static double strided[16];
    MPI_Comm half;
    MPI_Datatype vector;
    int place;
    MPI_Type_vector(3, 2, 4, MPI_DOUBLE, &vector);
    MPI_Type_commit(&vector);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_rank(half, &place);
    if (place == 0)
        MPI_Ssend(strided, 1, vector, 1, 5, half);
    else
        MPI_Recv(strided, 1, vector, 0, 5, half, MPI_STATUS_IGNORE);
    MPI_Comm_free(&half);
    MPI_Type_free(&vector);
}

/* 17 collective calls a rank: 4 + 1 + 6 + 1 + 1 + 2 + 1 + 1. */
static void test_collectives(void)
{
    static const int counts[RANKS] = {1, 2, 3, 4}, places[RANKS] = {0, 1, 3, 6};
    static char few[16];
    double value = 1, sum[1];
    int all[10];
    MPI_Request r;
    int *huge = calloc(HUGE_INTS, sizeof(*huge));
    for (int i = 0; i < 4; i++)
        MPI_Bcast(few, 16, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Ibcast(few, 16, MPI_CHAR, 1, MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; i++)
        MPI_Allreduce(&value, sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++)
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, huge, HUGE_INTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Gatherv(out, rank + 1, MPI_INT, all, counts, places, MPI_INT, 2, MPI_COMM_WORLD);
    MPI_Scatterv(all, counts, places, MPI_INT, out, rank + 1, MPI_INT, 2, MPI_COMM_WORLD);
    free(huge);
}

static void test_refused(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (MPI_Send(out, 1, MPI_INT, 99, 0, MPI_COMM_WORLD) == MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void test_unseen(void)
{
    MPI_Pcontrol(0);
    for (int i = 0; i < 5; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    test_ring();
    MPI_Pcontrol(1);
}

int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != RANKS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    test_ring();
    test_blocking();
    test_persistent();
    test_halves();
    test_unseen();
    test_collectives();
    test_refused();
    MPI_Finalize();
    return 0;
}
