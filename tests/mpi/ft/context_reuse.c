/* context_reuse.c: communicators are created, used for agreement, revoked or shrunk, and freed more often
 * than there are context ids: ids do not run out, memory does not grow, and a message of an old
 * communicator is never received on a new one with the same id. At the end a rank dies, and the others can
 * still shrink_to_survivors.
 *
 * ranks: 3
 * nodes: 3
 * mpiexec: -enable-recovery
 * SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>

#include "ft/ft.h"

#define ALONE    1100 /* communicators of one process in a batch; there are 4096 context ids */
#define TOGETHER 6
#define BATCHES  4

static long get_allocated_bytes(void)
{
    struct mallinfo2 m = mallinfo2();
    return (long)(m.uordblks + m.hblkhd);
}

/* Sends a message that is never received, then agrees on the communicator. */
static void send_unreceived_message_and_agree(MPI_Comm c, int i)
{
    int flag = 1, there;
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    EXPECT_CLASS(MPIX_Comm_agree(c, &flag), MPI_SUCCESS);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, c, &there, MPI_STATUS_IGNORE);
    EXPECT(!there);
    EXPECT_CLASS(MPIX_Comm_agree(c, &flag), MPI_SUCCESS); /* all ranks have checked for old messages */
    MPI_Send(&i, 1, MPI_INT, (rank + 1) % size, 7, c);
    if (i == 0)
        MPIX_Comm_revoke(c);
}

static void use_communicators_of_all_ranks(void)
{
    MPI_Comm c[TOGETHER];
    for (int i = 0; i < TOGETHER; i++) {
        EXPECT_CLASS(i % 2 ? MPI_Comm_dup(now, &c[i]) : MPIX_Comm_shrink(now, &c[i]), MPI_SUCCESS);
        send_unreceived_message_and_agree(c[i], i);
    }
    for (int i = 0; i < TOGETHER; i++)
        MPI_Comm_free(&c[i]);
}

static void use_communicators_of_one_rank(void)
{
    for (int i = 0; i < ALONE; i++) {
        MPI_Comm c;
        MPI_Status status;
        int flag = i, got;
        EXPECT_CLASS(MPI_Comm_dup(MPI_COMM_SELF, &c), MPI_SUCCESS);
        EXPECT_CLASS(MPIX_Comm_agree(c, &flag), MPI_SUCCESS);
        MPI_Sendrecv(&i, 1, MPI_INT, 0, 3, &got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, c, &status);
        EXPECT(status.MPI_TAG == 3 && got == i); /* not a message of an old communicator */
        MPI_Comm_free(&c);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    now = MPI_COMM_WORLD;
    update_rank_and_size();
    long before = 0;
    for (int batch = 0; batch < 2 * BATCHES; batch++) {
        before = batch == BATCHES ? get_allocated_bytes() : before;
        use_communicators_of_all_ranks();
        use_communicators_of_one_rank();
    }
    /* Retaining every agreement would need ten times this amount. */
    EXPECT(get_allocated_bytes() - before < 256 * 1024);
    if (rank == victim)
        kill_this_rank();
    MPI_Comm rest;
    int flag = 1;
    EXPECT_CLASS(MPIX_Comm_shrink(now, &rest), MPI_SUCCESS);
    EXPECT_CLASS(MPIX_Comm_agree(rest, &flag), MPI_SUCCESS);
    MPI_Comm_free(&rest);
    return mpitest_end();
}
