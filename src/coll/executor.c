/* executor.c: finds the executor of a choice.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/executor.h"

bool executor_try(struct call *call, const struct coll_choice *choice, struct request **request, int *rc)
{
    *rc = 0;
    for (const struct coll_executor *const *e = coll_executors; *e; e++)
        if ((*e)->fits(call, choice))
            return (*e)->run(call, choice, request, rc);
    return false;
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
        next = coll_select(&call->shape, &call->where, call->form == FORM_BLOCKING);
    }
    return rc;
}

void executors_reselect(struct coll_state *state)
{
    for (const struct coll_executor *const *e = coll_executors; *e; e++)
        if ((*e)->reselect)
            (*e)->reselect(state);
}
