/* polite.c: ranks that wait while another works leave the processors to it, when there are more ranks than
 * processors: their own processor time is a small part of the wait.
 *
 * ranks: 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sys/resource.h>
#include <time.h>

#include "mpitest.h"

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Computes until this process itself has used half a second of processor time, however loaded the machine is. */
static void work(void)
{
    double end = seconds(CLOCK_PROCESS_CPUTIME_ID) + 0.5;
    while (seconds(CLOCK_PROCESS_CPUTIME_ID) < end)
        continue;
}

int main(int argc, char **argv)
{
    int x = 0;
    mpitest_begin(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD); /* connections are made */
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
    MPI_Barrier(MPI_COMM_WORLD); /* no rank reads the clock late, when the work is half done */
    if (mpitest_rank == 0) {
        work();
        for (int i = 1; i < mpitest_size; i++)
            MPI_Send(&x, 1, MPI_INT, i, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        wall = seconds(CLOCK_MONOTONIC) - wall;
        EXPECT(wall > 0.1);
        EXPECT(cpu < 0.3 * wall);
    }
    return mpitest_end();
}
