/* cq.c: completion queues: create, poll, arm, resize and destroy. The ring itself is in hca/cq_ring.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"
#include "base/numbers.h"
#include "local/lane.h"
#include <sched.h>
#include <stdlib.h>

static struct lock table_lock;
static uint32_t table_hint = 1;
static _Atomic(struct cq *) table[CQ_MAX];
static bool taken[CQ_MAX]; /* allocated numbers, including CQs that are not yet or no longer in the table */

/* Frees the send-queue slots up to a polled completion: as in hardware, a slot is free once its
 * completion, or a later one, was polled. */
void cq_free_send_slots(const struct sh_cqe *e)
{
    struct qp *q = qp_find_unreferenced(e->qp_num);
    if (!q)
        return;
    uint64_t freed = atomic_load_explicit(&q->freed, memory_order_relaxed);
    uint32_t more = e->sq_end - (uint32_t)freed;
    if (more <= q->cap.max_send_wr)
        atomic_store_explicit(&q->freed, freed + more, memory_order_release);
}

static void cqe_to_wc(const struct sh_cqe *e, struct ibv_wc *wc)
{
    wc->wr_id = e->wr_id;
    wc->status = e->status;
    wc->opcode = e->opcode;
    wc->vendor_err = 0;
    wc->byte_len = e->byte_len;
    wc->imm_data = e->imm;
    wc->qp_num = e->qp_num;
    wc->src_qp = e->src_qp;
    wc->wc_flags = e->wc_flags;
    wc->pkey_index = e->pkey_index;
    wc->slid = e->slid;
    wc->sl = e->sl;
    wc->dlid_path_bits = e->path_bits;
}

/* Yields occasionally: otherwise a program that polls an empty queue may prevent another process, for whose
 * message it waits, from running. */
static _Thread_local unsigned empty_polls;

static void yield_after_empty_polls(void)
{
    if (UNLIKELY(++empty_polls > 2000 && empty_polls % 64 == 0))
        sched_yield();
}

static bool is_cq_empty(const struct sh_cq *s)
{
    return atomic_load_explicit(&s->tail, memory_order_acquire) ==
           atomic_load_explicit(&s->head, memory_order_relaxed);
}

int cq_poll(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
    struct cq *cq = cq_from_ibv(ibv);
    struct sh_cq *s = cq->sh;
    int got = 0;
    if (is_cq_empty(s)) {
        engine_poll(); /* only if the CQ is empty: a program with completions need not wait for the wire */
        if (is_cq_empty(s)) {
            /* Programs close a connection if their CQ is empty and the peer has disconnected: what the peer sent
             * while this thread yielded must be returned now. */
            yield_after_empty_polls();
            if (is_cq_empty(s))
                return 0;
        }
    }
    empty_polls = 0;
    spinlock_acquire(&cq->poll_lock);
    uint64_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&s->tail, memory_order_acquire);
    uint32_t mask = atomic_load_explicit(&s->size, memory_order_relaxed) - 1;
    struct sh_cqe *ring = cq_ring(proc.self, s);
    while (head != tail && got < n) {
        struct sh_cqe *e = &ring[head++ & mask];
        cqe_to_wc(e, &wc[got++]);
        if (e->is_send)
            cq_free_send_slots(e);
    }
    atomic_store_explicit(&s->head, head, memory_order_release);
    spinlock_release(&cq->poll_lock);
    lane_poll(); /* other processes do not deliver to a polling member */
    return got;
}

int cq_arm(struct ibv_cq *ibv, int solicited_only)
{
    struct cq *cq = cq_from_ibv(ibv);
    lane_poll(); /* delivers packets that have arrived before the CQ is armed */
    unsigned want = solicited_only ? 2 : 1, old = atomic_load(&cq->sh->armed);
    while (old != 1 && !atomic_compare_exchange_weak(&cq->sh->armed, &old, want))
        ;
    /* `armed` is stored before the tail is read; pairs with cq_push. */
    atomic_thread_fence(memory_order_seq_cst);
    if (!is_cq_empty(cq->sh)) {
        spinlock_acquire(&cq->poll_lock);
        cq_notify_unreported(proc.self, cq->sh);
        spinlock_release(&cq->poll_lock);
    }
    lane_check_armed();
    engine_notify_armed();
    return 0;
}

