/* p2p.c: a rank dies while others wait for it in a receive, a wildcard receive, a probe, a synchronous
 * send, a large send or a large receive that has begun. Every call returns MPIX_ERR_PROC_FAILED; messages
 * between living ranks arrive.
 *
 * ranks: 8
 * nodes: 4
 * mpiexec: -enable-recovery
 * SPDX-License-Identifier: Apache-2.0 */
#include "ft/ft.h"

#define LARGE (1 << 20)

static char *memory;

static void test_receive(void)
{
    int x = 0, y = rank;
    if (rank == victim)
        kill_this_rank();
    EXPECT_DEATH(MPI_Recv(&x, 1, MPI_INT, victim, 0, now, MPI_STATUS_IGNORE));
    /* The death is known now: further receives fail at once, and living ranks still communicate. */
    EXPECT_DEATH(MPI_Recv(&x, 1, MPI_INT, victim, 0, now, MPI_STATUS_IGNORE));
    EXPECT_DEATH(MPI_Send(&x, 1, MPI_INT, victim, 0, now));
    int right = (rank + 1) % victim, left = (rank + victim - 1) % victim;
    EXPECT_CLASS(MPI_Sendrecv(&y, 1, MPI_INT, right, 1, &x, 1, MPI_INT, left, 1, now, MPI_STATUS_IGNORE),
                 MPI_SUCCESS);
    EXPECT_EQ(x, left);
}

/* Messages that a process sent before its death are delivered. */
static void test_message_sent_before_death(void)
{
    int x = -1;
    if (rank == victim) {
        for (int i = 0; i < victim; i++)
            MPI_Send(&i, 1, MPI_INT, i, 5, now);
        /* Waits until every other rank has received the message. */
        for (int i = 0; i < victim; i++)
            MPI_Recv(&x, 1, MPI_INT, i, 6, now, MPI_STATUS_IGNORE);
        kill_this_rank();
    }
    MPI_Probe(victim, 5, now, MPI_STATUS_IGNORE);
    MPI_Send(&x, 1, MPI_INT, victim, 6, now);
    EXPECT_DEATH(MPI_Probe(victim, 7, now, MPI_STATUS_IGNORE));
    EXPECT_CLASS(MPI_Recv(&x, 1, MPI_INT, victim, 5, now, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(x, rank);
    EXPECT_DEATH(MPI_Recv(&x, 1, MPI_INT, victim, 5, now, MPI_STATUS_IGNORE));
}

static void test_wildcard(void)
{
    int x = -1, n = 0;
    MPI_Request r;
    MPI_Group group;
    if (rank == victim)
        kill_this_rank();
    EXPECT_DEATH(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 12, now, MPI_STATUS_IGNORE));
    EXPECT_CLASS(MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 2, now, &r), MPI_SUCCESS);
    EXPECT_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED_PENDING);
    EXPECT(r != MPI_REQUEST_NULL);
    /* After the acknowledgement a wildcard receive waits for the living ranks. */
    EXPECT_CLASS(MPIX_Comm_get_failed(now, &group), MPI_SUCCESS);
    MPI_Group_size(group, &n);
    EXPECT_EQ(n, 1);
    MPI_Group_free(&group);
    EXPECT_CLASS(MPIX_Comm_ack_failed(now, n, &n), MPI_SUCCESS);
    EXPECT_EQ(n, 1);
    int flag = 3;
    EXPECT_CLASS(MPIX_Comm_agree(now, &flag), MPI_SUCCESS); /* all ranks have acknowledged the death */
    EXPECT_CLASS(MPI_Send(&rank, 1, MPI_INT, (rank + 1) % victim, 2, now), MPI_SUCCESS);
    EXPECT_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(x, (rank + victim - 1) % victim);
}

static void test_synchronous(void)
{
    if (rank == victim)
        kill_this_rank();
    EXPECT_DEATH(MPI_Ssend(&rank, 1, MPI_INT, victim, 3, now));
}

/* The victim dies after a large message was announced to it, before it receives. */
static void test_large_send(void)
{
    if (rank == victim) {
        for (int i = 0; i < victim; i++)
            MPI_Probe(i, 4, now, MPI_STATUS_IGNORE);
        kill_this_rank();
    }
    memset(memory, rank, LARGE);
    EXPECT_DEATH(MPI_Send(memory, LARGE, MPI_BYTE, victim, 4, now));
}

/* Two large receives are in progress when the sender dies: their buffers must not change afterwards. */
static void test_large_receive(void)
{
    MPI_Request r[2];
    if (rank == victim) {
        MPI_Isend(memory, LARGE, MPI_BYTE, 0, 4, now, &r[0]);
        kill_this_rank();
    }
    memset(memory, 7, 2 * LARGE);
    for (int i = 0; i < 2; i++)
        MPI_Irecv(memory + i * LARGE, LARGE, MPI_BYTE, victim, 4, now, &r[i]);
    MPI_Status s[2];
    int rc = MPI_Waitall(2, r, s);
    EXPECT_CLASS(rc, MPI_ERR_IN_STATUS);
    EXPECT_CLASS(s[1].MPI_ERROR, MPIX_ERR_PROC_FAILED);
    char *copy = malloc(2 * LARGE);
    memcpy(copy, memory, 2 * LARGE);
    int flag = 1;
    MPIX_Comm_agree(now, &flag);
    EXPECT(memcmp(copy, memory, 2 * LARGE) == 0);
    free(copy);
}

int main(int argc, char **argv)
{
    static void (*const phases[])(void) = {test_receive,    test_message_sent_before_death,
                                           test_wildcard,   test_synchronous,
                                           test_large_send, test_large_receive};
    mpitest_begin(&argc, &argv);
    memory = malloc(2 * LARGE);
    run_phases(phases, 6);
    free(memory);
    return finalize_and_get_status();
}
