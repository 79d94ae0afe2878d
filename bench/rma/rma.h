/* rma.h: `fishplate bench rma`: one-sided operations, in plain MPI like the rest of bench/, so that other libraries can be
 * measured by the same source.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BENCH_RMA_H
#define FP_BENCH_RMA_H

int bench_rma_main(int argc, char **argv);

#endif
