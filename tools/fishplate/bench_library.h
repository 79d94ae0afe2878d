/* bench_library.h: facts about this library that the benchmarks need beyond MPI: transports, adapters, algorithms.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_BENCH_LIBRARY_H
#define FP_TOOLS_BENCH_LIBRARY_H

struct bench_host;
extern const struct bench_host bench_library;

#endif
