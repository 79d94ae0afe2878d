/* listener.c: accepts the connections of agents. An agent that was disconnected because there were too many
 * callers (base/acceptor.h) connects again (connect.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "remote/listener.h"

#include <stdlib.h>
#include <string.h>

#include "core/address.h"
#include "base/acceptor.h"

#define GREETING_MS 10000
#define CALLERS_MIN 64
#define REST_MS     50 /* ms to wait before accepting again if no file descriptor is free */

struct caller {
    struct acceptor_caller in; /* list of the acceptor; first member: its pointer is cast to struct caller */
    struct listener *listener;
    struct link *link;
    bool greeted; /* has sent HELLO */
    bool is_gone; /* member of listener->gone, to be freed */
    struct hello hello;
    struct session session;
    struct caller *next; /* member of listener->gone, to be freed */
};

struct listener {
    struct loop *loop;
    const char *cookie;
    const struct listener_events *ev;
    void *ctx;
    struct watch sockets[ADDRESS_SOCKETS_MAX];
    int nsockets;
    char port[8];
    struct acceptor acceptor;
    struct caller *gone; /* to be freed in a later iteration of the event loop */
    struct timer late, rest, sweep;
};

/* Frees removed callers in a later iteration of the event loop: the current one may refer to their
 * watches. */
static void listener_on_sweep(void *ctx)
{
    struct listener *d = ctx;
    while (d->gone) {
        struct caller *c = d->gone;
        d->gone = c->next;
        if (c->link) {
            buf_free(&c->link->in);
            free(c->link);
        }
        secret_wipe(c, sizeof(*c));
        free(c);
    }
}

static void schedule_removal(struct caller *c)
{
    struct listener *d = c->listener;
    if (c->is_gone)
        return;
    c->is_gone = true;
    c->next = d->gone;
    d->gone = c;
    loop_set_timer(d->loop, &d->sweep, 0);
}

static void listener_remove_caller(struct caller *c)
{
    acceptor_remove(&c->listener->acceptor, &c->in);
    schedule_removal(c);
}

static void reject_caller(void *ctx, struct acceptor_caller *in)
{
    struct caller *c = (struct caller *)in;
    (void)ctx;
    link_close(c->link);
    schedule_removal(c);
}

static void listener_reject_caller(struct caller *c)
{
    acceptor_remove(&c->listener->acceptor, &c->in);
    reject_caller(c->listener, &c->in);
}

static void answer_hello(struct caller *c, const char *data, size_t len)
{
    struct listener *d = c->listener;
    struct challenge challenge;
    struct buf out = {0};
    if (!proof_hello_decode(data, len, &c->hello) || !d->ev->expected(d->ctx, c->hello.who)) {
        listener_reject_caller(c);
        return;
    }
    c->greeted = true;
    proof_fill_random(challenge.nonce, sizeof(challenge.nonce));
    proof_compute_session(d->cookie, &c->hello, challenge.nonce, &c->session);
    memcpy(challenge.code, c->session.mpiexec_code, sizeof(challenge.code));
    proof_challenge_encode(&challenge, &out);
    link_send(c->link, &(struct frame_head){FRAME_CHALLENGE, 0, 0, buf_size(&out)}, buf_head(&out));
    buf_free(&out);
}

static void verify_proof(struct caller *c, const char *data, size_t len)
{
    struct listener *d = c->listener;
    struct link *k = c->link;
    /* Another agent with the same name may have connected since HELLO. */
    if (len != SHA256_SIZE || !secret_equal(data, c->session.agent_code, SHA256_SIZE) ||
        !d->ev->expected(d->ctx, c->hello.who)) {
        listener_reject_caller(c);
        return;
    }
    c->link = NULL;
    listener_remove_caller(c);
    link_start_authentication(k, c->session.up, c->session.down);
    d->ev->entered(d->ctx, c->hello.who, c->hello.version, k);
}

static void listener_on_frame(void *ctx, const struct frame_head *head, const char *data)
{
    struct caller *c = ctx;
    if (head->type == FRAME_HELLO && !c->greeted)
        answer_hello(c, data, head->len);
    else if (head->type == FRAME_PROOF && c->greeted)
        verify_proof(c, data, head->len);
    else
        listener_reject_caller(c);
}

static void listener_on_closed(void *ctx, const char *why)
{
    (void)why;
    listener_remove_caller(ctx);
}

static void listener_on_timeout(void *ctx)
{
    struct listener *d = ctx;
    const uint64_t next = acceptor_expire(&d->acceptor, now_ms());
    if (next != UINT64_MAX)
        loop_set_timer(d->loop, &d->late, next);
}

static struct acceptor_caller *add_caller(void *ctx, int fd)
{
    struct listener *d = ctx;
    struct caller *c = xcalloc(1, sizeof(*c));
    c->listener = d;
    c->link = xcalloc(1, sizeof(*c->link));
    *c->link = (struct link){.frame = listener_on_frame, .closed = listener_on_closed, .ctx = c};
    link_open(c->link, d->loop, fd);
    if (d->late.at == 0)
        loop_set_timer(d->loop, &d->late, GREETING_MS);
    return &c->in;
}

static const struct acceptor_ops acceptor_ops = {add_caller, reject_caller};

static void listener_on_connection(void *ctx, uint32_t events)
{
    struct listener *d = ctx;
    (void)events;
    for (int i = 0; i < d->nsockets; i++) {
        struct watch *w = &d->sockets[i];
        if (w->fd < 0 || acceptor_accept_pending(&d->acceptor, w->fd, now_ms()) == 0)
            continue;
        /* The pending connection would make the loop call this function again at once; pause for REST_MS. */
        loop_change_events(d->loop, w, 0);
        loop_set_timer(d->loop, &d->rest, REST_MS);
    }
}

static void listener_resume_accepting(void *ctx)
{
    struct listener *d = ctx;
    for (int i = 0; i < d->nsockets; i++)
        loop_change_events(d->loop, &d->sockets[i], EPOLLIN);
}

const char *listener_port(const struct listener *d)
{
    return d->port;
}

struct listener *listener_open(struct loop *l, uint32_t agents, const char *at, const char *cookie,
                               const struct listener_events *ev, void *ctx)
{
    struct listener *d = xcalloc(1, sizeof(*d));
    *d = (struct listener){.loop = l, .cookie = cookie, .ev = ev, .ctx = ctx};
    /* An agent connects to all our addresses at once, so there are several callers per agent. */
    acceptor_open(&d->acceptor, CALLERS_MIN + (agents < 1 << 16 ? 4 * agents : 4u << 16), GREETING_MS,
                  &acceptor_ops, d);
    d->late = (struct timer){.fn = listener_on_timeout, .ctx = d};
    d->rest = (struct timer){.fn = listener_resume_accepting, .ctx = d};
    d->sweep = (struct timer){.fn = listener_on_sweep, .ctx = d};
    int fds[ADDRESS_SOCKETS_MAX];
    d->nsockets = address_listen(fds, d->port, sizeof(d->port), at);
    for (int i = 0; i < d->nsockets; i++) {
        d->sockets[i] = (struct watch){.fd = -1, .fn = listener_on_connection, .ctx = d};
        loop_add(l, &d->sockets[i], fds[i], EPOLLIN);
    }
    return d;
}

void listener_close(struct listener *d)
{
    for (int i = 0; i < d->nsockets; i++)
        loop_close(d->loop, &d->sockets[i]);
    loop_cancel_timer(d->loop, &d->late);
    loop_cancel_timer(d->loop, &d->rest);
    acceptor_close(&d->acceptor);
}
