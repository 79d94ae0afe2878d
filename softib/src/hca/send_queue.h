/* send_queue.h: functions on a QP's send queue for both wires: locks, memory of a request, completions,
 * retries and errors.
 *
 * Lock order: the QP's lock, then the lock of its wire. The QP's lock alone protects requests from
 * `posted` on, which are being built. A wire that receives an answer changes active requests under the
 * wire's lock alone.
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

/* Acquires the locks and runs the send queue of the QP that contains the task. */
void sq_run_task(struct task *t);

/* Fills `iov` with the request's local buffers; returns their number, or -1 if a key does not permit the
 * access `need`. */
int sq_fill_iov(struct qp *q, struct wqe *w, uint32_t need, struct iovec *iov);
void sq_fill_request(struct qp *q, const struct wqe *w, struct request *r);
void sq_complete(struct qp *q, struct wqe *w, uint64_t index, enum ibv_wc_status st);
void sq_flush(struct qp *q);
uint64_t ack_timeout_ns(unsigned code);
uint64_t rnr_timer_ns(unsigned code);

/* defined in qp_error.c */
void sq_fail_request(struct qp *q, enum ibv_wc_status st); /* fails the oldest incomplete request */
/* Handles a receiver that is not ready or a peer that does not answer: schedules a retry, or returns the
 * status with which the request fails. IBV_WC_SUCCESS: a retry was scheduled. */
enum ibv_wc_status sq_handle_nak(struct qp *q, enum answer a, uint32_t arg, uint64_t now);

/* defined in ud.c */
enum answer ud_execute(struct qp *q, struct wqe *w);
void ud_deliver(struct peer *to, uint32_t qpn, const struct request *r, const struct iovec *iov, int n);
/* Delivers a datagram with this number. Faults are deterministic: the same datagram number and QP number
 * give the same result in every process. */
void ud_deliver_numbered(struct peer *to, uint32_t qpn, const struct request *r, const struct iovec *iov,
                         int n, uint64_t number);
/* The row of a multicast group in the registry; -1: the group has no member. */
int group_row(const uint8_t gid[16]);
void ud_free_held(struct qp *q);

#endif
