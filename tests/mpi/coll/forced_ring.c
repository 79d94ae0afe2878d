/* forced_ring.c: every blocking collective with ring, chain and pairwise algorithms.
 *
 * ranks: 2 3 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define FORCED                                                                   \
    "barrier=dissemination,bcast=scatter_ring,allgather=ring,alltoall=pairwise," \
    "reduce=rabenseifner,allreduce=ring,reduce_scatter=ring"

#include "suite.h"
