/* comm_dup.c: duplicates of communicators: contexts are separate, hints and names are not inherited,
 * nonblocking and blocking duplications can run at once in any order.
 *
 * ranks: 1 2 3 4 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

/* Checks that a message on one communicator is not received on another. */
static void expect_separate_contexts(MPI_Comm a, MPI_Comm b)
{
    int next = (mpitest_rank + 1) % mpitest_size, before = (mpitest_rank + mpitest_size - 1) % mpitest_size;
    int out[2] = {100 + mpitest_rank, 200 + mpitest_rank}, in[2] = {0, 0};
    MPI_Request r[4];
    MPI_Irecv(&in[0], 1, MPI_INT, before, 5, a, &r[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, before, 5, b, &r[1]);
    MPI_Isend(&out[1], 1, MPI_INT, next, 5, b, &r[2]);
    MPI_Isend(&out[0], 1, MPI_INT, next, 5, a, &r[3]);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
    EXPECT_EQ(in[0], 100 + before);
    EXPECT_EQ(in[1], 200 + before);
}

static void test_dup_is_congruent(void)
{
    MPI_Comm c;
    char name[MPI_MAX_OBJECT_NAME];
    int result, len, flag;
    MPI_Info given, used;
    MPI_Info_create(&given);
    MPI_Info_set(given, "mpi_assert_no_any_tag", "true");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, given, &c);
    MPI_Info_free(&given);
    MPI_Comm_compare(MPI_COMM_WORLD, c, &result);
    EXPECT_EQ(result, MPI_CONGRUENT);
    MPI_Comm_get_name(c, name, &len);
    EXPECT_EQ(len, 0);
    MPI_Comm_set_name(c, "pair of shoes");
    MPI_Comm_get_name(c, name, &len);
    EXPECT(strcmp(name, "pair of shoes") == 0 && len == 13);
    MPI_Comm_get_info(c, &used);
    len = 8;
    MPI_Info_get_string(used, "mpi_assert_no_any_tag", &len, name, &flag);
    EXPECT(flag && strcmp(name, "true") == 0);
    MPI_Info_free(&used);
    MPI_Comm d;
    MPI_Comm_dup(c, &d); /* since MPI-4.0 MPI_Comm_dup does not copy hints */
    MPI_Comm_get_info(d, &used);
    len = 8;
    MPI_Info_get_string(used, "mpi_assert_no_any_tag", &len, name, &flag);
    EXPECT(flag && strcmp(name, "false") == 0);
    MPI_Info_free(&used);
    expect_separate_contexts(c, d);
    expect_separate_contexts(MPI_COMM_WORLD, d);
    MPI_Comm_free(&c);
    EXPECT(c == MPI_COMM_NULL);
    MPI_Comm_free(&d);
}

static void test_many_idups(void)
{
    enum { N = 40 };
    MPI_Comm c[N];
    MPI_Request r[N];
    for (int i = 0; i < N; i++)
        MPI_Comm_idup(i % 2 ? c[0] : MPI_COMM_WORLD, &c[i], &r[i]),
            i == 0 ? (void)MPI_Wait(&r[0], MPI_STATUS_IGNORE) : (void)0;
    MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
    for (int i = 1; i < N; i++)
        expect_separate_contexts(c[i - 1], c[i]);
    for (int i = 0; i < N; i++)
        MPI_Comm_free(&c[i]);
}

/* Ranks disagree about the order of a nonblocking and a blocking creation on different communicators: that is
 * legal, since starting the nonblocking one is local. */
static void test_idup_and_dup_in_any_order(void)
{
    MPI_Comm x, y, dx, dy;
    MPI_Request r;
    MPI_Comm_dup(MPI_COMM_WORLD, &x);
    MPI_Comm_dup(MPI_COMM_WORLD, &y);
    for (int round = 0; round < 20; round++) {
        if ((mpitest_rank + round) % 2 == 0) {
            MPI_Comm_idup(x, &dx, &r);
            MPI_Comm_dup(y, &dy);
        } else {
            MPI_Comm_dup(y, &dy);
            MPI_Comm_idup(x, &dx, &r);
        }
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        expect_separate_contexts(dx, dy);
        MPI_Comm_free(&dx);
        MPI_Comm_free(&dy);
    }
    MPI_Comm_free(&x);
    MPI_Comm_free(&y);
}

/* A freed communicator remains until its requests are complete. */
static void test_free_with_pending_requests(void)
{
    MPI_Comm c;
    MPI_Request r[2];
    int in = -1, next = (mpitest_rank + 1) % mpitest_size,
        before = (mpitest_rank + mpitest_size - 1) % mpitest_size;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Irecv(&in, 1, MPI_INT, before, 0, c, &r[0]);
    MPI_Isend(&mpitest_rank, 1, MPI_INT, next, 0, c, &r[1]);
    MPI_Comm_free(&c);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    EXPECT_EQ(in, before);
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_disconnect(&c);
    EXPECT(c == MPI_COMM_NULL);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    test_dup_is_congruent();
    test_many_idups();
    test_idup_and_dup_in_any_order();
    test_free_with_pending_requests();
    return mpitest_end();
}
