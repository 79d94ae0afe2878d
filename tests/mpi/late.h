/* late.h: ranks that come late to a collective, and the clock that shows who left too early. The ranks must share a
 * machine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TEST_LATE_H
#define FP_TEST_LATE_H

#include <time.h>

/* Seconds. */
static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Delays this rank: mostly not at all, sometimes by tens of microseconds. */
static inline void be_late(unsigned *dice)
{
    *dice = *dice * 1103515245u + 12345u;
    unsigned throw = *dice >> 16;
    if (throw % 8 == 0)
        for (double until = now() + 1e-6 * (throw % 60); now() < until;)
            ;
}

#endif
