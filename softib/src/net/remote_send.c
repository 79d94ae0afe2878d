/* remote_send.c: the requester of a connected QP between machines: sends requests in pieces, handles
 * acknowledgements, NAKs and answers, and repeats requests that were rejected temporarily or not answered.
 * See remote.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/migrate.h"
#include "hca/window.h"
#include "net/remote.h"
#include <endian.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

static uint32_t remote_sequence(const struct qp *q, uint64_t index)
{
    return (q->attr.sq_psn + (uint32_t)index) & SEQ_MASK;
}

static bool is_read_like(uint8_t opcode)
{
    return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
           opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* The configured latency of the path, one way. */
static uint64_t remote_latency(const struct qp *q)
{
    struct fab_place at;
    if (LIKELY(!proc.fab.paced) || !fabric_find_lid(&proc.fab, q->path.dlid, &at))
        return 0;
    return fabric_latency(&proc.fab, q->linear, at.linear);
}

/* Completes acknowledged requests in order, and no earlier than their acknowledgement would have arrived at
 * the configured latency; `now` NEVER ignores the latency. */
static void remote_complete_acked(struct remote *r, uint64_t now)
{
    struct qp *q = r->q;
    while (q->done != q->next) {
        struct wqe *w = sq_get_wqe(q, q->done);
        bool over = is_read_like(w->opcode) ? w->executed : q->done < r->acked;
        if (!over)
            break;
        if (UNLIKELY(w->ack_at > now)) {
            engine_defer(&q->task, w->ack_at);
            break;
        }
        q->rnr_left = q->attr.rnr_retry;
        q->retry_left = q->attr.retry_cnt;
        sq_complete(q, w, q->done++, IBV_WC_SUCCESS);
    }
    r->busy = q->done != q->posted;
    if (qp_to_ibv(q)->state == IBV_QPS_SQD && q->done == q->next)
        qp_report_drained(q);
}

/* Prepares to send all incomplete requests again. */
void remote_go_back(struct remote *r)
{
    struct qp *q = r->q;
    q->next = q->done;
    r->tx_off = 0;
    r->rd_out = 0;
    for (uint64_t i = q->done; i != q->posted; i++) {
        sq_get_wqe(q, i)->executed = 0;
        sq_get_wqe(q, i)->got = 0;
    }
}

void remote_arm_ack_timer(struct remote *r, uint64_t now)
{
    uint64_t t = ack_timeout_ns(r->q->attr.timeout);
    if (is_reliable(r->q) && t && !engine_is_deferred(&r->q->task))
        engine_defer(&r->q->task, now + t);
}

/* True if the request may start now: fences, the limit of outstanding READs, the latency of the link. */
static bool may_start_request(struct remote *r, struct wqe *w)
{
    struct qp *q = r->q;
    if (r->rd_out && (w->flags & IBV_SEND_FENCE))
        return false;
    if (is_read_like(w->opcode) && r->rd_out >= q->attr.max_rd_atomic)
        return false;
    uint64_t due = max_u64(q->wait_until, w->due), now;
    if (due && due > (now = now_ns())) {
        engine_defer(&q->task, due);
        r->progress_at = due; /* the peer is not responsible for this wait */
        return false;
    }
    q->wait_until = 0;
    return true;
}

/* Applies the rate of the local port: a piece may start when the port is idle, and its time is reserved
 * then. */
static bool remote_reserve_port_time(struct remote *r, uint32_t bytes)
{
    const struct fab_port *port = &proc.fab.port[r->q->linear];
    if (!port->rate && !port->bus)
        return true;
    uint64_t now = now_ns();
    if (r->tx_pause > now) {
        engine_defer(&r->q->task, r->tx_pause);
        r->progress_at = now; /* the peer is not responsible for a wait for the local port */
        return false;
    }
    r->tx_pause = port_reserve_time(r->q->linear, true, bytes);
    return true;
}

static void fill_head(struct qp *q, struct wqe *w, struct frame *f)
{
    *f = (struct frame){
        .type = FRAME_DATA,
        .flags = (uint8_t)((w->flags & IBV_SEND_SOLICITED ? FRAME_SOLICITED : 0) |
                           (q->path.is_global ? FRAME_GRH : 0) |
                           (q->path.gid_type == GID_ROCE_V2 ? FRAME_ROCE_V2 : 0) |
                           (migrate_is_arming(q) ? FRAME_ARMING : 0)),
        /* The peer only counts bind and invalidate requests. */
        .opcode = is_window_request(w->opcode) ? IBV_WR_LOCAL_INV : w->opcode,
        .sl = q->path.sl,
        .qp_type = (uint8_t)type_of_peer(qp_to_ibv(q)->qp_type),
        .arg = w->srqn,
        .dst_qpn = q->attr.dest_qp_num,
        .src_qpn = qp_to_ibv(q)->qp_num,
        .seq = remote_sequence(q, q->next),
        .total = w->length,
        .imm = w->imm,
        .rkey = w->rkey,
        .raddr = w->raddr,
        .slid = (uint16_t)(fabric_port_lid(&proc.fab, q->linear) + q->path.src_path_bits),
        .dlid = q->path.dlid,
    };
}

