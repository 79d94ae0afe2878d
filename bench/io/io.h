/* io.h: `fishplate bench io`: files, in plain MPI like the rest of bench/, so that other libraries can be measured by the
 * same source.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BENCH_IO_H
#define FP_BENCH_IO_H

int bench_io_main(int argc, char **argv);

#endif
