/* grow.h: jobs that grow: MPI_Comm_spawn asks mpiexec for more ranks, which form a job of their own. A child
 * process, another mpiexec, runs that job. It receives the signals that this one receives, this one waits for
 * it to end, and when it fails the whole job fails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_GROW_H
#define FP_LAUNCHER_GROW_H

#include "job.h"

/* What a rank asked for: PMI-1's lines between mcmd=spawn and endcmd, of all programs. Taken over.
 * 0: a number to ask for the state by; else a sentence that the rank is told, allocated. */
unsigned grow_start(struct job *j, uint32_t rank, char *lines, char **why);

/* Has it failed to start? A sentence, or NULL: it is starting, runs, or has ended as it should.
 * The sentence is valid until the next grow_start: the rank that has heard it does not ask again. */
const char *grow_failure(struct job *j, unsigned number);

/* Nothing that was spawned is running. */
bool grow_idle(const struct job *j);
void grow_signal(struct job *j, int sig);

/* Whether that process was one of ours. failed: the status with which its job failed; 0: it did not, or it never started. */
bool grow_child_ended(struct job *j, pid_t pid, int status, int *failed);

/* The other end, in an mpiexec that was started so: tells that a rank has called MPI_Init, why none ever will, or that all
 * ranks have died. False: nobody is there to be told. */
bool grow_tell_inited(const struct options *o);
bool grow_tell_failed(const struct options *o, const char *why);
bool grow_tell_nobody_left(const struct options *o);

#endif
