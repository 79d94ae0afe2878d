/* p2p_persistent.c: a send or receive described once and started many times. Each start creates an ordinary
 * operation, whose result the persistent request takes over.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "api/forward.h"
#include "api/call_error.h"
#include "impl.h"
#include "p2p/peer_death.h"

struct persistent_request {
    struct request base; /* must be the first member */
    struct p2p_call call;
    struct request *running; /* request of the started operation; NULL if the operation is complete */
};

static void finish_running(struct persistent_request *pr, const struct request *r)
{
    pr->base.source = r->source;
    pr->base.tag = r->tag;
    pr->base.bytes = r->bytes;
    pr->base.cancelled = r->cancelled;
    pr->running = NULL;
    request_complete(&pr->base, r->error);
}

static void on_running_done(struct request *r)
{
    finish_running(r->user, r);
}

static int persistent_start(struct request *base)
{
    struct persistent_request *pr = (struct persistent_request *)base;
    struct request *r;
    base->cancelled = false;
    atomic_store_explicit(&base->complete, 0, memory_order_relaxed);
    int rc = p2p_call_start(&pr->call, &r);
    if (rc != 0)
        return rc;
    base->active = true;
    if (r->complete) {
        /* Ends a suspended receive with an error; the program can start the persistent request again. */
        p2p_end_suspended(r);
        finish_running(pr, r);
        request_free(r);
        return 0;
    }
    pr->running = r;
    r->user = pr;
    r->on_complete = on_running_done;
    r->freed = true; /* frees the request when it completes */
    return 0;
}

static int persistent_cancel(struct request *base)
{
    struct persistent_request *pr = (struct persistent_request *)base;
    return pr->running ? p2p_cancel(base->p2p, pr->running) : 0;
}

static struct request *const *persistent_get_parts(const struct request *base, int *count)
{
    *count = 1;
    return &((const struct persistent_request *)base)->running;
}

static void persistent_release(struct request *base)
{
    struct persistent_request *pr = (struct persistent_request *)base;
    dtype_release(pr->call.type);
    base->obj.magic = MAGIC_FREED;
    objmem_free(pr);
}

static const struct request_ops persistent_ops = {.name = "persistent send or receive",
                                                  .start = persistent_start,
                                                  .cancel = persistent_cancel,
                                                  .parts = persistent_get_parts,
                                                  .release = persistent_release};

int persistent_new(enum p2p_kind kind, const void *buf, MPI_Count count, struct dtype *type, int rank,
                   int tag, struct comm *comm, MPI_Request *request)
{
    struct persistent_request *pr = objmem_new(sizeof(*pr));
    if (!pr)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a persistent request");
    request_setup(&pr->base, comm->proc->p2p, &persistent_ops);
    pr->base.persistent = true;
    pr->base.active = false;
    pr->call = (struct p2p_call){kind, (void *)(uintptr_t)buf, count, type, rank, tag, comm};
    dtype_retain(type);
    request_bind(&pr->base, comm);
    *request = request_handle(&pr->base);
    return 0;
}

int impl_Start(MPI_Request *request)
{
    struct request *r = request_from_handle(*request);
    if (!r || !r->persistent)
        return err_set(MPI_ERR_REQUEST, "request is not a persistent request");
    if (r->active)
        return api_select_request_errhandler(
            r, err_set(MPI_ERR_REQUEST,
                       "request was started already and has not been completed by a wait or test"));
    int rc = r->ops->start(r);
    return likely(rc == 0) ? 0 : api_select_request_errhandler(r, rc);
}

int impl_Startall(int count, MPI_Request array_of_requests[])
{
    int rc = 0;
    for (int i = 0; i < count && rc == 0; i++)
        rc = impl_Start(&array_of_requests[i]);
    return rc;
}
