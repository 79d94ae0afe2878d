/* arch.h: the hint for spin loops on aarch64.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_ARCH_H
#define SOFTIB_ARCH_H

static inline void cpu_relax(void)
{
    __asm__ volatile("isb" ::: "memory"); /* "yield" is a no-op on server cores; isb really waits */
}

#endif
