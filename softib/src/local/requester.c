/* requester.c: the sender's part in shared memory. It executes the send queue in order, each request from
 * the check of its buffers to its completion. Usually the posting thread executes a request. If that is
 * not possible (no receive posted, peer not ready, limit of rate or latency), the engine thread or a
 * polling thread executes it later.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "local/local.h"
#include "hca/migrate.h"
#include "hca/window.h"
#include "memory/copy.h"

static enum answer execute_write(struct qp *q, struct target *t, const struct request *r, struct wqe *w,
                                 uint32_t *arg)
{
    struct iovec iov[MAX_SGE];
    struct landing l;
    int n = sq_fill_iov(q, w, 0, iov);
    if (UNLIKELY(n < 0))
        return ANS_LOCAL;
    enum answer a = target_prepare(t, r, &l, arg);
    if (UNLIKELY(a != ANS_OK))
        return a;
    return target_finish(t, r, &l, copy_to_peer(t->memory, l.seg, l.nseg, iov, n, w->length));
}

static enum answer execute_read(struct qp *q, struct target *t, const struct request *r, struct wqe *w)
{
    struct iovec iov[MAX_SGE];
    struct rseg s;
    int n = sq_fill_iov(q, w, IBV_ACCESS_LOCAL_WRITE, iov);
    if (UNLIKELY(n < 0))
        return ANS_LOCAL;
    enum answer a = target_find_memory(t, r, w->length, IBV_ACCESS_REMOTE_READ, &s);
    if (a != ANS_OK || !w->length)
        return a;
    bool ok = copy_from_peer(t->memory, &s, 1, iov, n, w->length);
    mr_release(&s);
    if (!ok)
        target_fail(t, IBV_EVENT_QP_FATAL);
    return ok ? ANS_OK : ANS_OP;
}

static enum answer execute_atomic(struct qp *q, struct target *t, const struct request *r, struct wqe *w)
{
    struct iovec iov[MAX_SGE];
    struct rseg s;
    uint64_t old;
    int n = sq_fill_iov(q, w, IBV_ACCESS_LOCAL_WRITE, iov);
    if (UNLIKELY(n != 1))
        return ANS_LOCAL;
    enum answer a = target_find_memory(t, r, 8, IBV_ACCESS_REMOTE_ATOMIC, &s);
    if (a != ANS_OK)
        return a;
    bool ok = copy_atomic(t->memory, &s, w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP, w->compare, w->swap, &old);
    mr_release(&s);
    if (!ok)
        target_fail(t, IBV_EVENT_QP_FATAL);
    else
        copy_last_byte_last(iov[0].iov_base, (char *)&old, 8);
    return ok ? ANS_OK : ANS_OP;
}

static void count_traffic(struct qp *q, struct wqe *w, uint32_t to, enum answer a)
{
    uint32_t mtu = (uint32_t)q->attr.path_mtu, packets = count_packets(w->length, mtu);
    uint32_t from = q->linear;
    if (a == ANS_RNR)
        port_count(to, CNT_RNR_NAKS, 1);
    if (w->opcode == IBV_WR_RDMA_READ) { /* data is transferred from the target */
        from = to;
        to = q->linear;
    }
    port_count(from, CNT_TX_PACKETS, packets);
    port_count(from, CNT_TX_BYTES, w->length);
    port_count(to, CNT_RX_PACKETS, packets);
    port_count(to, CNT_RX_BYTES, w->length);
}

static struct peer *requester_find_peer(struct qp *q, int *why)
{
    *why = 0;
    if (q->peer && LIKELY(!atomic_load_explicit(&q->peer->dead, memory_order_relaxed)))
        return q->peer;
    peer_release(q->peer);
    q->peer = peer_find(q->attr.dest_qp_num >> QP_BITS, why);
    return q->peer;
}

