/* ends.c: a job that does not end normally: "crash" (rank 1 has a segmentation fault), "killed" (rank 1 is
 * killed), "hangs" (all ranks wait for a message that never arrives).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <signal.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, never;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(argv[1], "hangs") == 0)
        MPI_Recv(&never, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        raise(strcmp(argv[1], "killed") == 0 ? SIGKILL : SIGSEGV);
    MPI_Recv(&never, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
