/* multicast_all.c: allgather and allreduce by multicast: sizes around a packet, operands in place, data
 * with gaps, an operator that does not commute, ranks in another order than nodes, concurrent broadcasts.
 * Every value is checked, and that multicast was used. Blocks for which receivers may lack buffers use
 * another algorithm.
 *
 * ranks: 4 8
 * nodes: only 4
 * env: FISHPLATE_COLL=bcast=multicast,allgather=multicast,allreduce=multicast
 * also: FISHPLATE_COLL=bcast=multicast:coroots=2:window=16,allgather=multicast,allreduce=multicast
 * also: FISHPLATE_COLL=bcast=multicast:coroots=3:deliver=1:piggyback=1:window=16,allgather=multicast,allreduce=multicast
 * also: SOFTIB_FABRIC=ud_drop=0.1,ud_dup=0.1,ud_reorder=0.1,seed=6
 * also: FISHPLATE_PROGRESS=thread
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "counters.h"
#include "late.h"

enum { INTS_MAX = 8192, ROUNDS = 20 };

static const int sizes[] = {1, 5, 500, 506, 507, 3000};
#define SIZES ((int)(sizeof(sizes) / sizeof(*sizes)))

static int *buffer;
static unsigned random_seed;

static void test_gather(MPI_Comm comm, int n, int in_place)
{
    int rank, size, wrong = 0;
    static int mine[INTS_MAX];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size * n; i++)
        buffer[i] = -1;
    for (int i = 0; i < n; i++)
        (in_place ? buffer + (size_t)rank * (size_t)n : mine)[i] = rank * 10000 + i;
    delay_randomly(&random_seed);
    MPI_Allgather(in_place ? MPI_IN_PLACE : mine, n, MPI_INT, buffer, n, MPI_INT, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < n; i++)
            wrong += buffer[r * n + i] != r * 10000 + i;
    EXPECT_EQ(wrong, 0);
}

/* Receivers store the blocks in every third integer. */
static void test_gather_with_gaps(MPI_Comm comm)
{
    enum { N = 300 };
    int rank, size, wrong = 0;
    static int mine[N];
    MPI_Datatype gaps;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_vector(N, 1, 3, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    const int stride = 3 * (N - 1) + 1;
    for (int i = 0; i < N; i++)
        mine[i] = rank * 1000 + i;
    for (int i = 0; i < size * stride; i++)
        buffer[i] = -1;
    MPI_Allgather(mine, N, MPI_INT, buffer, 1, gaps, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < stride; i++)
            wrong += buffer[r * stride + i] != (i % 3 == 0 ? r * 1000 + i / 3 : -1);
    EXPECT_EQ(wrong, 0);
    MPI_Type_free(&gaps);
}

static void test_reduce(MPI_Comm comm, int n, int in_place)
{
    int rank, size, wrong = 0;
    static int mine[INTS_MAX];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < n; i++)
        (in_place ? buffer : mine)[i] = rank + i;
    delay_randomly(&random_seed);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : mine, buffer, n, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < n; i++)
        wrong += buffer[i] != size * i + size * (size - 1) / 2;
    EXPECT_EQ(wrong, 0);
}

/* A reduction function that appends digits, so that the result shows the order of ranks. An element is a
 * number and the power of ten by which a number to its left is multiplied. */
static void append_digits(void *in, void *inout, int *n, MPI_Datatype *type)
{
    const long long *left = in;
    long long *right = inout;
    (void)type;
    for (int i = 0; i < 2 * *n; i += 2) {
        right[i] += left[i] * right[i + 1];
        right[i + 1] *= left[i + 1];
    }
}

static void test_reduce_in_order(MPI_Comm comm)
{
    long long mine[2], all[2], expected = 0;
    int rank, size;
    MPI_Op op;
    MPI_Datatype pair;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Op_create(append_digits, 0, &op);
    MPI_Type_contiguous(2, MPI_LONG_LONG, &pair);
    MPI_Type_commit(&pair);
    mine[0] = rank + 1;
    mine[1] = 10;
    MPI_Allreduce(mine, all, 1, pair, op, comm);
    for (int r = 0; r < size; r++)
        expected = expected * 10 + r + 1;
    EXPECT_EQ(all[0], expected);
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
}

static void test_all_sizes(MPI_Comm comm)
{
    for (int k = 0; k < SIZES; k++)
        for (int in_place = 0; in_place < 2; in_place++) {
            test_gather(comm, sizes[k], in_place);
            test_reduce(comm, sizes[k], in_place);
        }
    test_gather_with_gaps(comm);
    test_reduce_in_order(comm);
}

/* Runs all operations in turn while nonblocking broadcasts are in flight. */
static void test_during_broadcasts(MPI_Comm comm)
{
    static int data[2][3000];
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request r[2];
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i < 3000; i++)
                data[k][i] = rank == (round + k) % size ? round + i : -1;
            MPI_Ibcast(data[k], 3000, MPI_INT, (round + k) % size, comm, &r[k]);
        }
        test_gather(comm, 100, 0);
        test_reduce(comm, 1000, 1);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < 3000; i++)
                EXPECT_EQ(data[k][i], round + i);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm turned;
    counters_begin();
    MPI_T_pvar_handle gathers = counter_open("coll_allgather_multicast"),
                      reductions = counter_open("coll_allreduce_multicast");
    mpitest_begin(&argc, &argv);
    random_seed = 5u + (unsigned)mpitest_rank;
    buffer = malloc(sizeof(int) * INTS_MAX * (size_t)mpitest_size);
    MPI_Comm_split(MPI_COMM_WORLD, 0, mpitest_rank % 2 ? mpitest_rank : -mpitest_rank, &turned);
    const unsigned long long before = read_counter(gathers), summed = read_counter(reductions);
    test_all_sizes(MPI_COMM_WORLD);
    EXPECT_EQ(read_counter(reductions), summed + 2 * SIZES + 1);
    EXPECT(read_counter(gathers) >= before + 2 * (SIZES - 1) + 1);
    test_all_sizes(turned);
    test_during_broadcasts(turned);
    MPI_Comm_free(&turned);
    free(buffer);
    counters_end();
    return mpitest_end();
}
