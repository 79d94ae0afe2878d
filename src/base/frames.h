/* frames.h: the call stack, and the MPI function in it, for crash notes and for `fishplate why`. It costs
 * nothing until it is used.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_FRAMES_H
#define FP_BASE_FRAMES_H

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else /* a C library without call stacks */
#define backtrace(frames, most) 0
#endif

/* The innermost frame from `first` on in a function that this library exports, and that function's MPI name; -1 when there is none. */
int frames_find_mpi_call(void *const *frames, int first, int count, const char **name);

/* The frame of the program that called this function, behind frames of the Fortran bindings and the profiler; -1 if
 * there is none. */
int frames_find_caller(void *const *frames, int mpi, int count);

#endif
