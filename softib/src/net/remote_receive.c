/* remote_receive.c: the responder of a connected QP between machines: checks whether a request is the next
 * one, a repeated one, or behind a gap, and answers it. hca/responder.c executes requests, as for shared
 * memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/remote.h"
#include <endian.h>
#include <stdlib.h>

static void fill_reply_frame(const struct frame *f, enum frame_type type, struct frame *a)
{
    *a = (struct frame){
        .type = (uint8_t)type,
        .opcode = f->opcode,
        .qp_type = (uint8_t)type_of_peer(f->qp_type),
        .dst_qpn = f->src_qpn,
        .src_qpn = f->dst_qpn,
        .seq = f->seq,
        .slid = f->dlid,
        .dlid = f->slid,
    };
}

static void remote_send_ack(struct conn *c, struct qp *q, const struct frame *f)
{
    if (!type_is_reliable(f->qp_type))
        return;
    if (c->ack_q && c->ack_q != q)
        conn_flush_ack(c);
    c->ack_q = q;
    fill_reply_frame(f, FRAME_ACK, &c->ack);
    if (UNLIKELY(atomic_load_explicit(&q->sh->mig, memory_order_relaxed) != IBV_MIG_MIGRATED))
        c->ack.flags |= FRAME_ARMING;
}

static void remote_send_nak(struct conn *c, struct qp *q, const struct frame *f, enum answer code,
                            uint32_t timer)
{
    struct frame a;
    if (code == ANS_RNR)
        port_count(q->linear, CNT_RNR_NAKS, 1);
    if (!type_is_reliable(f->qp_type) || code == ANS_DROP)
        return;
    conn_flush_ack(c);
    fill_reply_frame(f, FRAME_NAK, &a);
    a.arg = code;
    a.imm = timer;
    conn_reply(c, &a, NULL);
}

/* Stops a stalled connection from writing a piece of the message that is being repeated on another one. */
static void stop_stalled_sink(struct remote *r)
{
    struct conn *c = r->from;
    if (c && c->sink.q == r->q && c->sink.kind == SINK_REQUEST)
        c->sink.kind = SINK_DROP;
    r->from = NULL;
}

/* True if the request is received into a buffer first. An XRC request is delivered when all its bytes have
 * arrived: its SRQ may belong to another process of this node, into whose memory frames cannot be
 * received, and an SRQ that is being destroyed does not wait for the rest of a message. */
static bool is_staged(const struct request *r)
{
    return r->type == IBV_QPT_XRC_RECV;
}

static void drop_stage(struct remote *r)
{
    free(r->stage);
    r->stage = NULL;
    r->open = false;
    stop_stalled_sink(r);
}

/* Delivers a buffered message that is complete. */
static enum answer deliver_stage(struct remote *r, uint32_t *timer)
{
    struct iovec iov = {r->stage, r->r.length};
    enum answer a = target_find(proc.self, qp_to_ibv(r->q)->qp_num, &r->r, &r->t);
    if (a == ANS_OK) {
        a = target_prepare(&r->t, &r->r, &r->l, timer);
        if (a == ANS_OK)
            a = target_finish(&r->t, &r->r, &r->l,
                              copy_to_peer(r->t.memory, r->l.seg, r->l.nseg, &iov, 1, r->r.length));
        target_release(&r->t);
    }
    drop_stage(r);
    return a;
}

static void close_message(struct remote *r, bool ok)
{
    if (!r->open)
        return;
    r->open = false;
    stop_stalled_sink(r);
    target_finish(&r->t, &r->r, &r->l, ok);
    target_release(&r->t);
}

static void remote_decode_request(const struct frame *f, struct request *r)
{
    *r = (struct request){
        .opcode = f->opcode,
        .solicited = f->flags & FRAME_SOLICITED,
        .has_grh = f->flags & FRAME_GRH,
        .roce_v2 = f->flags & FRAME_ROCE_V2,
        .arming = f->flags & FRAME_ARMING,
        .type = f->qp_type,
        .sl = f->sl,
        .length = f->total,
        .imm = f->imm,
        .rkey = f->rkey,
        .raddr = f->raddr,
        .src_qpn = f->src_qpn,
        .srqn = f->arg,
        .slid = f->slid,
        .dlid = f->dlid,
    };
}

void remote_abandon(struct remote *r, bool flush)
{
    if (!r->open)
        return;
    if (r->stage) {
        drop_stage(r);
        return;
    }
    r->open = false;
    stop_stalled_sink(r);
    target_abandon(&r->t, &r->r, &r->l, flush);
    target_release(&r->t);
}

