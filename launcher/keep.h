/* keep.h: this mpiexec was started by MPI_Comm_spawn in a program that runs without one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_KEEP_H
#define FP_LAUNCHER_KEEP_H

/* Returns in a child, which goes on as any mpiexec. The process itself becomes its keeper: it ends the mpiexec when the program dies
 * before MPI_Finalize, and the program when the mpiexec fails, as one mpiexec for all would do. */
void keep_begin(const char *what);

#endif
