/* rawcall.h: a system call without libc, for code that replaces a function of libc: no function is called,
 * errno is left alone, and the result is what the kernel returns (a negative errno on failure). CPU_NAME is
 * the processor this was built for.
 *     long raw_syscall(long number, long a, long b, long c, long d, long e, long f);
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_RAWCALL_H
#define FP_BASE_RAWCALL_H

#include "rawcall_arch.h"

#endif
