/*
 * Connected QPs over wire (b), both halves. TCP keeps order, so the sequence numbers serve only what TCP
 * cannot know: a request refused for want of a receive is sent again with all that followed it (go back N),
 * and after a broken connection the responder recognises what it has already done. SPDX-License-Identifier:
 * Apache-2.0
 */
#include "conn.h"
#include "copy.h"
#include <endian.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#define SEQ_MASK 0xffffffu
#define BURST_NS (500 * NS_US)

static struct remote *remotes; /* every connected QP of this process, under the wire's lock */

static uint32_t seq_of(const struct qp *q, uint64_t index)
{
    return (q->attr.sq_psn + (uint32_t)index) & SEQ_MASK;
}

/* How far b is behind a on the circle of sequence numbers. */
static uint32_t seq_diff(uint32_t a, uint32_t b)
{
    return (a - b) & SEQ_MASK;
}

static bool is_read_like(uint8_t opcode)
{
    return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
           opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_rc(struct qp *q)
{
    return qp_ibv(q)->qp_type == IBV_QPT_RC;
}

/* ---- requester ---- */

static void reap(struct remote *r)
{
    struct qp *q = r->q;
    while (q->done != q->next) {
        struct wqe *w = sq_at(q, q->done);
        bool over = is_read_like(w->opcode) ? w->executed : q->done < r->acked;
        if (!over)
            break;
        q->rnr_left = q->attr.rnr_retry;
        q->retry_left = q->attr.retry_cnt;
        sq_complete(q, w, q->done++, IBV_WC_SUCCESS);
    }
    r->busy = q->done != q->posted;
    if (qp_ibv(q)->state == IBV_QPS_SQD && q->done == q->next)
        qp_drained(q);
}

/* Everything not completed is to be sent again. */
static void go_back(struct remote *r)
{
    struct qp *q = r->q;
    q->next = q->done;
    r->tx_off = 0;
    r->rd_out = 0;
    for (uint64_t i = q->done; i != q->posted; i++) {
        sq_at(q, i)->executed = 0;
        sq_at(q, i)->got = 0;
    }
}

static void arm(struct remote *r, uint64_t now)
{
    uint64_t t = ack_timeout_ns(r->q->attr.timeout);
    if (is_rc(r->q) && t && !atomic_load_explicit(&r->q->deferred, memory_order_relaxed))
        engine_defer(r->q, now + t);
}

/* May this request start now? Fences, the limit of outstanding READs, the rate of the port. */
static bool may_start(struct remote *r, struct wqe *w)
{
    struct qp *q = r->q;
    if (r->rd_out && (w->flags & IBV_SEND_FENCE))
        return false;
    if (is_read_like(w->opcode) && r->rd_out >= q->attr.max_rd_atomic)
        return false;
    uint64_t now;
    if (q->wait_until && q->wait_until > (now = now_ns())) {
        engine_defer(q, q->wait_until);
        return false;
    }
    q->wait_until = 0;
    return true;
}

/* The rate of our port: a bucket that holds half a millisecond, so that a late wake-up costs nothing. */
static bool paced(struct remote *r, uint32_t bytes)
{
    uint64_t rate = proc.fab.port[r->q->linear].rate;
    if (!rate)
        return true;
    _Atomic uint64_t *free_at = &proc.reg->port[r->q->linear].tx_free;
    uint64_t now = now_ns(), old = atomic_load(free_at), need = (uint64_t)((__uint128_t)bytes * NS_S / rate),
             end;
    do {
        if (old > now + BURST_NS) {
            engine_defer(r->q, old - BURST_NS / 2);
            r->progress_at = now; /* waiting for our own port is no silence of the peer */
            return false;
        }
        end = max_u64(old, now > BURST_NS ? now - BURST_NS : 0) + need;
    } while (!atomic_compare_exchange_weak(free_at, &old, end));
    return true;
}

static void fill_head(struct qp *q, struct wqe *w, struct frame *f)
{
    *f = (struct frame){
        .type = FRAME_DATA,
        .flags = (uint8_t)((w->flags & IBV_SEND_SOLICITED ? FRAME_SOLICITED : 0) |
                           (q->path.is_global ? FRAME_GRH : 0)),
        .opcode = w->opcode,
        .sl = q->path.sl,
        .qp_type = (uint8_t)qp_ibv(q)->qp_type,
        .dst_qpn = q->attr.dest_qp_num,
        .src_qpn = qp_ibv(q)->qp_num,
        .seq = seq_of(q, q->next),
        .total = w->length,
        .imm = w->imm,
        .rkey = w->rkey,
        .raddr = w->raddr,
        .slid = (uint16_t)(fabric_lid(&proc.fab, q->linear) + q->path.src_path_bits),
        .dlid = q->path.dlid,
    };
}

/* Bytes [off, off+len) of a gather list behind out[1]. */
static int slice(const struct iovec *iov, int n, uint32_t off, uint32_t len, struct iovec *out)
{
    int k = 0;
    for (int i = 0; i < n && len; i++) {
        if (off >= iov[i].iov_len) {
            off -= (uint32_t)iov[i].iov_len;
            continue;
        }
        size_t step = iov[i].iov_len - off < len ? iov[i].iov_len - off : len;
        out[k++] = (struct iovec){(char *)iov[i].iov_base + off, step};
        len -= (uint32_t)step;
        off = 0;
    }
    return k;
}

static void local_error(struct remote *r)
{
    /* What was sent before completes first; then this one fails. */
    if (r->q->done == r->q->next)
        sq_error(r->q, IBV_WC_LOC_PROT_ERR);
}

static void sent(struct remote *r, struct wqe *w)
{
    struct qp *q = r->q;
    uint64_t now = now_ns();
    if (is_read_like(w->opcode))
        r->rd_out++;
    q->next++;
    r->tx_off = 0;
    r->progress_at = now;
    r->outq = -1;
    if (!is_rc(q)) {
        r->acked = q->next; /* nobody answers; the data is in the socket's hands once the frame is out */
        r->reap_after = true;
    }
}

static bool build(struct remote *r, struct conn *c, struct wqe *w, const struct iovec *iov, int n)
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
    if (!paced(r, f.length + 30 * packets_of(f.length, (uint32_t)q->attr.path_mtu)))
        return false;
    frame_encode(&f, wire_fabric(), c->head);
    c->out[c->out_n++] = (struct iovec){c->head, FRAME_BYTES + (f.type == FRAME_ATOMIC ? 16 : 0)};
    if (f.type == FRAME_DATA)
        c->out_n += slice(iov, n, f.offset, f.length, &c->out[c->out_n]);
    c->out_q = q;
    port_count(q->linear, CNT_TX_PACKETS, packets_of(f.length, (uint32_t)q->attr.path_mtu));
    port_count(q->linear, CNT_TX_BYTES, f.type == FRAME_DATA ? f.length : 0);
    if (f.type == FRAME_DATA && (r->tx_off += f.length) < w->length)
        r->progress_at = now_ns();
    else
        sent(r, w);
    return true;
}

