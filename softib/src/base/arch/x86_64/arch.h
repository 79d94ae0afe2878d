/* arch.h: the hint for spin loops on x86-64.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_ARCH_H
#define SOFTIB_ARCH_H

static inline void cpu_relax(void)
{
    __asm__ volatile("pause" ::: "memory");
}

#endif
