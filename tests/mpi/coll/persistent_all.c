/* persistent_all.c: every persistent collective that persistent.c does not test, compared with its
 * blocking form on the same data, three times with new data.
 *
 * ranks: 1 3 4
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

enum { RANKS_MAX = 8, ITEMS = 5, ALL = RANKS_MAX * ITEMS };

static int in[ALL], out[ALL], want[ALL], counts[RANKS_MAX], displs[RANKS_MAX];
static const MPI_Comm world = MPI_COMM_WORLD;

static void fill_input(int round)
{
    for (int i = 0; i < ALL; i++) {
        in[i] = mpitest_rank * 1000 + i * 7 + round;
        out[i] = want[i] = -1;
    }
}

/* Starts the request three times; `blocking` stores in `want` the result that the request must store in
 * `out`. */
static void compare_with_blocking(const char *name, MPI_Request *r, void (*blocking)(void))
{
    for (int round = 0; round < 3; round++) {
        fill_input(round);
        blocking();
        MPI_Start(r);
        MPI_Wait(r, MPI_STATUS_IGNORE);
        for (int i = 0; i < ALL; i++)
            if (out[i] != want[i] && mpitest_failures++ < 20)
                fprintf(stderr, "rank %d: %s: item %d is %d, expected %d\n", mpitest_rank, name, i, out[i],
                        want[i]);
    }
    MPI_Request_free(r);
}

static void gather_blocking(void)
{
    MPI_Gather(in, ITEMS, MPI_INT, want, ITEMS, MPI_INT, 0, world);
}
static void scatter_blocking(void)
{
    MPI_Scatter(in, ITEMS, MPI_INT, want, ITEMS, MPI_INT, 0, world);
}
static void gatherv_blocking(void)
{
    MPI_Gatherv(in, counts[mpitest_rank], MPI_INT, want, counts, displs, MPI_INT, 0, world);
}
static void scatterv_blocking(void)
{
    MPI_Scatterv(in, counts, displs, MPI_INT, want, counts[mpitest_rank], MPI_INT, 0, world);
}
static void allgather_blocking(void)
{
    MPI_Allgather(in, ITEMS, MPI_INT, want, ITEMS, MPI_INT, world);
}
static void reduce_blocking(void)
{
    MPI_Reduce(in, want, ITEMS, MPI_INT, MPI_MAX, 0, world);
}
static void exscan_blocking(void)
{
    MPI_Exscan(in, want, ITEMS, MPI_INT, MPI_SUM, world);
}
static void reduce_scatter_blocking(void)
{
    MPI_Reduce_scatter(in, want, counts, MPI_INT, MPI_SUM, world);
}
static void reduce_scatter_block_blocking(void)
{
    MPI_Reduce_scatter_block(in, want, ITEMS, MPI_INT, MPI_SUM, world);
}

int main(int argc, char **argv)
{
    MPI_Request r;
    mpitest_begin(&argc, &argv);
    const int mine = mpitest_rank % 3 + 1;
    for (int i = 0; i < mpitest_size; i++) {
        counts[i] = i % 3 + 1;
        displs[i] = i * ITEMS;
    }
    MPI_Gather_init(in, ITEMS, MPI_INT, out, ITEMS, MPI_INT, 0, world, MPI_INFO_NULL, &r);
    compare_with_blocking("MPI_Gather_init", &r, gather_blocking);
    MPI_Scatter_init(in, ITEMS, MPI_INT, out, ITEMS, MPI_INT, 0, world, MPI_INFO_NULL, &r);
    compare_with_blocking("MPI_Scatter_init", &r, scatter_blocking);
    MPI_Gatherv_init(in, mine, MPI_INT, out, counts, displs, MPI_INT, 0, world, MPI_INFO_NULL, &r);
    compare_with_blocking("MPI_Gatherv_init", &r, gatherv_blocking);
    MPI_Scatterv_init(in, counts, displs, MPI_INT, out, mine, MPI_INT, 0, world, MPI_INFO_NULL, &r);
    compare_with_blocking("MPI_Scatterv_init", &r, scatterv_blocking);
    MPI_Allgather_init(in, ITEMS, MPI_INT, out, ITEMS, MPI_INT, world, MPI_INFO_NULL, &r);
    compare_with_blocking("MPI_Allgather_init", &r, allgather_blocking);
    MPI_Reduce_init(in, out, ITEMS, MPI_INT, MPI_MAX, 0, world, MPI_INFO_NULL, &r);
    compare_with_blocking("MPI_Reduce_init", &r, reduce_blocking);
    MPI_Exscan_init(in, out, ITEMS, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, &r);
    compare_with_blocking("MPI_Exscan_init", &r, exscan_blocking);
    MPI_Reduce_scatter_init(in, out, counts, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, &r);
    compare_with_blocking("MPI_Reduce_scatter_init", &r, reduce_scatter_blocking);
    MPI_Reduce_scatter_block_init(in, out, ITEMS, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, &r);
    compare_with_blocking("MPI_Reduce_scatter_block_init", &r, reduce_scatter_block_blocking);
    return mpitest_end();
}
