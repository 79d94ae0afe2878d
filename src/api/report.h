/* report.h: what the wrappers do with a failed call. None of it is performance-critical.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_REPORT_H
#define FP_API_REPORT_H

#include "obj/errhandler.h"
#include "obj/handle.h"

/* Hands the error to the object's handler; `object` NULL (it was what is wrong) falls back to
 * MPI_COMM_SELF's. Returns what the MPI function returns. The lock is not held. */
int api_error(enum error_object on, void *object, int rc, const char *function) __attribute__((cold));

/* The same for the calls that are passed the error handler they report to; e may be NULL. */
int api_error_to(struct errhandler *e, int rc, const char *function) __attribute__((cold));

/* An implementation whose arguments hold no communicator (MPI_Wait and its like) names the one its error
 * belongs to, just before it returns the error. For this thread, until the error has been reported. */
void api_blame(struct comm *c);
/* The same for a request on a file. */
struct file;
void api_blame_file(struct file *f);

/* Outside MPI_Init ... MPI_Finalize, and in a forked child, no library state exists: prints an error and ends
 * the process. */
int api_outside(const char *function) __attribute__((cold, noreturn));

/* The object a user's variable holds, for calls that fail to free it; NULL when it holds none. */
struct comm *api_comm_at(const MPI_Comm *handle);
struct win *api_win_at(const MPI_Win *handle);
struct file *api_file_at(const MPI_File *handle);
struct session *api_session_at(const MPI_Session *handle);

#endif
