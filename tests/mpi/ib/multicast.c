/* multicast.c: broadcasts by multicast: every root, sizes around a packet and a window, changing roots,
 * blocking and nonblocking calls mixed, data with gaps, overlapping and short-lived communicators, random
 * delays, packets that are lost, duplicated and reordered. Every byte is checked, and that multicast was
 * used.
 *
 * ranks: 4 8
 * nodes: only 4
 * env: FISHPLATE_COLL=bcast=multicast:max=4m
 * also: FISHPLATE_COLL=bcast=multicast:max=4m:basic=1
 * also: FISHPLATE_COLL=bcast=multicast:max=4m:coroots=2:aggregate=10
 * also: FISHPLATE_COLL=bcast=multicast:max=4m:window=2:coroots=3
 * also: FISHPLATE_COLL=bcast=multicast:max=4m:window=4:coroots=3:deliver=1 SOFTIB_FABRIC=ud_loss=0.1,seed=11
 * also: FISHPLATE_COLL=bcast=multicast:max=4m:coroots=2:deliver=1:piggyback=1 SOFTIB_FABRIC=ud_drop=0.2,ud_dup=0.1,ud_reorder=0.1,seed=9
 * also: FISHPLATE_COLL=bcast=multicast:max=4m:aggregate=4:skew=1 FISHPLATE_SPIN_US=0 FISHPLATE_LAB=YIELDS=0
 * also: FISHPLATE_LAB=IB_FRAME=1k FISHPLATE_IB_POLLSET=0
 * also: SOFTIB_FABRIC=ud_loss=0.01,seed=1
 * also: SOFTIB_FABRIC=ud_loss=0.05,seed=2
 * also: SOFTIB_FABRIC=ud_loss=0.1,seed=3
 * also: SOFTIB_FABRIC=ud_loss=0.2,ud_dup=0.1,ud_reorder=0.1,seed=5
 * also: FISHPLATE_COLL=bcast=multicast:max=4m:coroots=2 SOFTIB_FABRIC=ud_drop=0.2,ud_dup=0.1,ud_reorder=0.1,seed=9
 * also: FISHPLATE_COLL=bcast=multicast:max=4m:coroots=2:aggregate=10 SOFTIB_FABRIC=ud_loss=0.2,ud_dup=0.1,ud_reorder=0.1,seed=7
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "counters.h"
#include "late.h"

enum { LENGTH_MAX = 400000, ROUNDS = 200, COMMS = 12, FLIGHT = 20 };

static const int sizes[] = {1, 7, 100, 2023, 2024, 2025, 4072, 4073, 8192, 70000, LENGTH_MAX};
#define SIZES ((int)(sizeof(sizes) / sizeof(*sizes)))

/* Numbers of sizes, rounds and turns; the argument `few` reduces them for slow machines. */
static int nsizes = SIZES, rounds = ROUNDS, turns = 2;
static unsigned char buffer[FLIGHT][LENGTH_MAX];

static unsigned char data_byte(int call, int root, int i)
{
    return (unsigned char)(call * 7 + root * 31 + i * 3 + (i >> 8) + (i >> 16));
}

static void fill_message(unsigned char *b, int call, int root, int rank, int n)
{
    for (int i = 0; i < n; i++)
        b[i] = rank == root ? data_byte(call, root, i) : 0xee;
}

static void check_message(const unsigned char *b, int call, int root, int n)
{
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += b[i] != data_byte(call, root, i);
    EXPECT_EQ(wrong, 0);
}

static void test_every_root_and_size(MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int k = 0; k < nsizes; k++)
        for (int root = 0; root < size; root++) {
            fill_message(buffer[0], k, root, rank, sizes[k]);
            MPI_Bcast(buffer[0], sizes[k], MPI_BYTE, root, comm);
            check_message(buffer[0], k, root, sizes[k]);
        }
}

/* Broadcasts back to back with random roots, with some nonblocking broadcasts in flight. */
static void test_changing_roots(MPI_Comm comm)
{
    int rank, size;
    unsigned same = 5, mine;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    mine = 99u + (unsigned)rank;
    for (int round = 0; round < rounds; round += FLIGHT) {
        MPI_Request request[FLIGHT];
        int root[FLIGHT], length[FLIGHT], open = 0;
        for (int i = 0; i < FLIGHT; i++) {
            same = same * 1664525u + 1013904223u;
            root[i] = (int)(same >> 8) % size;
            length[i] = sizes[(int)(same >> 16) % 8];
            fill_message(buffer[i], i, root[i], rank, length[i]);
            if (round % (2 * FLIGHT) == 0)
                delay_randomly(&mine);
            if (i % 3 == 2)
                MPI_Bcast(buffer[i], length[i], MPI_BYTE, root[i], comm);
            else
                MPI_Ibcast(buffer[i], length[i], MPI_BYTE, root[i], comm, &request[open++]);
        }
        MPI_Waitall(open, request, MPI_STATUSES_IGNORE);
        for (int i = 0; i < FLIGHT; i++)
            check_message(buffer[i], i, root[i], length[i]);
    }
}

static void test_data_with_gaps(MPI_Comm comm)
{
    int rank, size, wrong = 0;
    static int data[3000];
    MPI_Datatype every_third;
    MPI_Request request;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_vector(1000, 1, 3, MPI_INT, &every_third);
    MPI_Type_commit(&every_third);
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < 3000; i++)
            data[i] = rank == root ? i + root : -1;
        if (root % 2)
            MPI_Bcast(data, 1, every_third, root, comm);
        else
            MPI_Ibcast(data, 1, every_third, root, comm, &request);
        if (root % 2 == 0)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < 3000; i++)
            wrong += data[i] != (rank == root || i % 3 == 0 ? i + root : -1);
    }
    EXPECT_EQ(wrong, 0);
    MPI_Type_free(&every_third);
}

static void test_many_communicators(void)
{
    MPI_Comm some[COMMS];
    for (int turn = 0; turn < turns; turn++) {
        for (int i = 0; i < COMMS; i++)
            MPI_Comm_split(MPI_COMM_WORLD, mpitest_rank % (1 + i % 2), i % 3 ? mpitest_rank : -mpitest_rank,
                           &some[i]);
        for (int i = 0; i < 4 * COMMS; i++) {
            MPI_Comm c = some[i % COMMS];
            int rank, size;
            MPI_Comm_rank(c, &rank);
            MPI_Comm_size(c, &size);
            fill_message(buffer[0], i, i % size, rank, 5000);
            MPI_Bcast(buffer[0], 5000, MPI_BYTE, i % size, c);
            check_message(buffer[0], i, i % size, 5000);
        }
        for (int i = 0; i < COMMS; i++)
            MPI_Comm_free(&some[(i * 5 + 1) % COMMS]);
    }
}

int main(int argc, char **argv)
{
    counters_begin();
    mpitest_begin(&argc, &argv);
    if (argc > 1) {
        nsizes = SIZES - 2;
        rounds = 2 * FLIGHT;
        turns = 1;
    }
    MPI_T_pvar_handle done = counter_open("coll_bcast_multicast");
    test_every_root_and_size(MPI_COMM_WORLD);
    EXPECT_EQ(read_counter(done), nsizes * mpitest_size);
    test_changing_roots(MPI_COMM_WORLD);
    test_data_with_gaps(MPI_COMM_WORLD);
    test_many_communicators();
    /* With two or three ranks the communicators of half of the ranks lie on one node and use no multicast. */
    EXPECT(read_counter(done) >= (unsigned long long)(rounds + turns * (mpitest_size > 3 ? 4 : 2) * COMMS));
    counters_end();
    return mpitest_end();
}
