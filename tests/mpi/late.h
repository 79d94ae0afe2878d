/* late.h: random delays of ranks before a collective call, and a clock that shows whether a rank left the
 * call too early. All ranks must run on one machine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TEST_LATE_H
#define FP_TEST_LATE_H

#include "clock.h"

#include <mpi.h>

/* Delays this rank by a random time: usually zero, sometimes tens of microseconds. */
static inline void delay_randomly(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    unsigned number = *seed >> 16;
    if (number % 8 == 0)
        for (double until = clock_seconds(CLOCK_MONOTONIC) + 1e-6 * (number % 60);
             clock_seconds(CLOCK_MONOTONIC) < until;)
            ;
}

/* Returns how many of `n` barriers this rank left before the last rank of `comm` entered them. */
static inline int count_early_departures(double *arrivals, const double *departures, int n, MPI_Comm comm)
{
    int early = 0;
    MPI_Allreduce(MPI_IN_PLACE, arrivals, n, MPI_DOUBLE, MPI_MAX, comm);
    for (int i = 0; i < n; i++)
        early += departures[i] < arrivals[i];
    return early;
}

#endif
