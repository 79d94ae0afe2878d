/* overtake.c: rank 0 sends a large message, which occupies the link for two seconds, and then a small one.
 * Rank 1 prints which of them arrived first. Run by service_level.sh.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGE = 4 << 20, SMALL = 8 };

/* Advances the transfer of the large message for a tenth of a second, so that it is on the link. */
static void transfer_for_a_while(MPI_Request *request)
{
    int done = 0;
    const double until = MPI_Wtime() + 0.1;
    while (!done && MPI_Wtime() < until)
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Request requests[2];
    int rank, first;
    char *data = calloc(2, LARGE);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!data)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Isend(data, LARGE, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[0]);
        transfer_for_a_while(&requests[0]);
        MPI_Isend(data + LARGE, SMALL, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else if (rank == 1) {
        MPI_Irecv(data, LARGE, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(data + LARGE, SMALL, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Waitany(2, requests, &first, MPI_STATUS_IGNORE);
        MPI_Wait(&requests[1 - first], MPI_STATUS_IGNORE);
        printf("first: %s\n", first == 0 ? "large" : "small");
    }
    free(data);
    MPI_Finalize();
    return 0;
}
