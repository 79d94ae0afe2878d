/* intercomm.c: intercommunicators of the even and the odd ranks: creation with any leader, messages across,
 * duplicates, splits, parts and merges.
 *
 * ranks: 2 3 4 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static MPI_Comm half; /* communicator of the ranks with the parity of this rank */
static int odd;

/* All ranks of each side send their world rank to all ranks of the other side. */
static void exchange_world_ranks(MPI_Comm inter)
{
    int n, rank, flag;
    MPI_Comm_test_inter(inter, &flag);
    EXPECT(flag);
    MPI_Comm_remote_size(inter, &n);
    MPI_Comm_rank(inter, &rank);
    int *in = malloc((size_t)n * sizeof(int));
    MPI_Request *r = malloc(2 * (size_t)n * sizeof(MPI_Request));
    for (int i = 0; i < n; i++) {
        MPI_Irecv(&in[i], 1, MPI_INT, i, 9, inter, &r[i]);
        MPI_Isend(&mpitest_rank, 1, MPI_INT, i, 9, inter, &r[n + i]);
    }
    MPI_Waitall(2 * n, r, MPI_STATUSES_IGNORE);
    MPI_Group all, remote;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_remote_group(inter, &remote);
    for (int i = 0; i < n; i++) {
        int world;
        MPI_Group_translate_ranks(remote, 1, &i, all, &world);
        EXPECT_EQ(in[i], world);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&remote);
    free(in);
    free(r);
}

static MPI_Comm create_intercomm(int leaders_last, int tag)
{
    MPI_Comm inter;
    int size, evens = (mpitest_size + 1) / 2, odds = mpitest_size / 2;
    MPI_Comm_size(half, &size);
    int mine = leaders_last ? size - 1 : 0;
    int other_place = leaders_last ? (odd ? evens : odds) - 1 : 0;
    MPI_Intercomm_create(half, mine, MPI_COMM_WORLD, 2 * other_place + !odd, tag, &inter);
    return inter;
}

static void test_creation(void)
{
    for (int last = 0; last < 2; last++) {
        MPI_Comm inter = create_intercomm(last, 12 + last), twin;
        int n, result;
        MPI_Comm_remote_size(inter, &n);
        EXPECT_EQ(n, odd ? (mpitest_size + 1) / 2 : mpitest_size / 2);
        exchange_world_ranks(inter);
        MPI_Comm_dup(inter, &twin);
        exchange_world_ranks(twin);
        MPI_Comm_compare(inter, twin, &result);
        EXPECT_EQ(result, MPI_CONGRUENT);
        MPI_Comm_compare(inter, half, &result);
        EXPECT_EQ(result, MPI_UNEQUAL);
        MPI_Comm_free(&inter);
        MPI_Request r;
        MPI_Comm_idup(twin, &inter, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        exchange_world_ranks(inter);
        MPI_Comm_free(&inter);
        MPI_Comm_disconnect(&twin);
    }
}

static void test_merging(void)
{
    MPI_Comm inter = create_intercomm(0, 3), whole;
    for (int odd_first = 0; odd_first < 3; odd_first++) {
        int high = odd_first == 2 ? 0 : odd_first ? !odd : odd, rank, size, sum;
        MPI_Intercomm_merge(inter, high, &whole);
        MPI_Comm_size(whole, &size);
        MPI_Comm_rank(whole, &rank);
        EXPECT_EQ(size, mpitest_size);
        int evens = (mpitest_size + 1) / 2, odds = mpitest_size / 2;
        if (odd_first == 1)
            EXPECT_EQ(rank, odd ? mpitest_rank / 2 : odds + mpitest_rank / 2);
        else /* equal values of `high`: the side of the lower leader comes first */
            EXPECT_EQ(rank, odd ? evens + mpitest_rank / 2 : mpitest_rank / 2);
        MPI_Allreduce(&mpitest_rank, &sum, 1, MPI_INT, MPI_SUM, whole);
        EXPECT_EQ(sum, mpitest_size * (mpitest_size - 1) / 2);
        MPI_Comm_free(&whole);
    }
    MPI_Comm_free(&inter);
}

static void test_splitting(void)
{
    MPI_Comm inter = create_intercomm(1, 4), part;
    int place = mpitest_rank / 2, n;
    /* Pairs: even rank 2k with odd rank 2k+1; a rank without a partner gets nothing. */
    MPI_Comm_split(inter, place, 0, &part);
    int alone = mpitest_size % 2 && mpitest_rank == mpitest_size - 1;
    EXPECT_EQ(part == MPI_COMM_NULL, alone);
    if (part != MPI_COMM_NULL) {
        MPI_Comm_remote_size(part, &n);
        EXPECT_EQ(n, 1);
        exchange_world_ranks(part);
        MPI_Comm_free(&part);
    }
    /* All ranks but the last even one, in reverse order. */
    MPI_Comm_split(inter, 0, -mpitest_rank, &part);
    exchange_world_ranks(part);
    MPI_Comm_free(&part);
    MPI_Comm_free(&inter);
}

/* MPI_Comm_split_type: the part of an intercommunicator on one node is an intercommunicator if both sides
 * have ranks on that node. */
static void test_split_type(void)
{
    char mine[MPI_MAX_PROCESSOR_NAME] = "", *all;
    MPI_Comm inter = create_intercomm(0, 6), part;
    int n, len, locals = 0, remotes = 0;
    MPI_Get_processor_name(mine, &len);
    all = malloc((size_t)mpitest_size * sizeof(mine));
    MPI_Allgather(mine, sizeof(mine), MPI_CHAR, all, sizeof(mine), MPI_CHAR, MPI_COMM_WORLD);
    for (int i = 0; i < mpitest_size; i++)
        if (strcmp(all + (size_t)i * sizeof(mine), mine) == 0)
            *(i % 2 == odd ? &locals : &remotes) += 1;
    free(all);
    MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part);
    EXPECT_EQ(part == MPI_COMM_NULL, remotes == 0);
    if (part != MPI_COMM_NULL) {
        MPI_Comm_size(part, &n);
        EXPECT_EQ(n, locals);
        MPI_Comm_remote_size(part, &n);
        EXPECT_EQ(n, remotes);
        exchange_world_ranks(part);
        MPI_Comm_free(&part);
    }
    MPI_Comm_split_type(inter, odd ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part);
    EXPECT(part == MPI_COMM_NULL);
    MPI_Comm_free(&inter);
}

