/* spawned.h: MPI_Comm_spawn: the new ranks form a job of their own, which another mpiexec runs as a child
 * process. It receives the signals that this mpiexec receives; this one waits for it to end; and if it fails,
 * this job fails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_SPAWNED_H
#define FP_LAUNCHER_SPAWNED_H

#include "job/job.h"

/* Starts a spawned job (for pmi_events; `job` is a struct job). lines: PMI-1's lines between mcmd=spawn
 * and endcmd, of all programs; freed. Returns the job's number, for spawned_failure; or 0, and *why is an
 * allocated sentence for the requesting rank. */
unsigned spawned_start(void *job, uint32_t rank, char *lines, char **why);

/* Returns why the spawned job with this number failed to start; NULL: it did not fail so far. The sentence
 * is valid until the next spawned_start. */
const char *spawned_failure(void *job, unsigned number);

/* True if no spawned job is running. */
bool spawned_are_idle(const struct job *j);
void spawned_signal(struct job *j, int sig);

/* Handles the end of a child process. False if it was not the mpiexec of a spawned job. *failed: the exit
 * status of a spawned job that failed after its start; else 0. */
bool spawned_handle_child_end(struct job *j, pid_t pid, int status, int *failed);

/* Called in an mpiexec that runs a spawned job, to report to the mpiexec that started it: a rank has
 * called MPI_Init, the job could not start, or all ranks have died. False: this job was not spawned, or
 * the report could not be sent. */
bool spawned_report_inited(const struct options *o);
bool spawned_report_failed(const struct options *o, const char *why);
bool spawned_report_nobody_left(const struct options *o);

#endif
