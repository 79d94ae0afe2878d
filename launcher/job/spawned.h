/* spawned.h: jobs that ranks spawn: MPI_Comm_spawn requests more ranks from mpiexec, which form a job of their own. A child
 * process, another mpiexec, runs that job. It receives the signals that this one receives, this one waits for
 * it to end, and when it fails the whole job fails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_SPAWNED_H
#define FP_LAUNCHER_SPAWNED_H

#include "job/job.h"

/* For pmi_events; `job` is a struct job. Starts a spawned job. lines: PMI-1's lines between mcmd=spawn and endcmd, of all programs; freed. Returns the job's number,
 * by which its state is queried; 0: *why is a sentence for the rank, allocated. */
unsigned spawned_start(void *job, uint32_t rank, char *lines, char **why);

/* Why that job has failed to start; NULL: it is starting, runs, or has ended as it should. The sentence is valid until the next
 * spawned_start. */
const char *spawned_failure(void *job, unsigned number);

/* True if no spawned job is running. */
bool spawned_are_idle(const struct job *j);
void spawned_signal(struct job *j, int sig);

/* Whether that process was one of ours. failed: the status with which its job failed; 0: it did not, or it never started. */
bool spawned_handle_child_end(struct job *j, pid_t pid, int status, int *failed);

/* The other end, in an mpiexec that runs a spawned job: reports to the mpiexec that started it that a rank has called MPI_Init, why
 * none ever will, or that all ranks have died. False: this job was not spawned, or the report failed. */
bool spawned_report_inited(const struct options *o);
bool spawned_report_failed(const struct options *o, const char *why);
bool spawned_report_nobody_left(const struct options *o);

#endif
