/* multicast_executor.c: the executor for bcast, allgather and allreduce by multicast.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/multicast/multicast_internal.h"

static bool multicast_fits(const struct call *call, const struct coll_choice *choice)
{
    const enum coll_kind kind = call->args->kind;
    return (choice->algorithm->needs & NEED_NODES) && call->where.nodes &&
           (kind == COLL_BCAST ||
            (call->form == FORM_BLOCKING && (kind == COLL_ALLGATHER || kind == COLL_ALLREDUCE)));
}

static bool multicast_run(struct call *call, const struct coll_choice *choice, struct request **request,
                          int *rc)
{
    switch (call->args->kind) {
    case COLL_BCAST:
        return multicast_bcast(call, choice, request, rc);
    case COLL_ALLGATHER:
        return multicast_allgather(call, rc);
    default:
        return multicast_allreduce(call, rc);
    }
}

const struct coll_executor multicast_executor = {.name = "multicast",
                                                 .fits = multicast_fits,
                                                 .run = multicast_run,
                                                 .reselect = multicast_forget,
                                                 .close = multicast_close};
