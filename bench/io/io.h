/* io.h: `fishplate bench io`: file benchmark, in plain MPI like the rest of bench/, so that the same source
 * measures other libraries.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BENCH_IO_H
#define FP_BENCH_IO_H

struct bench_host;

/* Calls MPI_Init and MPI_Finalize; returns the exit status. */
int bench_io_main(const struct bench_host *host, int argc, char **argv);

#endif