static void fail_next_request(struct remote *r, enum ibv_wc_status st)
{
    /* Earlier requests complete first; then this request fails. */
    if (r->q->done == r->q->next)
        sq_fail_request(r->q, st);
}

static void remote_mark_sent(struct remote *r, struct wqe *w)
{
    struct qp *q = r->q;
    uint64_t now = now_ns();
    if (is_read_like(w->opcode))
        r->rd_out++;
    q->next++;
    r->tx_off = 0;
    r->progress_at = now;
    r->outq = -1;
    if (!is_reliable(q)) {
        r->acked = q->next; /* UC: the request is complete when the socket has its last frame */
        r->reap_after = true;
    }
}

static bool remote_build_frame(struct remote *r, struct conn *c, struct wqe *w, const struct iovec *iov,
                               int n)
{
    struct qp *q = r->q;
    struct frame f;
    fill_head(q, w, &f);
    if (w->opcode == IBV_WR_RDMA_READ) {
        f.type = FRAME_READ;
    } else if (is_read_like(w->opcode)) {
        f.type = FRAME_ATOMIC;
        f.length = f.total = 16;
        uint64_t operands[2] = {htobe64(w->compare), htobe64(w->swap)};
        memcpy(c->head + FRAME_BYTES, operands, 16);
    } else {
        f.offset = r->tx_off;
        f.length = w->length - r->tx_off < FRAME_SEGMENT ? w->length - r->tx_off : FRAME_SEGMENT;
    }
    if (!remote_reserve_port_time(r, f.length + 30 * count_packets(f.length, (uint32_t)q->attr.path_mtu)))
        return false;
    frame_encode(&f, net_fabric(), c->head);
    c->out[c->out_n++] = (struct iovec){c->head, FRAME_BYTES + (f.type == FRAME_ATOMIC ? 16 : 0)};
    if (f.type == FRAME_DATA)
        c->out_n += iov_slice(iov, n, f.offset, f.length, &c->out[c->out_n]);
    c->out_q = q;
    port_count(q->linear, CNT_TX_PACKETS, count_packets(f.length, (uint32_t)q->attr.path_mtu));
    port_count(q->linear, CNT_TX_BYTES, f.type == FRAME_DATA ? f.length : 0);
    if (f.type == FRAME_DATA && (r->tx_off += f.length) < w->length)
        r->progress_at = now_ns();
    else
        remote_mark_sent(r, w);
    return true;
}

void remote_reserve(struct qp *q, struct wqe *w)
{
    uint64_t latency = remote_latency(q);
    if (latency) /* a READ takes the latency of the request and of the answer */
        w->due = now_ns() + latency * (w->opcode == IBV_WR_RDMA_READ ? 2 : 1);
}

/* Drops all requests that wait: an RC request is repeated by the timer, a UC request is complete. */
static void remote_drop_waiting(struct remote *r)
{
    struct qp *q = r->q;
    for (; q->next != q->posted; remote_mark_sent(r, sq_get_wqe(q, q->next)))
        port_count(q->linear, CNT_TX_DROPS, 1);
}

/* UC has no timer that repeats a request. Requests that were handed to the lost connection are complete. If
 * the peer cannot be reached, those that wait are too, as in a network without a route. */
void remote_unreliable_lost(struct remote *r, bool unreachable)
{
    struct qp *q = r->q;
    r->tx_off = 0;
    if (unreachable && qp_to_ibv(q)->state == IBV_QPS_RTS)
        remote_drop_waiting(r);
    r->reap_after = false;
    remote_complete_acked(r, NEVER);
    if (q->next != q->posted)
        engine_defer(&q->task, now_ns()); /* over another connection */
}

