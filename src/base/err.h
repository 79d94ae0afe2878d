/* err.h: errors inside the library. A function returns 0, an MPI error class (positive, from mpi.h), or
 * ERR_AGAIN if a resource is temporarily exhausted (a normal value, which the user never sees). The
 * function that detects an error describes it in a sentence with err_set(); the API layer prints or
 * returns that sentence.
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

/* Records that the API layer reports an error of this class to the program, with the sentence of
 * err_detail. */
void err_report(int errclass) __attribute__((cold));

/* For MPI_Error_string. Error codes equal error classes, so the stored text may belong to another error of
 * the same class. Returns the text of the last reported error if that error has this class, else "". *count:
 * errors of the class reported since MPI_Error_string was last called for it (unchanged if there were none);
 * the text is certainly the right one only if *count is 1. Returns err_detail(errclass) for errors that no
 * error handler received. */
const char *err_get_reported(int errclass, unsigned *count) __attribute__((cold));

/* The system's text for an errno, with advice if a limit of this process was reached. */
const char *err_reason(int number) __attribute__((cold));

/* Clears the text, once the API layer has passed the error to the user's handler. */
void err_clear(void);

/* ASSERT: bugs of this library, in debug builds. CHECK: data from the network or the environment, in all
 * builds; ends the process with a sentence, since continuing could give wrong results. CHECK_MEMORY: no
 * memory for `what` in the middle of a protocol, when a peer already waits and cannot be notified; ends
 * the process, too. In all other cases MPI_ERR_NO_MEM is returned. */
#ifdef FISHPLATE_DEBUG_BUILD
#define ASSERT(cond) ((cond) ? (void)0 : err_panic(__FILE__, __LINE__, "internal error: " #cond))
#else
#define ASSERT(cond) ((void)sizeof(cond))
#endif
#define CHECK(cond, sentence)       ((cond) ? (void)0 : err_panic(__FILE__, __LINE__, sentence))
#define CHECK_MEMORY(pointer, what) CHECK((pointer), "out of memory for " what)

void err_panic(const char *file, int line, const char *sentence) __attribute__((noreturn, cold));

#endif
