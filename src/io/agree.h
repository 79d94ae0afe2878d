/* agree.h: what the ranks of a file exchange before all of them continue: whether a rank failed, numbers that
 * must be the same everywhere, and small values of rank 0. Everything here is collective and blocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_AGREE_H
#define FP_IO_AGREE_H

#include "coll/coll.h"
#include "obj/comm.h"

/* Called when a collective operation inside MPI-IO failed with `rc` because a member has died, or because another rank
 * stopped for that reason. Revokes the communicator so that no rank waits for this one, and returns an error of class
 * MPIX_ERR_PROC_FAILED. */
int agree_map_failure(struct comm *c, const char *name, int rc);

/* An error as one number that MPI_MAX can reduce: 0 when there is none. */
int64_t agree_encode(int rc, int rank);
/* The class of the error, with a sentence that names the rank it happened at unless that is this one. */
int agree_decode(int64_t code, const struct comm *c, const char *name);

/* The same error at every rank when at least one failed. */
int agree_error(struct comm *c, const char *name, int rc);
/* MPI_ERR_NOT_SAME when the n values differ between ranks; `what` names them for people. */
int agree_check_equal(struct comm *c, const char *name, const char *what, const int64_t *values, int n);
int agree_bcast(struct comm *c, void *data, size_t len);
/* Gathers each rank's value into recv[rank] at all ranks. */
int agree_gather(struct comm *c, int64_t value, int64_t *recv);

/* The arguments of the collective calls that file operations use. */
void agree_args_max(struct coll_args *a, struct comm *c, int64_t *values, int n);
void agree_args_gather(struct coll_args *a, struct comm *c, const int64_t *mine, int64_t *all, int n);

#endif
