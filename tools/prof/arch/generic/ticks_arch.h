/* ticks_arch.h: for other processors, see ticks.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_PROF_TICKS_ARCH_H
#define FP_PROF_TICKS_ARCH_H

#include "base/clock.h"

static inline uint64_t prof_read_ticks(void)
{
    return clock_ns();
}

#endif
