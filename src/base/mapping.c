/* mapping.c: shared mappings without a name in the file system.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

void *mapping_shared(const char *name, size_t len)
{
    const int fd = memfd_create(name, MFD_CLOEXEC);
    void *at = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)len) == 0)
        at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return at == MAP_FAILED ? NULL : at;
}
