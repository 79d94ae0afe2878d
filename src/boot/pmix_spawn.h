/* pmix_spawn.h: MPI_Comm_spawn under a PMIx launcher, by PMIx_Spawn_nb.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_PMIX_SPAWN_H
#define FP_BOOT_PMIX_SPAWN_H

#include "boot/boot.h"
#include "boot/pmix_abi.h"

/* Results of pmix_spawn_start besides status codes of PMIx, which are never positive. */
enum { PX_NO_MEMORY = 1, PX_NO_ANSWER = 2 };

/* Requests the programs and waits for the launcher's answer. `id`: the new job's name space. */
int pmix_spawn_start(px_spawn_nb spawn, const struct boot *b, const struct boot_program *programs, int n,
                     const char *port, char id[BOOT_SPAWN_ID]);

#endif
