/*
 * Asynchronous events: a queue per open device and an eventfd that counts it. Destroying an object takes its
 * unread events out of the queue and waits only for those the program fetched and did not acknowledge yet.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "hca.h"
#include <stdlib.h>
#include <unistd.h>

struct async_node {
    struct ibv_async_event event;
    uint32_t *delivered;
    struct async_node *next;
};

void async_report(struct ctx *c, const struct ibv_async_event *e, uint32_t *delivered)
{
    struct async_node *n = calloc(1, sizeof(*n));
    if (!n)
        return;
    n->event = *e;
    n->delivered = delivered;
    lock_take(&c->ev_lock);
    struct async_node **p = &c->ev_list;
    while (*p)
        p = &(*p)->next;
    *p = n;
    lock_drop(&c->ev_lock);
    uint64_t one = 1;
    if (write(c->v.context.async_fd, &one, sizeof(one)) < 0)
        say("asynchronous event lost: %s", strerror(errno));
}

void async_purge(struct ctx *c, const uint32_t *delivered)
{
    lock_take(&c->ev_lock);
    for (struct async_node **p = &c->ev_list, *n; (n = *p);) {
        if (n->delivered != delivered) {
            p = &n->next;
            continue;
        }
        *p = n->next;
        free(n);
    }
    lock_drop(&c->ev_lock);
}

void async_wait(uint32_t *completed, uint32_t *delivered, pthread_mutex_t *m, pthread_cond_t *cond)
{
    pthread_mutex_lock(m);
    while (*completed != *delivered)
        pthread_cond_wait(cond, m);
    pthread_mutex_unlock(m);
}

SOFTIB_API int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
    struct ctx *c = ctx_of(ctx);
    for (;;) {
        uint64_t token;
        if (read(ctx->async_fd, &token, sizeof(token)) != sizeof(token))
            return -1;
        lock_take(&c->ev_lock);
        struct async_node *n = c->ev_list;
        if (n) {
            c->ev_list = n->next;
            if (n->delivered)
                ++*n->delivered;
        }
        lock_drop(&c->ev_lock);
        if (!n)
            continue; /* its object was destroyed meanwhile */
        *event = n->event;
        free(n);
        return 0;
    }
}

static void ack(uint32_t *completed, pthread_mutex_t *m, pthread_cond_t *cond)
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
        ack(&e->element.cq->async_events_completed, &e->element.cq->mutex, &e->element.cq->cond);
        break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        ack(&e->element.qp->events_completed, &e->element.qp->mutex, &e->element.qp->cond);
        break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        ack(&e->element.srq->events_completed, &e->element.srq->mutex, &e->element.srq->cond);
        break;
    default:
        break;
    }
}

void port_changed(uint32_t linear, bool up)
{
    struct fab_place at = {0};
    fabric_locate(&proc.fab, fabric_lid(&proc.fab, linear), &at);
    struct ibv_async_event e = {.event_type = up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR};
    e.element.port_num = (int)at.port;
    lock_take(&contexts_lock);
    for (struct ctx *c = contexts; c; c = c->next)
        if (c->hca == at.hca)
            async_report(c, &e, NULL);
    lock_drop(&contexts_lock);
}
