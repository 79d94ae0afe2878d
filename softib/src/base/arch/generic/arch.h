/* arch.h: for other processors: a compiler barrier instead of a hint for spin loops.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_ARCH_H
#define SOFTIB_ARCH_H

static inline void cpu_relax(void)
{
    __asm__ volatile("" ::: "memory");
}

#endif
