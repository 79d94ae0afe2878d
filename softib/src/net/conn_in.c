/* conn_in.c: input of a connection: decodes frames and stores payloads. The number of unanswered requests
 * is limited: while too many answers wait to be sent, no input is read.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/conn.h"
#include "base/dma.h"
#include "memory/copy.h"
#include <sys/epoll.h>
#include <sys/socket.h>

static bool conn_read_some(struct conn *c, void *buf, size_t n, size_t *got)
{
    dma_begin(); /* `buf` may be memory of the program */
    ssize_t r = recv(c->fd, buf, n, MSG_DONTWAIT);
    dma_end();
    *got = r > 0 ? (size_t)r : 0;
    if (r > 0)
        return true;
    if (r == 0 || (errno != EAGAIN && errno != EINTR))
        conn_mark_broken(c);
    return false;
}

/* Stores received bytes at their destination. `last`: they include the final byte of a message, which is
 * stored last. */
static void sink_store_bytes(struct sink *s, const uint8_t *p, size_t n, bool last)
{
    while (n) {
        size_t step = n;
        if (s->kind == SINK_SMALL) {
            memcpy(s->small + s->small_have, p, n);
            s->small_have += (uint32_t)n;
        } else if (s->kind != SINK_DROP) {
            struct iovec *v = &s->iov[s->at];
            step = n < v->iov_len ? n : v->iov_len;
            if (last && step == n)
                copy_last_byte_last(v->iov_base, (const char *)p, step);
            else {
                dma_begin();
                memcpy(v->iov_base, p, step);
                dma_end();
            }
            v->iov_base = (char *)v->iov_base + step;
            v->iov_len -= step;
            s->at += !v->iov_len;
        }
        p += step;
        n -= step;
    }
}

/* Reads the bulk of a large payload directly to its destination. The last byte is read through the buffer. */
static bool read_direct(struct conn *c)
{
    size_t want = c->in_left - 1, got;
    struct sink *s = &c->sink;
    if (s->kind == SINK_DROP || s->kind == SINK_SMALL || want < 4096)
        return false;
    struct iovec *v = &s->iov[s->at];
    if (!v->iov_len || !conn_read_some(c, v->iov_base, v->iov_len < want ? v->iov_len : want, &got))
        return false;
    v->iov_base = (char *)v->iov_base + got;
    v->iov_len -= got;
    s->at += !v->iov_len;
    c->in_left -= (uint32_t)got;
    return true;
}

static void conn_take_payload(struct conn *c)
{
    size_t n = c->rx_end - c->rx_at;
    n = n < c->in_left ? n : c->in_left;
    bool last = n == c->in_left && c->in.offset + c->in.length == c->in.total;
    sink_store_bytes(&c->sink, c->rx + c->rx_at, n, last);
    c->rx_at += n;
    c->in_left -= (uint32_t)n;
}

static bool is_tcp_frame(uint8_t type)
{
    return type < FRAME_DATAGRAM_DATA || type == FRAME_PING || type == FRAME_PONG;
}

static void conn_send_pong(struct conn *c)
{
    struct frame f = c->in;
    f.type = FRAME_PONG;
    f.dst_qpn = c->in.src_qpn;
    f.src_qpn = c->in.dst_qpn;
    f.slid = c->in.dlid;
    f.dlid = c->in.slid;
    conn_reply(c, &f, NULL);
}

/* Handles the next part of the buffered bytes. Returns false if more bytes are needed. */
static bool conn_parse_one(struct conn *c)
{
    if (!c->in_payload) {
        if (c->rx_end - c->rx_at < FRAME_BYTES)
            return false;
        if (!frame_decode(c->rx + c->rx_at, net_fabric(), &c->in) || !is_tcp_frame(c->in.type)) {
            port_count(fabric_port_index(&proc.fab, proc.fab.node, 0, 1), CNT_BAD_FRAMES, 1);
            conn_mark_broken(c);
            return false;
        }
        c->rx_at += FRAME_BYTES;
        c->in_payload = true;
        c->in_left = c->in.length;
        c->sink.kind = SINK_DROP;
        c->sink.n = c->sink.at = 0;
        c->sink.small_have = 0;
        if (c->in.type == FRAME_PING)
            conn_send_pong(c);
        else if (c->in.type == FRAME_PONG)
            c->pong = c->in.seq;
        else
            conn_user->frame(c);
    }
    if (c->in_left && c->rx_at == c->rx_end)
        return false;
    conn_take_payload(c);
    if (c->in_left)
        return false;
    c->in_payload = false;
    conn_user->payload(c);
    return true;
}

void conn_parse(struct conn *c)
{
    while (!c->broken && !c->rx_pause && !conn_is_congested(c) && conn_parse_one(c))
        conn_hot = c;
}

/* Stops reading until the pending answers have been sent; conn_send resumes it. */
static void stop_reading(struct conn *c)
{
    if (c->rx_full || c->broken)
        return;
    c->rx_full = true;
    conn_update_watch(c);
}

void conn_receive(struct conn *c)
{
    /* The number of rounds is limited, so that a busy connection does not hold the lock for long. Bytes
     * already read are parsed before returning, since no further event reports them; only the port's rate and
     * pending replies stop parsing. */
    for (int rounds = 0; rounds < 64 && !c->broken && !c->rx_pause && !conn_is_congested(c); rounds++) {
        size_t got;
        if (c->in_payload && c->rx_at == c->rx_end && read_direct(c))
            continue;
        memmove(c->rx, c->rx + c->rx_at, c->rx_end - c->rx_at);
        c->rx_end -= c->rx_at;
        c->rx_at = 0;
        if (c->broken || !conn_read_some(c, c->rx + c->rx_end, CONN_BUFFER - c->rx_end, &got))
            break;
        c->rx_end += got;
        bool drained = c->rx_end < CONN_BUFFER;
        conn_parse(c);
        if (drained && !c->in_payload)
            break; /* the socket is empty */
    }
    /* A polling program will receive the message soon and then poll or answer: the acknowledgement waits
     * for that and is often sent with the answer. */
    if (UNLIKELY(conn_is_congested(c)))
        stop_reading(c);
    if (c->ack_q && !c->ack_lazy && net_loop_is_aside() && !c->ctrl_len && !c->jobs)
        conn_delay_ack(c);
    else if (!c->ack_lazy)
        conn_flush_ack(c);
    if (!c->broken && (c->ctrl_len || c->jobs || c->active))
        conn_send(c);
}