/* True if the sender repeats a message from its start after the connection broke; its destination is still
 * valid. */
static bool remote_is_restart(const struct remote *r, const struct frame *f)
{
    return r->open && is_reliable(r->q) && f->total == r->r.length && f->opcode == r->r.opcode;
}

static void set_sink_destination(struct conn *c, struct remote *r, const struct frame *f)
{
    struct iovec iov[MAX_SGE];
    int n = r->stage ? 1 : r->l.nseg;
    for (int i = 0; i < r->l.nseg; i++)
        iov[i] = (struct iovec){r->l.seg[i].map, r->l.seg[i].len};
    if (r->stage)
        iov[0] = (struct iovec){r->stage, r->r.length};
    stop_stalled_sink(r);
    r->from = c;
    c->sink.n = iov_slice(iov, n, f->offset, f->length, c->sink.iov);
    c->sink.q = r->q;
    c->sink.kind = SINK_REQUEST;
}

/* Handles the first frame of a message: finds its destination. */
static enum answer open_message(struct remote *r, const struct frame *f, uint32_t *timer)
{
    remote_decode_request(f, &r->r);
    if (is_staged(&r->r)) {
        r->l.nseg = 0;
        r->stage = malloc(f->total + 1ull);
        return r->stage ? ANS_OK : ANS_DROP;
    }
    if (target_find(proc.self, f->dst_qpn, &r->r, &r->t) != ANS_OK)
        return ANS_DROP;
    enum answer a = target_prepare(&r->t, &r->r, &r->l, timer);
    if (a != ANS_OK)
        target_release(&r->t);
    return a;
}

static void data_frame(struct conn *c, struct remote *r, const struct frame *f)
{
    uint32_t timer = 0;
    if (f->offset == 0 && remote_is_restart(r, f)) {
        r->got = 0;
    } else if (f->offset == 0) {
        remote_abandon(r, false);
        r->cut = ANS_OK;
        r->seq = f->seq;
        enum answer a = open_message(r, f, &timer);
        if (a != ANS_OK) {
            remote_send_nak(c, r->q, f, a, timer);
            return;
        }
        r->open = true;
        r->got = 0;
    }
    if (r->cut != ANS_OK && f->seq == r->seq) {
        remote_send_nak(c, r->q, f, r->cut, 0);
        r->cut = ANS_OK;
    }
    if (!r->open || r->got != f->offset || r->r.length != f->total)
        return;
    set_sink_destination(c, r, f);
}

static bool remote_writes_to_region(const struct landing *l, const struct sh_mr *s)
{
    for (int i = 0; i < l->nseg; i++)
        if (l->seg[i].mr == s)
            return true;
    return false;
}

/* Handles a region that is deregistered while a message arrives in it: the QP fails as for a wrong key. The
 * sender gets a NAK at once or, if the connection is broken, in answer to its next piece. */
void remote_drop_message_to_region(struct remote *r, const struct sh_mr *s)
{
    if (!r->open || !remote_writes_to_region(&r->l, s))
        return;
    struct conn *c = r->from;
    struct frame f = {.qp_type = r->r.type,
                      .opcode = r->r.opcode,
                      .seq = r->seq,
                      .src_qpn = r->r.src_qpn,
                      .dst_qpn = qp_to_ibv(r->q)->qp_num,
                      .slid = r->r.slid,
                      .dlid = r->r.dlid};
    bool write = r->r.opcode == IBV_WR_RDMA_WRITE || r->r.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    r->cut = write ? ANS_ACCESS : ANS_OP;
    if (write && is_reliable(r->q))
        target_fail(&r->t, IBV_EVENT_QP_ACCESS_ERR);
    close_message(r, false);
    if (c && !c->broken) {
        remote_send_nak(c, r->q, &f, r->cut, 0);
        r->cut = ANS_OK;
    }
}

void remote_data_done(struct conn *c, struct remote *r)
{
    const struct frame *f = &c->in;
    if (!r->open)
        return;
    r->got = f->offset + f->length;
    uint32_t mtu = (uint32_t)r->q->attr.path_mtu;
    port_count(r->q->linear, CNT_RX_PACKETS, count_packets(f->length, mtu));
    port_count(r->q->linear, CNT_RX_BYTES, f->length);
    conn_received(c, r->q->linear, f->length);
    if (r->got != f->total)
        return;
    uint32_t timer = 0;
    enum answer a = r->stage ? deliver_stage(r, &timer) : ANS_OK;
    if (a != ANS_OK) {
        remote_send_nak(c, r->q, f, a, timer);
        return;
    }
    close_message(r, true);
    r->expect = (f->seq + 1) & SEQ_MASK;
    remote_send_ack(c, r->q, f);
}

