/* qp_error.c: errors of a QP: completions of the request that failed, of the requests after it and of the
 * posted receives, and the events that report the error.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/hold.h"
#include "hca/migrate.h"

void qp_flush_receives(struct qp *q)
{
    struct rwqe w;
    while (rq_pop(proc.self, q->idx, false, &w)) {
        struct sh_cqe e = {.wr_id = w.wr_id,
                           .status = IBV_WC_WR_FLUSH_ERR,
                           .opcode = IBV_WC_RECV,
                           .qp_num = qp_to_ibv(q)->qp_num};
        cq_push(proc.self, cq_from_ibv(qp_to_ibv(q)->recv_cq)->idx, &e);
    }
}

/* Waits until no delivery to the QP is in progress. A delivery by another process ends at the latest with
 * that process; a delivery by this process ends because the wire has discarded partly received messages. */
void qp_wait_deliveries(const struct qp *q)
{
    for (unsigned turn = 0; atomic_load(&q->sh->users);)
        spin_wait(&turn);
    hold_wait(HOLD_QP | q->idx);
}

/* Moves the QP to the error state. A message that is being delivered completes before the receive requests
 * behind its own are flushed; no message is delivered after this function. */
void qp_to_error(struct qp *q)
{
    q->attr.qp_state = qp_to_ibv(q)->state = IBV_QPS_ERR;
    atomic_exchange(&q->sh->state, IBV_QPS_ERR);
    q->wire->quiet(q);
    qp_wait_deliveries(q);
    sq_flush(q);
    if (qp_has_receive_queue(q))
        qp_flush_receives(q);
    else if (qp_to_ibv(q)->srq && !atomic_exchange(&q->sh->drained, 1))
        qp_report(q, IBV_EVENT_QP_LAST_WQE_REACHED);
}

/* Called by the engine thread of this process or of a peer when the QP's responder has detected an error. */
void qp_handle_responder_error(struct qp *q, enum ibv_event_type why)
{
    sq_lock(q);
    /* The responder sets the shared state before it reports: if the state differs, the program has reset
     * the QP. */
    if (qp_to_ibv(q)->state != IBV_QPS_ERR && atomic_load(&q->sh->state) == IBV_QPS_ERR) {
        qp_to_error(q);
        qp_report(q, why);
    }
    sq_unlock(q);
}

void qp_report_drained(struct qp *q)
{
    if (!q->attr.en_sqd_async_notify)
        return;
    q->attr.en_sqd_async_notify = 0;
    qp_report(q, IBV_EVENT_SQ_DRAINED);
}

void sq_fail_request(struct qp *q, enum ibv_wc_status st)
{
    sq_complete(q, sq_get_wqe(q, q->done), q->done, st);
    q->done++;
    if (qp_is_reliable(q)) {
        qp_to_error(q);
        return;
    }
    q->attr.qp_state = qp_to_ibv(q)->state = IBV_QPS_SQE;
    atomic_store(&q->sh->state, IBV_QPS_SQE);
    sq_flush(q);
}

enum ibv_wc_status sq_handle_nak(struct qp *q, enum answer a, uint32_t arg, uint64_t now)
{
    if (a == ANS_RNR) {
        if (q->attr.rnr_retry != 7 && !q->rnr_left--)
            return IBV_WC_RNR_RETRY_EXC_ERR;
        q->wait_until = now + rnr_timer_ns(arg);
    } else {
        uint64_t timeout = ack_timeout_ns(q->attr.timeout);
        if (timeout && !q->retry_left--)
            /* After a migration the QP retries immediately over the alternate path. */
            return migrate_to_alternate(q) ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR;
        /* With timeout 0 there is no limit: a retry every 100 ms. */
        q->wait_until = now + (timeout ? timeout : 100 * NS_MS);
    }
    port_count(q->linear, CNT_RETRIES, 1);
    return IBV_WC_SUCCESS;
}
