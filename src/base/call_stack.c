/* call_stack.c: finds the MPI function in a call stack by the names that this library exports.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/call_stack.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

int frames_find_mpi_call(void *const *frames, int first, int count, const char **name)
{
    Dl_info here, there;
    if (!dladdr((void *)(uintptr_t)frames_find_mpi_call, &here))
        return -1;
    for (int i = first; i < count; i++) {
        /* A return address points behind the call and may belong to the next function: look up the byte
         * before. */
        const void *at = (const char *)frames[i] - (i > first);
        if (!dladdr(at, &there) || there.dli_fbase != here.dli_fbase || !there.dli_sname)
            continue;
        *name = there.dli_sname + (there.dli_sname[0] == 'P');
        if (strncmp(*name, "MPI_", 4) == 0 || strncmp(*name, "MPIX_", 5) == 0)
            return i;
    }
    return -1;
}

int frames_find_caller(void *const *frames, int mpi, int count)
{
    Dl_info there;
    for (int i = mpi + 1; i < count; i++) {
        const char *file = dladdr((const char *)frames[i] - 1, &there) ? there.dli_fname : NULL;
        const char *slash = file ? strrchr(file, '/') : NULL;
        const char *base = slash ? slash + 1 : file ? file : "";
        if (strncmp(base, "libmpi", 6) != 0 && strncmp(base, "libfishplate", 12) != 0)
            return i;
    }
    return -1;
}
