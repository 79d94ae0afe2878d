/* mapping.h: memory of a process that other processes may map: a shared mapping of an anonymous file. A fork
 * does not copy its pages, so that adapters may access them. The software InfiniBand adapter (softib) of
 * another process can map the memory only if the file is still open when the memory is registered.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_MAPPING_H
#define FP_BASE_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

struct mapping {
    void *at;      /* NULL: nothing is mapped */
    size_t length; /* whole pages */
    int file;      /* open until mapping_close_file */
};

/* Maps at least `len` bytes of zeroed memory; false without memory. The name appears in /proc/PID/maps. */
bool mapping_open(struct mapping *m, const char *name, size_t len);
/* Closes the mapping's file, which is needed only until the memory has been registered. */
void mapping_close_file(struct mapping *m);
void mapping_close(struct mapping *m);

#endif
