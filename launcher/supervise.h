/* supervise.h: this mpiexec was started by MPI_Comm_spawn in a program that runs without one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_SUPERVISE_H
#define FP_LAUNCHER_SUPERVISE_H

/* Returns in a child, which continues as the mpiexec. The calling process supervises it: it ends the mpiexec
 * when the program dies before MPI_Finalize, and the program when the mpiexec fails, as in a job with one
 * mpiexec. */
void supervise_mpiexec(const char *what);

#endif
