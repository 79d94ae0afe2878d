/* remote.c: connected QPs between machines: their list, dispatch of frames to requester and responder, and
 * the end of transfers when a connection breaks or a QP fails. See remote.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/remote.h"
#include "hca/wire.h"
#include <stdlib.h>

/* Every connected QP of this process, as a list and by the index in its number; under the lock of this
 * wire. */
static struct remote *remotes, *by_index[QP_MAX];

/* True if the destination port, possibly that of an alternate path, belongs to this node and is up. */
static bool remote_is_destination(uint16_t dlid)
{
    struct fab_place at;
    return fabric_find_lid(&proc.fab, dlid, &at) && at.node == proc.fab.node && port_up(at.linear);
}

/* The destination QP of a frame, if it is connected to a QP of the peer of this connection. */
static struct remote *remote_find_target(const struct conn *c, const struct frame *f)
{
    struct remote *r = by_index[f->dst_qpn & (QP_MAX - 1)];
    if (r && r->node == c->node && r->slot == c->slot && qp_to_ibv(r->q)->qp_num == f->dst_qpn &&
        r->q->attr.dest_qp_num == f->src_qpn && qp_to_ibv(r->q)->qp_type == f->qp_type &&
        remote_is_destination(f->dlid))
        return r;
    port_count(fabric_port_index(&proc.fab, proc.fab.node, 0, 1), CNT_RX_DROPS, 1);
    return NULL;
}

void remote_handle_frame(struct conn *c)
{
    const struct frame *f = &c->in;
    struct remote *r = remote_find_target(c, f);
    if (!r)
        return;
    switch (f->type) {
    case FRAME_DATA:
    case FRAME_READ:
    case FRAME_ATOMIC:
        remote_request_frame(c, r, f);
        break;
    case FRAME_ACK:
        remote_on_ack(r, f);
        break;
    case FRAME_NAK:
        remote_on_nak(r, f);
        break;
    default:
        remote_answer_frame(c, r, f);
        break;
    }
}

void remote_handle_payload(struct conn *c)
{
    if (c->sink.kind == SINK_DROP || !c->sink.q || !c->sink.q->remote)
        return;
    struct remote *r = c->sink.q->remote;
    if (c->in.type == FRAME_DATA)
        remote_data_done(c, r);
    else if (c->in.type == FRAME_ATOMIC)
        remote_atomic_done(c, r);
    else
        remote_answer_done(c, r);
}

bool remote_attach(struct qp *q, uint32_t node)
{
    struct remote *r = calloc(1, sizeof(*r));
    if (!r)
        return false;
    r->q = q;
    r->node = node;
    r->to = (uint32_t)(q->path.dlid >> proc.fab.lmc) - 1;
    r->slot = q->attr.dest_qp_num >> QP_BITS;
    r->expect = q->attr.rq_psn & SEQ_MASK;
    net_lock();
    r->next = remotes;
    remotes = r;
    by_index[q->idx] = r;
    q->remote = r;
    q->wire = wire_far;
    net_unlock();
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
        c->njobs--;
        read_job_free(j);
    }
}

/* Detaches a QP from a connection. The rest of a partly sent frame is sent from a copy, since the program
 * may reuse the memory. */
