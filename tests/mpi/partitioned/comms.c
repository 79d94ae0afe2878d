/* comms.c: partitioned messages on intercommunicators and duplicates at the same time, many requests at
 * once, and a sender that is several rounds ahead of its receiver.
 * ranks: 2 3 4 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

#define PARTS 6
#define COUNT 11

static void fill_data(int *data, int seed)
{
    for (int i = 0; i < PARTS * COUNT; i++)
        data[i] = seed * 1000 + i;
}

static void check_data(const int *data, int seed)
{
    for (int i = 0; i < PARTS * COUNT; i++)
        EXPECT_EQ(data[i], seed * 1000 + i);
}

/* Rank r of one side exchanges messages with rank r of the other side, in both directions. */
static void test_intercomm(void)
{
    MPI_Comm half, inter;
    int color = mpitest_rank % 2, me, others, in[PARTS * COUNT], out[PARTS * COUNT];
    MPI_Comm_split(MPI_COMM_WORLD, color, mpitest_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - color, 9, &inter);
    MPI_Comm_rank(inter, &me);
    MPI_Comm_remote_size(inter, &others);
    if (me < others) {
        MPI_Request r[2];
        MPI_Psend_init(out, PARTS, COUNT, MPI_INT, me, 1, inter, MPI_INFO_NULL, &r[0]);
        MPI_Precv_init(in, COUNT, PARTS, MPI_INT, me, 1, inter, MPI_INFO_NULL, &r[1]);
        for (int round = 0; round < 3; round++) {
            fill_data(out, 10 * color + round);
            MPI_Startall(2, r);
            MPI_Pready_range(0, PARTS - 1, r[0]);
            MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
            check_data(in, 10 * (1 - color) + round);
        }
        MPI_Request_free(&r[0]);
        MPI_Request_free(&r[1]);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* All ranks exchange messages with all ranks on several communicators, with the same tag. */
static void test_all_pairs_at_once(void)
{
    enum { COMMS = 3 };
    int n = mpitest_size, total = COMMS * n;
    MPI_Comm comms[COMMS];
    int(*out)[PARTS * COUNT] = malloc((size_t)total * sizeof(*out));
    int(*in)[PARTS * COUNT] = malloc((size_t)total * sizeof(*in));
    MPI_Request *r = malloc((size_t)total * 2 * sizeof(*r));
    for (int c = 0; c < COMMS; c++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]);
    for (int i = 0; i < total; i++) {
        MPI_Precv_init(in[i], PARTS, COUNT, MPI_INT, i % n, 2, comms[i / n], MPI_INFO_NULL, &r[i]);
        MPI_Psend_init(out[i], PARTS, COUNT, MPI_INT, i % n, 2, comms[i / n], MPI_INFO_NULL, &r[total + i]);
        fill_data(out[i], 100 * (i / n) + mpitest_rank);
    }
    MPI_Startall(2 * total, r);
    for (int p = 0; p < PARTS; p++)
        for (int i = total - 1; i >= 0; i--)
            MPI_Pready(p, r[total + i]);
    MPI_Waitall(2 * total, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < total; i++)
        check_data(in[i], 100 * (i / n) + i % n);
    for (int i = 0; i < 2 * total; i++)
        MPI_Request_free(&r[i]);
    for (int c = 0; c < COMMS; c++)
        MPI_Comm_free(&comms[c]);
    free(in);
    free(out);
    free(r);
}

static void test_sender_ahead(void)
{
    enum { ROUNDS = 4 };
    int data[PARTS * COUNT] = {0};
    MPI_Request r = MPI_REQUEST_NULL;
    if (mpitest_rank == 0)
        MPI_Psend_init(data, PARTS, COUNT, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    else if (mpitest_rank == 1)
        MPI_Precv_init(data, PARTS, COUNT, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int round = 0; mpitest_rank == 0 && round < ROUNDS; round++) {
        fill_data(data, round);
        MPI_Start(&r);
        MPI_Pready_range(0, PARTS - 1, r);
        MPI_Wait(&r, MPI_STATUS_IGNORE); /* small messages complete before the receive is started */
        fill_data(data, -1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; mpitest_rank == 1 && round < ROUNDS; round++) {
        MPI_Start(&r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        check_data(data, round);
    }
    if (r != MPI_REQUEST_NULL)
        MPI_Request_free(&r);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    test_intercomm();
    test_all_pairs_at_once();
    test_sender_ahead();
    return mpitest_end();
}
