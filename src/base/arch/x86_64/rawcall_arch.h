/* rawcall_arch.h: for x86_64, see base/rawcall.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_RAWCALL_ARCH_H
#define FP_BASE_RAWCALL_ARCH_H

#define CPU_NAME "x86_64"

static inline long raw_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory", "cc");
    return result;
}

#endif
