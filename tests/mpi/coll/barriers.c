/* barriers.c: no rank leaves a barrier before all ranks have arrived, for every algorithm: blocking,
 * nonblocking and persistent barriers, back to back, with random delays. All ranks of a test share the
 * machine's monotonic clock, so that arrivals and departures can be compared. The argument is the least
 * number of barriers (1000000 for a manual run of minutes); the last rank prints the number of barriers.
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

static double arrival_times[KINDS * ROUNDS], departure_times[KINDS * ROUNDS];

static void run_barrier(int kind, MPI_Request *persistent)
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

static void report_early_departure(int i)
{
    if (mpitest_failures++ < 20)
        fprintf(stderr, "rank %d left barrier %d %.3f us before the last rank entered it\n", mpitest_rank, i,
                1e6 * (arrival_times[i] - departure_times[i]));
}

/* Runs a batch of barriers, then compares the times and counts the ranks that left a barrier too early. */
static void run_batch(unsigned *random_seed, MPI_Request *persistent)
{
    for (int i = 0; i < KINDS * ROUNDS; i++) {
        delay_randomly(random_seed);
        arrival_times[i] = clock_seconds(CLOCK_MONOTONIC);
        run_barrier(i % KINDS, persistent);
        departure_times[i] = clock_seconds(CLOCK_MONOTONIC);
    }
    MPI_Allreduce(MPI_IN_PLACE, arrival_times, KINDS * ROUNDS, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < KINDS * ROUNDS; i++)
        if (departure_times[i] < arrival_times[i])
            report_early_departure(i);
}

int main(int argc, char **argv)
{
    MPI_Request persistent;
    mpitest_begin(&argc, &argv);
    const long wanted = argc > 1 ? atol(argv[1]) : 1;
    long done = 0;
    unsigned random_seed = 77u + (unsigned)mpitest_rank;
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &persistent);
    for (; done < wanted; done += KINDS * ROUNDS)
        run_batch(&random_seed, &persistent);
    MPI_Request_free(&persistent);
    if (mpitest_rank == mpitest_size - 1)
        printf("%ld barriers of %d ranks\n", done, mpitest_size);
    return mpitest_end();
}
