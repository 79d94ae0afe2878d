/* binding.h: the processors of each rank on this host.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_BINDING_H
#define FP_LAUNCHER_BINDING_H

#include "plan/plan.h"
#include "plan/topo.h"

/* Why no rank may start: a sentence that the caller frees, NULL if all may; and the rank to name. */
struct binding_fault {
    char *why;
    uint32_t rank;
};

/* A set of processors for each rank of the plan, in its order; the caller frees it. NULL: ranks are not bound. */
struct cpus *binding_compute(const struct plan *plan, struct binding_fault *fault);

/* Prints where a rank runs; `set` NULL: on any processor. */
void binding_print(const struct place *at, const struct cpus *set);

#endif
