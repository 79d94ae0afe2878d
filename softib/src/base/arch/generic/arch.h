/* arch.h: any other processor: no hint for spin loops, only a compiler barrier.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_ARCH_H
#define SOFTIB_ARCH_H

static inline void cpu_relax(void)
{
    __asm__ volatile("" ::: "memory");
}

#endif
