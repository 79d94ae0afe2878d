/* forced_tree.c: every blocking collective with tree algorithms.
 *
 * ranks: 2 3 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define FORCED                                                                     \
    "barrier=bst,bcast=binomial,gather=binomial,scatter=binomial,"                 \
    "allgather=bruck,alltoall=bruck,reduce=binomial,allreduce=recursive_doubling," \
    "reduce_scatter=tree,scan=recursive_doubling,exscan=recursive_doubling"

#include "suite.h"
