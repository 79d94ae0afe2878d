/* call.c: connects to several addresses at the same time, because it is unknown in advance which network is
 * the right one. Addresses of this host itself are left out, because a process that answers there is on this
 * host; the loopback address is tried only when no other address reaches mpiexec, for agents on the same
 * machine. When the other end closes the connection the agent tries again, since too many callers (door.c)
 * may have displaced it. An address whose process cannot prove itself is not tried again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "remote/call.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/address.h"
#include "remote/link.h"

#define ADDRESSES_MAX 32
#define CALL_MS       30000
#define AGAIN_MS      100

enum line_state { LINE_OVER, LINE_AGAIN, LINE_CALLING, LINE_GREETED };

struct line {
    char address[64];
    enum line_state state;
    int fd;
    uint64_t again_at; /* now_ms, of LINE_AGAIN */
    struct hello hello;
    char in[FRAME_HEADER + GREETING_MAX];
    size_t got;
};

struct caller {
    struct line lines[ADDRESSES_MAX];
    int n;
    const char *port, *cookie, *who;
    bool stranger; /* a peer answered that does not know the cookie */
    char stranger_at[64];
    struct call *out;
};

static void close_line(struct line *l, enum line_state state)
{
    close(l->fd);
    l->fd = -1;
    l->state = state;
    l->again_at = now_ms() + AGAIN_MS;
}

static void line_start_connect(struct caller *c, struct line *l)
{
    l->got = 0;
    l->fd = address_start_connect(l->address, c->port);
    l->state = l->fd >= 0 ? LINE_CALLING : LINE_OVER;
}

static bool send_frame(int fd, enum frame type, const void *data, size_t len)
{
    struct buf out = {0};
    link_frame(&out, &(struct frame_head){type, 0, 0, len}, data);
    /* A new connection has room for one short message. */
    bool ok = send(fd, buf_head(&out), buf_size(&out), MSG_NOSIGNAL) == (ssize_t)buf_size(&out);
    buf_free(&out);
    return ok;
}

static void send_hello(struct caller *c, struct line *l)
{
    int error = 0;
    socklen_t len = sizeof(error);
    struct buf hello = {0};
    getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error) {
        close_line(l, LINE_OVER);
        return;
    }
    l->hello = (struct hello){{0}};
    proof_random(l->hello.nonce, sizeof(l->hello.nonce));
    snprintf(l->hello.who, sizeof(l->hello.who), "%s", c->who);
    snprintf(l->hello.version, sizeof(l->hello.version), "%s", FISHPLATE_VERSION);
    proof_hello_encode(&l->hello, &hello);
    l->state = LINE_GREETED;
    if (!send_frame(l->fd, FRAME_HELLO, buf_head(&hello), buf_size(&hello)))
        close_line(l, LINE_AGAIN);
    buf_free(&hello);
}

/* Does the answer prove that the other end knows the cookie? */
static bool line_check_challenge(const struct caller *c, const struct line *l, const struct frame_head *h,
                                 struct session *out)
{
    struct challenge challenge;
    if (h->type != FRAME_CHALLENGE || !proof_challenge_decode(l->in + FRAME_HEADER, h->len, &challenge))
        return false;
    proof_session(c->cookie, &l->hello, challenge.nonce, out);
    return secret_equal(challenge.code, out->mpiexec_code, sizeof(challenge.code));
}

