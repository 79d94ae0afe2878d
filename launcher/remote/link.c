/* link.c: framing over a socket. Lengths, types and authentication codes are checked before a frame is used.
 * Until the other end has proved that it knows the cookie it may send only a few bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "remote/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAYLOAD_MAX (64u << 20)
#define BEATS       4 /* missed heartbeats after which the peer counts as lost */
#define BEAT_MAX    (86400u * 1000 / BEATS)

static void link_fail(struct link *k, const char *why)
{
    link_close(k);
    k->closed(k->ctx, why);
}

static void link_write_queued(struct link *k)
{
    const int error = k->w.fd >= 0 ? buf_write(&k->out, k->w.fd) : 0;
    if (error && error != EAGAIN)
        buf_consume(&k->out, buf_size(&k->out)); /* the read handler reports the error */
    loop_change_events(k->loop, &k->w, buf_size(&k->out) > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static uint32_t link_decode_word(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return ntohl(v);
}

enum link_parsed link_parse(const char *data, size_t size, size_t max, struct frame_head *out)
{
    if (size < FRAME_HEADER)
        return LINK_MORE;
    uint32_t len = link_decode_word(data), type = link_decode_word(data + 4);
    if (type < FRAME_HELLO || type > FRAME_LAST || len > max)
        return LINK_BAD;
    *out =
        (struct frame_head){(enum frame)type, link_decode_word(data + 8), link_decode_word(data + 12), len};
    return size - FRAME_HEADER < len ? LINK_MORE : LINK_FRAME;
}

/* Counts missed heartbeats instead of elapsed time: a process that was stopped or had no processor sees
 * one late timer, then reads the bytes that arrived in between, and does not declare its peers lost. */
static void link_on_beat(void *ctx)
{
    struct link *k = ctx;
    k->silent = k->has_received ? 0 : k->silent + 1;
    k->has_received = false;
    if (k->silent >= BEATS) {
        char why[128];
        snprintf(why, sizeof(why), "no heartbeat arrived from it for %g seconds (-heartbeat)",
                 k->beat_ms * BEATS / 1000.0);
        link_fail(k, why);
        return;
    }
    loop_set_timer(k->loop, &k->beat, k->beat_ms);
    if (buf_size(&k->out) == 0) /* queued frames serve as a heartbeat */
        link_send_u32(k, FRAME_BEAT, 0, 0, k->beat_ms);
}

static void start_heartbeat(struct link *k, uint32_t ms)
{
    int off = 0;
    if (k->beat_ms || ms == 0 || ms > BEAT_MAX)
        return;
    k->beat_ms = ms;
    k->has_received = true;
    k->beat = (struct timer){.fn = link_on_beat, .ctx = k};
    setsockopt(k->w.fd, SOL_SOCKET, SO_KEEPALIVE, &off, sizeof(off)); /* heartbeats replace TCP keepalive */
    link_on_beat(k);
}

void link_start_heartbeat(struct link *k, uint32_t seconds)
{
    start_heartbeat(k, seconds * (1000 / BEATS));
}

static void link_dispatch_frame(struct link *k, const struct frame_head *h, const char *data)
{
    uint32_t ms = 0;
    if (k->sealed && h->type == FRAME_BEAT && link_read_u32(data, h->len, &ms))
        start_heartbeat(k, ms);
    else
        k->frame(k->ctx, h, data);
}

/* Checks and dispatches every whole frame received. */
static void dispatch_received_frames(struct link *k)
{
    while (k->w.fd >= 0 && buf_size(&k->in) > 0) {
        const char *head = buf_head(&k->in), *data = head + FRAME_HEADER;
        struct frame_head h;
        enum link_parsed got = link_parse(head, buf_size(&k->in), k->sealed ? PAYLOAD_MAX : GREETING_MAX, &h);
        if (got == LINK_BAD) {
            link_fail(k, "it sent bytes that are not a frame of mpiexec");
            return;
        }
        if (got == LINK_MORE)
            return;
        size_t size = FRAME_HEADER + h.len + (k->sealed ? SEAL_SIZE : 0);
        if (buf_size(&k->in) < size)
            return;
        if (k->sealed && !seal_check(&k->seal_in, head, FRAME_HEADER, data, h.len, data + h.len)) {
            link_fail(k, "a frame was forged, or changed on the network");
            return;
        }
        link_dispatch_frame(k, &h, data);
        if (k->w.fd >= 0)
            buf_consume(&k->in, size);
    }
}

/* Returns how many bytes to read: from a peer that has not proved itself no more than one greeting. */
static size_t link_receive_limit(const struct link *k, size_t most)
{
    size_t left = FRAME_HEADER + GREETING_MAX - buf_size(&k->in);
    return k->sealed || left > most ? most : left;
}

static void link_on_event(void *ctx, uint32_t events)
{
    static char data[65536];
    struct link *k = ctx;
    if (events & EPOLLOUT) {
        link_write_queued(k);
        if (buf_size(&k->out) == 0 && k->drained)
            k->drained(k->ctx);
    }
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)) || k->w.fd < 0)
        return;
    ssize_t n = recv(k->w.fd, data, link_receive_limit(k, sizeof(data)), MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        link_fail(k, n == 0 ? "the connection was closed" : strerror(errno));
        return;
    }
    k->has_received = true;
    buf_add(&k->in, data, (size_t)n);
    dispatch_received_frames(k);
}

