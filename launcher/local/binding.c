/* binding.c: binds ranks to processors: by the slots of a rank file, or by -bind-to and the processors of
 * this host.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "local/binding.h"

#include <stdlib.h>

#include "core/util.h"
#include "options/options.h"

static bool plan_has_slots(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->nranks; i++)
        if (plan->ranks[i].slots && *plan->ranks[i].slots)
            return true;
    return false;
}

/* Ranks without slots keep all processors. */
static struct cpus *bind_by_file(const struct plan *plan, struct binding_fault *fault)
{
    struct cpus *sets = xcalloc(plan->nranks, sizeof(*sets));
    for (uint32_t i = 0; i < plan->nranks && !fault->why; i++) {
        const char *slots = plan->ranks[i].slots;
        slots = slots && *slots ? slots : "*";
        char *why = topo_parse_slots(slots, &sets[i]);
        if (why)
            *fault = (struct binding_fault){xstrf("slot=%s of the rank file: %s", slots, why),
                                            plan->ranks[i].rank};
        free(why);
    }
    return sets;
}

/* -bind-to core is an error if several ranks would share a core, as with other launchers. */
static struct cpus *bind_by_unit(const struct plan *plan, struct binding_fault *fault)
{
    const struct topo_request request = {.bind = plan->bind,
                                         .nranks = plan->nranks,
                                         .scatter_sockets = plan->scatter_sockets,
                                         .per = plan->cpus_per_rank,
                                         .ppr = plan->ppr,
                                         .ppr_unit = plan->ppr_unit};
    const bool threads = plan->bind == BIND_HWTHREAD;
    unsigned cores;
    struct cpus *sets = topo_bind(&request, &cores);
    if (cores > 0 && !plan->oversubscribe && plan->bind != BIND_DEFAULT)
        *fault = (struct binding_fault){xstrf("-bind-to %s: %u ranks would share %u %s%s; -oversubscribe "
                                              "permits it, -bind-to none lets them move",
                                              threads ? "hwthread" : "core", plan->nranks, cores,
                                              threads ? "hardware thread" : "core", cores == 1 ? "" : "s"),
                                        plan->ranks[0].rank};
    return sets;
}

struct cpus *binding_compute(const struct plan *plan, struct binding_fault *fault)
{
    *fault = (struct binding_fault){NULL, 0};
    return plan_has_slots(plan) && plan->bind != BIND_NONE ? bind_by_file(plan, fault)
                                                           : bind_by_unit(plan, fault);
}

void binding_print(const struct place *at, const struct cpus *set)
{
    char text[256] = "any processor";
    if (set)
        topo_format(set, text, sizeof(text));
    message_print("Rank %u: node %u, local rank %u of %u, processors: %s.", at->rank, at->node,
                  at->local_rank, at->local_size, text);
}
