/* recover.h: jobs that continue when ranks die (-enable-recovery): whether this job can, and who is notified.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_RECOVER_H
#define FP_LAUNCHER_RECOVER_H

#include "job/job.h"

/* Deaths are written to the notices file (boot/notice.h), which the ranks of this host and the mpiexecs of
 * spawned jobs read. Notices written by other jobs are forwarded to other hosts. -1: no notices. */
void recover_open(struct job *j, int notices);

/* A rank failed with this exit status; `how` describes it in a sentence. True: the other ranks are notified
 * and continue. False: the job has failed or recovery is not enabled. */
bool recover_rank_death(struct job *j, uint32_t rank, int code, const char *how);

/* A rank has ended after MPI_Finalize. Ranks of this job that are still in MPI_Finalize may wait for a message from it: they are
 * notified that it is gone. */
void recover_rank_departed(struct job *j, uint32_t rank);

/* recover_rank_death for all ranks of a host that was lost. */
bool recover_from_lost(struct job *j, const struct job_host *h, const char *why);

/* A rank reports that another one does not answer. After JUDGE_MS the rank to which most others have lost the
 * connection is ended, so that all ranks agree. For pmi_events. */
void recover_on_unreachable(void *ctx, uint32_t rank, uint32_t by);

/* At the end: a job has failed if no rank of it was left. */
void recover_end_job(struct job *j);

#endif