bool remote_build_next_segment(struct remote *r, struct conn *c)
{
    struct qp *q = r->q;
    struct iovec iov[MAX_SGE];
    if (!port_up(q->linear))
        remote_drop_waiting(r);
    if (r->reap_after) { /* UC: the frame of the previous call was sent */
        r->reap_after = false;
        remote_complete_acked(r, NEVER);
    }
    if (qp_to_ibv(q)->state != IBV_QPS_RTS || q->next == q->posted)
        return false;
    struct wqe *w = sq_get_wqe(q, q->next);
    if (!r->tx_off && !may_start_request(r, w))
        return false;
    int n = sq_fill_iov(q, w, is_read_like(w->opcode) ? IBV_ACCESS_LOCAL_WRITE : 0, iov);
    if (n < 0) {
        fail_next_request(r, IBV_WC_LOC_PROT_ERR);
        return false;
    }
    if (UNLIKELY(is_window_request(w->opcode)) && window_execute(q, w) != ANS_OK) {
        fail_next_request(r, IBV_WC_MW_BIND_ERR);
        return false;
    }
    return remote_build_frame(r, c, w, iov, n);
}

/* True if the peer does not answer. A process that does not get a processor answers late: as long as the
 * network accepts data, this process waits, and then it sends a probe. Frames are ordered, so that an
 * answer to the probe without an answer to the request means that the request was dropped. */
static bool remote_is_silent(struct remote *r, uint64_t now)
{
    struct conn *c = r->conn;
    int outq = 0;
    if (!c || c->broken || (c->connecting && !reach_has_connection(c)))
        return true;
    bool moves = !c->connecting && !ioctl(c->fd, SIOCOUTQ, &outq) && outq && outq != r->outq;
    r->outq = outq;
    if (moves || c->connecting) {
        r->progress_at = now;
        return false;
    }
    bool probed = r->probe && r->progress_at == r->probed_at; /* the probe is not answered */
    if (probed && (outq || seq_diff(c->pong, r->probe) < SEQ_MASK / 2)) {
        r->probe = 0;
        return true;
    }
    if (!probed)
        r->probe = conn_send_ping(c);
    r->probed_at = r->progress_at = now;
    return false;
}

static bool remote_has_timed_out(struct remote *r, uint64_t now)
{
    uint64_t t = ack_timeout_ns(r->q->attr.timeout);
    return t && now >= r->progress_at + t && remote_is_silent(r, now);
}

static void check_timer(struct remote *r, uint64_t now)
{
    struct qp *q = r->q;
    if (!is_reliable(q) || q->done == q->posted)
        return;
    bool idle = q->next == q->posted && !r->rd_out && r->acked >= q->next; /* no answer is expected */
    if (!r->busy || idle || q->wait_until > now) {
        r->busy = true;
        r->progress_at = now;
    }
    if (remote_has_timed_out(r, now)) {
        enum ibv_wc_status st = sq_handle_nak(q, ANS_DROP, 0, now);
        if (st != IBV_WC_SUCCESS) {
            sq_fail_request(q, st);
            return;
        }
        q->wait_until = 0; /* the timer has expired */
        r->progress_at = now;
        remote_go_back(r);
    }
    remote_arm_ack_timer(r, now);
}

void remote_progress(struct qp *q, uint64_t unused)
{
    struct remote *r = q->remote;
    (void)unused; /* the time is read again: acquiring the lock may have taken long */
    if (qp_to_ibv(q)->state == IBV_QPS_RTS) {
        uint64_t now = now_ns();
        if (UNLIKELY(proc.fab.paced))
            remote_complete_acked(r, now);
        check_timer(r, now);
        if (q->next != q->posted && qp_to_ibv(q)->state == IBV_QPS_RTS) {
            if (!r->conn || r->conn->broken)
                r->conn = conn_open(r->node, r->slot, q->linear, r->to);
            if (r->conn) {
                conn_piggyback_ack(q, r->conn);
                conn_add_active(r->conn, r);
                conn_send(r->conn);
            } else if (!is_reliable(q)) { /* the timer of RC repeats the request */
                remote_unreliable_lost(r, true);
            }
        }
    }
}

void remote_on_ack(struct remote *r, const struct frame *f)
{
    struct qp *q = r->q;
    uint32_t ahead = seq_diff(f->seq, remote_sequence(q, q->done));
    if (ahead >= q->next - q->done)
        return; /* acknowledgement of an earlier attempt */
    if (UNLIKELY(q->alternate))
        migrate_on_peer_state(q, f->flags & FRAME_ARMING);
    uint64_t now = now_ns(), latency = remote_latency(q);
    for (uint64_t i = max_u64(r->acked, q->done); latency && i <= q->done + ahead; i++)
        sq_get_wqe(q, i)->ack_at = is_read_like(sq_get_wqe(q, i)->opcode) ? 0 : now + latency;
    r->acked = max_u64(r->acked, q->done + ahead + 1);
    r->progress_at = now;
    remote_complete_acked(r, now);
}

