/* ticks.h: the processor's own counter, several times cheaper to read than the clock. How long a tick is
 * comes out at the end, from the clock and the counter together.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_PROF_TICKS_H
#define FP_PROF_TICKS_H

#include "ticks_arch.h"

/* Nanoseconds, for ticks counted in this process. */
uint64_t ticks_to_ns(uint64_t ticks);

#endif
