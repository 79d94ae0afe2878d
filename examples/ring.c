/* ring.c: a sum is passed once around the ring of ranks; each rank adds its number. Rank 0 sends before it receives,
 * so that the ring does not deadlock.
 *
 *     mpicc ring.c -o ring
 *     mpiexec -n 4 ./ring
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size;
    long sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;

    if (rank == 0) {
        MPI_Request request;
        MPI_Isend(&sum, 1, MPI_LONG, right, 0, MPI_COMM_WORLD, &request);
        long total;
        MPI_Recv(&total, 1, MPI_LONG, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        printf("around %d ranks: %ld\n", size, total);
    } else {
        MPI_Recv(&sum, 1, MPI_LONG, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += rank;
        MPI_Send(&sum, 1, MPI_LONG, right, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
