/* persistent.c: a rank dies while persistent and partitioned operations wait for it, before or after the
 * two sides of a partitioned message have matched. Every call returns the error, and requests can be
 * freed.
 *
 * ranks: 9
 * nodes: 3
 * mpiexec: -enable-recovery
 * SPDX-License-Identifier: Apache-2.0 */
#include "ft/ft.h"

#define PARTS 4
#define LARGE 40000 /* ints of a partition, sent by rendezvous */

static int *memory;

/* Checks that start or completion of a round reports the death. */
static void expect_lost_round(MPI_Request *r)
{
    int rc = MPI_Start(r);
    if (rc == MPI_SUCCESS)
        rc = MPI_Wait(r, MPI_STATUS_IGNORE);
    EXPECT_DEATH(rc);
}

static void test_persistent_receive(void)
{
    int x;
    MPI_Request r;
    if (rank == victim)
        kill_this_rank();
    MPI_Recv_init(&x, 1, MPI_INT, victim, 0, now, &r);
    expect_lost_round(&r);
    expect_lost_round(&r); /* the death is known now */
    MPI_Request_free(&r);
}

static void test_persistent_send(void)
{
    MPI_Request r;
    if (rank == victim)
        kill_this_rank();
    MPI_Ssend_init(memory, LARGE, MPI_INT, victim, 0, now, &r);
    expect_lost_round(&r);
    expect_lost_round(&r);
    MPI_Request_free(&r);
}

static void test_wildcard(void)
{
    int x;
    MPI_Request r;
    if (rank == victim)
        kill_this_rank();
    MPI_Recv_init(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, now, &r);
    expect_lost_round(&r);
    MPI_Request_free(&r);
}

static void mark_all_ready(MPI_Request *r)
{
    for (int i = 0; i < PARTS; i++)
        MPI_Pready(i, *r);
}

/* True if a start failed at once, as it does if the death is known and no connection is open. */
static int is_refused(int rc)
{
    if (rc != MPI_SUCCESS)
        EXPECT_DEATH(rc);
    return rc != MPI_SUCCESS;
}

static void test_unmatched_partitioned_send(void)
{
    MPI_Request r;
    if (rank == victim)
        kill_this_rank();
    if (is_refused(MPI_Psend_init(memory, PARTS, LARGE, MPI_INT, victim, 0, now, MPI_INFO_NULL, &r)))
        return;
    for (int round = 0; round < 2; round++) {
        MPI_Start(&r);
        mark_all_ready(&r);
        EXPECT_DEATH(MPI_Wait(&r, MPI_STATUS_IGNORE));
    }
    MPI_Request_free(&r);
}

static void test_unmatched_partitioned_receive(void)
{
    MPI_Request r;
    int flag = 0, rc = MPI_SUCCESS;
    if (rank == victim)
        kill_this_rank();
    if (is_refused(MPI_Precv_init(memory, PARTS, LARGE, MPI_INT, victim, 0, now, MPI_INFO_NULL, &r)))
        return;
    MPI_Start(&r);
    while (rc == MPI_SUCCESS && !flag)
        rc = MPI_Parrived(r, 1, &flag);
    EXPECT_DEATH(rc);
    EXPECT_DEATH(MPI_Wait(&r, MPI_STATUS_IGNORE));
    MPI_Request_free(&r);
}

/* The victim has received one round from rank 0 and dies in the next. */
static void test_partitioned_send(void)
{
    MPI_Request r;
    if (rank == victim) {
        MPI_Precv_init(memory, PARTS, LARGE, MPI_INT, 0, 0, now, MPI_INFO_NULL, &r);
        MPI_Start(&r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        kill_this_rank();
    }
    if (rank > 0)
        return;
    MPI_Psend_init(memory, PARTS, LARGE, MPI_INT, victim, 0, now, MPI_INFO_NULL, &r);
    MPI_Start(&r);
    mark_all_ready(&r);
    MPI_Wait(&r, MPI_STATUS_IGNORE); /* the victim may have died before its last acknowledgement is handled */
    MPI_Start(&r);
    mark_all_ready(&r);
    EXPECT_DEATH(MPI_Wait(&r, MPI_STATUS_IGNORE));
    MPI_Request_free(&r);
}

/* One partition has arrived before the sender dies. */
static void test_partitioned_receive(void)
{
    MPI_Request r;
    int x = 0, flag = 0, rc = MPI_SUCCESS;
    if (rank == victim) {
        MPI_Psend_init(memory, PARTS, LARGE, MPI_INT, 0, 0, now, MPI_INFO_NULL, &r);
        MPI_Start(&r);
        MPI_Pready(0, r);
        MPI_Recv(&x, 1, MPI_INT, 0, 1, now, MPI_STATUS_IGNORE);
        kill_this_rank();
    }
    if (rank > 0)
        return;
    MPI_Precv_init(memory, PARTS, LARGE, MPI_INT, victim, 0, now, MPI_INFO_NULL, &r);
    MPI_Start(&r);
    while (!flag)
        EXPECT_CLASS(MPI_Parrived(r, 0, &flag), MPI_SUCCESS);
    MPI_Send(&x, 1, MPI_INT, victim, 1, now);
    for (flag = 0; rc == MPI_SUCCESS && !flag;)
        rc = MPI_Parrived(r, 1, &flag);
    EXPECT_DEATH(rc);
    EXPECT_CLASS(MPI_Parrived(r, 0, &flag), MPI_SUCCESS);
    EXPECT(flag);
    EXPECT_DEATH(MPI_Wait(&r, MPI_STATUS_IGNORE));
    MPI_Request_free(&r);
}

/* Revokes a communicator with started partitioned requests whose partners are alive but do not take part. */
static void test_revoked_partitioned(void)
{
    MPI_Request r[2];
    MPI_Comm old, comm;
    MPI_Comm_dup(now, &comm);
    old = now;
    MPI_Precv_init(memory, PARTS, LARGE, MPI_INT, (rank + 1) % size, 0, comm, MPI_INFO_NULL, &r[0]);
    MPI_Recv_init(memory + LARGE * PARTS, 1, MPI_INT, (rank + 1) % size, 1, comm, &r[1]);
    MPI_Startall(2, r);
    if (rank == 0)
        MPIX_Comm_revoke(comm);
    EXPECT_CLASS(MPI_Wait(&r[0], MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    EXPECT_CLASS(MPI_Wait(&r[1], MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
    MPI_Comm_free(&comm);
    now = old;
}

int main(int argc, char **argv)
{
    static void (*const phases[])(void) = {test_persistent_receive,
                                           test_persistent_send,
                                           test_wildcard,
                                           test_unmatched_partitioned_send,
                                           test_unmatched_partitioned_receive,
                                           test_partitioned_send,
                                           test_partitioned_receive,
                                           test_revoked_partitioned};
    mpitest_begin(&argc, &argv);
    memory = calloc(PARTS * LARGE + 1, sizeof(int));
    run_phases(phases, sizeof(phases) / sizeof(phases[0]));
    free(memory);
    return finalize_and_get_status();
}
