/* executor.c: runs a call with the first executor that fits the chosen algorithm.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/executor.h"

#include "base/err.h"
#include "coll/device_collectives.h"

/* Argument of run_on_copies(): a call that runs on copies of its buffers in host memory. */
struct copied_run {
    const struct coll_executor *executor;
    const struct call *call;
    const struct coll_choice *choice;
};

static int run_on_copies(void *arg, const struct coll_args *copies, struct request **request)
{
    const struct copied_run *run = arg;
    struct call call = *run->call;
    int rc = 0;
    call.args = copies;
    call.on_device = call.device_direct = false;
    return run->executor->run(&call, run->choice, request, &rc) ? rc : ERR_AGAIN;
}

static bool run_on_device(const struct coll_executor *e, struct call *call, const struct coll_choice *choice,
                          struct request **request, int *rc)
{
    struct copied_run run = {e, call, choice};
    /* Segments of some KiB are too small for GPUs, on which each copy and each kernel takes 10 us or more. */
    const bool is_segmented = choice->segment > 0 && choice->algorithm->segment;
    if (call->device_direct && e->takes_device_memory && !is_segmented)
        return e->run(call, choice, request, rc);
    if (call->device_direct && e->declines_device && e->declines_device(call)) {
        call->device_agreed = true;
        return false;
    }
    *rc = call->form == FORM_BLOCKING
              ? coll_device_run(call->args, run_on_copies, &run)
              : coll_device_make(call->args, call->form, run_on_copies, &run, request);
    return *rc != ERR_AGAIN;
}

bool executor_try(struct call *call, const struct coll_choice *choice, struct request **request, int *rc)
{
    *rc = 0;
    for (const struct coll_executor *const *e = coll_executors; *e; e++)
        if ((*e)->fits(call, choice))
            return unlikely(call->on_device) ? run_on_device(*e, call, choice, request, rc)
                                             : (*e)->run(call, choice, request, rc);
    return false;
}

/* Returns the next choice after an executor has declined the call. */
static struct coll_choice choose_next_executor(struct call *call)
{
    struct coll_choice next = coll_select(&call->shape, &call->where, call->form == FORM_BLOCKING);
    const struct coll_algorithm *tree =
        call->device_agreed && next.segment > 0 ? algorithm_find(call->shape.kind, "binomial") : NULL;
    if (tree)
        next = (struct coll_choice){.algorithm = tree};
    return next;
}

int executor_run(struct call *call, const struct coll_choice *choice, struct request **request)
{
    struct coll_choice next = *choice;
    int rc;
    while (!executor_try(call, &next, request, &rc)) {
        if (next.algorithm->needs & NEED_NODE)
            call->where.one_node = false;
        else
            call->where.nodes = false;
        next = choose_next_executor(call);
    }
    return rc;
}

void executors_reselect(struct coll_state *state)
{
    for (const struct coll_executor *const *e = coll_executors; *e; e++)
        if ((*e)->reselect)
            (*e)->reselect(state);
}
