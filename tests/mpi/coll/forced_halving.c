/* forced_halving.c: every blocking collective with algorithms that the other forced_*.c programs do not
 * select.
 *
 * ranks: 2 4 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define FORCED                                                                           \
    "bcast=binomial:segment=64,allgather=neighbor_exchange,reduce=binomial:segment=100," \
    "allreduce=reduce_bcast:segment=100,reduce_scatter=recursive_halving"

#include "suite.h"
