/*
 * Framing over a socket. Lengths and types are checked before anything is believed, and until the other
 * end has shown the cookie it may send almost nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADER       16
#define PAYLOAD_MAX  (64u << 20)
#define GREETING_MAX 256

static void fail(struct link *k, const char *why)
{
    link_close(k);
    k->closed(k->ctx, why);
}

static void flush(struct link *k)
{
    while (k->w.fd >= 0 && buf_size(&k->out) > 0) {
        ssize_t n = send(k->w.fd, buf_head(&k->out), buf_size(&k->out), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            buf_take(&k->out, buf_size(&k->out)); /* the reading side will say why */
        if (n < 0)
            break;
        buf_take(&k->out, (size_t)n);
    }
    loop_change(k->loop, &k->w, buf_size(&k->out) > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static uint32_t word(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return ntohl(v);
}

/* Hands out every whole frame; false when the link is closed by then. */
static bool take_frames(struct link *k)
{
    while (k->w.fd >= 0 && buf_size(&k->in) >= HEADER) {
        const char *head = buf_head(&k->in);
        uint32_t len = word(head), type = word(head + 4);
        struct frame_head h = {(enum frame)type, word(head + 8), word(head + 12), len};
        if (type < FRAME_HELLO || type > FRAME_LAST || len > (k->greeted ? PAYLOAD_MAX : GREETING_MAX)) {
            fail(k, "it sent something that is not ours");
            return false;
        }
        if (buf_size(&k->in) < HEADER + len)
            break;
        k->frame(k->ctx, &h, head + HEADER);
        if (k->w.fd < 0)
            return false;
        buf_take(&k->in, HEADER + len);
    }
    return k->w.fd >= 0;
}

static void on_event(void *ctx, uint32_t events)
{
    static char data[65536];
    struct link *k = ctx;
    if (events & EPOLLOUT) {
        flush(k);
        if (buf_size(&k->out) == 0 && k->drained)
            k->drained(k->ctx);
    }
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)) || k->w.fd < 0)
        return;
    ssize_t n = recv(k->w.fd, data, sizeof data, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        fail(k, n == 0 ? "the connection was closed" : strerror(errno));
        return;
    }
    buf_add(&k->in, data, (size_t)n);
    take_frames(k);
}

void link_open(struct link *k, struct loop *l, int fd)
{
    int one = 1, idle = 10, tries = 3;
    k->loop = l;
    k->w = (struct watch){.fd = -1, .fn = on_event, .ctx = k};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    /* A host that loses power says nothing: ask after ten seconds of silence, give up after three tries. */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof tries);
    loop_add(l, &k->w, fd, EPOLLIN);
}

void link_close(struct link *k)
{
    if (k->loop)
        loop_close(k->loop, &k->w);
}

void link_frame(struct buf *out, const struct frame_head *h, const void *data)
{
    uint32_t head[4] = {htonl((uint32_t)h->len), htonl(h->type), htonl(h->host), htonl(h->rank)};
    buf_add(out, head, sizeof head);
    buf_add(out, data, h->len);
}

void link_send(struct link *k, const struct frame_head *h, const void *data)
{
    if (k->w.fd < 0)
        return;
    link_frame(&k->out, h, data);
    flush(k);
}

void link_send_frames(struct link *k, struct buf *frames)
{
    if (buf_size(frames) > 0 && k->w.fd >= 0) {
        buf_add(&k->out, buf_head(frames), buf_size(frames));
        flush(k);
    }
    buf_free(frames);
}

void link_send_u32(struct link *k, enum frame type, uint32_t host, uint32_t rank, uint32_t value)
{
    value = htonl(value);
    link_send(k, &(struct frame_head){type, host, rank, sizeof value}, &value);
}

bool link_u32(const char *data, size_t len, uint32_t *out)
{
    if (len < sizeof *out)
        return false;
    *out = word(data);
    return true;
}

void link_flush(struct link *k, uint64_t ms)
{
    uint64_t end = now_ms() + ms;
    for (flush(k); k->w.fd >= 0 && buf_size(&k->out) > 0 && now_ms() < end; flush(k)) {
        struct pollfd p = {.fd = k->w.fd, .events = POLLOUT};
        poll(&p, 1, (int)(end - now_ms()));
    }
}
