/* coll.c: a rank dies before or inside a collective call, blocking or nonblocking, small or large: waiting
 * ranks get MPIX_ERR_PROC_FAILED and afterwards continue without the dead rank.
 *
 * ranks: 8
 * nodes: 4
 * mpiexec: -enable-recovery
 * also: FISHPLATE_COLL=barrier=shared,bcast=shared,gather=shared
 * also: FISHPLATE_COLL=barrier=central,bcast=linear,gather=linear,scatter=linear
 * also: FISHPLATE_COLL=barrier=tournament,bcast=chain
 * also: FISHPLATE_COLL=barrier=mcs:n=3:release=1,bcast=scatter_ring
 * also: FISHPLATE_COLL=barrier=combining:n=2
 * also: FISHPLATE_COLL=barrier=fway:f=3
 * also: FISHPLATE_COLL=barrier=bst
 * also: FISHPLATE_COLL=barrier=butterfly
 * also: FISHPLATE_COLL=barrier=pairwise
 * also: FISHPLATE_COLL=barrier=nway:n=3
 * also: FISHPLATE_COLL=barrier=nwise:n=2
 * also: FISHPLATE_DEBUG=coll
 * on nodes: FISHPLATE_COLL=barrier=rdma,bcast=multicast:max=4m
 * on nodes: FISHPLATE_COLL=barrier=switch
 * on nodes: FISHPLATE_COLL=barrier=multicast
 * on nodes: FISHPLATE_COLL=barrier=node+tournament
 * SPDX-License-Identifier: Apache-2.0 */
#include "ft/ft.h"

#define BYTES_MAX (1 << 19)

static char *out, *in;

/* Checks the result of a collective during which a rank dies. A rank that finished earlier may not detect
 * the death; a second call fails at all ranks. */
static void expect_death_by_second_call(int rc)
{
    EXPECT(get_error_class(rc) == MPI_SUCCESS || get_error_class(rc) == MPIX_ERR_PROC_FAILED);
    EXPECT_DEATH(MPI_Barrier(now));
}

static void test_barrier(void)
{
    if (rank == victim)
        kill_this_rank();
    EXPECT_DEATH(MPI_Barrier(now));
}

static void test_bcast(void)
{
    if (rank == victim)
        kill_this_rank();
    expect_death_by_second_call(MPI_Bcast(in, BYTES_MAX, MPI_BYTE, victim, now));
}

static void test_reduce(void)
{
    if (rank == victim)
        kill_this_rank();
    EXPECT_DEATH(MPI_Allreduce(out, in, BYTES_MAX / 4, MPI_INT, MPI_BOR, now));
    expect_death_by_second_call(MPI_Reduce(out, in, 100, MPI_INT, MPI_BOR, 0, now));
}

static void test_alltoall(void)
{
    if (rank == victim)
        kill_this_rank();
    EXPECT_DEATH(MPI_Alltoall(out, BYTES_MAX / size, MPI_BYTE, in, BYTES_MAX / size, MPI_BYTE, now));
    EXPECT_DEATH(MPI_Allgather(out, 8, MPI_BYTE, in, 8, MPI_BYTE, now));
}

/* The victim dies after it has started the call; other ranks may have its contribution. */
static void test_nonblocking(void)
{
    MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    /* A rank that calls late may know of the death already; its call then fails at once. */
    int began = MPI_Iallreduce(out, in, 1000, MPI_INT, MPI_SUM, now, &r[0]);
    EXPECT(get_error_class(began) == MPI_SUCCESS || get_error_class(began) == MPIX_ERR_PROC_FAILED);
    MPI_Ibarrier(now, &r[1]);
    if (rank == victim)
        kill_this_rank();
    for (int i = 0; i < 2; i++) {
        int rc = MPI_Wait(&r[i], MPI_STATUS_IGNORE);
        EXPECT(get_error_class(rc) == MPI_SUCCESS || get_error_class(rc) == MPIX_ERR_PROC_FAILED);
        EXPECT(r[i] == MPI_REQUEST_NULL);
    }
    EXPECT_DEATH(MPI_Barrier(now));
}

static void test_gather(void)
{
    MPI_Comm made;
    if (rank == victim)
        kill_this_rank();
    expect_death_by_second_call(MPI_Gather(out, 1000, MPI_BYTE, in, 1000, MPI_BYTE, 0, now));
    expect_death_by_second_call(MPI_Scatter(out, 1000, MPI_BYTE, in, 1000, MPI_BYTE, victim, now));
    EXPECT_DEATH(MPI_Comm_dup(now, &made));
    EXPECT_DEATH(MPI_Comm_split(now, 0, 0, &made));
}

int main(int argc, char **argv)
{
    static void (*const phases[])(void) = {test_barrier,  test_bcast,       test_reduce,
                                           test_alltoall, test_nonblocking, test_gather};
    mpitest_begin(&argc, &argv);
    out = calloc(2, BYTES_MAX);
    in = calloc(2, BYTES_MAX);
    run_phases(phases, 6);
    free(out);
    free(in);
    return finalize_and_get_status();
}
