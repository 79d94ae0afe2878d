/* recover.h: jobs that continue when ranks die (-enable-recovery): whether this job can, and who is notified.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_RECOVER_H
#define FP_LAUNCHER_RECOVER_H

#include "job/job.h"

/* Opens the notices file (boot/notice.h; -1: none), into which deaths are written. The ranks of this host
 * and the mpiexecs of spawned jobs read it. Notices written by other jobs are forwarded to other hosts. */
void recover_open(struct job *j, int notices);

/* A rank failed with this exit status; `how` describes it in a sentence. True: the other ranks are notified
 * and continue. False: the job has failed or recovery is not enabled. */
bool recover_rank_death(struct job *j, uint32_t rank, int code, const char *how);

/* Notifies the ranks of this job that `rank` has ended after MPI_Finalize: ranks that are still in
 * MPI_Finalize may wait for a message from it. */
void recover_rank_departed(struct job *j, uint32_t rank);

/* Calls recover_rank_death for all ranks of a lost host. True: the job continues. */
bool recover_from_lost(struct job *j, const struct job_host *h, const char *why);

/* Handles a report that `rank` does not respond to `by` (for pmi_events). After JUDGE_MS the rank to which
 * most others have lost the connection is killed, so that all ranks agree. */
void recover_on_unreachable(void *ctx, uint32_t rank, uint32_t by);

/* At the end: fails the job if all of its ranks died. */
void recover_end_job(struct job *j);

#endif
