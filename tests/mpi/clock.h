/* clock.h: reads the clocks of the machine and of the process.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_MPITEST_CLOCK_H
#define FP_MPITEST_CLOCK_H

#include <time.h>

/* Returns the time of a clock in seconds. */
static inline double clock_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
