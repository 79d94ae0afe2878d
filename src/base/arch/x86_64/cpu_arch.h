/* cpu_arch.h: for x86_64, see base/cpu.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_CPU_ARCH_H
#define FP_BASE_CPU_ARCH_H

static inline void cpu_relax(void)
{
    __builtin_ia32_pause();
}

/* Prefetches a cache line for writing. A hint: processors without the instruction ignore it. */
static inline void cpu_prefetch_write(const void *line)
{
    __asm__ __volatile__("prefetchw %0" : : "m"(*(const char *)line));
}

#endif
