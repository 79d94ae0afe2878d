/* channel.c: completion channels. The descriptor is a datagram socket to which any process can send a
 * token; the arena contains the number of events. Notification is level-triggered: while an event is
 * pending, the socket has at least one token. A token that is dropped because the socket is full, or
 * superfluous tokens, lose no event.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "local/lane.h"
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct lock num_lock;
static bool used[CHAN_MAX];

static uint32_t channel_number_allocate(void)
{
    uint32_t n = 0;
    spinlock_acquire(&num_lock);
    for (uint32_t i = 1; i < CHAN_MAX && !n; i++)
        if (!used[i])
            used[n = i] = true;
    spinlock_release(&num_lock);
    return n;
}

static void channel_number_free(uint32_t n)
{
    spinlock_acquire(&num_lock);
    used[n] = false;
    spinlock_release(&num_lock);
}

SOFTIB_API struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c)
{
    struct channel *ch = calloc(1, sizeof(*ch));
    if (!ch || !(ch->num = channel_number_allocate())) {
        free(ch);
        errno = ENOMEM;
        return NULL;
    }
    ch->ibv.context = c;
    ch->ibv.fd = channel_open_socket(ch->num);
    if (ch->ibv.fd < 0) {
        channel_number_free(ch->num);
        free(ch);
        return NULL;
    }
    return &ch->ibv;
}

SOFTIB_API int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
    struct channel *ch = CONTAINER_OF(ibv, struct channel, ibv);
    if (ibv->refcnt)
        return EBUSY;
    close(ibv->fd);
    channel_number_free(ch->num);
    free(ch);
    return 0;
}

static bool cq_take_event(struct cq *cq)
{
    unsigned n = atomic_load(&cq->sh->events);
    while (n && !atomic_compare_exchange_weak(&cq->sh->events, &n, n - 1))
        ;
    return n > 0;
}

/* Returns a CQ with a pending event. *more: set if further events are pending. */
static struct cq *channel_fetch_cq(struct channel *ch, bool *more)
{
    struct cq *hit = NULL, *start = ch->turn && ch->turn->next ? ch->turn->next : ch->cqs;
    *more = false;
    for (struct cq *cq = start, *first = start; cq;) {
        if (!hit && cq_take_event(cq))
            hit = cq;
        *more |= atomic_load(&cq->sh->events) > 0;
        cq = cq->next ? cq->next : ch->cqs;
        if (cq == first)
            break;
    }
    if (hit) {
        ch->turn = hit;
        pthread_mutex_lock(&hit->ex.mutex);
        hit->delivered++;
        pthread_mutex_unlock(&hit->ex.mutex);
    }
    return hit;
}

SOFTIB_API int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **user)
{
    struct channel *ch = CONTAINER_OF(ibv, struct channel, ibv);
    for (;;) {
        char token;
        bool more;
        if (recv(ibv->fd, &token, 1, 0) < 0)
            return -1;
        spinlock_acquire(&ch->lock);
        struct cq *hit = channel_fetch_cq(ch, &more);
        spinlock_release(&ch->lock);
        if (more)
            channel_send_token(proc.slot, ch->num);
        if (hit) {
            lane_mark_dozing();
            *cq = (struct ibv_cq *)&hit->ex;
            *user = hit->ex.cq_context;
            return 0;
        }
    }
}

SOFTIB_API void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += n;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}
