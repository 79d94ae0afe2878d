/* mapping.h: memory of a process that others may map or store into: a shared mapping without a name. A fork leaves it where it
 * is, so an adapter may use it, and an adapter in software (softib) stores into it directly, if it finds the file when the memory
 * is registered: a process without privileges finds only files that are open.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_MAPPING_H
#define FP_BASE_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

struct mapping {
    void *at; /* NULL: nothing is mapped */
    size_t length;
    int file; /* open until mapping_close_file */
};

/* Maps zeroed memory; false without memory. The name appears in /proc/PID/maps. */
bool mapping_open(struct mapping *m, const char *name, size_t len);
/* Closes the mapping's file, which is needed only until the memory has been registered. */
void mapping_close_file(struct mapping *m);
void mapping_close(struct mapping *m);

#endif
