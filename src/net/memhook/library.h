/* library.h: dlclose unmaps the memory of shared libraries through code of the dynamic linker, which no hook
 * detects. A cache of such memory must therefore check whether libraries have been unloaded since.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MEMHOOK_LIBRARY_H
#define FP_NET_MEMHOOK_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if a part of the range belongs to a library that might be unloaded (the program itself never is). */
bool library_holds(uintptr_t start, size_t length);

/* The number of libraries unloaded so far in this process. */
uint64_t library_count_unloads(void);

/* Returns the name of a tool (sanitizer, valgrind) that manages the memory of this process, or NULL. */
const char *library_find_tool(void);

#endif
