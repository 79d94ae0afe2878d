/* messages.c: 400 messages of 8 bytes from rank 0 to rank 1, all of them sent before the first is received: nobody waits, so that the
 * instructions in MPI_Send and MPI_Recv can be counted (bench/ft/cost does it with callgrind).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>

enum { MESSAGES = 400 };

int main(int argc, char **argv)
{
    int rank;
    double x = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < 2; turn++) { /* the first one opens connections */
        for (int i = 0; i < MESSAGES && rank == 0; i++)
            MPI_Send(&x, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < MESSAGES && rank == 1; i++)
            MPI_Recv(&x, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
