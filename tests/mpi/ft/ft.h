/* ft.h: the framework of the fault tolerance tests. A test is a list of phases; in each phase the last
 * rank of the communicator dies, the other ranks check the result of their call, and continue with the
 * next phase without the dead rank.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_MPI_FT_H
#define FP_MPI_FT_H

#include <mpi-ext.h>
#include <signal.h>
#include <unistd.h>

#include "mpitest.h"

static MPI_Comm now; /* communicator of the living ranks */
static int rank, size, victim;

#define EXPECT_DEATH(call) EXPECT_CLASS(call, MPIX_ERR_PROC_FAILED)

#if MPI_ERR_REVOKED != MPIX_ERR_REVOKED || MPI_ERR_PROC_FAILED != MPIX_ERR_PROC_FAILED
#error "names without the X have another meaning"
#endif

static inline void kill_this_rank(void)
{
    printf("rank %d of %d dies\n", rank, size); /* tests/launcher/recovery.sh checks this line */
    raise(SIGKILL);
}

static inline void update_rank_and_size(void)
{
    int *ft, found = 0;
    MPI_Comm_get_attr(now, MPIX_FT, &ft, &found);
    EXPECT(found && *ft == 1);
    MPI_Comm_set_errhandler(now, MPI_ERRORS_RETURN);
    MPI_Comm_rank(now, &rank);
    MPI_Comm_size(now, &size);
    victim = size - 1;
}

/* Shrinks the communicator after a death. No rank continues before all have detected the death, so that no
 * phase is affected by another rank's revocation. */
static inline void shrink_to_survivors(void)
{
    MPI_Comm next = MPI_COMM_NULL;
    int flag = 1, before = size;
    MPIX_Comm_agree(now, &flag);
    EXPECT_EQ(flag, 1);
    EXPECT_CLASS(MPIX_Comm_shrink(now, &next), MPI_SUCCESS);
    if (next == MPI_COMM_NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (now != MPI_COMM_WORLD)
        MPI_Comm_free(&now);
    now = next;
    update_rank_and_size();
    EXPECT_EQ(size, before - 1);
    int one = 1, sum = 0;
    EXPECT_CLASS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, now), MPI_SUCCESS);
    EXPECT_EQ(sum, size);
}

static inline void run_phases(void (*const *phases)(void), int n)
{
    now = MPI_COMM_WORLD;
    update_rank_and_size();
    for (int i = 0; i < n && size > 1; i++) {
        int flag = 1; /* synchronises all ranks; the victim may kill_this_rank right after */
        MPIX_Comm_agree(now, &flag);
        phases[i]();
        if (rank == victim)
            kill_this_rank();
        shrink_to_survivors();
    }
}

static inline int finalize_and_get_status(void)
{
    MPI_Finalize();
    return mpitest_failures ? 1 : 0;
}

#endif
