/* ticks.h: reads the processor's time-stamp counter, which takes a fraction of the time of clock_gettime. The
 * length of a tick is computed at the end from the clock and the counter.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_PROF_TICKS_H
#define FP_PROF_TICKS_H

#include "ticks_arch.h"

/* Converts ticks counted in this process to nanoseconds. */
uint64_t ticks_to_ns(uint64_t ticks);

#endif
