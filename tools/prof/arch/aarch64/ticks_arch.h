/* ticks_arch.h: for aarch64, see ticks.h. The counter runs at one rate on all processors.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_PROF_TICKS_ARCH_H
#define FP_PROF_TICKS_ARCH_H

#include <stdint.h>

static inline uint64_t prof_read_ticks(void)
{
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
}

#endif