bool remote_segment(struct remote *r, struct conn *c)
{
    struct qp *q = r->q;
    struct iovec iov[MAX_SGE];
    for (; q->next != q->posted && !port_up(q->linear); sent(r, sq_at(q, q->next)))
        port_count(q->linear, CNT_TX_DROPS,
                   1);   /* the wire swallows it: RC's timer runs, UC's request is done */
    if (r->reap_after) { /* UC: the frame before this call is out */
        r->reap_after = false;
        reap(r);
    }
    if (qp_ibv(q)->state != IBV_QPS_RTS || q->next == q->posted)
        return false;
    struct wqe *w = sq_at(q, q->next);
    if (!r->tx_off && !may_start(r, w))
        return false;
    int n = sq_gather(q, w, is_read_like(w->opcode) ? IBV_ACCESS_LOCAL_WRITE : 0, iov);
    if (n < 0) {
        local_error(r);
        return false;
    }
    return build(r, c, w, iov, n);
}

/* No answer for the QP's timeout. As long as the network still takes bytes of ours, the peer is not gone. */
static bool timed_out(struct remote *r, uint64_t now)
{
    uint64_t t = ack_timeout_ns(r->q->attr.timeout);
    int outq = 0;
    if (!t || now - r->progress_at < t)
        return false;
    if (r->conn && !r->conn->broken && !r->conn->connecting && !ioctl(r->conn->fd, SIOCOUTQ, &outq) && outq &&
        outq != r->outq) {
        r->outq = outq;
        r->progress_at = now;
        return false;
    }
    return true;
}

