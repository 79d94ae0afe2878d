/* p2p_grequest.c: generalized requests: the user decides when they are complete and what their status is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "impl.h"
#include "obj/handle.h"

struct grequest {
    struct request base; /* must be the first member */
    MPI_Grequest_query_function *query;
    MPI_Grequest_free_function *free;
    MPI_Grequest_cancel_function *cancel;
    void *extra;
};

/* Calls the user's query function without the lock, since it may call MPI. */
static int grequest_query(struct request *r, MPI_Status *status)
{
    struct grequest *g = (struct grequest *)r;
    status_set_empty(status);
    if (!g->query)
        return 0;
    proc_unlock(the_proc);
    int rc = g->query(g->extra, status);
    proc_lock(the_proc);
    return rc;
}

static int grequest_cancel(struct request *r)
{
    struct grequest *g = (struct grequest *)r;
    if (!g->cancel)
        return 0;
    proc_unlock(the_proc);
    int rc = g->cancel(g->extra, r->complete);
    proc_lock(the_proc);
    return rc;
}

static int grequest_call_free(struct request *r)
{
    struct grequest *g = (struct grequest *)r;
    MPI_Grequest_free_function *user = g->free;
    g->free = NULL;
    if (!user)
        return 0;
    proc_unlock(the_proc);
    int rc = user(g->extra);
    proc_lock(the_proc);
    return rc;
}

static void grequest_release(struct request *r)
{
    grequest_call_free(r); /* calls the user's free function unless it was called already */
    r->obj.magic = MAGIC_FREED;
    objmem_free(r);
}

static const struct request_ops grequest_ops = {.name = "generalized request",
                                                .query = grequest_query,
                                                .cancel = grequest_cancel,
                                                .forget = grequest_call_free,
                                                .release = grequest_release};

int impl_Grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
                        MPI_Grequest_cancel_function *cancel_fn, void *extra_state, MPI_Request *request)
{
    struct grequest *g = objmem_new(sizeof(*g));
    if (!g)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a generalized request");
    request_setup(&g->base, the_proc->p2p, &grequest_ops);
    g->query = query_fn;
    g->free = free_fn;
    g->cancel = cancel_fn;
    g->extra = extra_state;
    *request = request_handle(&g->base);
    return 0;
}

int impl_Grequest_complete(struct request *request)
{
    if (!request || request->ops != &grequest_ops)
        return err_set(MPI_ERR_REQUEST, "request is not a generalized request");
    if (request->complete)
        return err_set(MPI_ERR_REQUEST, "request was completed by MPI_Grequest_complete before");
    request_complete(request, 0);
    return 0;
}
