/* split_copies.c: collectives of two ranks by split copies, in which the owner of the data writes a part
 * of it to the memory of the rank that reads the rest: every operation and root, sizes around the limits,
 * in place, an operator that does not commute, types with gaps; and a call in which both ranks must copy.
 *
 * ranks: 2 3
 * nodes: no
 * also: FISHPLATE_COLL=copy=split
 * also: FISHPLATE_COLL=copy=split FISHPLATE_SHM_CMA=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

enum { ROUNDS = 7, INTS_MAX = 1 << 17 }; /* INTS_MAX: length of the buffers in ints */

static int32_t element_value(int rank, int i, int round)
{
    return (int32_t)((unsigned)(rank + 1) * 1000003u + (unsigned)i * 7u + (unsigned)round * 31u);
}

static void fill_input(int32_t *to, int rank, int n, int round)
{
    for (int i = 0; i < n; i++)
        to[i] = element_value(rank, i, round);
}

static int count_wrong_elements(const int32_t *got, int rank, int n, int round)
{
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += got[i] != element_value(rank, i, round);
    return wrong;
}

static void test_data_movement(int32_t *in, int32_t *out, int root, int n, int round)
{
    const int me = mpitest_rank, size = mpitest_size;
    fill_input(in, me, n, round);
    if (me != root)
        memset(in, 0, (size_t)n * sizeof(*in));
    MPI_Bcast(in, n, MPI_INT32_T, root, MPI_COMM_WORLD);
    EXPECT_EQ(count_wrong_elements(in, root, n, round), 0);

    fill_input(in, me, n, round);
    MPI_Gather(in, n, MPI_INT32_T, out, n, MPI_INT32_T, root, MPI_COMM_WORLD);
    for (int r = 0; r < size && me == root; r++)
        EXPECT_EQ(count_wrong_elements(out + (size_t)r * (size_t)n, r, n, round), 0);

    for (int r = 0; r < size; r++)
        fill_input(out + (size_t)r * (size_t)n, r + root, n, round);
    MPI_Scatter(out, n, MPI_INT32_T, me == root ? MPI_IN_PLACE : in, n, MPI_INT32_T, root, MPI_COMM_WORLD);
    EXPECT_EQ(me == root ? 0 : count_wrong_elements(in, me + root, n, round), 0);
}

static int count_wrong_sums(const int32_t *got, int n, int round)
{
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        uint32_t sum = 0;
        for (int r = 0; r < mpitest_size; r++)
            sum += (uint32_t)element_value(r, i, round);
        wrong += got[i] != (int32_t)sum;
    }
    return wrong;
}

/* A reduction function that does not commute: the left operand is multiplied by 3. */
static void noncommutative_operator(void *in, void *inout, int *len, MPI_Datatype *type)
{
    int32_t *a = in, *b = inout;
    (void)type;
    for (int i = 0; i < *len; i++)
        b[i] = (int32_t)(3u * (uint32_t)a[i] + (uint32_t)b[i]);
}

static int32_t expected_noncommutative_result(int i, int round)
{
    uint32_t all = (uint32_t)element_value(mpitest_size - 1, i, round);
    for (int r = mpitest_size - 2; r >= 0; r--)
        all = 3u * (uint32_t)element_value(r, i, round) + all;
    return (int32_t)all;
}

static void test_reductions(int32_t *in, int32_t *out, int root, int n, int round, MPI_Op leans)
{
    const int me = mpitest_rank;
    int wrong = 0;
    fill_input(in, me, n, round);
    MPI_Reduce(in, out, n, MPI_INT32_T, MPI_SUM, root, MPI_COMM_WORLD);
    EXPECT_EQ(me == root ? count_wrong_sums(out, n, round) : 0, 0);
    EXPECT_EQ(count_wrong_elements(in, me, n, round), 0);
    if (round % 3 == 0) {
        MPI_Reduce(me == root ? MPI_IN_PLACE : in, in, n, MPI_INT32_T, MPI_SUM, root, MPI_COMM_WORLD);
        EXPECT_EQ(me == root ? count_wrong_sums(in, n, round) : 0, 0);
        fill_input(in, me, n, round);
        MPI_Reduce(in, out, n, MPI_INT32_T, leans, root, MPI_COMM_WORLD);
        for (int i = 0; i < n && me == root; i++)
            wrong += out[i] != expected_noncommutative_result(i, round);
        EXPECT_EQ(wrong, 0);
    }
}