static enum answer requester_execute(struct qp *q, struct wqe *w, uint32_t *arg)
{
    struct request r;
    struct target t;
    int why;
    struct peer *p = requester_find_peer(q, &why);
    uint32_t to = (uint32_t)(q->path.dlid >> proc.fab.lmc) - 1;
    if (!p || UNLIKELY(!port_up(q->linear) || to >= proc.fab.nports || !port_up(to))) {
        port_count(q->linear, CNT_TX_DROPS, 1);
        return why ? ANS_REFUSED : ANS_DROP;
    }
    sq_fill_request(q, w, &r);
    enum answer a = target_find(p, q->attr.dest_qp_num, &r, &t);
    if (a != ANS_OK) {
        port_count(to, CNT_RX_DROPS, 1);
        return a;
    }
    if (UNLIKELY(q->alternate))
        migrate_on_peer_state(q, atomic_load(&t.qp->mig) != IBV_MIG_MIGRATED);
    if (UNLIKELY(w->executed)) { /* executed before: only the acknowledgement was lost */
        target_release(&t);
        return ANS_OK;
    }
    if (w->opcode == IBV_WR_RDMA_READ)
        a = execute_read(q, &t, &r, w);
    else if (w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        a = execute_atomic(q, &t, &r, w);
    else
        a = execute_write(q, &t, &r, w, arg);
    /* If the target's process died during the copy, there is no answer. If the system forbids the copy, only
     * this request fails. */
    if (UNLIKELY(a == ANS_OP))
        a = atomic_load(&p->dead) ? ANS_DROP : atomic_load(&t.memory->refused) ? ANS_REFUSED : ANS_OP;
    target_release(&t);
    count_traffic(q, w, to, a);
    return a;
}

static enum ibv_wc_status requester_error_status(enum answer a)
{
    switch (a) {
    case ANS_INVALID:
        return IBV_WC_REM_INV_REQ_ERR;
    case ANS_ACCESS:
        return IBV_WC_REM_ACCESS_ERR;
    case ANS_OP:
        return IBV_WC_REM_OP_ERR;
    case ANS_LENGTH:
        return IBV_WC_LOC_LEN_ERR;
    case ANS_REFUSED:
        return IBV_WC_LOC_QP_OP_ERR;
    case ANS_WINDOW:
        return IBV_WC_MW_BIND_ERR;
    default:
        return IBV_WC_LOC_PROT_ERR;
    }
}

static bool is_link_up(const struct qp *q)
{
    uint32_t to = (uint32_t)(q->path.dlid >> proc.fab.lmc) - 1;
    return port_up(q->linear) && port_up(to);
}

/* Requests lost acknowledgements again. */
static void resend_for_lost_ack(struct qp *q)
{
    for (uint64_t i = q->done; i != q->next; i++) {
        struct wqe *w = sq_get_wqe(q, i);
        w->executed = 1;
        w->due = w->ack_at = 0;
    }
    q->next = q->done;
}

/* Completes, in order, the executed requests whose acknowledgements have arrived. */
static bool requester_complete_acked(struct qp *q, uint64_t now)
{
    while (q->done != q->next) {
        struct wqe *w = sq_get_wqe(q, q->done);
        if (w->ack_at > now) {
            engine_defer(&q->task, w->ack_at);
            return false;
        }
        if (UNLIKELY(w->ack_at && !is_link_up(q))) {
            resend_for_lost_ack(q);
            return true;
        }
        sq_complete(q, w, q->done++, IBV_WC_SUCCESS);
    }
    return true;
}

/* Executes one request. Returns false if the rest of the queue has to wait. */
static bool requester_execute_next(struct qp *q, uint64_t *now)
{
    struct wqe *w = sq_get_wqe(q, q->next);
    uint64_t due = max_u64(q->wait_until, w->due);
    if (UNLIKELY(due)) {
        *now = now_ns();
        if (due > *now) {
            engine_defer(&q->task, due);
            return false;
        }
        q->wait_until = 0;
    }
    uint32_t arg = 0;
    bool reliable = qp_is_reliable(q);
    enum answer a = qp_to_ibv(q)->qp_type == IBV_QPT_UD      ? ud_execute(q, w)
                    : UNLIKELY(is_window_request(w->opcode)) ? window_execute(q, w)
                                                             : requester_execute(q, w, &arg);
    bool local = a == ANS_LOCAL || a == ANS_LENGTH || a == ANS_REFUSED || a == ANS_WINDOW;
    if (LIKELY(a == ANS_OK || (!reliable && !local))) {
        q->next++;
        q->rnr_left = q->attr.rnr_retry;
        q->retry_left = q->attr.retry_cnt;
        if (LIKELY(!w->ack_at && q->done + 1 == q->next)) {
            sq_complete(q, w, q->done++, IBV_WC_SUCCESS);
            return true;
        }
        return requester_complete_acked(q, *now) || true;
    }
    if (!*now)
        *now = now_ns();
    enum ibv_wc_status st =
        a == ANS_RNR || a == ANS_DROP ? sq_handle_nak(q, a, arg, *now) : requester_error_status(a);
    if (st == IBV_WC_SUCCESS)
        return true;                      /* the next call sees wait_until and defers the request */
    for (; q->done != q->next; q->done++) /* completes earlier requests whose acknowledgements are pending */
        sq_complete(q, sq_get_wqe(q, q->done), q->done, IBV_WC_SUCCESS);
    sq_fail_request(q, st);
    return false;
}

void local_progress(struct qp *q, uint64_t now)
{
    unsigned state = qp_to_ibv(q)->state;
    if (UNLIKELY(q->done != q->next) && !requester_complete_acked(q, now ? now : (now = now_ns())) &&
        q->next == q->posted)
        return;
    while (q->next != q->posted && LIKELY(state == IBV_QPS_RTS) && requester_execute_next(q, &now))
        state = qp_to_ibv(q)->state;
    if (UNLIKELY(state == IBV_QPS_SQD && q->done == q->next))
        qp_report_drained(q);
}
