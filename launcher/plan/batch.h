/* batch.h: the hosts of a job of PBS, LSF or Grid Engine, from the host file that a variable of the batch
 * system names. Slurm has no such file (slurm.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_BATCH_H
#define FP_LAUNCHER_BATCH_H

#include <stdbool.h>

/* Calls `add` for each host with its number of slots; `where` names file and line for messages. False:
 * this process is not in a job of these systems. */
typedef void batch_add_fn(void *arg, const char *host, long slots, const char *where);
bool batch_list_hosts(batch_add_fn *add, void *arg);

/* True if mpiexec runs inside a job of one of these systems. */
bool batch_is_allocation(void);

#endif
