/* conn_out.c: output of a connection: small frames, answers to RDMA READs in pieces, and the requests of
 * the QPs in turn. An acknowledgement may be delayed for a short time, so that it is sent together with
 * the program's next message.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/conn.h"
#include "base/dma.h"
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static unsigned lazy; /* connections with a delayed acknowledgement */

void conn_delay_ack(struct conn *c)
{
    c->ack_lazy = true;
    lazy++;
}

void conn_drop_ack(struct conn *c)
{
    c->ack_q = NULL;
    lazy -= c->ack_lazy;
    c->ack_lazy = false;
}

void conn_flush_ack(struct conn *c)
{
    /* Uses the connection for requests to that peer, so that the acknowledgement is received before the
     * program's answer, as on InfiniBand. */
    struct remote *r = c->ack_q ? c->ack_q->remote : NULL;
    struct conn *with =
        r && r->conn && !r->conn->broken && !r->conn->connecting && !conn_is_congested(r->conn) ? r->conn : c;
    bool some = c->ack_q != NULL;
    if (some)
        conn_reply(with, &c->ack, NULL);
    conn_drop_ack(c);
    if (some && with != c)
        conn_send(with);
}

void conn_reply(struct conn *c, const struct frame *f, const void *payload)
{
    size_t need = FRAME_BYTES + f->length;
    if (c->ctrl_len + need > c->ctrl_cap) {
        size_t cap = (c->ctrl_cap + need) * 2;
        char *p = realloc(c->ctrl, cap);
        if (!p) {
            conn_mark_broken(c);
            return;
        }
        c->ctrl = p;
        c->ctrl_cap = cap;
    }
    frame_encode(f, net_fabric(), (uint8_t *)c->ctrl + c->ctrl_len);
    if (payload)
        memcpy(c->ctrl + c->ctrl_len + FRAME_BYTES, payload, f->length);
    c->ctrl_len += need;
}

void conn_add_active(struct conn *c, struct remote *r)
{
    if (r->active)
        return;
    r->active = true;
    r->active_next = NULL;
    if (c->active)
        c->active_last->active_next = r;
    else
        c->active = r;
    c->active_last = r;
}

static void conn_watch_writable(struct conn *c, bool on)
{
    if (c->want_out == on)
        return;
    c->want_out = on;
    conn_update_watch(c);
}

static void conn_frame_sent(struct conn *c)
{
    c->out_n = c->out_at = 0;
    c->out_q = NULL;
    free(c->out_copy);
    c->out_copy = NULL;
}

void conn_out_free(struct conn *c)
{
    conn_frame_sent(c);
    free(c->ctrl);
    free(c->ctrl_out);
    conn_drop_ack(c);
}

static bool start_next_read_job(struct conn *c)
{
    struct read_job *j = c->jobs;
    if (!j)
        return false;
    struct frame f = j->head;
    f.offset = j->off;
    f.length = f.total - j->off < FRAME_SEGMENT ? f.total - j->off : FRAME_SEGMENT;
    if (c->tx_pause)
        return false;
    if ((c->tx_pause = port_reserve_time(j->q->linear, true, f.length)))
        /* Only later pieces wait: the port's bucket was not empty before this piece. */
        net_schedule_tick(c->tx_pause);
    frame_encode(&f, net_fabric(), c->head);
    c->out[c->out_n++] = (struct iovec){c->head, FRAME_BYTES};
    if (f.length)
        c->out[c->out_n++] = (struct iovec){j->src.map + j->off, f.length};
    c->out_q = j->q;
    j->off += f.length;
    if (j->off == f.total) {
        c->jobs = j->next;
        c->njobs--;
        c->out_copy = j->copy; /* freed when the last piece was sent */
        free(j);
    }
    return true;
}

/* Selects the next request to send; the QPs take turns, a piece each. */
static bool next_request(struct conn *c)
{
    struct remote *r;
    while ((r = c->active)) {
        c->active = r->active_next;
        r->active = false;
        if (!conn_user->segment(r, c))
            continue;
        conn_add_active(c, r);
        return true;
    }
    return false;
}

static bool conn_write_iov(struct conn *c, struct iovec *iov, int n, size_t *done)
{
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t)n};
    dma_begin();
    ssize_t r = sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    dma_end();
    *done = r > 0 ? (size_t)r : 0;
    if (r < 0 && errno != EAGAIN && errno != EINTR)
        conn_mark_broken(c);
    return r >= 0;
}

/* Writes as much of the frame in c->out as the socket accepts. */
static bool push_frame(struct conn *c)
{
    while (c->out_at < c->out_n) {
        size_t done;
        if (!conn_write_iov(c, &c->out[c->out_at], c->out_n - c->out_at, &done))
            return false;
        while (done) {
            struct iovec *v = &c->out[c->out_at];
            size_t step = done < v->iov_len ? done : v->iov_len;
            v->iov_base = (char *)v->iov_base + step;
            v->iov_len -= step;
            done -= step;
            c->out_at += !v->iov_len;
        }
    }
    conn_frame_sent(c);
    return true;
}

/* Moves the waiting control frames to the front of the next message. */
static void prepend_control_frames(struct conn *c)
{
    if (!c->ctrl_len)
        return;
    char *p = c->ctrl;
    size_t cap = c->ctrl_cap;
    c->ctrl = c->ctrl_out;
    c->ctrl_cap = c->ctrl_out_cap;
    c->ctrl_out = p;
    c->ctrl_out_cap = cap;
    c->out[c->out_n++] = (struct iovec){p, c->ctrl_len};
    c->ctrl_len = 0;
}

void conn_send(struct conn *c)
{
    if (c->connecting || c->broken)
        return;
    bool all = false;
    while (!all && push_frame(c)) {
        /* Answers are sent in the order of their requests: READ data before later acknowledgements. */
        if (!c->jobs)
            prepend_control_frames(c);
        if (!start_next_read_job(c))
            next_request(c);
        all = !c->out_n;
    }
    if (!c->broken)
        conn_watch_writable(c, !all);
    if (UNLIKELY(c->rx_full) && !conn_is_congested(c))
        net_schedule_tick(now_ns()); /* resumes reading */
}

uint32_t conn_send_ping(struct conn *c)
{
    struct frame f = {
        .type = FRAME_PING,
        .qp_type = IBV_QPT_RC,
        .dst_qpn = c->slot << QP_BITS,
        .src_qpn = proc.slot << QP_BITS,
        .slid = fabric_port_lid(&proc.fab, c->linear),
        .dlid = fabric_port_lid(&proc.fab, c->to),
    };
    c->ping = (c->ping + 1) & 0xffffffu;
    c->ping += !c->ping;
    f.seq = c->ping;
    conn_reply(c, &f, NULL);
    conn_send(c);
    return c->ping;
}

static void flush_delayed_acks(void)
{
    for (struct conn *c = lazy ? conns : NULL; c; c = c->next) {
        if (!c->ack_lazy)
            continue;
        conn_flush_ack(c);
        conn_send(c);
    }
}

void conn_piggyback_ack(struct qp *q, struct conn *with)
{
    for (struct conn *c = lazy ? conns : NULL; c; c = c->next)
        if (c->ack_lazy && c->ack_q == q) {
            conn_reply(with, &c->ack, NULL);
            c->ack_q = NULL;
            c->ack_lazy = false;
            lazy--;
        }
}

void conn_flush_acks(void)
{
    if (lazy)
        flush_delayed_acks();
}