static void check_timer(struct remote *r, uint64_t now)
{
    struct qp *q = r->q;
    if (!is_rc(q) || q->done == q->posted)
        return;
    if (!r->busy || q->wait_until > now) {
        r->busy = true;
        r->progress_at = now;
    }
    if (timed_out(r, now)) {
        enum ibv_wc_status st = sq_retry(q, ANS_DROP, 0, now);
        if (st != IBV_WC_SUCCESS) {
            sq_error(q, st);
            return;
        }
        q->wait_until = 0; /* the wait is over already */
        r->progress_at = now;
        go_back(r);
    }
    arm(r, now);
}

void remote_progress(struct qp *q)
{
    struct remote *r = q->remote;
    if (qp_ibv(q)->state == IBV_QPS_RTS) {
        uint64_t now = now_ns();
        check_timer(r, now);
        if (q->next != q->posted && qp_ibv(q)->state == IBV_QPS_RTS) {
            if (!r->conn || r->conn->broken)
                r->conn = conn_open(r->node, r->slot);
            if (r->conn) {
                wire_join_ack(q, r->conn);
                conn_activate(r->conn, r);
                conn_send(r->conn);
            } /* else RC's timer decides */
        }
    }
}

static void on_ack(struct remote *r, const struct frame *f)
{
    struct qp *q = r->q;
    uint32_t ahead = seq_diff(f->seq, seq_of(q, q->done));
    if (ahead >= q->next - q->done)
        return; /* of an earlier attempt */
    r->acked = max_u64(r->acked, q->done + ahead + 1);
    r->progress_at = now_ns();
    reap(r);
}

static enum ibv_wc_status nak_status(uint32_t code)
{
    return code == ANS_INVALID  ? IBV_WC_REM_INV_REQ_ERR
           : code == ANS_ACCESS ? IBV_WC_REM_ACCESS_ERR
                                : IBV_WC_REM_OP_ERR;
}

static void on_nak(struct remote *r, const struct frame *f)
{
    struct qp *q = r->q;
    uint32_t ahead = seq_diff(f->seq, seq_of(q, q->done));
    if (ahead >= q->next - q->done + (r->tx_off ? 1 : 0))
        return;
    r->acked = max_u64(r->acked, q->done + ahead);
    reap(r);
    if (q->done != q->next && seq_of(q, q->done) != f->seq)
        return; /* an RDMA READ before it is still arriving; the timer will bring the refusal again */
    enum ibv_wc_status st = f->arg == ANS_RNR ? sq_retry(q, ANS_RNR, f->imm, now_ns()) : nak_status(f->arg);
    if (st != IBV_WC_SUCCESS) {
        if (q->done == q->next)
            q->next++;
        sq_error(q, st);
        return;
    }
    go_back(r);
    r->progress_at = now_ns();
    engine_defer(q, q->wait_until);
}

