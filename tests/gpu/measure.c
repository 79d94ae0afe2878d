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

/* Returns the time in s per message of rank 0. */
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

/* Measures one put and one sum of doubles by rank 0 in the window of rank 1, which waits in a barrier. */
static void measure_window(enum area_kind window, int bytes, int turns)
{
    struct area memory = area_alloc(window, (size_t)bytes), data = area_alloc(AREA_DEVICE, (size_t)bytes);
    double begun, put = 0, sum = 0;
    MPI_Win w;
    MPI_Win_create(memory.at, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    MPI_Win_lock_all(0, w);
    for (int i = -2; rank == 0 && i < turns; i++) {
        begun = MPI_Wtime();
        MPI_Put(data.at, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, w);
        MPI_Win_flush(1, w);
        put += i < 0 ? 0 : MPI_Wtime() - begun;
        begun = MPI_Wtime();
        MPI_Accumulate(data.at, bytes / 8, MPI_DOUBLE, 1, 0, bytes / 8, MPI_DOUBLE, MPI_SUM, w);
        MPI_Win_flush(1, w);
        sum += i < 0 ? 0 : MPI_Wtime() - begun;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(w);
    MPI_Win_free(&w);
    if (rank == 0)
        printf("%-7s window  %9d B  put %10.2f us  accumulate %10.2f us\n", area_names[window], bytes,
               put / turns * 1e6, sum / turns * 1e6);
    fflush(stdout);
    area_free(&memory);
    area_free(&data);
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
    for (int kind = 0; kind < 2; kind++)
        for (size_t s = 0; s < (turns < 10 ? 4 : sizeof(sizes) / sizeof(*sizes)); s++)
            measure_window(kind ? AREA_POOL : AREA_DEVICE, sizes[s],
                           sizes[s] > 1 << 20 ? turns / 40 + 1 : turns);
    MPI_Finalize();
    return 0;
}
