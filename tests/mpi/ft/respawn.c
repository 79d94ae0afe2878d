/* respawn.c: a dead rank is replaced: the survivors shrink_to_survivors, spawn a new process and merge with it. The new
 * processes kill_this_rank too.
 *
 * ranks: 3
 * nodes: no
 * mpiexec: -enable-recovery
 * SPDX-License-Identifier: Apache-2.0 */
#include "ft/ft.h"

#define DEATHS 3

static void replace_dead_rank(char *program)
{
    MPI_Comm rest, inter, merged;
    MPIX_Comm_revoke(now);
    EXPECT_CLASS(MPIX_Comm_shrink(now, &rest), MPI_SUCCESS);
    MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, rest, &inter, MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(inter, 0, &merged);
    now = merged;
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    int deaths = 0, one = 1, sum = 0;
    mpitest_begin(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    now = MPI_COMM_WORLD;
    if (parent != MPI_COMM_NULL) {
        MPI_Intercomm_merge(parent, 1, &now);
        MPI_Bcast(&deaths, 1, MPI_INT, 0, now);
    }
    update_rank_and_size();
    const int wanted = size;
    while (deaths < DEATHS) {
        if (rank == victim)
            kill_this_rank();
        EXPECT_DEATH(MPI_Barrier(now));
        int flag = 1;
        MPIX_Comm_agree(now, &flag); /* all ranks have detected the death */
        replace_dead_rank(argv[0]);
        deaths++;
        MPI_Bcast(&deaths, 1, MPI_INT, 0, now);
        update_rank_and_size();
        EXPECT_EQ(size, wanted);
    }
    EXPECT_CLASS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, now), MPI_SUCCESS);
    EXPECT_EQ(sum, wanted);
    return finalize_and_get_status();
}
