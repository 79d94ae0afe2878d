/* diagnose.h: runs `fishplate why`, installed next to mpiexec, to find out why the job makes no progress. The
 * report goes to standard error. The ranks need not cooperate; the tool queries mpiexec for ranks of other
 * hosts (query.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_DIAGNOSE_H
#define FP_LAUNCHER_DIAGNOSE_H

#include "job/job.h"

/* Runs the tool once. `done` (may be NULL) is called when the tool has ended or its time limit is over. */
void why_print(struct job *j, void (*done)(struct job *j));

/* Starts the tool in the background; it reports when the job has made no progress for `seconds`. */
void why_watch_for_hang(struct job *j, long seconds);

#endif
