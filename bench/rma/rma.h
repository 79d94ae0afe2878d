/* rma.h: `fishplate bench rma`: one-sided benchmark, in plain MPI like the rest of bench/, so that the same
 * source measures other libraries.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BENCH_RMA_H
#define FP_BENCH_RMA_H

struct bench_host;

/* Calls MPI_Init and MPI_Finalize; returns the exit status. */
int bench_rma_main(const struct bench_host *host, int argc, char **argv);

#endif