static struct wqe *awaited(struct remote *r, const struct frame *f)
{
    struct qp *q = r->q;
    uint32_t ahead = seq_diff(f->seq, seq_of(q, q->done));
    struct wqe *w = ahead < q->next - q->done ? sq_at(q, q->done + ahead) : NULL;
    return w && is_read_like(w->opcode) && !w->executed ? w : NULL;
}

static void answer_frame(struct conn *c, struct remote *r, const struct frame *f)
{
    struct iovec iov[MAX_SGE];
    struct wqe *w = awaited(r, f);
    bool read = f->type == FRAME_READ_DATA;
    if (!w || read != (w->opcode == IBV_WR_RDMA_READ) ||
        (read && (f->total != w->length || f->offset != w->got)))
        return;
    int n = sq_gather(r->q, w, IBV_ACCESS_LOCAL_WRITE, iov);
    if (n < 0)
        return;
    c->sink.q = r->q;
    c->sink.kind = read ? SINK_ANSWER : SINK_SMALL;
    c->sink.n = read ? slice(iov, n, f->offset, f->length, c->sink.iov) : 0;
}

static void answer_done(struct conn *c, struct remote *r)
{
    const struct frame *f = &c->in;
    struct wqe *w = awaited(r, f);
    if (!w)
        return;
    if (f->type == FRAME_ATOMIC_RESULT) {
        struct iovec iov[MAX_SGE];
        uint64_t old;
        memcpy(&old, c->sink.small, 8);
        old = be64toh(old);
        if (sq_gather(r->q, w, IBV_ACCESS_LOCAL_WRITE, iov) == 1)
            copy_last_last(iov[0].iov_base, (char *)&old, 8);
        w->executed = 1;
    } else {
        w->got = f->offset + f->length;
        w->executed = w->got == w->length;
        port_count(r->q->linear, CNT_RX_BYTES, f->length);
        port_count(r->q->linear, CNT_RX_PACKETS, packets_of(f->length, (uint32_t)r->q->attr.path_mtu));
    }
    r->progress_at = now_ns();
    if (w->executed) {
        r->rd_out -= r->rd_out > 0;
        reap(r);
        remote_progress(r->q); /* a fence or the READ limit may have held others back */
    }
}

/* ---- responder ---- */

static void reply_head(const struct frame *f, enum frame_type type, struct frame *a)
{
    *a = (struct frame){
        .type = (uint8_t)type,
        .opcode = f->opcode,
        .qp_type = IBV_QPT_RC,
        .dst_qpn = f->src_qpn,
        .src_qpn = f->dst_qpn,
        .seq = f->seq,
        .slid = f->dlid,
        .dlid = f->slid,
    };
}

static void ack(struct conn *c, struct qp *q, const struct frame *f)
{
    if (f->qp_type != IBV_QPT_RC)
        return;
    if (c->ack_q && c->ack_q != q)
        conn_flush_ack(c);
    c->ack_q = q;
    reply_head(f, FRAME_ACK, &c->ack);
}

static void nak(struct conn *c, struct qp *q, const struct frame *f, enum answer code, uint32_t timer)
{
    struct frame a;
    if (code == ANS_RNR)
        port_count(q->linear, CNT_RNR_NAKS, 1);
    if (f->qp_type != IBV_QPT_RC || code == ANS_DROP)
        return;
    conn_flush_ack(c);
    reply_head(f, FRAME_NAK, &a);
    a.arg = code;
    a.imm = timer;
    conn_reply(c, &a, NULL);
}

static void close_message(struct remote *r, bool ok)
{
    if (!r->open)
        return;
    r->open = false;
    target_finish(&r->t, &r->r, &r->l, ok);
    target_release(&r->t);
}

static void request_of(const struct frame *f, struct request *r)
{
    *r = (struct request){
        .opcode = f->opcode,
        .solicited = f->flags & FRAME_SOLICITED,
        .has_grh = f->flags & FRAME_GRH,
        .type = f->qp_type,
        .sl = f->sl,
        .length = f->total,
        .imm = f->imm,
        .rkey = f->rkey,
        .raddr = f->raddr,
        .src_qpn = f->src_qpn,
        .slid = f->slid,
        .dlid = f->dlid,
    };
}

