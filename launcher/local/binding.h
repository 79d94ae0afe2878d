/* binding.h: the processors of each rank on this host.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_BINDING_H
#define FP_LAUNCHER_BINDING_H

#include "plan/plan.h"
#include "plan/topo.h"

/* Why the ranks cannot be bound: a sentence that the caller frees (NULL: no error), and the rank it
 * concerns. */
struct binding_fault {
    char *why;
    uint32_t rank;
};

/* Returns one set of processors per rank of the plan, in its order; to be freed. NULL: ranks are not
 * bound. */
struct cpus *binding_compute(const struct plan *plan, struct binding_fault *fault);

/* Prints where a rank runs; `set` NULL: on any processor. */
void binding_print(const struct place *at, const struct cpus *set);

#endif
