/* measure.c: measures latency (half of a ping-pong) and bandwidth (consecutive large messages) between two
 * ranks, with the buffers of sender and receiver in every kind of memory, one line each. Not a test: it
 * checks nothing. Argument: iterations for small messages (default 1000).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "area.h"

static int rank;

static double measure_ping_pong(const struct area *a, int bytes, int turns)
{
    double begun = 0;
    for (int i = -turns / 10 - 1; i < turns; i++) {
        if (i == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            begun = MPI_Wtime();
        }
        if (rank == 0)
            MPI_Send(a->at, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(a->at, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(a->at, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - begun) / turns / 2;
}

/* Returns the time in s of one message of rank 0. */
static double measure_stream(const struct area *a, int bytes, int turns)
{
    double begun = 0;
    for (int i = -2; i < turns; i++) {
        if (i == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            begun = MPI_Wtime();
        }
        if (rank == 0)
            MPI_Send(a->at, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(a->at, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return (MPI_Wtime() - begun) / turns;
}

int main(int argc, char **argv)
{
    static const enum area_kind pairs[][2] = {
        {AREA_HOST, AREA_HOST},   {AREA_DEVICE, AREA_DEVICE}, {AREA_DEVICE, AREA_PINNED},
        {AREA_DEVICE, AREA_HOST}, {AREA_PINNED, AREA_DEVICE}, {AREA_HOST, AREA_DEVICE},
        {AREA_POOL, AREA_DEVICE}, {AREA_POOL, AREA_POOL},
    };
    static const int sizes[] = {8, 4096, 65536, 1 << 20, 16 << 20, 64 << 20};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!area_load_cuda()) {
        MPI_Finalize();
        return 77;
    }
    const int turns = argc > 1 ? atoi(argv[1]) : 1000;
    for (size_t p = 0; p < sizeof(pairs) / sizeof(*pairs); p++)
        for (size_t s = 0; s < (turns < 10 ? 4 : sizeof(sizes) / sizeof(*sizes)); s++) {
            struct area a = area_alloc(pairs[p][rank], (size_t)sizes[s]);
            area_fill(&a, 1);
            const int n = sizes[s] > 1 << 20 ? turns / 40 + 1 : turns;
            const double once = measure_ping_pong(&a, sizes[s], n), each = measure_stream(&a, sizes[s], n);
            if (rank == 0)
                printf("%-7s %-7s %9d B  latency %10.2f us  stream %10.2f us %9.3f GB/s\n",
                       area_names[pairs[p][0]], area_names[pairs[p][1]], sizes[s], once * 1e6, each * 1e6,
                       sizes[s] / each / 1e9);
            fflush(stdout);
            area_free(&a);
        }
    MPI_Finalize();
    return 0;
}
