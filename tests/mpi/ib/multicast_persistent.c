/* multicast_persistent.c: persistent broadcasts by multicast. Each rank repeatedly starts them in its own
 * order and waits for them in another order, with blocking and nonblocking broadcasts in between; some are
 * freed without a start. Every byte is checked, and that multicast was used.
 *
 * ranks: 4 8
 * nodes: only 4
 * env: FISHPLATE_COLL=bcast=multicast:max=4m
 * also: FISHPLATE_COLL=bcast=multicast:max=4m:window=16:coroots=2
 * also: FISHPLATE_COLL=bcast=multicast:max=4m:aggregate=10 SOFTIB_FABRIC=ud_drop=0.1,ud_dup=0.1,ud_reorder=0.1,seed=3
 * also: FISHPLATE_PROGRESS=thread
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "counters.h"
#include "late.h"

enum { REQUESTS = 6, LENGTH_MAX = 300000, ROUNDS = 12, GAP = 1000 };

static const int sizes[REQUESTS] = {1, 300000, 2024, 70000, 5000, 2025};
static unsigned char data[REQUESTS][LENGTH_MAX];
static int gaps[3 * GAP];

static unsigned char data_byte(int round, int which, int i)
{
    return (unsigned char)(round * 13 + which * 7 + i * 3 + (i >> 8));
}

static void fill_message(int round, int which, int n, int root)
{
    for (int i = 0; i < n; i++)
        data[which][i] = mpitest_rank == root ? data_byte(round, which, i) : 0xee;
}

static void check_message(int round, int which, int n)
{
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += data[which][i] != data_byte(round, which, i);
    EXPECT_EQ(wrong, 0);
}

static void shuffle_order(int *order, int n, unsigned *random_seed)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        *random_seed = *random_seed * 1664525u + 1013904223u;
        const int k = (int)(*random_seed >> 10) % (i + 1), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

static void test_any_order(void)
{
    MPI_Request r[REQUESTS], unused;
    unsigned random_seed = 17u + (unsigned)mpitest_rank, lots = 3u + (unsigned)mpitest_rank;
    int order[REQUESTS];
    /* Several requests have the same root (the first three) or roots on the same node, so that they share a
     * multicast stream. */
    for (int i = 0; i < REQUESTS; i++)
        MPI_Bcast_init(data[i], sizes[i], MPI_BYTE, i < 3 ? 0 : i % mpitest_size, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &r[i]);
    MPI_Bcast_init(gaps, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &unused);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < REQUESTS; i++)
            fill_message(round, i, sizes[i], i < 3 ? 0 : i % mpitest_size);
        shuffle_order(order, REQUESTS, &random_seed);
        for (int i = 0; i < REQUESTS; i++) {
            delay_randomly(&lots);
            MPI_Start(&r[order[i]]);
        }
        shuffle_order(order, REQUESTS, &random_seed);
        for (int i = 0; i < REQUESTS; i++) {
            MPI_Wait(&r[order[i]], MPI_STATUS_IGNORE);
            check_message(round, order[i], sizes[order[i]]);
        }
    }
    MPI_Request_free(&unused);
    for (int i = 0; i < REQUESTS; i++)
        MPI_Request_free(&r[i]);
}

/* The root starts a persistent broadcast before other broadcasts; the last rank waits for it first, the
 * other ranks at the end. */
static void test_with_other_broadcasts(void)
{
    MPI_Request persistent, other[2];
    MPI_Bcast_init(data[0], 5000, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent);
    const int early = mpitest_rank == 0 || mpitest_rank == mpitest_size - 1;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 3; i++)
            fill_message(round, i, 5000, 0);
        if (early)
            MPI_Start(&persistent);
        for (int i = 0; i < 2; i++)
            MPI_Ibcast(data[1 + i], 5000, MPI_BYTE, 0, MPI_COMM_WORLD, &other[i]);
        if (!early)
            MPI_Start(&persistent);
        if (mpitest_rank == mpitest_size - 1)
            MPI_Wait(&persistent, MPI_STATUS_IGNORE);
        MPI_Waitall(2, other, MPI_STATUSES_IGNORE);
        MPI_Wait(&persistent, MPI_STATUS_IGNORE);
        for (int i = 0; i < 3; i++)
            check_message(round, i, 5000);
        fill_message(round, 3, 100, round % mpitest_size);
        MPI_Bcast(data[3], 100, MPI_BYTE, round % mpitest_size, MPI_COMM_WORLD);
        check_message(round, 3, 100);
    }
    MPI_Request_free(&persistent);
}

/* Uses a type with gaps that is freed before the first start. */
static void test_data_with_gaps(void)
{
    MPI_Datatype every_third;
    MPI_Request r;
    int wrong = 0;
    MPI_Type_vector(GAP, 1, 3, MPI_INT, &every_third);
    MPI_Type_commit(&every_third);
    MPI_Bcast_init(gaps, 1, every_third, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    MPI_Type_free(&every_third);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3 * GAP; i++)
            gaps[i] = mpitest_rank == 1 ? i + round : -1;
        MPI_Start(&r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        for (int i = 0; i < 3 * GAP; i++)
            wrong += gaps[i] != (mpitest_rank == 1 || i % 3 == 0 ? i + round : -1);
    }
    EXPECT_EQ(wrong, 0);
    MPI_Request_free(&r);
}

int main(int argc, char **argv)
{
    counters_begin();
    MPI_T_pvar_handle done = counter_open("coll_bcast_multicast");
    mpitest_begin(&argc, &argv);
    test_any_order();
    EXPECT_EQ(read_counter(done), ROUNDS * REQUESTS);
    test_with_other_broadcasts();
    test_data_with_gaps();
    EXPECT_EQ(read_counter(done), ROUNDS * REQUESTS + 4 * ROUNDS + 3);
    counters_end();
    return mpitest_end();
}
