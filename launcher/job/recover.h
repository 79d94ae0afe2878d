/* recover.h: jobs that go on when ranks die (-enable-recovery): whether this one can, and who is told.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_RECOVER_H
#define FP_LAUNCHER_RECOVER_H

#include "job/job.h"

/* Deaths are told in the notices behind this file, which the ranks of this host see (boot/notice.h), and so do the mpiexecs
 * of jobs that were spawned. Those of other hosts are told what is written there, by whomever. -1: nothing is told. */
void recover_open(struct job *j, int notices);

/* A rank has ended as it should not have, `how` in a sentence with that exit status. True: the others hear of it and go
 * on. False: the job has failed, or was not to go on. */
bool recover_rank_death(struct job *j, uint32_t rank, int code, const char *how);

/* A rank has ended after MPI_Finalize. Those who are still in theirs may wait for a word of it: they hear that it is gone. */
void recover_left(struct job *j, uint32_t rank);

/* The same for all ranks of a host. */
bool recover_from_lost(struct job *j, const struct job_host *h, const char *why);

/* A rank says that another one does not answer. A little later one of the two is ended, so that all hear the same: the one
 * that most others have no connection with. For pmi_events. */
void recover_accused(void *ctx, uint32_t rank, uint32_t by);

/* At the end: a job has failed when nobody was left of it. */
void recover_end(struct job *j);

#endif
