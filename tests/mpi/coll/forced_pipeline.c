/* forced_pipeline.c: every blocking collective with pipelined algorithms and short segments, so that
 * pipelines are long.
 *
 * ranks: 2 3 4 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define FORCED                                                                      \
    "bcast=chain:segment=100,allgather=recursive_doubling,reduce=chain:segment=1k," \
    "allreduce=rabenseifner,reduce_scatter=pairwise"

#include "suite.h"
