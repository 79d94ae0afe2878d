/* send_queue.h: the part of a QP's send queue that both wires share: its locks, the memory that a request
 * names, completions, retries and errors.
 *
 * Lock order: the QP's lock, then its wire's. The QP's lock alone is enough to build requests beyond
 * `posted`. A wire changes the requests it is working on under the wire's lock alone, when something arrives.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_SEND_QUEUE_H
#define SOFTIB_SEND_QUEUE_H

#include "hca/wire.h"

static inline void sq_lock_wire(struct qp *q)
{
    if (UNLIKELY(q->wire->lock != NULL))
        q->wire->lock();
}

/* Releases the wire's lock for a moment and keeps the QP's. */
static inline void sq_unlock_wire(struct qp *q)
{
    if (UNLIKELY(q->wire->unlock != NULL))
        q->wire->unlock();
}

static inline void sq_lock(struct qp *q)
{
    spinlock_acquire(&q->lock);
    sq_lock_wire(q);
}

static inline void sq_unlock(struct qp *q)
{
    sq_unlock_wire(q);
    spinlock_release(&q->lock);
}

void sq_run_task(struct task *t); /* takes the locks and runs the queue of the QP that the task is part of */

/* The request's local buffers as iovecs; -1 if a key does not permit the access. */
int sq_fill_iov(struct qp *q, struct wqe *w, uint32_t need, struct iovec *iov);
void sq_fill_request(struct qp *q, const struct wqe *w, struct request *r);
void sq_complete(struct qp *q, struct wqe *w, uint64_t index, enum ibv_wc_status st);
void sq_flush(struct qp *q);
uint64_t ack_timeout_ns(unsigned code);
uint64_t rnr_timer_ns(unsigned code);

/* qp_error.c */
void sq_fail_request(struct qp *q, enum ibv_wc_status st); /* of the oldest incomplete request */
/* Handles a receiver that is not ready, or a silent peer: schedules a retry or gives up. Returns the status to fail
 * with, or SUCCESS. */
enum ibv_wc_status sq_handle_nak(struct qp *q, enum answer a, uint32_t arg, uint64_t now);

/* ud.c */
enum answer ud_execute(struct qp *q, struct wqe *w);
void ud_deliver(struct peer *to, uint32_t qpn, const struct request *r, const struct iovec *iov, int n);
/* Delivers a datagram with this number. Faults are deterministic: the same datagram number and QP number give the same
 * result in every process. */
void ud_deliver_numbered(struct peer *to, uint32_t qpn, const struct request *r, const struct iovec *iov,
                         int n, uint64_t number);
/* The multicast group's row in the registry; -1: no member. */
int group_row(const uint8_t gid[16]);
void ud_free_held(struct qp *q);

#endif
