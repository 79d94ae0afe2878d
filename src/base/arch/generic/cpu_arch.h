/* cpu_arch.h: for any other processor, see base/cpu.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_CPU_ARCH_H
#define FP_BASE_CPU_ARCH_H

static inline void cpu_relax(void)
{
    __asm__ volatile("" ::: "memory");
}

static inline void cpu_prefetch_write(const void *line)
{
    __builtin_prefetch(line, 1);
}

#endif
