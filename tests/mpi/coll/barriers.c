/* barriers.c: nobody leaves a barrier before everybody has come, whatever the algorithm: blocking, nonblocking and persistent,
 * back to back, with ranks that come late by chance. All ranks of a test share the machine's monotonic clock, so that arrivals
 * and departures can be compared. An argument is the least number of barriers (1000000: by hand, minutes); the last rank
 * prints how many there were.
 *
 * ranks: 5 1 8
 * nodes: 2 5
 * also: FISHPLATE_COLL=barrier=central
 * also: FISHPLATE_COLL=barrier=combining:n=2
 * also: FISHPLATE_COLL=barrier=tournament
 * also: FISHPLATE_COLL=barrier=fway:f=3
 * also: FISHPLATE_COLL=barrier=mcs:n=3:release=1
 * also: FISHPLATE_COLL=barrier=bst
 * also: FISHPLATE_COLL=barrier=butterfly
 * also: FISHPLATE_COLL=barrier=pairwise
 * also: FISHPLATE_COLL=barrier=dissemination
 * also: FISHPLATE_COLL=barrier=nway:n=3
 * also: FISHPLATE_COLL=barrier=nwise:n=2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>

#include "late.h"
#include "mpitest.h"

enum { ROUNDS = 100, KINDS = 3 };

static double came[KINDS * ROUNDS], left[KINDS * ROUNDS];

static void barriers_run(int kind, MPI_Request *persistent)
{
    MPI_Request request;
    switch (kind) {
    case 0:
        MPI_Barrier(MPI_COMM_WORLD);
        return;
    case 1:
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return;
    default:
        MPI_Start(persistent);
        MPI_Wait(persistent, MPI_STATUS_IGNORE);
    }
}

static void barriers_early_messages(int i)
{
    if (mpitest_failures++ < 20)
        fprintf(stderr, "rank %d left barrier %d %.3f us before the last rank came\n", mpitest_rank, i,
                1e6 * (came[i] - left[i]));
}

/* A batch of barriers, then the comparison; it counts the ranks that left one too early. */
static void barriers_batch(unsigned *dice, MPI_Request *persistent)
{
    for (int i = 0; i < KINDS * ROUNDS; i++) {
        be_late(dice);
        came[i] = now();
        barriers_run(i % KINDS, persistent);
        left[i] = now();
    }
    MPI_Allreduce(MPI_IN_PLACE, came, KINDS * ROUNDS, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < KINDS * ROUNDS; i++)
        if (left[i] < came[i])
            barriers_early_messages(i);
}

int main(int argc, char **argv)
{
    MPI_Request persistent;
    mpitest_begin(&argc, &argv);
    const long wanted = argc > 1 ? atol(argv[1]) : 1;
    long done = 0;
    unsigned dice = 77u + (unsigned)mpitest_rank;
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &persistent);
    for (; done < wanted; done += KINDS * ROUNDS)
        barriers_batch(&dice, &persistent);
    MPI_Request_free(&persistent);
    if (mpitest_rank == mpitest_size - 1)
        printf("%ld barriers of %d ranks\n", done, mpitest_size);
    return mpitest_end();
}
