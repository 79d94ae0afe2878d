/* mapping.c: shared mappings without a name in the file system.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

bool mapping_open(struct mapping *m, const char *name, size_t len)
{
    void *at = MAP_FAILED;
    const int file = memfd_create(name, MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, (off_t)len) == 0)
        at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    *m = (struct mapping){.at = at == MAP_FAILED ? NULL : at, .length = len, .file = file};
    if (file >= 0 && !m->at)
        close(file);
    return m->at != NULL;
}

void mapping_close_file(struct mapping *m)
{
    if (m->at && m->file >= 0)
        close(m->file);
    m->file = -1;
}

void mapping_close(struct mapping *m)
{
    if (!m->at)
        return;
    mapping_close_file(m);
    munmap(m->at, m->length);
    m->at = NULL;
}
