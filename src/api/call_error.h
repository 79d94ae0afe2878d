/* call_error.h: what the wrappers do with a failed call. None of it is performance-critical.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_CALL_ERROR_H
#define FP_API_CALL_ERROR_H

#include "obj/errhandler.h"
#include "obj/handle.h"

/* Invokes the error handler of the object; if `object` is NULL because the argument was invalid, the handler
 * of MPI_COMM_SELF. Returns the result of the MPI function. The lock must not be held. */
int api_error(enum error_object on, void *object, int rc, const char *function) __attribute__((cold));

/* Like api_error(), for calls that are passed the error handler to invoke; `e` may be NULL. */
int api_error_to_handler(struct errhandler *e, int rc, const char *function) __attribute__((cold));

/* Returns rc. If rc is an error, the wrapper invokes the error handler of the request's object (communicator, file or
 * window) instead of MPI_COMM_SELF's. For calls whose arguments name a request and no such object. */
int api_select_request_errhandler(const struct request *r, int rc);

/* Outside MPI_Init ... MPI_Finalize, and in a forked child, no library state exists: prints an error and ends
 * the process. */
int api_error_outside_mpi(const char *function) __attribute__((cold, noreturn));

/* Return the object of a handle in the user's variable, for calls that fail to free it; NULL: invalid. */
struct comm *api_comm_at(const MPI_Comm *handle);
struct win *api_win_at(const MPI_Win *handle);
struct file *api_file_at(const MPI_File *handle);
struct session *api_session_at(const MPI_Session *handle);

#endif
