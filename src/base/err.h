/* err.h: how errors are reported. A function returns 0, an MPI error class (positive, from mpi.h), or
 * ERR_AGAIN when a resource is exhausted for the moment (a normal value, never shown to the user). The first
 * place that knows what went wrong describes it in a sentence with err_set(); the API layer prints or returns
 * that sentence.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_ERR_H
#define FP_BASE_ERR_H

#include <mpi.h>

#include "base/util.h"

#define ERR_AGAIN (-1)

/* Stores the error text for this thread and returns the class, so that callers can `return err_set(...)`. */
int err_set(int errclass, const char *fmt, ...) PRINTF_LIKE(2, 3) __attribute__((cold));

/* The last error text of this thread if it belongs to this class, else "". */
const char *err_detail(int errclass);

/* The API layer reports an error of this class to the program, with the sentence of err_detail. */
void err_report(int errclass) __attribute__((cold));

/* For MPI_Error_string: an error code is its class, so a text of one error is certain only if no other error of the class was
 * reported. The sentence of the last reported error if it is of this class, else ""; *count is how many of the class were
 * reported since the last request for it; a second request without an error in between has the same answer. Errors that no error handler received have the sentence of err_detail. */
const char *err_get_reported(int errclass, unsigned *count) __attribute__((cold));

/* The system's text of an errno, and what to do if a limit of this process was reached. */
const char *err_reason(int number) __attribute__((cold));

/* Clears the text, once the API layer has passed the error to the user's handler. */
void err_clear(void);

/* ASSERT: our own bugs, in debug builds. CHECK: bytes from the wire or the environment, always; ends the
 * process with a sentence, since continuing would be silently wrong. CHECK_MEMORY: no memory for `what` in the middle of a
 * protocol, where a peer already waits and cannot be notified; ends the process too. Everywhere else running out of memory
 * is an error that is returned, MPI_ERR_NO_MEM. */
#ifdef FISHPLATE_DEBUG_BUILD
#define ASSERT(cond) ((cond) ? (void)0 : err_panic(__FILE__, __LINE__, "internal error: " #cond))
#else
#define ASSERT(cond) ((void)sizeof(cond))
#endif
#define CHECK(cond, sentence)       ((cond) ? (void)0 : err_panic(__FILE__, __LINE__, sentence))
#define CHECK_MEMORY(pointer, what) CHECK((pointer), "out of memory for " what)

void err_panic(const char *file, int line, const char *sentence) __attribute__((noreturn, cold));

#endif
