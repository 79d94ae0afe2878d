/* hello.c: rank 0 prints the name of the host of every rank, in order.
 *
 *     mpicc hello.c -o hello
 *     mpiexec -n 4 ./hello
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, length;
    char host[MPI_MAX_PROCESSOR_NAME];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);

    if (rank == 0) {
        printf("rank 0 of %d on %s\n", size, host);
        for (int r = 1; r < size; r++) {
            MPI_Recv(host, sizeof(host), MPI_CHAR, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            printf("rank %d of %d on %s\n", r, size, host);
        }
    } else {
        MPI_Send(host, length + 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
