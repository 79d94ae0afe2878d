/* xrc_row.c: with XRC the creator of a target queue pair dies, another process of its node creates a target
 * in the same row of the node's table, and a third process then releases the dead target. The new target
 * remains.
 *
 * ranks: 6
 * nodes: only 2
 * env: FISHPLATE_IB_TIMEOUT=10
 * mpiexec: -enable-recovery
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "counters.h"
#include "ft/ft.h"

/* Ranks 0-2 are on one node, ranks 3-5 on the other one. Between the nodes only these pairs connect. */
static void send_and_receive(int from, int to)
{
    int x = from * 100 + to, got = 0;
    if (rank == from) {
        EXPECT_CLASS(MPI_Send(&x, 1, MPI_INT, to, 0, now), MPI_SUCCESS);
        EXPECT_CLASS(MPI_Recv(&got, 1, MPI_INT, to, 1, now, MPI_STATUS_IGNORE), MPI_SUCCESS);
        EXPECT_EQ(got, x);
    } else if (rank == to) {
        EXPECT_CLASS(MPI_Recv(&got, 1, MPI_INT, from, 0, now, MPI_STATUS_IGNORE), MPI_SUCCESS);
        EXPECT_CLASS(MPI_Send(&got, 1, MPI_INT, from, 1, now), MPI_SUCCESS);
    }
}

int main(int argc, char **argv)
{
    int x = 0;
    setenv("FISHPLATE_IB_RECEIVE", "xrc", 1);
    counters_begin();
    MPI_T_pvar_handle targets = counter_open("ib_xrc_targets");
    mpitest_begin(&argc, &argv);
    now = MPI_COMM_WORLD;
    update_rank_and_size();
    send_and_receive(0, victim); /* the victim creates the first target of its node */
    send_and_receive(victim, 4);
    send_and_receive(0, 4); /* rank 4 uses the target */
    send_and_receive(0, victim);
    if (rank == victim)
        kill_this_rank();
    if (rank == 3)
        EXPECT_DEATH(MPI_Recv(&x, 1, MPI_INT, victim, 2, now, MPI_STATUS_IGNORE));
    send_and_receive(3, 1); /* rank 3 creates a target in the row of the dead process */
    send_and_receive(1, 0);
    send_and_receive(0, 4); /* the connection is opened again: rank 4 releases the dead target */
    send_and_receive(0, 2);
    send_and_receive(2, 3); /* rank 3 creates another target, and destroys those without users */
    send_and_receive(2, 1);
    send_and_receive(1, 3);
    if (rank == 3)
        EXPECT_EQ((int)read_counter(targets), 2);
    EXPECT_DEATH(MPI_Recv(&x, 1, MPI_INT, victim, 2, now, MPI_STATUS_IGNORE));
    shrink_to_survivors();
    counters_end();
    return finalize_and_get_status();
}