/* A message that will not be completed. */
static void abandon(struct remote *r, bool flush)
{
    if (!r->open)
        return;
    r->open = false;
    target_abandon(&r->t, &r->r, &r->l, flush);
    target_release(&r->t);
}

/* The connection broke in the middle and the sender begins again: what was landed is still ours. */
static bool begins_again(const struct remote *r, const struct frame *f)
{
    return r->open && is_rc(r->q) && f->total == r->r.length && f->opcode == r->r.opcode;
}

/* The region must still be registered when the next piece comes. */
static bool landing_valid(const struct landing *l)
{
    for (int i = 0; i < l->nseg; i++)
        if (atomic_load(&l->seg[i].mr->rkey) != l->seg[i].key)
            return false;
    return true;
}

static void sink_landing(struct conn *c, struct remote *r, const struct frame *f)
{
    struct iovec iov[MAX_SGE];
    for (int i = 0; i < r->l.nseg; i++)
        iov[i] = (struct iovec){r->l.seg[i].map, r->l.seg[i].len};
    c->sink.n = slice(iov, r->l.nseg, f->offset, f->length, c->sink.iov);
    c->sink.q = r->q;
    c->sink.kind = SINK_REQUEST;
}

static void data_frame(struct conn *c, struct remote *r, const struct frame *f)
{
    uint32_t timer = 0;
    if (f->offset == 0 && begins_again(r, f)) {
        r->got = 0;
    } else if (f->offset == 0) {
        abandon(r, false);
        request_of(f, &r->r);
        if (target_find(proc.self, f->dst_qpn, &r->r, &r->t) != ANS_OK)
            return;
        enum answer a = target_land(&r->t, &r->r, &r->l, &timer);
        if (a != ANS_OK) {
            target_release(&r->t);
            nak(c, r->q, f, a, timer);
            return;
        }
        r->open = true;
        r->got = 0;
    }
    if (!r->open || r->got != f->offset || r->r.length != f->total || !landing_valid(&r->l))
        return;
    sink_landing(c, r, f);
}

static void data_done(struct conn *c, struct remote *r)
{
    const struct frame *f = &c->in;
    if (!r->open)
        return;
    r->got = f->offset + f->length;
    uint32_t mtu = (uint32_t)r->q->attr.path_mtu;
    port_count(r->q->linear, CNT_RX_PACKETS, packets_of(f->length, mtu));
    port_count(r->q->linear, CNT_RX_BYTES, f->length);
    if (r->got != f->total)
        return;
    close_message(r, true);
    r->expect = (f->seq + 1) & SEQ_MASK;
    ack(c, r->q, f);
}

static void read_frame(struct conn *c, struct remote *r, const struct frame *f)
{
    struct request req;
    struct target t;
    struct read_job *j = calloc(1, sizeof(*j));
    request_of(f, &req);
    if (!j || target_find(proc.self, f->dst_qpn, &req, &t) != ANS_OK) {
        free(j);
        return;
    }
    enum answer a = target_source(&t, &req, f->total, IBV_ACCESS_REMOTE_READ, &j->src);
    target_release(&t);
    if (a != ANS_OK) {
        free(j);
        nak(c, r->q, f, a, 0);
        return;
    }
    reply_head(f, FRAME_READ_DATA, &j->head);
    j->head.total = f->total;
    j->q = r->q;
    struct read_job **p = &c->jobs;
    while (*p)
        p = &(*p)->next;
    *p = j;
    if (f->seq == r->expect)
        r->expect = (r->expect + 1) & SEQ_MASK;
    port_count(r->q->linear, CNT_TX_BYTES, f->total);
    port_count(r->q->linear, CNT_TX_PACKETS, packets_of(f->total, (uint32_t)r->q->attr.path_mtu));
}

