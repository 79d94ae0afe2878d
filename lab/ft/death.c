/* death.c: time from the death of a rank until every other rank has the error, and until the survivors have a
 * new communicator. Prints one row for each number of living ranks; the last rank dies in each round.
 *
 *     mpicc -O2 lab/ft/death.c -o death
 *     mpiexec -enable-recovery -n 16 ./death
 *     mpiexec -enable-recovery -n 16 -vnodes 4 ./death
 *
 * The clock is CLOCK_MONOTONIC: all ranks must be on one machine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

static double death_clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* The last rank connects to all others, sends them the present time and kills itself. The others block in
 * a second receive or in a barrier until MPI reports the error. */
static void death_kill_last_rank(MPI_Comm comm, int rank, int size, int in_barrier, double *died)
{
    if (rank == size - 1) {
        for (int i = 0; i < size - 1; i++)
            MPI_Ssend(NULL, 0, MPI_DOUBLE, i, 0, comm);
        double t = death_clock_ms();
        for (int i = 0; i < size - 1; i++)
            MPI_Send(&t, 1, MPI_DOUBLE, i, 0, comm);
        raise(SIGKILL);
    }
    double more;
    MPI_Recv(NULL, 0, MPI_DOUBLE, size - 1, 0, comm, MPI_STATUS_IGNORE);
    MPI_Recv(died, 1, MPI_DOUBLE, size - 1, 0, comm, MPI_STATUS_IGNORE);
    if (in_barrier)
        MPI_Barrier(comm);
    else
        MPI_Recv(&more, 1, MPI_DOUBLE, size - 1, 0, comm, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    if (rank == 0)
        printf("ranks  call        error at all, ms  shrunk, ms  agree without faults, us\n");
    for (int round = 0; size > 1; round++) {
        double died = 0, mine[3], worst[3];
        MPI_Comm next;
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        MPI_Barrier(comm);
        death_kill_last_rank(comm, rank, size, round % 2, &died);
        mine[0] = death_clock_ms() - died;
        double begin = death_clock_ms();
        MPIX_Comm_shrink(comm, &next);
        mine[1] = death_clock_ms() - begin;
        MPI_Barrier(next);
        begin = death_clock_ms();
        for (int i = 0; i < 100; i++) {
            int flag = 1;
            MPIX_Comm_agree(next, &flag);
        }
        mine[2] = 10 * (death_clock_ms() - begin);
        MPI_Allreduce(mine, worst, 3, MPI_DOUBLE, MPI_MAX, next);
        if (rank == 0)
            printf("%5d  %-10s %17.2f %11.2f %25.1f\n", size, round % 2 ? "barrier" : "receive", worst[0],
                   worst[1], worst[2]);
        if (comm != MPI_COMM_WORLD)
            MPI_Comm_free(&comm);
        comm = next;
        MPI_Comm_size(comm, &size);
        MPI_Comm_rank(comm, &rank);
    }
    MPI_Finalize();
    return 0;
}
