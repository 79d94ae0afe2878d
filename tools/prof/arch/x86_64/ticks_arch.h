/* ticks_arch.h: reads the time-stamp counter of x86_64, see ticks.h. Processors of the last fifteen years
 * count at a constant rate, independent of their clock frequency.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_PROF_TICKS_ARCH_H
#define FP_PROF_TICKS_ARCH_H

#include <stdint.h>

static inline uint64_t prof_read_ticks(void)
{
    return __builtin_ia32_rdtsc();
}

#endif
