/* batch.h: the hosts of a job of PBS, LSF or Grid Engine, from the file that each names in a variable. Slurm has no such file (slurm.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_BATCH_H
#define FP_LAUNCHER_BATCH_H

#include <stdbool.h>

/* Calls `add` for each host with its number of slots; `where` names file and line for messages. False: no
 * such job. */
typedef void batch_add_fn(void *arg, const char *host, long slots, const char *where);
bool batch_hosts(batch_add_fn *add, void *arg);

/* True if mpiexec runs inside a job of one of these systems. */
bool batch_is_allocation(void);

#endif
