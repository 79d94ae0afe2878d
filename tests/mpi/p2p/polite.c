/* polite.c: with more ranks than processors, ranks that wait yield the processors to a working rank: the
 * processor time of waiting ranks is a small part of the waiting time.
 *
 * ranks: 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"
#include "mpitest.h"

/* Computes until this process has used half a second of processor time, on a machine with any load. */
static void compute_for_cpu_time(void)
{
    double end = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) + 0.5;
    while (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) < end)
        continue;
}

int main(int argc, char **argv)
{
    int x = 0;
    mpitest_begin(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD); /* opens all connections */
    double cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID), wall = clock_seconds(CLOCK_MONOTONIC);
    MPI_Barrier(MPI_COMM_WORLD); /* all ranks read the clock before the work begins */
    if (mpitest_rank == 0) {
        compute_for_cpu_time();
        for (int i = 1; i < mpitest_size; i++)
            MPI_Send(&x, 1, MPI_INT, i, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        wall = clock_seconds(CLOCK_MONOTONIC) - wall;
        EXPECT(wall > 0.1);
        EXPECT(cpu < 0.3 * wall);
    }
    return mpitest_end();
}