static void test_parts(void)
{
    MPI_Comm inter = create_intercomm(0, 5), part;
    MPI_Group g, first;
    int zero = 0, n;
    MPI_Comm_group(inter, &g);
    MPI_Group_incl(g, 1, &zero, &first);
    MPI_Comm_create(inter, odd ? first : g, &part); /* all even ranks and the first odd rank */
    EXPECT_EQ(part == MPI_COMM_NULL, odd && mpitest_rank != 1);
    if (part != MPI_COMM_NULL) {
        MPI_Comm_remote_size(part, &n);
        EXPECT_EQ(n, odd ? (mpitest_size + 1) / 2 : 1);
        exchange_world_ranks(part);
        MPI_Comm_free(&part);
    }
    MPI_Comm_create(inter, odd ? MPI_GROUP_EMPTY : g, &part);
    EXPECT(part == MPI_COMM_NULL);
    MPI_Group_free(&g);
    MPI_Group_free(&first);
    MPI_Comm_free(&inter);
}

static void test_invalid_calls(void)
{
    MPI_Comm inter = MPI_COMM_NULL;
    MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
    EXPECT_EQ(MPI_Intercomm_create(half, 99, MPI_COMM_WORLD, 0, 1, &inter), MPI_ERR_RANK);
    int rank, rc = MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 99, 1, &inter);
    MPI_Comm_rank(half, &rank);
    EXPECT_EQ(rc, rank == 0 ? MPI_ERR_RANK : MPI_ERR_OTHER);
    EXPECT_EQ(MPI_Intercomm_merge(half, 0, &inter), MPI_ERR_COMM);
    EXPECT(inter == MPI_COMM_NULL);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    odd = mpitest_rank % 2;
    MPI_Comm_split(MPI_COMM_WORLD, odd, 0, &half);
    test_creation();
    test_merging();
    test_splitting();
    test_split_type();
    test_parts();
    test_invalid_calls();
    MPI_Comm_free(&half);
    return mpitest_end();
}
