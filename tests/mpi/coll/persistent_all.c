/* persistent_all.c: every persistent collective that persistent.c does not have, each against its blocking form on the same
 * data, three times with new data.
 *
 * ranks: 1 3 4
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

enum { MOST = 8, ITEMS = 5, ALL = MOST * ITEMS };

static int in[ALL], out[ALL], want[ALL], counts[MOST], displs[MOST];
static const MPI_Comm world = MPI_COMM_WORLD;

static void persistent_all_new_objects(int round)
{
    for (int i = 0; i < ALL; i++) {
        in[i] = mpitest_rank * 1000 + i * 7 + round;
        out[i] = want[i] = -1;
    }
}

/* Starts it three times; `blocking` fills `want` as the request must fill `out`. */
static void persistent_all_compare(const char *name, MPI_Request *r, void (*blocking)(void))
{
    for (int round = 0; round < 3; round++) {
        persistent_all_new_objects(round);
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

static void test_gather(void)
{
    MPI_Gather(in, ITEMS, MPI_INT, want, ITEMS, MPI_INT, 0, world);
}
static void test_scatter(void)
{
    MPI_Scatter(in, ITEMS, MPI_INT, want, ITEMS, MPI_INT, 0, world);
}
static void test_gatherv(void)
{
    MPI_Gatherv(in, counts[mpitest_rank], MPI_INT, want, counts, displs, MPI_INT, 0, world);
}
static void test_scatterv(void)
{
    MPI_Scatterv(in, counts, displs, MPI_INT, want, counts[mpitest_rank], MPI_INT, 0, world);
}
static void test_allgather(void)
{
    MPI_Allgather(in, ITEMS, MPI_INT, want, ITEMS, MPI_INT, world);
}
static void test_reduce(void)
{
    MPI_Reduce(in, want, ITEMS, MPI_INT, MPI_MAX, 0, world);
}
static void test_exscan(void)
{
    MPI_Exscan(in, want, ITEMS, MPI_INT, MPI_SUM, world);
}
static void scatter_sums(void)
{
    MPI_Reduce_scatter(in, want, counts, MPI_INT, MPI_SUM, world);
}
static void scatter_blocks(void)
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
    persistent_all_compare("MPI_Gather_init", &r, test_gather);
    MPI_Scatter_init(in, ITEMS, MPI_INT, out, ITEMS, MPI_INT, 0, world, MPI_INFO_NULL, &r);
    persistent_all_compare("MPI_Scatter_init", &r, test_scatter);
    MPI_Gatherv_init(in, mine, MPI_INT, out, counts, displs, MPI_INT, 0, world, MPI_INFO_NULL, &r);
    persistent_all_compare("MPI_Gatherv_init", &r, test_gatherv);
    MPI_Scatterv_init(in, counts, displs, MPI_INT, out, mine, MPI_INT, 0, world, MPI_INFO_NULL, &r);
    persistent_all_compare("MPI_Scatterv_init", &r, test_scatterv);
    MPI_Allgather_init(in, ITEMS, MPI_INT, out, ITEMS, MPI_INT, world, MPI_INFO_NULL, &r);
    persistent_all_compare("MPI_Allgather_init", &r, test_allgather);
    MPI_Reduce_init(in, out, ITEMS, MPI_INT, MPI_MAX, 0, world, MPI_INFO_NULL, &r);
    persistent_all_compare("MPI_Reduce_init", &r, test_reduce);
    MPI_Exscan_init(in, out, ITEMS, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, &r);
    persistent_all_compare("MPI_Exscan_init", &r, test_exscan);
    MPI_Reduce_scatter_init(in, out, counts, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, &r);
    persistent_all_compare("MPI_Reduce_scatter_init", &r, scatter_sums);
    MPI_Reduce_scatter_block_init(in, out, ITEMS, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, &r);
    persistent_all_compare("MPI_Reduce_scatter_block_init", &r, scatter_blocks);
    return mpitest_end();
}