static void atomic_reply(struct conn *c, const struct frame *f, uint64_t old)
{
    struct frame a;
    uint64_t be = htobe64(old);
    reply_head(f, FRAME_ATOMIC_RESULT, &a);
    a.length = a.total = 8;
    conn_reply(c, &a, &be);
}

/* A repeated atomic gets its first answer again: it must not be done twice. */
static bool atomic_again(struct conn *c, struct remote *r, const struct frame *f)
{
    unsigned n = r->atomics < MAX_RD_ATOM ? r->atomics : MAX_RD_ATOM;
    for (unsigned i = 0; i < n; i++)
        if (r->atomic_seq[i] == f->seq) {
            atomic_reply(c, f, r->atomic_old[i]);
            return true;
        }
    return false;
}

static void atomic_done(struct conn *c, struct remote *r)
{
    const struct frame *f = &c->in;
    struct request req;
    struct target t;
    struct rseg s;
    uint64_t operands[2], old;
    if (f->seq != r->expect) {
        atomic_again(c, r, f);
        return;
    }
    memcpy(operands, c->sink.small, 16);
    request_of(f, &req);
    if (target_find(proc.self, f->dst_qpn, &req, &t) != ANS_OK)
        return;
    enum answer a = target_source(&t, &req, 8, IBV_ACCESS_REMOTE_ATOMIC, &s);
    if (a == ANS_OK) {
        copy_atomic(proc.self, &s, f->opcode == IBV_WR_ATOMIC_CMP_AND_SWP, be64toh(operands[0]),
                    be64toh(operands[1]), &old);
        mr_release(&s);
    }
    target_release(&t);
    if (a != ANS_OK) {
        nak(c, r->q, f, a, 0);
        return;
    }
    r->atomic_seq[r->atomics % MAX_RD_ATOM] = f->seq;
    r->atomic_old[r->atomics++ % MAX_RD_ATOM] = old;
    r->expect = (r->expect + 1) & SEQ_MASK;
    atomic_reply(c, f, old);
}

/* Is this request the next one, one already done, or one behind a gap? */
static void request_frame(struct conn *c, struct remote *r, const struct frame *f)
{
    uint32_t ahead = seq_diff(f->seq, r->expect);
    bool old = ahead > SEQ_MASK / 2;
    if (!is_rc(r->q)) { /* UC: a gap is lost messages; carry on with the next beginning */
        if (f->type == FRAME_DATA)
            data_frame(c, r, f);
        return;
    }
    if (f->type == FRAME_READ && (old || !ahead)) {
        read_frame(c, r, f);
    } else if (f->type == FRAME_ATOMIC && (old || !ahead)) {
        c->sink.kind = SINK_SMALL;
        c->sink.q = r->q;
    } else if (old && f->type == FRAME_DATA) {
        if (f->offset + f->length == f->total)
            ack(c, r->q, f);
    } else if (!ahead) {
        data_frame(c, r, f);
    }
}

/* ---- frames ---- */

static struct remote *addressee(const struct frame *f)
{
    struct remote *r = remotes;
    while (r && qp_ibv(r->q)->qp_num != f->dst_qpn)
        r = r->next;
    if (r && r->q->attr.dest_qp_num == f->src_qpn && qp_ibv(r->q)->qp_type == f->qp_type &&
        port_up(r->q->linear))
        return r;
    port_count(fabric_linear(&proc.fab, proc.fab.node, 0, 1), CNT_RX_DROPS, 1);
    return NULL;
}

void remote_frame(struct conn *c)
{
    const struct frame *f = &c->in;
    struct remote *r = addressee(f);
    if (!r)
        return;
    switch (f->type) {
    case FRAME_DATA:
    case FRAME_READ:
    case FRAME_ATOMIC:
        request_frame(c, r, f);
        break;
    case FRAME_ACK:
        on_ack(r, f);
        break;
    case FRAME_NAK:
        on_nak(r, f);
        break;
    default:
        answer_frame(c, r, f);
        break;
    }
}

