/* pmix_spawn.h: MPI_Comm_spawn under a launcher that speaks PMIx: the request as PMIx has it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_PMIX_SPAWN_H
#define FP_BOOT_PMIX_SPAWN_H

#include "boot/boot.h"
#include "boot/pmix_abi.h"

/* Our own results of a spawn; PMIx's results are never positive. */
enum { PX_NO_MEMORY = 1, PX_NO_ANSWER = 2 };

/* Returns when the launcher has started the programs, or will not; `id` is the new job's name space. */
int pmix_spawn_start(px_spawn_nb spawn, const struct boot *b, const struct boot_program *programs, int n,
                     const char *port, char id[BOOT_SPAWN_ID]);

#endif
