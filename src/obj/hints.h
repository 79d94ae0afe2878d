/* hints.h: the info keys that communicators know. Keys that are not listed here are dropped, as the standard
 * requires.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_HINTS_H
#define FP_OBJ_HINTS_H

#include "obj/info.h"

/* The hardware kind by which MPI_Comm_split_type divided: returned to the user, never accepted as input. */
#define HINT_HARDWARE "mpi_hw_resource_type"

/* The kinds of memory that buffers may be in (MPI-5.0, 11.4.3): read-only, in the info of sessions,
 * communicators, windows and files. */
#define HINT_MEMORY_KINDS   "mpi_memory_alloc_kinds"
#define HINT_ASSERTED_KINDS "mpi_assert_memory_alloc_kinds"
const char *hints_memory_kinds(void);

/* Stores the known hints of `info` (may be NULL) in *kept, which is created for the first hint. */
int hints_apply(struct info **kept, const struct info *info);

/* Creates an info object with the value of every hint in use. */
int hints_build_used(const struct info *kept, struct info **out);

#endif
