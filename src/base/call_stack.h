/* call_stack.h: finds the MPI function and its caller in a call stack, for crash reports and `fishplate why`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_CALL_STACK_H
#define FP_BASE_CALL_STACK_H

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else /* a C library without call stacks */
#define backtrace(frames, most) 0
#endif

/* Index of the innermost frame, from `first` on, of a function that this library exports, and the MPI name
 * of the function; -1: there is none. */
int frames_find_mpi_call(void *const *frames, int first, int count, const char **name);

/* Index of the frame that called the MPI function at index `mpi`, without frames of the Fortran bindings
 * and of profilers; -1: there is none. */
int frames_find_caller(void *const *frames, int mpi, int count);

#endif
