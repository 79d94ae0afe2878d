/* remote.h: mpiexec's side of the agents: starts one per remote host through a remote shell, waits until it
 * connects back, and adds it to the job with the same operations as the local host.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_REMOTE_H
#define FP_LAUNCHER_REMOTE_H

#include "job/job.h"
#include "plan/plan.h"

/* Starts the agents. plans[i]: plan of host i; NULL for hosts that are local or have no ranks. */
void remote_start(struct job *j, struct plan **plans);

/* Handles the end of a child process that is not a rank. */
void remote_child_ended(void *ctx, pid_t pid, int status);

#endif