void link_open(struct link *k, struct loop *l, int fd)
{
    int one = 1, idle = 10, tries = 3;
    k->loop = l;
    k->w = (struct watch){.fd = -1, .fn = link_on_event, .ctx = k};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    /* Until heartbeats start, TCP keepalive detects a dead host: first probe after 10 s, three tries. */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
    loop_add(l, &k->w, fd, EPOLLIN);
}

void link_shutdown_send(struct link *k)
{
    if (k->w.fd >= 0)
        shutdown(k->w.fd, SHUT_WR);
}

void link_close(struct link *k)
{
    if (k->loop) {
        loop_cancel_timer(k->loop, &k->beat);
        loop_close(k->loop, &k->w);
    }
    buf_free(&k->out);
}

void link_start_authentication(struct link *k, const uint8_t key_in[SHA256_SIZE],
                               const uint8_t key_out[SHA256_SIZE])
{
    seal_init(&k->seal_in, key_in);
    seal_init(&k->seal_out, key_out);
    k->sealed = true;
}

static void encode_head(const struct frame_head *h, uint32_t head[4])
{
    head[0] = htonl((uint32_t)h->len);
    head[1] = htonl(h->type);
    head[2] = htonl(h->host);
    head[3] = htonl(h->rank);
}

void link_append_frame(struct buf *out, const struct frame_head *h, const void *data)
{
    uint32_t head[4];
    encode_head(h, head);
    buf_add(out, head, sizeof(head));
    buf_add(out, data, h->len);
}

static void link_queue_frame(struct link *k, const struct frame_head *h, const void *data)
{
    uint8_t code[SEAL_SIZE];
    uint32_t head[4];
    link_append_frame(&k->out, h, data);
    if (!k->sealed)
        return;
    encode_head(h, head);
    seal_compute_next(&k->seal_out, head, sizeof(head), data, h->len, code);
    buf_add(&k->out, code, sizeof(code));
}

void link_send(struct link *k, const struct frame_head *h, const void *data)
{
    if (k->w.fd < 0)
        return;
    link_queue_frame(k, h, data);
    link_write_queued(k);
}

void link_send_frames(struct link *k, struct buf *frames)
{
    struct frame_head h;
    while (k->w.fd >= 0 && buf_size(frames) > 0 &&
           link_parse(buf_head(frames), buf_size(frames), UINT32_MAX, &h) == LINK_FRAME) {
        link_queue_frame(k, &h, buf_head(frames) + FRAME_HEADER);
        buf_consume(frames, FRAME_HEADER + h.len);
    }
    link_write_queued(k);
    buf_free(frames);
}

void link_send_u32(struct link *k, enum frame type, uint32_t host, uint32_t rank, uint32_t value)
{
    value = htonl(value);
    link_send(k, &(struct frame_head){type, host, rank, sizeof(value)}, &value);
}

bool link_read_u32(const char *data, size_t len, uint32_t *out)
{
    if (len < sizeof(*out))
        return false;
    *out = link_decode_word(data);
    return true;
}

void link_flush(struct link *k, uint64_t ms)
{
    uint64_t end = now_ms() + ms;
    for (link_write_queued(k); k->w.fd >= 0 && buf_size(&k->out) > 0 && now_ms() < end;
         link_write_queued(k)) {
        struct pollfd p = {.fd = k->w.fd, .events = POLLOUT};
        poll(&p, 1, (int)(end - now_ms()));
    }
}
