/* async.c: the queue of asynchronous events of an open device, and an eventfd that counts them. Destroying an
 * object removes its unread events from the queue and waits only for events that the program has fetched and
 * not yet acknowledged.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/hca.h"
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
    if (!n) {
        softib_log("an asynchronous event was lost (out of memory)");
        return;
    }
    n->event = *e;
    n->delivered = delivered;
    spinlock_acquire(&c->ev_lock);
    struct async_node **p = &c->ev_list;
    while (*p)
        p = &(*p)->next;
    *p = n;
    spinlock_release(&c->ev_lock);
    uint64_t one = 1;
    if (write(c->v.context.async_fd, &one, sizeof(one)) < 0)
        softib_log("an asynchronous event was lost (write to the eventfd of the device): %s",
                   strerror(errno));
}

void qp_report(struct qp *q, enum ibv_event_type type)
{
    struct ibv_async_event e = {.event_type = type};
    e.element.qp = qp_to_ibv(q);
    async_report(ctx_from_ibv(qp_to_ibv(q)->context), &e, &q->async_delivered);
}

void async_purge(struct ctx *c, const uint32_t *delivered)
{
    spinlock_acquire(&c->ev_lock);
    for (struct async_node **p = &c->ev_list, *n; (n = *p);) {
        if (n->delivered != delivered) {
            p = &n->next;
            continue;
        }
        *p = n->next;
        free(n);
    }
    spinlock_release(&c->ev_lock);
}

void async_wait(uint32_t *completed, uint32_t *delivered, pthread_mutex_t *m, pthread_cond_t *cond)
{
    pthread_mutex_lock(m);
    while (*completed != *delivered)
        pthread_cond_wait(cond, m);
    pthread_mutex_unlock(m);
}

bool async_next(struct ctx *c, struct ibv_async_event *e)
{
    spinlock_acquire(&c->ev_lock);
    struct async_node *n = c->ev_list;
    if (n) {
        c->ev_list = n->next;
        if (n->delivered)
            ++*n->delivered;
    }
    spinlock_release(&c->ev_lock);
    if (n)
        *e = n->event;
    free(n);
    return n != NULL;
}
