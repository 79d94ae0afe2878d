/* forced_linear.c: every blocking collective with linear algorithms.
 *
 * ranks: 2 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define FORCED                                                          \
    "barrier=central,bcast=linear,gather=linear,scatter=linear,"        \
    "allgather=linear:window=2,alltoall=linear:window=2,reduce=linear," \
    "allreduce=reduce_bcast,reduce_scatter=linear,scan=linear,exscan=linear"

#include "suite.h"
