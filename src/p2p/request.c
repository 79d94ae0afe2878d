/* request.c: completion, status, and the requests of point-to-point operations.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/request.h"

#include <string.h>

#include "p2p/engine.h"

void request_setup(struct request *r, struct p2p *p, const struct request_ops *ops)
{
    r->obj = object_init(MAGIC_REQUEST);
    atomic_store_explicit(&r->complete, 0, memory_order_relaxed);
    r->error = 0;
    r->ops = ops;
    r->p2p = p;
    r->comm = NULL;
    r->persistent = false;
    r->active = true;
    r->freed = false;
    r->cancelled = false;
    r->shared = false;
    r->watched = p->net->lock != NULL;
    r->source = MPI_ANY_SOURCE;
    r->tag = MPI_ANY_TAG;
    r->bytes = 0;
    r->on_complete = NULL;
    r->user = NULL;
}

struct p2p_request *p2p_request_new(struct p2p *p, const struct request_ops *ops, enum p2p_state state)
{
    struct p2p_request *r = pool_get(&p->requests);
    if (!r)
        return NULL;
    request_begin(r, p, ops, state, false);
    return r;
}

void request_complete_watched(struct request *r)
{
    void (*on_complete)(struct request *) = r->on_complete;
    bool freed = r->freed;
    struct net *net = r->p2p->net;
    atomic_store_explicit(&r->complete, 1, memory_order_release);
    if (on_complete)
        on_complete(r);
    if (freed)
        request_free(r);
    if (unlikely(net->lock != NULL))
        net_ring_own_doorbell(net);
}

void status_set_empty(MPI_Status *status)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    status->MPI_TAG = MPI_ANY_TAG;
    status->MPI_ERROR = MPI_SUCCESS;
    memset(status->MPI_internal, 0, sizeof(status->MPI_internal));
}

int request_status(struct request *r, MPI_Status *status)
{
    MPI_Status unwanted;
    if (unlikely(r->ops->query != NULL))
        return r->ops->query(r, status == MPI_STATUS_IGNORE ? &unwanted : status);
    if (status == MPI_STATUS_IGNORE)
        return 0;
    status->MPI_SOURCE = r->source;
    status->MPI_TAG = r->tag;
    status_set_bytes(status, r->bytes);
    status_set_cancelled(status, r->cancelled);
    return 0;
}

void request_free(struct request *r)
{
    struct comm *comm = r->comm;
    struct p2p *p = r->p2p;
    r->ops->release(r);
    if (comm && p->drop_comm)
        p->drop_comm(comm);
}

static void p2p_release(struct request *base)
{
    struct p2p_request *r = p2p_request(base);
    if (!r->stack)
        dtype_release(r->type);
    base->obj.magic = MAGIC_FREED;
    pool_put(&base->p2p->requests, r);
}

const struct request_ops send_ops = {.name = "send", .cancel = send_cancel, .release = p2p_release};
const struct request_ops recv_ops = {.name = "receive", .cancel = recv_cancel, .release = p2p_release};
