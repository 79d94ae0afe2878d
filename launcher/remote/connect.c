/* connect.c: connects to several addresses at the same time, because it is unknown in advance which network
 * is the right one. Addresses of this host itself are left out, because a process that answers there is on
 * this host; the loopback address is tried only when no other address reaches mpiexec, for agents on the same
 * machine. When the other end closes the connection the agent tries again, since too many callers
 * (listener.c) may have displaced it. An address whose process cannot prove itself is not tried again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "remote/connect.h"

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
#define CONNECT_MS    30000
#define AGAIN_MS      100

enum attempt_state { ATTEMPT_OVER, ATTEMPT_WAITS, ATTEMPT_CONNECTING, ATTEMPT_GREETED };

struct attempt {
    char address[64];
    enum attempt_state state;
    int fd;
    uint64_t again_at; /* time of the next try (now_ms) in state ATTEMPT_WAITS */
    struct hello hello;
    char in[FRAME_HEADER + GREETING_MAX];
    size_t got;
};

struct connector {
    struct attempt attempts[ADDRESSES_MAX];
    int n;
    const char *port, *cookie, *who;
    bool stranger; /* a process that does not know the cookie replied */
    char stranger_at[64];
    struct connection *out;
};

static void attempt_close(struct attempt *a, enum attempt_state state)
{
    close(a->fd);
    a->fd = -1;
    a->state = state;
    a->again_at = now_ms() + AGAIN_MS;
}

static void attempt_start(struct connector *c, struct attempt *a)
{
    a->got = 0;
    a->fd = address_start_connect(a->address, c->port);
    a->state = a->fd >= 0 ? ATTEMPT_CONNECTING : ATTEMPT_OVER;
}

static bool send_frame(int fd, enum frame type, const void *data, size_t len)
{
    struct buf out = {0};
    link_append_frame(&out, &(struct frame_head){type, 0, 0, len}, data);
    /* The send buffer of a new connection has room for one short message. */
    bool ok = send(fd, buf_head(&out), buf_size(&out), MSG_NOSIGNAL) == (ssize_t)buf_size(&out);
    buf_free(&out);
    return ok;
}

static void attempt_send_hello(struct connector *c, struct attempt *a)
{
    int error = 0;
    socklen_t len = sizeof(error);
    struct buf hello = {0};
    getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error) {
        attempt_close(a, ATTEMPT_OVER);
        return;
    }
    a->hello = (struct hello){{0}};
    proof_fill_random(a->hello.nonce, sizeof(a->hello.nonce));
    snprintf(a->hello.who, sizeof(a->hello.who), "%s", c->who);
    snprintf(a->hello.version, sizeof(a->hello.version), "%s", FISHPLATE_VERSION);
    proof_hello_encode(&a->hello, &hello);
    a->state = ATTEMPT_GREETED;
    if (!send_frame(a->fd, FRAME_HELLO, buf_head(&hello), buf_size(&hello)))
        attempt_close(a, ATTEMPT_WAITS);
    buf_free(&hello);
}

/* True if the challenge proves that the other end knows the cookie. */
static bool attempt_check_challenge(const struct connector *c, const struct attempt *a,
                                    const struct frame_head *h, struct session *out)
{
    struct challenge challenge;
    if (h->type != FRAME_CHALLENGE || !proof_challenge_decode(a->in + FRAME_HEADER, h->len, &challenge))
        return false;
    proof_compute_session(c->cookie, &a->hello, challenge.nonce, out);
    return secret_equal(challenge.code, out->mpiexec_code, sizeof(challenge.code));
}

