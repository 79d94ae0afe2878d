/* sizes.c: after some calls of one operation and size a communicator on several nodes measures which
 * algorithm is fastest. Results are correct before, during and after the measurement, blocking and
 * nonblocking; all ranks choose the same algorithm; a later communicator of the same shape starts with the
 * result, one of another shape measures again. In deterministic mode reductions are not measured, and sums
 * are bitwise equal in all calls.
 *
 * ranks: 5
 * nodes: only 3
 * env: FISHPLATE_COLL_TRY=100
 * also: FISHPLATE_COLL_TRY=100 FISHPLATE_COLL=deterministic
 * also: FISHPLATE_COLL_TRY=2
 * also: FISHPLATE_COLL_TRY=0
 * also: FISHPLATE_COLL_TRY=100 FISHPLATE_TUNE=off
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "late.h"

enum { KINDS = 7, REDUCTIONS = 2, SIZES = 2, CALLS = 27, INTS_MAX = 600, RANKS = 5 };
static const int sizes[SIZES] = {3, INTS_MAX}; /* ints of a vector or block */

static int in[RANKS * INTS_MAX], out[RANKS * INTS_MAX];

static int element_value(int from, int to, int i, int call)
{
    return from * 1000003 + to * 10007 + i * 31 + call;
}

static void fill_input(int rank, int size, int n, int call)
{
    memset(out, 0, sizeof(out));
    for (int to = 0; to < size; to++)
        for (int i = 0; i < n; i++)
            in[to * n + i] = element_value(rank, to, i, call);
}

static void expect_block(const int *block, int from, int to, int n, int call)
{
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += block[i] != element_value(from, to, i, call);
    EXPECT_EQ(wrong, 0);
}

static void expect_sum(int size, int n, int call)
{
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        int sum = 0;
        for (int r = 0; r < size; r++)
            sum += element_value(r, 0, i, call);
        wrong += out[i] != sum;
    }
    EXPECT_EQ(wrong, 0);
}

static void start_call(MPI_Comm comm, int kind, int n, int root, int blocking, MPI_Request *r)
{
    *r = MPI_REQUEST_NULL;
    switch (kind) {
    case 0:
        blocking ? MPI_Bcast(in, n, MPI_INT, root, comm) : MPI_Ibcast(in, n, MPI_INT, root, comm, r);
        break;
    case 1:
        blocking ? MPI_Gather(in, n, MPI_INT, out, n, MPI_INT, root, comm)
                 : MPI_Igather(in, n, MPI_INT, out, n, MPI_INT, root, comm, r);
        break;
    case 2:
        blocking ? MPI_Scatter(in, n, MPI_INT, out, n, MPI_INT, root, comm)
                 : MPI_Iscatter(in, n, MPI_INT, out, n, MPI_INT, root, comm, r);
        break;
    case 3:
        blocking ? MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, comm)
                 : MPI_Iallgather(in, n, MPI_INT, out, n, MPI_INT, comm, r);
        break;
    case 4:
        blocking ? MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, comm)
                 : MPI_Ialltoall(in, n, MPI_INT, out, n, MPI_INT, comm, r);
        break;
    case 5:
        blocking ? MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, root, comm)
                 : MPI_Ireduce(in, out, n, MPI_INT, MPI_SUM, root, comm, r);
        break;
    default:
        blocking ? MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, comm)
                 : MPI_Iallreduce(in, out, n, MPI_INT, MPI_SUM, comm, r);
    }
}

static void check_result(int kind, int n, int root, int rank, int size, int call)
{
    if (kind == 0)
        expect_block(in, root, 0, n, call);
    if (kind == 2)
        expect_block(out, root, rank, n, call);
    for (int r = 0; r < size; r++) {
        if (kind == 3 || (kind == 1 && rank == root))
            expect_block(out + r * n, r, 0, n, call);
        if (kind == 4)
            expect_block(out + r * n, r, rank, n, call);
    }
    if (kind == 6 || (kind == 5 && rank == root))
        expect_sum(size, n, call);
}

static void test_calls(MPI_Comm comm, int kinds, unsigned *random_seed)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int kind = KINDS - kinds; kind < KINDS; kind++)
        for (int s = 0; s < SIZES; s++)
            for (int call = 0; call < CALLS + 2; call++) {
                const int root = call % size;
                MPI_Request r;
                fill_input(rank, size, sizes[s], call);
                delay_randomly(random_seed);
                start_call(comm, kind, sizes[s], root, call % 14 != 1, &r);
                MPI_Wait(&r, MPI_STATUS_IGNORE);
                check_result(kind, sizes[s], root, rank, size, call);
            }
}

/* Checks that results are bitwise equal at all ranks and in all calls: the order of additions affects the
 * last bits. */
static void test_equal_bits(MPI_Comm comm)
{
    double mine[40], first[40], sum[40];
    for (int i = 0; i < 40; i++)
        mine[i] = (mpitest_rank % 2 ? 1e16 : 1.0) / (3 + mpitest_rank + i);
    for (int call = 0; call < CALLS + 2; call++) {
        MPI_Allreduce(mine, sum, 40, MPI_DOUBLE, MPI_SUM, comm);
        if (call == 0)
            memcpy(first, sum, sizeof(sum));
        EXPECT_EQ(memcmp(first, sum, sizeof(sum)), 0);
    }
}

static void expect_same_at_all_ranks(unsigned long long mine)
{
    unsigned long long ends[2] = {mine, ~mine};
    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
    EXPECT_EQ(ends[0], ~ends[1]);
}

int main(int argc, char **argv)
{
    const char *text = getenv("FISHPLATE_COLL_TRY"), *coll = getenv("FISHPLATE_COLL");
    const char *tune = getenv("FISHPLATE_TUNE");
    const int share = text && !(tune && strcmp(tune, "off") == 0) ? atoi(text) : 0,
              deterministic = coll && strstr(coll, "deterministic");
    const unsigned expected = SIZES * (deterministic ? KINDS - REDUCTIONS : KINDS);
    MPI_Comm first, second, three;
    counters_begin();
    MPI_T_pvar_handle tuned = counter_open("coll_tuned"), changed = counter_open("coll_tuned_changed"),
                      reused = counter_open("coll_tuned_reused");
    mpitest_begin(&argc, &argv);
    unsigned random_seed = 7u + (unsigned)mpitest_rank;
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_dup(MPI_COMM_WORLD, &second);
    EXPECT_EQ(read_counter(tuned), 0);
    test_calls(first, KINDS, &random_seed);
    EXPECT(share == 0 ? read_counter(tuned) == 0 : read_counter(tuned) <= expected);
    if (share == 100)
        EXPECT_EQ(read_counter(tuned), expected);
    expect_same_at_all_ranks(read_counter(tuned));
    expect_same_at_all_ranks(read_counter(changed));
    test_calls(second, KINDS, &random_seed);
    if (share == 100)
        EXPECT(read_counter(tuned) == expected && read_counter(reused) == expected);
    if (deterministic)
        test_equal_bits(second);
    MPI_Comm_split(MPI_COMM_WORLD, mpitest_rank < 3 ? 0 : MPI_UNDEFINED, 0, &three);
    if (three != MPI_COMM_NULL) {
        test_calls(three, REDUCTIONS + 1, &random_seed);
        if (share == 100)
            EXPECT_EQ(read_counter(tuned), expected + SIZES * (deterministic ? 1 : REDUCTIONS + 1));
        MPI_Comm_free(&three);
    }
    MPI_Comm_free(&first);
    MPI_Comm_free(&second);
    int rc = mpitest_end();
    counters_end();
    return rc;
}