void read_job_free(struct read_job *j)
{
    free(j->copy);
    free(j);
}

/* Copies the data of an RDMA READ if it is in another process's memory. */
static enum answer copy_source(const struct target *t, struct read_job *j, uint32_t length)
{
    if (t->memory->self || !length)
        return ANS_OK;
    j->copy = malloc(length);
    struct iovec iov = {j->copy, length};
    bool ok = j->copy && copy_from_peer(t->memory, &j->src, 1, &iov, 1, length);
    mr_release(&j->src);
    j->src = (struct rseg){.map = j->copy, .len = length};
    return ok ? ANS_OK : ANS_OP;
}

static void read_frame(struct conn *c, struct remote *r, const struct frame *f)
{
    struct request req;
    struct target t;
    struct read_job *j = calloc(1, sizeof(*j));
    remote_decode_request(f, &req);
    if (!j || target_find(proc.self, f->dst_qpn, &req, &t) != ANS_OK) {
        free(j);
        return;
    }
    enum answer a = target_find_memory(&t, &req, f->total, IBV_ACCESS_REMOTE_READ, &j->src);
    if (a == ANS_OK)
        a = copy_source(&t, j, f->total);
    target_release(&t);
    if (a != ANS_OK) {
        read_job_free(j);
        remote_send_nak(c, r->q, f, a, 0);
        return;
    }
    fill_reply_frame(f, FRAME_READ_DATA, &j->head);
    j->head.total = f->total;
    j->q = r->q;
    struct read_job **p = &c->jobs;
    while (*p)
        p = &(*p)->next;
    *p = j;
    c->njobs++;
    if (f->seq == r->expect)
        r->expect = (r->expect + 1) & SEQ_MASK;
    port_count(r->q->linear, CNT_TX_BYTES, f->total);
    port_count(r->q->linear, CNT_TX_PACKETS, count_packets(f->total, (uint32_t)r->q->attr.path_mtu));
}

static void atomic_reply(struct conn *c, const struct frame *f, uint64_t old)
{
    struct frame a;
    uint64_t be = htobe64(old);
    fill_reply_frame(f, FRAME_ATOMIC_RESULT, &a);
    a.length = a.total = 8;
    conn_reply(c, &a, &be);
}

/* Answers a repeated atomic with its first result: it must not be executed twice. */
static bool remote_repeat_atomic(struct conn *c, struct remote *r, const struct frame *f)
{
    unsigned n = r->atomics < MAX_RD_ATOM ? r->atomics : MAX_RD_ATOM;
    for (unsigned i = 0; i < n; i++)
        if (r->atomic_seq[i] == f->seq) {
            atomic_reply(c, f, r->atomic_old[i]);
            return true;
        }
    return false;
}

void remote_atomic_done(struct conn *c, struct remote *r)
{
    const struct frame *f = &c->in;
    struct request req;
    struct target t;
    struct rseg s;
    uint64_t operands[2], old;
    if (f->seq != r->expect) {
        remote_repeat_atomic(c, r, f);
        return;
    }
    memcpy(operands, c->sink.small, 16);
    remote_decode_request(f, &req);
    if (target_find(proc.self, f->dst_qpn, &req, &t) != ANS_OK)
        return;
    enum answer a = target_find_memory(&t, &req, 8, IBV_ACCESS_REMOTE_ATOMIC, &s);
    if (a == ANS_OK) {
        a = copy_atomic(t.memory, &s, f->opcode == IBV_WR_ATOMIC_CMP_AND_SWP, be64toh(operands[0]),
                        be64toh(operands[1]), &old)
                ? ANS_OK
                : ANS_OP;
        mr_release(&s);
    }
    target_release(&t);
    if (a != ANS_OK) {
        remote_send_nak(c, r->q, f, a, 0);
        return;
    }
    r->atomic_seq[r->atomics % MAX_RD_ATOM] = f->seq;
    r->atomic_old[r->atomics++ % MAX_RD_ATOM] = old;
    r->expect = (r->expect + 1) & SEQ_MASK;
    atomic_reply(c, f, old);
}

/* Handles a request frame, which is the next in sequence, a repetition, or behind a gap. */
void remote_request_frame(struct conn *c, struct remote *r, const struct frame *f)
{
    uint32_t ahead = seq_diff(f->seq, r->expect);
    bool old = ahead > SEQ_MASK / 2;
    if (!is_reliable(r->q)) { /* UC: messages were lost; continues with the next message */
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
            remote_send_ack(c, r->q, f);
    } else if (!ahead) {
        data_frame(c, r, f);
    }
}
