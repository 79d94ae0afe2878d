/* endless.c: communicators on which processes agreed, that were revoked or shrunk, made and freed more often than there are
 * numbers for communicators: they do not run out, nothing grows, and a message of an old one is never received on a new
 * one that has its number. At the end a rank dies, and the others still find each other.
 *
 * ranks: 3
 * nodes: 3
 * mpiexec: -enable-recovery
 * SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>

#include "ft/ft.h"

#define ALONE \
    1100 /* communicators of one process in a batch: they use up numbers quickly, of which there are 4096 */
#define TOGETHER 6
#define BATCHES  4

static long allocated(void)
{
    struct mallinfo2 m = mallinfo2();
    return (long)(m.uordblks + m.hblkhd);
}

/* Leaves a message that nobody receives. */
static void use(MPI_Comm c, int i)
{
    int flag = 1, there;
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    EXPECT_CLASS(MPIX_Comm_agree(c, &flag), MPI_SUCCESS);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, c, &there, MPI_STATUS_IGNORE);
    EXPECT(!there);
    EXPECT_CLASS(MPIX_Comm_agree(c, &flag), MPI_SUCCESS); /* everybody has looked */
    MPI_Send(&i, 1, MPI_INT, (rank + 1) % size, 7, c);
    if (i == 0)
        MPIX_Comm_revoke(c);
}

static void together(void)
{
    MPI_Comm c[TOGETHER];
    for (int i = 0; i < TOGETHER; i++) {
        EXPECT_CLASS(i % 2 ? MPI_Comm_dup(now, &c[i]) : MPIX_Comm_shrink(now, &c[i]), MPI_SUCCESS);
        use(c[i], i);
    }
    for (int i = 0; i < TOGETHER; i++)
        MPI_Comm_free(&c[i]);
}

static void alone(void)
{
    for (int i = 0; i < ALONE; i++) {
        MPI_Comm c;
        MPI_Status status;
        int flag = i, got;
        EXPECT_CLASS(MPI_Comm_dup(MPI_COMM_SELF, &c), MPI_SUCCESS);
        EXPECT_CLASS(MPIX_Comm_agree(c, &flag), MPI_SUCCESS);
        MPI_Sendrecv(&i, 1, MPI_INT, 0, 3, &got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, c, &status);
        EXPECT(status.MPI_TAG == 3 && got == i); /* not an old one */
        MPI_Comm_free(&c);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    now = MPI_COMM_WORLD;
    look_around();
    long before = 0;
    for (int batch = 0; batch < 2 * BATCHES; batch++) {
        before = batch == BATCHES ? allocated() : before;
        together();
        alone();
    }
    EXPECT(allocated() - before < 256 * 1024); /* keeping every agreement would take ten times as much */
    if (rank == victim)
        die();
    MPI_Comm rest;
    int flag = 1;
    EXPECT_CLASS(MPIX_Comm_shrink(now, &rest), MPI_SUCCESS);
    EXPECT_CLASS(MPIX_Comm_agree(rest, &flag), MPI_SUCCESS);
    MPI_Comm_free(&rest);
    return mpitest_end();
}
