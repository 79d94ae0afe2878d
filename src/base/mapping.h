/* mapping.h: memory of a process that others may map or store into: a shared mapping without a name. A fork leaves it where it
 * is, so an adapter may use it, and an adapter in software (softib) stores into it directly.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_MAPPING_H
#define FP_BASE_MAPPING_H

#include <stddef.h>

/* Zeroed; munmap frees it. NULL: no memory. The name is for /proc/PID/maps. */
void *mapping_shared(const char *name, size_t len);

#endif