/* Drops the entries of a QP that is destroyed or reset, so that no stale completion is ever polled. */
void cq_purge(struct cq *cq, uint32_t qpn)
{
    if (!cq)
        return;
    struct sh_cq *s = cq->sh;
    spinlock_acquire(&cq->poll_lock);
    shlock_lock(&s->lock);
    struct sh_cqe *ring = cq_ring(proc.self, s);
    uint32_t mask = atomic_load(&s->size) - 1;
    uint64_t head = atomic_load(&s->head), tail = atomic_load(&s->tail), to = head;
    for (uint64_t i = head; i != tail; i++)
        if (ring[i & mask].qp_num != qpn)
            ring[to++ & mask] = ring[i & mask];
    if (atomic_load(&s->notified) > to)
        atomic_store(&s->notified, to);
    atomic_store(&s->tail, to);
    shlock_unlock(&s->lock);
    spinlock_release(&cq->poll_lock);
}

static uint32_t ring_size(uint32_t entries)
{
    uint32_t size = 64;
    while (size < entries)
        size *= 2;
    return size;
}

static uint32_t cq_number_allocate(void)
{
    spinlock_acquire(&table_lock);
    uint32_t found = number_allocate(taken, 1, CQ_MAX, &table_hint);
    spinlock_release(&table_lock);
    return found;
}

static void channel_link(struct channel *ch, struct cq *cq)
{
    spinlock_acquire(&ch->lock);
    cq->next = ch->cqs;
    ch->cqs = cq;
    ch->ibv.refcnt++;
    spinlock_release(&ch->lock);
}

static void channel_unlink(struct channel *ch, struct cq *cq)
{
    spinlock_acquire(&ch->lock);
    for (struct cq **p = &ch->cqs; *p; p = &(*p)->next)
        if (*p == cq) {
            *p = cq->next;
            break;
        }
    if (ch->turn == cq)
        ch->turn = NULL;
    ch->ibv.refcnt--;
    spinlock_release(&ch->lock);
}

struct cq *cq_make(struct ibv_context *c, uint32_t cqe, void *user, struct ibv_comp_channel *ch)
{
    if (!cqe || cqe > MAX_CQE || ctx_from_ibv(c)->wires) {
        errno = ctx_from_ibv(c)->wires ? EOPNOTSUPP : EINVAL;
        return NULL;
    }
    struct cq *cq = calloc(1, sizeof(*cq));
    uint32_t size = ring_size(cqe);
    uint64_t ring = cq ? arena_alloc(size * sizeof(struct sh_cqe)) : 0;
    uint32_t idx = ring ? cq_number_allocate() : 0;
    if (!idx) {
        arena_free(ring, size * sizeof(struct sh_cqe));
        free(cq);
        errno = ENOMEM;
        return NULL;
    }
    struct sh_cq *s = cq->sh = &proc.arena->cq[idx];
    memset(s, 0, sizeof(*s));
    atomic_store(&s->ring, ring);
    atomic_store(&s->size, size);
    atomic_store(&s->limit, cqe);
    cq->idx = idx;
    cq->ex.context = c;
    cq->ex.channel = ch;
    cq->ex.cq_context = user;
    cq->ex.handle = idx;
    cq->ex.cqe = (int)cqe;
    pthread_mutex_init(&cq->ex.mutex, NULL);
    pthread_cond_init(&cq->ex.cond, NULL);
    if (ch) {
        s->chan = CONTAINER_OF(ch, struct channel, ibv)->num;
        channel_link(CONTAINER_OF(ch, struct channel, ibv), cq);
    }
    atomic_store(&s->live, 1);
    spinlock_acquire(&table_lock);
    atomic_store(&table[idx], cq);
    spinlock_release(&table_lock);
    return cq;
}

