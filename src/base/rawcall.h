/* rawcall.h: a system call without libc, for code that replaces a function of libc: it calls no function,
 * does not change errno, and returns the result of the kernel (a negative errno on failure). CPU_NAME: the
 * processor.
 *     long raw_syscall(long number, long a, long b, long c, long d, long e, long f);
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_RAWCALL_H
#define FP_BASE_RAWCALL_H

#include "rawcall_arch.h"

#endif
