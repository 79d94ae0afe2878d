/* cq_ring.c: the ring of a completion queue in its owner's arena. Threads of the program, the engine
 * thread and peers append to it: they acquire the lock, write the entry and publish the tail. A producer
 * that dies before that has published nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/hca.h"

/* True for completions that notify a CQ armed for solicited events: solicited completions and errors. */
static bool is_solicited(const struct sh_cqe *e)
{
    return e->solicited || e->status != IBV_WC_SUCCESS;
}

/* Notifies the owner of an armed queue. The token is sent after the entry is visible and after `armed` was
 * read; the program arms, then polls once more. `upto`: the number of completions pushed up to this event. */
static void cq_notify(struct peer *owner, struct sh_cq *s, uint64_t upto, bool solicited)
{
    unsigned armed = atomic_load(&s->armed);
    if (!armed || (armed == 2 && !solicited))
        return;
    if (!atomic_compare_exchange_strong(&s->armed, &armed, 0) || !s->chan)
        return;
    atomic_store(&s->notified, upto);
    atomic_fetch_add(&s->events, 1);
    channel_send_token(owner->slot, s->chan);
}

/* Raises an event for completions that arrived after the last event and before the queue was armed again.
 * Open MPI's connection manager requires it: it polls until the queue is empty and then arms, so that a
 * completion in between would otherwise wait for the next one. Completions that the last event covers
 * raise none, polled or not: perftest arms before it polls, and counts one completion for each event. */
void cq_notify_unreported(struct peer *owner, struct sh_cq *s)
{
    uint64_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&s->tail, memory_order_acquire);
    uint64_t notified = atomic_load_explicit(&s->notified, memory_order_acquire);
    uint32_t mask = atomic_load_explicit(&s->size, memory_order_relaxed) - 1;
    const struct sh_cqe *ring = cq_ring(owner, s);
    uint64_t first = notified > head ? notified : head;
    bool solicited = false;
    for (uint64_t i = first; i < tail && !solicited; i++)
        solicited = is_solicited(&ring[i & mask]);
    if (first < tail)
        cq_notify(owner, s, tail, solicited);
}

void cq_push(struct peer *owner, uint32_t cq, const struct sh_cqe *e)
{
    struct sh_cq *s = &owner->arena->cq[cq];
    shlock_lock(&s->lock);
    uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
    uint32_t limit = atomic_load_explicit(&s->limit, memory_order_relaxed);
    struct sh_cqe *ring = cq_ring(owner, s);
    bool room = tail - atomic_load_explicit(&s->head, memory_order_acquire) < limit && LIKELY(ring != NULL);
    if (LIKELY(room && atomic_load_explicit(&s->live, memory_order_relaxed))) {
        uint32_t mask = atomic_load_explicit(&s->size, memory_order_relaxed) - 1;
        ring[tail & mask] = *e;
        atomic_store(&s->tail, tail + 1);
    }
    bool overrun = !room && !atomic_exchange(&s->overrun, 1);
    shlock_unlock(&s->lock);
    if (UNLIKELY(overrun))
        peer_post_event(owner, SHEV_CQ_OVERRUN, cq, 0);
    cq_notify(owner, s, tail + 1, is_solicited(e));
}
