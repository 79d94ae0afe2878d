/* supervise.h: supervises an mpiexec that MPI_Comm_spawn started in a program that runs without mpiexec.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_SUPERVISE_H
#define FP_LAUNCHER_SUPERVISE_H

/* Forks: returns in the child, which continues as the mpiexec. The calling process supervises it: it ends
 * the mpiexec if the program dies before MPI_Finalize, and the program if the mpiexec fails, as a common
 * mpiexec would. */
void supervise_mpiexec(const char *what);

#endif
