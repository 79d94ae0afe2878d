/* same_call.h: small collectives among the ranks of a file: errors, comparison of arguments that must be
 * equal, and values of rank 0. All functions on a communicator are collective and block, except
 * agree_map_failure and agree_decode.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_SAME_CALL_H
#define FP_IO_SAME_CALL_H

#include "coll/coll.h"
#include "obj/comm.h"

/* Maps the result `rc` of a collective operation of MPI-IO. If it failed because a member died, or because
 * another rank stopped for that reason, revokes the communicator, so that no rank waits for this one, and
 * returns MPIX_ERR_PROC_FAILED. */
int agree_map_failure(struct comm *c, const char *name, int rc);

/* Returns an error class and its reporting rank as one number, for a reduction by MPI_MAX; 0: no error. */
int64_t agree_encode(int rc, int rank);
/* Returns the class of an encoded error. Sets an error message unless this rank reported the error. */
int agree_decode(int64_t code, const struct comm *c, const char *name);

/* Returns an error at every rank if at least one rank failed (rc). */
int agree_error(struct comm *c, const char *name, int rc);
/* Returns MPI_ERR_NOT_SAME if one of the n values differs between ranks; `what` names them in messages. */
int agree_check_equal(struct comm *c, const char *name, const char *what, const int64_t *values, int n);
/* Both checks by one reduction, which also replaces each of most[0] to most[nmost - 1] by its maximum. */
int agree_all(struct comm *c, const char *name, int rc, const char *what, const int64_t *values, int n,
              int64_t *most, int nmost);
int agree_bcast(struct comm *c, void *data, size_t len);
/* Gathers each rank's value into recv[rank] at all ranks. */
int agree_gather(struct comm *c, int64_t value, int64_t *recv);

/* Fill in the arguments of the collectives that file operations use. */
void agree_args_max(struct coll_args *a, struct comm *c, int64_t *values, int n);
void agree_args_gather(struct coll_args *a, struct comm *c, const int64_t *mine, int64_t *all, int n);

#endif
