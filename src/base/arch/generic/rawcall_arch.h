/* rawcall_arch.h: for any other processor, see base/rawcall.h. Through libc, so errno changes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_RAWCALL_ARCH_H
#define FP_BASE_RAWCALL_ARCH_H

#include <errno.h>
#include <unistd.h>

#define CPU_NAME "generic"

static inline long raw_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    long result = syscall(number, a, b, c, d, e, f);
    return result == -1 ? -errno : result;
}

#endif