/* Tests with a type with gaps at the leaves and a contiguous one at the root. */
static void test_data_with_gaps(int32_t *in, int32_t *out, int root, int n, int round)
{
    MPI_Datatype spread;
    MPI_Type_vector(n, 1, 2, MPI_INT32_T, &spread);
    MPI_Type_commit(&spread);
    if (mpitest_rank == root)
        fill_input(in, root, n, round);
    memset(out, 0, 2 * (size_t)n * sizeof(*out));
    if (mpitest_rank == root)
        MPI_Bcast(in, n, MPI_INT32_T, root, MPI_COMM_WORLD);
    else
        MPI_Bcast(out, 1, spread, root, MPI_COMM_WORLD);
    int wrong = 0;
    for (int i = 0; i < n && mpitest_rank != root; i++)
        wrong += out[2 * i] != element_value(root, i, round) || (i + 1 < n && out[2 * i + 1] != 0);
    EXPECT_EQ(wrong, 0);
    MPI_Type_free(&spread);
}

/* A reduction in which both ranks must combine pieces: in its first piece rank 0, the root, waits until rank
 * 1 has combined a piece. If processes cannot read each other's memory rank 1 combines nothing; the data fits
 * into the slots, so rank 1 returns, and rank 0 continues. */
enum { HELPED_INTS = 12288 }; /* length of the vector */
static _Atomic int *flags;    /* [0]: the other rank has combined a piece; [1]: it has returned */

static void wait_for_helper(void *in, void *inout, int *len, MPI_Datatype *type)
{
    int32_t *a = in, *b = inout;
    (void)type;
    if (mpitest_rank == 1)
        flags[0] = 1;
    while (mpitest_rank == 0 && !flags[0] && !flags[1])
        sched_yield();
    for (int i = 0; i < *len; i++)
        b[i] = (int32_t)((uint32_t)a[i] + (uint32_t)b[i]);
}

static void test_both_ranks_must_copy(int32_t *in, int32_t *out)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle pieces;
    unsigned long long mine = 0, all = 0;
    int provided, index, count, unit;
    MPI_Aint bytes;
    MPI_Win win;
    MPI_Op op;
    void *base;
    MPI_Win_allocate_shared(mpitest_rank == 0 ? 64 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_shared_query(win, 0, &bytes, &unit, &base);
    flags = base;
    if (mpitest_rank == 0)
        flags[0] = flags[1] = 0;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    EXPECT_EQ(MPI_T_pvar_get_index("coll_owner_copies", MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    MPI_T_pvar_handle_alloc(session, index, NULL, &pieces, &count);
    MPI_T_pvar_start(session, pieces);
    MPI_Op_create(wait_for_helper, 1, &op);
    fill_input(in, mpitest_rank, HELPED_INTS, 5);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(in, out, HELPED_INTS, MPI_INT32_T, op, 0, MPI_COMM_WORLD);
    if (mpitest_rank == 1)
        flags[1] = 1;
    EXPECT_EQ(mpitest_rank == 0 ? count_wrong_sums(out, HELPED_INTS, 5) : 0, 0);
    MPI_T_pvar_read(session, pieces, &mine);
    MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (flags[0])
        EXPECT(all > 0);
    else
        printf("skipped: processes cannot read each other's memory here, so no copies are split\n");
    MPI_Op_free(&op);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {8191, 8192, 8193, 12345, 65536, INTS_MAX};
    MPI_Op leans;
    mpitest_begin(&argc, &argv);
    MPI_Op_create(noncommutative_operator, 0, &leans);
    int32_t *in = malloc(INTS_MAX * sizeof(*in)),
            *out = malloc(INTS_MAX * sizeof(*out) * (size_t)(mpitest_size + 2));
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (int round = 0; round < ROUNDS; round++) {
            const int root = round % mpitest_size;
            test_data_movement(in, out, root, sizes[s], round);
            test_reductions(in, out, root, sizes[s], round, leans);
            if (round % 5 == 0)
                test_data_with_gaps(in, out, root, sizes[s], round);
        }
    const char *forced = getenv("FISHPLATE_COLL");
    if (forced && strstr(forced, "copy=split") && mpitest_size == 2)
        test_both_ranks_must_copy(in, out);
    MPI_Op_free(&leans);
    free(in);
    free(out);
    return mpitest_end();
}
