/* slurm.h: the hosts of a Slurm allocation, from the variables that salloc and sbatch set: `n[01-03,7],login`
 * and `8(x3),4`. Slurm itself is not called.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_SLURM_H
#define FP_LAUNCHER_SLURM_H

#include "plan/hosts.h"

/* True inside a Slurm allocation. */
bool slurm_is_allocation(void);

/* Lists the hosts of the allocation with their slots: tasks per node if set, else processors. */
void slurm_list_hosts(struct hosts *out);

#define SLURM_HOSTS_MAX (1u << 16) /* limit of Slurm's own nodes */

/* Adds every name of a compressed list; false if the list is invalid or names more than `most` hosts. */
bool slurm_expand(const char *list, unsigned most, struct strings *out);

#endif
