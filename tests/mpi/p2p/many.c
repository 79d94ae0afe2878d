/* many.c: thousands of posted receives and of unexpected messages, matched in order, in reverse and at
 * random; and many messages of all ranks to one rank that does not receive them at first.
 *
 * ranks: 2 4 8
 * also: FISHPLATE_SHM_RING=64k FISHPLATE_LAB=SHM_FRAME=1k FISHPLATE_SHM_CMA=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

enum { N = 8000 };

static int words[N], order[N];
static MPI_Request r[N];

static void make_tag_order(int how)
{
    unsigned random_state = 12345;
    for (int i = 0; i < N; i++)
        order[i] = how == 1 ? N - 1 - i : i;
    for (int i = N - 1; how == 2 && i > 0; i--) {
        random_state = random_state * 1103515245u + 12345u;
        int k = (int)((random_state >> 8) % (unsigned)(i + 1)), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
}

/* Posts all receives first; messages arrive in another order. */
static void test_posted_receives(int how)
{
    make_tag_order(how);
    if (mpitest_rank == 0)
        for (int i = 0; i < N; i++)
            MPI_Irecv(&words[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &r[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank == 1)
        for (int i = 0; i < N; i++)
            MPI_Send(&order[i], 1, MPI_INT, 0, order[i], MPI_COMM_WORLD);
    if (mpitest_rank == 0) {
        MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
        for (int i = 0; i < N; i++)
            EXPECT_EQ(words[i], i);
    }
}

/* All messages arrive before the receives are posted: rank 0 receives the newest message first. */
static void test_unexpected_messages(int how)
{
    make_tag_order(how);
    if (mpitest_rank == 1) {
        for (int i = 0; i < N; i++)
            MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
        MPI_Send(NULL, 0, MPI_INT, 0, N, MPI_COMM_WORLD);
    }
    if (mpitest_rank == 0) {
        MPI_Recv(NULL, 0, MPI_INT, 1, N, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++) {
            MPI_Recv(&words[0], 1, MPI_INT, 1, order[i], MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            EXPECT_EQ(words[0], order[i]);
        }
    }
}

/* All ranks send to rank 0, which first receives from the last rank only, then the rest in order of
 * arrival. */
static void test_flood(void)
{
    enum { EACH = 1500, LENGTH = 200 };
    static int big[LENGTH];
    int last = mpitest_size - 1;
    if (mpitest_rank != 0) {
        for (int i = 0; i < EACH; i++) {
            big[0] = i;
            big[LENGTH - 1] = mpitest_rank;
            MPI_Send(big, i % 3 ? 1 : LENGTH, MPI_INT, 0, 1, MPI_COMM_WORLD);
        }
        MPI_Ssend(big, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
        return;
    }
    int *next = calloc((size_t)mpitest_size, sizeof(int));
    MPI_Recv(big, 1, MPI_INT, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < EACH * last; i++) {
        MPI_Status s;
        MPI_Recv(big, LENGTH, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &s);
        EXPECT_EQ(big[0], next[s.MPI_SOURCE]++);
        if (big[0] % 3 == 0)
            EXPECT_EQ(big[LENGTH - 1], s.MPI_SOURCE);
    }
    for (int i = 1; i < last; i++)
        MPI_Recv(big, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    free(next);
}

/* Sends in both directions more messages than the rings hold before any receive is posted. */
static void test_flood_in_both_directions(void)
{
    enum { EACH = 600, LENGTH = 1500 };
    static int out[LENGTH], in[EACH][LENGTH];
    static MPI_Request sends[EACH];
    int right = (mpitest_rank + 1) % mpitest_size, left = (mpitest_rank + mpitest_size - 1) % mpitest_size;
    out[LENGTH - 1] = mpitest_rank;
    for (int i = 0; i < EACH; i++)
        MPI_Isend(out, LENGTH, MPI_INT, right, 3, MPI_COMM_WORLD, &sends[i]);
    for (int i = 0; i < EACH; i++) {
        MPI_Recv(in[i], LENGTH, MPI_INT, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_EQ(in[i][LENGTH - 1], left);
    }
    MPI_Waitall(EACH, sends, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    for (int how = 0; how < 3; how++) {
        test_posted_receives(how);
        test_unexpected_messages(how);
    }
    test_flood();
    test_flood_in_both_directions();
    return mpitest_end();
}