static enum ibv_wc_status nak_status(uint32_t code)
{
    return code == ANS_INVALID  ? IBV_WC_REM_INV_REQ_ERR
           : code == ANS_ACCESS ? IBV_WC_REM_ACCESS_ERR
                                : IBV_WC_REM_OP_ERR;
}

void remote_on_nak(struct remote *r, const struct frame *f)
{
    struct qp *q = r->q;
    uint32_t ahead = seq_diff(f->seq, remote_sequence(q, q->done));
    if (ahead >= q->next - q->done + (r->tx_off ? 1 : 0))
        return;
    r->acked = max_u64(r->acked, q->done + ahead);
    remote_complete_acked(r, NEVER);
    if (q->done != q->next && remote_sequence(q, q->done) != f->seq)
        return; /* the answer to an earlier RDMA READ is arriving; the peer repeats the NAK */
    enum ibv_wc_status st =
        f->arg == ANS_RNR ? sq_handle_nak(q, ANS_RNR, f->imm, now_ns()) : nak_status(f->arg);
    if (st != IBV_WC_SUCCESS) {
        if (q->done == q->next)
            q->next++;
        sq_fail_request(q, st);
        return;
    }
    remote_go_back(r);
    r->progress_at = now_ns();
    engine_defer(&q->task, q->wait_until);
}

static struct wqe *remote_find_awaited(struct remote *r, const struct frame *f)
{
    struct qp *q = r->q;
    uint32_t ahead = seq_diff(f->seq, remote_sequence(q, q->done));
    struct wqe *w = ahead < q->next - q->done ? sq_get_wqe(q, q->done + ahead) : NULL;
    return w && is_read_like(w->opcode) && !w->executed ? w : NULL;
}

void remote_answer_frame(struct conn *c, struct remote *r, const struct frame *f)
{
    struct iovec iov[MAX_SGE];
    struct wqe *w = remote_find_awaited(r, f);
    bool read = f->type == FRAME_READ_DATA;
    if (!w || read != (w->opcode == IBV_WR_RDMA_READ) ||
        (read && (f->total != w->length || f->offset != w->got)))
        return;
    int n = sq_fill_iov(r->q, w, IBV_ACCESS_LOCAL_WRITE, iov);
    if (n < 0)
        return;
    /* The data has been requested again on connection c. */
    if (r->answering && r->answering != c && r->answering->sink.kind == SINK_ANSWER &&
        r->answering->sink.q == r->q)
        r->answering->sink.kind = SINK_DROP;
    r->answering = c;
    c->sink.q = r->q;
    c->sink.kind = read ? SINK_ANSWER : SINK_SMALL;
    c->sink.n = read ? iov_slice(iov, n, f->offset, f->length, c->sink.iov) : 0;
}

void remote_drop_answer_to_region(struct conn *c, struct remote *r)
{
    struct iovec iov[MAX_SGE];
    struct wqe *w = remote_find_awaited(r, &c->in);
    if (w && sq_fill_iov(r->q, w, IBV_ACCESS_LOCAL_WRITE, iov) >= 0)
        return;
    c->sink.kind = SINK_DROP;
    if (w && w == sq_get_wqe(r->q, r->q->done))
        sq_fail_request(r->q, IBV_WC_LOC_PROT_ERR); /* a later request fails when it is the oldest */
}

void remote_answer_done(struct conn *c, struct remote *r)
{
    const struct frame *f = &c->in;
    struct wqe *w = remote_find_awaited(r, f);
    if (!w)
        return;
    if (f->type == FRAME_ATOMIC_RESULT) {
        struct iovec iov[MAX_SGE];
        uint64_t old;
        memcpy(&old, c->sink.small, 8);
        old = be64toh(old);
        if (sq_fill_iov(r->q, w, IBV_ACCESS_LOCAL_WRITE, iov) == 1)
            copy_last_byte_last(iov[0].iov_base, (char *)&old, 8);
        w->executed = 1;
    } else {
        w->got = f->offset + f->length;
        w->executed = w->got == w->length;
        port_count(r->q->linear, CNT_RX_BYTES, f->length);
        port_count(r->q->linear, CNT_RX_PACKETS, count_packets(f->length, (uint32_t)r->q->attr.path_mtu));
        conn_received(c, r->q->linear, f->length);
    }
    r->progress_at = now_ns();
    if (w->executed) {
        r->rd_out -= r->rd_out > 0;
        w->ack_at = w->opcode == IBV_WR_RDMA_READ ? 0 : r->progress_at + remote_latency(r->q);
        remote_complete_acked(r, r->progress_at);
        remote_progress(r->q, 0); /* requests may have waited for a fence or the READ limit */
    }
}
