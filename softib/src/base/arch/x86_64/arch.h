/* arch.h: what an x86-64 core needs: a hint for spin loops.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_ARCH_H
#define SOFTIB_ARCH_H

static inline void cpu_relax(void)
{
    __asm__ volatile("pause" ::: "memory");
}

#endif
