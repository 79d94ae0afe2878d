/* ping.c: ping ROUNDS BYTES MAPS: a ping-pong between two ranks, marked for the plugin. Rank 0 writes the
 * addresses of its libraries to the file MAPS; they must be the same in both ranks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "marks.h"

/* Emits the instructions as data, so that compiler and assembler need not support them. */
#define MARK(mark)     MARK_TEXT(MARK_BYTES(mark))
#define MARK_TEXT(...) MARK_AS(__VA_ARGS__)
#define MARK_AS(...)   __asm__ volatile(".byte " #__VA_ARGS__ ::: "memory")

enum { WARM = 1000 };

static void copy_maps(const char *path)
{
    char line[1024];
    FILE *in = fopen("/proc/self/maps", "r"), *out = fopen(path, "w");
    while (in && out && fgets(line, sizeof(line), in))
        fputs(line, out);
    if (in)
        fclose(in);
    if (out)
        fclose(out);
}

static void exchange_rounds(int n, int rank, char *bytes, int size)
{
    for (int i = 0; i < n; i++) {
        if (rank == 0)
            MPI_Send(bytes, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(bytes, size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(bytes, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int rank, n = argc > 3 ? atoi(argv[1]) : 0, size = argc > 3 ? atoi(argv[2]) : 0;
    char *bytes = calloc(1, (size_t)size + 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && argc > 3)
        copy_maps(argv[3]);
    exchange_rounds(WARM, rank, bytes, size);
    if (rank == 0)
        MARK(MARK_BEGIN);
    exchange_rounds(n, rank, bytes, size);
    if (rank == 0)
        MARK(MARK_END);
    MPI_Finalize();
    free(bytes);
    return 0;
}
