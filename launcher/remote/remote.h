/* remote.h: mpiexec's side of the agents: starts one per remote host through a remote shell, waits until it
 * connects back, and registers it with the job as a host like any other.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_REMOTE_H
#define FP_LAUNCHER_REMOTE_H

#include "job/job.h"
#include "plan/plan.h"

/* plans[i] is host i's, NULL for hosts that are local or have no ranks. */
void remote_start(struct job *j, struct plan **plans);

/* A child that is no rank has ended. */
void remote_child_ended(void *ctx, pid_t pid, int status);

#endif