/* Reads a part of the challenge. True: the other end is mpiexec, and the connection is in c->out. */
static bool attempt_read_frame(struct connector *c, struct attempt *a)
{
    struct frame_head h;
    struct session session;
    /* Read one frame at a time: later bytes belong to the link. */
    size_t want = a->got < FRAME_HEADER ? FRAME_HEADER : a->got;
    if (a->got >= FRAME_HEADER && link_parse(a->in, a->got, GREETING_MAX, &h) == LINK_MORE)
        want = FRAME_HEADER + h.len;
    ssize_t n = recv(a->fd, a->in + a->got, want - a->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        attempt_close(a, ATTEMPT_WAITS);
        return false;
    }
    a->got += (size_t)n;
    enum link_parsed parsed = link_parse(a->in, a->got, GREETING_MAX, &h);
    if (parsed == LINK_MORE)
        return false;
    if (parsed == LINK_BAD || !attempt_check_challenge(c, a, &h, &session)) {
        c->stranger = true;
        snprintf(c->stranger_at, sizeof(c->stranger_at), "%s", a->address);
        attempt_close(a, ATTEMPT_OVER);
        return false;
    }
    if (!send_frame(a->fd, FRAME_PROOF, session.agent_code, sizeof(session.agent_code))) {
        attempt_close(a, ATTEMPT_WAITS);
        return false;
    }
    c->out->fd = a->fd;
    c->out->session = session;
    a->fd = -1;
    a->state = ATTEMPT_OVER;
    return true;
}

/* Starts attempts that are due; returns the time to wait in ms, or -1 if no attempt is left. */
static int connect_prepare_poll(struct connector *c, struct pollfd *p, uint64_t end)
{
    uint64_t now = now_ms(), next = end;
    bool any = false;
    for (int i = 0; i < c->n; i++) {
        struct attempt *a = &c->attempts[i];
        if (a->state == ATTEMPT_WAITS && a->again_at <= now)
            attempt_start(c, a);
        if (a->state == ATTEMPT_WAITS && a->again_at < next)
            next = a->again_at;
        any = any || a->state != ATTEMPT_OVER;
        p[i] = (struct pollfd){.fd = a->fd, .events = a->state == ATTEMPT_CONNECTING ? POLLOUT : POLLIN};
    }
    return !any || now >= end ? -1 : (int)(next > now ? next - now : 0);
}

static bool connect_to_any(struct connector *c)
{
    struct pollfd p[ADDRESSES_MAX];
    uint64_t end = now_ms() + CONNECT_MS;
    bool found = false;
    for (int i = 0; i < c->n; i++)
        attempt_start(c, &c->attempts[i]);
    for (int wait; !found && (wait = connect_prepare_poll(c, p, end)) >= 0;) {
        if (poll(p, (nfds_t)c->n, wait) <= 0)
            continue;
        for (int i = 0; i < c->n && !found; i++) {
            if (p[i].fd < 0 || !p[i].revents)
                continue;
            if (c->attempts[i].state == ATTEMPT_CONNECTING)
                attempt_send_hello(c, &c->attempts[i]);
            else
                found = attempt_read_frame(c, &c->attempts[i]);
        }
    }
    for (int i = 0; i < c->n; i++)
        if (c->attempts[i].fd >= 0)
            attempt_close(&c->attempts[i], ATTEMPT_OVER);
    return found;
}

static void add_attempt(struct connector *c, const char *address)
{
    if (c->n == ADDRESSES_MAX)
        return;
    struct attempt *a = &c->attempts[c->n++];
    *a = (struct attempt){.fd = -1};
    snprintf(a->address, sizeof(a->address), "%s", address);
}

void connect_to_mpiexec(const char *addresses, const char *port, const char *cookie, const char *who,
                        struct connection *out)
{
    struct connector c = {.port = port, .cookie = cookie, .who = who, .out = out};
    char *copy = xstrdup(addresses), *save = NULL;
    bool loopback = false;
    for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        if (address_is_loopback(w))
            loopback = true;
        else if (!address_is_own(w))
            add_attempt(&c, w);
    }
    free(copy);
    bool found = connect_to_any(&c);
    if (!found && loopback) {
        c.n = 0;
        add_attempt(&c, ADDRESS_LOOPBACK);
        found = connect_to_any(&c);
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