SOFTIB_API struct ibv_cq *ibv_create_cq(struct ibv_context *c, int cqe, void *user,
                                        struct ibv_comp_channel *ch, int vec)
{
    if (cqe < 1 || vec < 0 || vec >= c->num_comp_vectors) {
        errno = EINVAL;
        return NULL;
    }
    return (struct ibv_cq *)cq_make(c, (uint32_t)cqe, user, ch);
}

SOFTIB_API int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
    struct cq *cq = cq_from_ibv(ibv);
    struct sh_cq *s = cq->sh;
    if (cqe < 1 || (uint32_t)cqe > MAX_CQE)
        return EINVAL;
    uint32_t size = ring_size((uint32_t)cqe), old_size = atomic_load(&s->size);
    uint64_t ring = arena_alloc(size * sizeof(struct sh_cqe)), old = atomic_load(&s->ring);
    if (!ring)
        return ENOMEM;
    spinlock_acquire(&cq->poll_lock);
    shlock_lock(&s->lock);
    uint64_t head = atomic_load(&s->head), tail = atomic_load(&s->tail);
    int r = tail - head > (uint64_t)cqe ? EINVAL : 0;
    if (!r) {
        struct sh_cqe *from = peer_arena_address(proc.self, old), *to = peer_arena_address(proc.self, ring);
        for (uint64_t i = head; i != tail; i++)
            to[i & (size - 1)] = from[i & (old_size - 1)];
        atomic_store(&s->ring, ring);
        atomic_store(&s->size, size);
        atomic_store(&s->limit, (uint32_t)cqe);
        ibv->cqe = cqe;
    }
    shlock_unlock(&s->lock);
    spinlock_release(&cq->poll_lock);
    if (r)
        arena_free(ring, size * sizeof(struct sh_cqe));
    else
        arena_free(old, old_size * sizeof(struct sh_cqe));
    return r;
}

static void wait_for_acks(struct cq *cq)
{
    pthread_mutex_lock(&cq->ex.mutex);
    while (cq->ex.comp_events_completed != cq->delivered ||
           cq->ex.async_events_completed != cq->async_delivered)
        pthread_cond_wait(&cq->ex.cond, &cq->ex.mutex);
    pthread_mutex_unlock(&cq->ex.mutex);
}

SOFTIB_API int ibv_destroy_cq(struct ibv_cq *ibv)
{
    struct cq *cq = cq_from_ibv(ibv);
    struct sh_cq *s = cq->sh;
    if (atomic_load(&cq->refs))
        return EBUSY;
    shlock_lock(&s->lock);
    atomic_store(&s->live, 0);
    atomic_store(&s->armed, 0);
    shlock_unlock(&s->lock);
    if (ibv->channel)
        channel_unlink(CONTAINER_OF(ibv->channel, struct channel, ibv), cq);
    spinlock_acquire(&table_lock); /* once the CQ is removed, no new asynchronous event refers to it */
    atomic_store(&table[cq->idx], NULL);
    spinlock_release(&table_lock);
    async_purge(ctx_from_ibv(ibv->context), &cq->async_delivered);
    wait_for_acks(cq);
    arena_free(atomic_load(&s->ring), atomic_load(&s->size) * sizeof(struct sh_cqe));
    spinlock_acquire(&table_lock);
    taken[cq->idx] = false;
    spinlock_release(&table_lock);
    pthread_mutex_destroy(&cq->ex.mutex);
    pthread_cond_destroy(&cq->ex.cond);
    free(cq);
    return 0;
}

void cq_report_overrun(uint32_t idx)
{
    spinlock_acquire(&table_lock);
    struct cq *cq = idx < CQ_MAX ? atomic_load(&table[idx]) : NULL;
    if (cq) {
        struct ibv_async_event e = {.event_type = IBV_EVENT_CQ_ERR};
        e.element.cq = (struct ibv_cq *)&cq->ex;
        async_report(ctx_from_ibv(cq->ex.context), &e, &cq->async_delivered);
    }
    spinlock_release(&table_lock);
}
