/* library.h: memory of shared libraries goes away in dlclose, by code of the dynamic linker that no hook
 * sees. So a cache of such memory checks the number of libraries that have gone since.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MEMHOOK_LIBRARY_H
#define FP_NET_MEMHOOK_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if a part of the range belongs to a library that might be unloaded (the program itself never is). */
bool library_holds(uintptr_t start, size_t length);

/* Libraries unloaded so far in this process. */
uint64_t library_unloads(void);

/* The tool (sanitizer, valgrind) under which this process runs and that manages memory itself, or NULL. */
const char *library_find_tool(void);

#endif
