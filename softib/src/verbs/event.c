/* event.c: the calls that fetch and acknowledge asynchronous events. Their queue is in hca/async.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"
#include "hca/send_queue.h"
#include <unistd.h>

SOFTIB_API int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
    struct ctx *c = ctx_from_ibv(ctx);
    for (;;) {
        uint64_t token;
        if (read(ctx->async_fd, &token, sizeof(token)) != sizeof(token))
            return -1;
        if (async_next(c, event)) /* false: the object of the event was destroyed meanwhile */
            return 0;
    }
}

static void event_acknowledge(uint32_t *completed, pthread_mutex_t *m, pthread_cond_t *cond)
{
    pthread_mutex_lock(m);
    ++*completed;
    pthread_cond_signal(cond);
    pthread_mutex_unlock(m);
}

SOFTIB_API void ibv_ack_async_event(struct ibv_async_event *e)
{
    switch (e->event_type) {
    case IBV_EVENT_CQ_ERR:
        event_acknowledge(&e->element.cq->async_events_completed, &e->element.cq->mutex,
                          &e->element.cq->cond);
        break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        event_acknowledge(&e->element.qp->events_completed, &e->element.qp->mutex, &e->element.qp->cond);
        break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        event_acknowledge(&e->element.srq->events_completed, &e->element.srq->mutex, &e->element.srq->cond);
        break;
    default:
        break;
    }
}

struct ctx *contexts;
struct lock contexts_lock;

static void event_notify_contexts(uint32_t hca, const struct ibv_async_event *e)
{
    spinlock_acquire(&contexts_lock);
    for (struct ctx *c = contexts; c; c = c->next)
        if (c->hca == hca)
            async_report(c, e, NULL);
    spinlock_release(&contexts_lock);
}

/* Handles the removal of an adapter: posted requests of the QP are flushed, and it can only be destroyed. */
static void fail_qp_of_adapter(struct qp *q, uint32_t hca)
{
    sq_lock(q);
    if (ctx_from_ibv(qp_to_ibv(q)->context)->hca == hca && qp_to_ibv(q)->state != IBV_QPS_ERR &&
        qp_to_ibv(q)->state != IBV_QPS_RESET)
        qp_to_error(q);
    sq_unlock(q);
}

void event_report_hca_removal(uint32_t hca)
{
    struct ibv_async_event e = {.event_type = IBV_EVENT_DEVICE_FATAL};
    event_notify_contexts(hca, &e);
    qp_for_each(fail_qp_of_adapter, hca);
}

void event_report_port_change(uint32_t linear, bool up)
{
    struct fab_place at = {0};
    fabric_find_lid(&proc.fab, fabric_port_lid(&proc.fab, linear), &at);
    struct ibv_async_event e = {.event_type = up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR};
    e.element.port_num = (int)at.port;
    event_notify_contexts(at.hca, &e);
}