static void remote_detach_conn(struct conn *c)
{
    size_t left = 0;
    if (c->out_copy)
        return;
    for (int i = c->out_at; i < c->out_n; i++)
        left += c->out[i].iov_len;
    char *copy = left ? malloc(left) : NULL, *at = copy;
    if (left && !copy) {
        conn_mark_broken(c);
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

void remote_stop_transfers(struct qp *q)
{
    struct remote *r = q->remote;
    if (!r)
        return;
    for (struct conn *c = conns; c; c = c->next) {
        if (c->out_q == q)
            remote_detach_conn(c);
        if (c->sink.q == q) {
            c->sink.kind = SINK_DROP;
            c->sink.q = NULL;
        }
        drop_jobs(c, q);
    }
    r->reap_after = false;
    remote_abandon(r, true);
}

/* --- a region that is deregistered --- */

static bool sends_from_region(const struct conn *c, const struct sh_mr *s)
{
    for (int i = c->out_at; i < c->out_n; i++) {
        uint64_t at = (uintptr_t)c->out[i].iov_base;
        if (at < s->addr + s->length && s->addr < at + c->out[i].iov_len)
            return true;
    }
    return false;
}

/* Rejects pending answers to RDMA READs of the region, like requests after the deregistration. */
static void refuse_pending_reads(struct conn *c, const struct sh_mr *s)
{
    for (struct read_job **p = &c->jobs, *j; (j = *p);) {
        if (j->src.mr != s) {
            p = &j->next;
            continue;
        }
        struct target t = {.owner = proc.self, .qp = j->q->sh};
        struct frame f = j->head;
        f.type = FRAME_NAK;
        f.total = f.length = f.offset = 0;
        f.arg = ANS_ACCESS;
        conn_reply(c, &f, NULL);
        target_fail(&t, IBV_EVENT_QP_ACCESS_ERR);
        *p = j->next;
        c->njobs--;
        read_job_free(j);
    }
}

/* Ends all transfers to and from the region. Its memory is not accessed afterwards. */
void remote_end_region_transfers(struct sh_mr *s)
{
    for (struct conn *c = conns; c; c = c->next) {
        if (sends_from_region(c, s))
            remote_detach_conn(c);
        refuse_pending_reads(c, s);
        if (c->sink.kind == SINK_ANSWER && c->sink.q && c->sink.q->remote)
            remote_drop_answer_to_region(c, c->sink.q->remote);
    }
    for (struct remote *r = remotes; r; r = r->next)
        remote_drop_message_to_region(r, s);
    for (struct conn *c = conns; c; c = c->next)
        if (!c->broken && c->ctrl_len)
            conn_send(c);
}

/* Removes the QP from the send lists of all connections. */
static void remote_deactivate(const struct remote *r)
{
    for (struct conn *c = conns; c; c = c->next) {
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
}

/* Called when the QP uses another path: frames on the old connection may or may not arrive, and everything
 * is sent again. */
void remote_path_changed(struct qp *q)
{
    struct remote *r = q->remote;
    for (struct conn *c = conns; c; c = c->next)
        if (c->out_q == q)
            remote_detach_conn(c);
    remote_deactivate(r);
    r->active = false;
    r->conn = NULL;
    r->probe = 0;
    r->to = (uint32_t)(q->path.dlid >> proc.fab.lmc) - 1;
    r->progress_at = now_ns();
    remote_go_back(r);
}

void remote_detach(struct qp *q)
{
    net_lock();
    struct remote *r = q->remote;
    /* An adapter acknowledges every message when it arrives: sends delayed acknowledgements of messages that
     * the program has seen. */
    conn_flush_acks();
    remote_stop_transfers(q);
    for (struct conn *c = conns; c; c = c->next)
        if (c->ack_q == q)
            conn_drop_ack(c);
    remote_deactivate(r);
    for (struct remote **p = &remotes; *p; p = &(*p)->next)
        if (*p == r) {
            *p = r->next;
            break;
        }
    by_index[q->idx] = NULL;
    q->remote = NULL;
    net_unlock();
    free(r);
}

void remote_connection_lost(struct conn *c)
{
    drop_jobs(c, NULL);
    for (struct remote *r = c->active, *next; r; r = next) {
        next = r->active_next;
        r->active = false;
    }
    for (struct remote *r = remotes; r; r = r->next) {
        r->from = r->from == c ? NULL : r->from;
        r->answering = r->answering == c ? NULL : r->answering;
        if (r->conn != c)
            continue;
        r->conn = NULL;
        r->probe = 0;
        if (!is_reliable(r->q))
            remote_unreliable_lost(r, c->connecting);
        else if (r->q->done != r->q->posted)
            remote_arm_ack_timer(r, now_ns());
    }
}