void remote_payload(struct conn *c)
{
    if (c->sink.kind == SINK_DROP || !c->sink.q || !c->sink.q->remote)
        return;
    struct remote *r = c->sink.q->remote;
    if (c->in.type == FRAME_DATA)
        data_done(c, r);
    else if (c->in.type == FRAME_ATOMIC)
        atomic_done(c, r);
    else
        answer_done(c, r);
}

/* ---- life ---- */

bool remote_attach(struct qp *q, uint32_t node)
{
    struct remote *r = calloc(1, sizeof(*r));
    if (!r)
        return false;
    r->q = q;
    r->node = node;
    r->slot = q->attr.dest_qp_num >> QP_BITS;
    r->expect = q->attr.rq_psn & SEQ_MASK;
    wire_lock();
    r->next = remotes;
    remotes = r;
    q->remote = r;
    wire_unlock();
    return true;
}

static void drop_jobs(struct conn *c, const struct qp *q)
{
    for (struct read_job **p = &c->jobs, *j; (j = *p);) {
        if (q && j->q != q) {
            p = &j->next;
            continue;
        }
        *p = j->next;
        if (j->src.mr)
            mr_release(&j->src);
        free(j);
    }
}

/* A frame half out points into memory the program gets back now: the rest is sent from a copy. */
static void disown(struct conn *c, struct qp *q)
{
    size_t left = 0;
    if (c->out_q != q || c->out_copy)
        return;
    for (int i = c->out_at; i < c->out_n; i++)
        left += c->out[i].iov_len;
    char *copy = left ? malloc(left) : NULL, *at = copy;
    if (left && !copy) {
        conn_break(c);
        return;
    }
    for (int i = c->out_at; i < c->out_n; i++) {
        memcpy(at, c->out[i].iov_base, c->out[i].iov_len);
        at += c->out[i].iov_len;
    }
    c->out[0] = (struct iovec){copy, left};
    c->out_at = 0;
    c->out_n = left ? 1 : 0;
    c->out_copy = copy;
    c->out_q = NULL;
}

void remote_quiet(struct qp *q)
{
    struct remote *r = q->remote;
    if (!r)
        return;
    for (struct conn *c = conns; c; c = c->next) {
        disown(c, q);
        if (c->sink.q == q) {
            c->sink.kind = SINK_DROP;
            c->sink.q = NULL;
        }
        drop_jobs(c, q);
    }
    r->reap_after = false;
    abandon(r, true);
}

void remote_detach(struct qp *q)
{
    if (!q->remote)
        return;
    wire_lock();
    struct remote *r = q->remote;
    remote_quiet(q);
    for (struct conn *c = conns; c; c = c->next) {
        if (c->ack_q == q)
            conn_drop_ack(c);
        struct remote *last = NULL;
        for (struct remote **p = &c->active; *p;) {
            if (*p == r) {
                *p = r->active_next;
                continue;
            }
            last = *p;
            p = &(*p)->active_next;
        }
        c->active_last = last;
    }
    for (struct remote **p = &remotes; *p; p = &(*p)->next)
        if (*p == r) {
            *p = r->next;
            break;
        }
    q->remote = NULL;
    wire_unlock();
    free(r);
}

void remote_lost(struct conn *c)
{
    drop_jobs(c, NULL);
    for (struct remote *r = c->active, *next; r; r = next) {
        next = r->active_next;
        r->active = false;
    }
    for (struct remote *r = remotes; r; r = r->next) {
        if (r->conn != c)
            continue;
        r->conn = NULL;
        if (!is_rc(r->q))
            r->tx_off = 0;
        else if (r->q->done != r->q->posted)
            arm(r, now_ns());
    }
}
