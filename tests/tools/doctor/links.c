/* links.c: large messages between all ranks, so that the tools can compare their links; then rank 0 waits
 * for a line of input (or its end) while all others wait for rank 0.
 *
 *     links BYTES ROUNDS
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Exchanges messages with one rank after the other, so that no two messages share a port. */
static void exchange_in_turn(char *out, char *in, int bytes, int rank, int size)
{
    for (int shift = 1; shift < size; shift++) {
        const int to = (rank + shift) % size, from = (rank + size - shift) % size;
        MPI_Sendrecv(out, bytes, MPI_BYTE, to, 0, in, bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    const int bytes = argc > 1 ? atoi(argv[1]) : 1 << 18, rounds = argc > 2 ? atoi(argv[2]) : 8;
    char *out = calloc(1, (size_t)bytes), *in = calloc(1, (size_t)bytes);
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int r = 0; r < rounds; r++)
        exchange_in_turn(out, in, bytes, rank, size);
    if (rank == 0)
        (void)getchar();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    free(out);
    free(in);
    return 0;
}