/* True: this is the one. */
static bool line_read_frame(struct caller *c, struct line *l)
{
    struct frame_head h;
    struct session session;
    /* Read one frame at a time: later bytes belong to the link. */
    size_t want = l->got < FRAME_HEADER ? FRAME_HEADER : l->got;
    if (l->got >= FRAME_HEADER && link_parse(l->in, l->got, GREETING_MAX, &h) == LINK_MORE)
        want = FRAME_HEADER + h.len;
    ssize_t n = recv(l->fd, l->in + l->got, want - l->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        close_line(l, LINE_AGAIN);
        return false;
    }
    l->got += (size_t)n;
    enum link_parsed parsed = link_parse(l->in, l->got, GREETING_MAX, &h);
    if (parsed == LINK_MORE)
        return false;
    if (parsed == LINK_BAD || !line_check_challenge(c, l, &h, &session)) {
        c->stranger = true;
        snprintf(c->stranger_at, sizeof(c->stranger_at), "%s", l->address);
        close_line(l, LINE_OVER);
        return false;
    }
    if (!send_frame(l->fd, FRAME_PROOF, session.agent_code, sizeof(session.agent_code))) {
        close_line(l, LINE_AGAIN);
        return false;
    }
    c->out->fd = l->fd;
    c->out->session = session;
    l->fd = -1;
    l->state = LINE_OVER;
    return true;
}

/* Repeats calls that are due; returns the time to wait in ms, or -1 if no line is left. */
static int caller_prepare_poll(struct caller *c, struct pollfd *p, uint64_t end)
{
    uint64_t now = now_ms(), next = end;
    bool any = false;
    for (int i = 0; i < c->n; i++) {
        struct line *l = &c->lines[i];
        if (l->state == LINE_AGAIN && l->again_at <= now)
            line_start_connect(c, l);
        if (l->state == LINE_AGAIN && l->again_at < next)
            next = l->again_at;
        any = any || l->state != LINE_OVER;
        p[i] = (struct pollfd){.fd = l->fd, .events = l->state == LINE_CALLING ? POLLOUT : POLLIN};
    }
    return !any || now >= end ? -1 : (int)(next > now ? next - now : 0);
}

static bool caller_poll_lines(struct caller *c)
{
    struct pollfd p[ADDRESSES_MAX];
    uint64_t end = now_ms() + CALL_MS;
    bool found = false;
    for (int i = 0; i < c->n; i++)
        line_start_connect(c, &c->lines[i]);
    for (int wait; !found && (wait = caller_prepare_poll(c, p, end)) >= 0;) {
        if (poll(p, (nfds_t)c->n, wait) <= 0)
            continue;
        for (int i = 0; i < c->n && !found; i++) {
            if (p[i].fd < 0 || !p[i].revents)
                continue;
            if (c->lines[i].state == LINE_CALLING)
                send_hello(c, &c->lines[i]);
            else
                found = line_read_frame(c, &c->lines[i]);
        }
    }
    for (int i = 0; i < c->n; i++)
        if (c->lines[i].fd >= 0)
            close_line(&c->lines[i], LINE_OVER);
    return found;
}

static void add_line(struct caller *c, const char *address)
{
    if (c->n == ADDRESSES_MAX)
        return;
    struct line *l = &c->lines[c->n++];
    *l = (struct line){.fd = -1};
    snprintf(l->address, sizeof(l->address), "%s", address);
}

void call_mpiexec(const char *addresses, const char *port, const char *cookie, const char *who,
                  struct call *out)
{
    struct caller c = {.port = port, .cookie = cookie, .who = who, .out = out};
    char *copy = xstrdup(addresses), *save = NULL;
    bool loopback = false;
    for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        if (address_is_loopback(w))
            loopback = true;
        else if (!address_is_own(w))
            add_line(&c, w);
    }
    free(copy);
    bool found = caller_poll_lines(&c);
    if (!found && loopback) {
        c.n = 0;
        add_line(&c, ADDRESS_LOOPBACK);
        found = caller_poll_lines(&c);
    }
    if (!found && c.stranger)
        launcher_die(
            1,
            "The process that answers at %s, port %s, cannot prove that it is the mpiexec that started this "
            "agent. "
            "Nothing was started here, and no data was sent to it.",
            c.stranger_at, port);
    if (!found)
        launcher_die(1, "mpiexec cannot be reached from here at any of its addresses %s, port %s.", addresses,
                     port);
}
