/* door.c: accepts the connections of agents. A caller that does not prove itself within DOOR_MS is
 * disconnected. When there are too many callers, or no file descriptor is left for the next, the oldest
 * caller is disconnected. An agent that was disconnected in this way connects again (call.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "door.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"

#define DOOR_MS     10000
#define CALLERS_MIN 64
#define REST_MS     50 /* no file at all for a caller: look again after this */
#define AT_ONCE     64 /* calls that are taken before anything else has its turn */

struct caller {
    struct door *door;
    struct link *link;
    uint64_t until; /* now_ms */
    bool greeted;   /* has said HELLO */
    struct hello hello;
    struct session session;
    struct caller *next; /* the one that came after it */
};

struct door {
    struct loop *loop;
    const char *cookie;
    const struct door_events *ev;
    void *ctx;
    struct watch listener;
    char port[8];
    struct caller *first, **last; /* in the order of their coming */
    struct caller *gone;          /* freed when nothing looks at them any more */
    uint32_t n, max;
    int spare; /* a file to give up when there is none for a caller */
    struct timer late, rest, sweep;
};

/* Watches must outlive the turn of the loop in which they are removed. */
static void on_sweep(void *ctx)
{
    struct door *d = ctx;
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

static void leave(struct caller *c)
{
    struct door *d = c->door;
    struct caller **p = &d->first;
    while (*p && *p != c)
        p = &(*p)->next;
    if (!*p)
        return;
    *p = c->next;
    if (d->last == &c->next)
        d->last = p;
    d->n--;
    c->next = d->gone;
    d->gone = c;
    loop_after(d->loop, &d->sweep, 0);
}

static void send_away(struct caller *c)
{
    link_close(c->link);
    leave(c);
}

static void answer_hello(struct caller *c, const char *data, size_t len)
{
    struct door *d = c->door;
    struct challenge challenge;
    struct buf out = {0};
    if (!proof_hello_decode(data, len, &c->hello) || !d->ev->expected(d->ctx, c->hello.who)) {
        send_away(c);
        return;
    }
    c->greeted = true;
    proof_random(challenge.nonce, sizeof(challenge.nonce));
    proof_session(d->cookie, &c->hello, challenge.nonce, &c->session);
    memcpy(challenge.code, c->session.mpiexec_code, sizeof(challenge.code));
    proof_challenge_encode(&challenge, &out);
    link_send(c->link, &(struct frame_head){FRAME_CHALLENGE, 0, 0, buf_size(&out)}, buf_head(&out));
    buf_free(&out);
}

static void judge_proof(struct caller *c, const char *data, size_t len)
{
    struct door *d = c->door;
    struct link *k = c->link;
    /* Another may have come under that name in between. */
    if (len != SHA256_SIZE || !secret_equal(data, c->session.agent_code, SHA256_SIZE) ||
        !d->ev->expected(d->ctx, c->hello.who)) {
        send_away(c);
        return;
    }
    c->link = NULL;
    leave(c);
    link_seal(k, c->session.up, c->session.down);
    d->ev->entered(d->ctx, c->hello.who, c->hello.version, k);
}

static void on_frame(void *ctx, const struct frame_head *head, const char *data)
{
    struct caller *c = ctx;
    if (head->type == FRAME_HELLO && !c->greeted)
        answer_hello(c, data, head->len);
    else if (head->type == FRAME_PROOF && c->greeted)
        judge_proof(c, data, head->len);
    else
        send_away(c);
}

static void on_closed(void *ctx, const char *why)
{
    (void)why;
    leave(ctx);
}

static void on_late(void *ctx)
{
    struct door *d = ctx;
    uint64_t now = now_ms();
    while (d->first && d->first->until <= now)
        send_away(d->first);
    if (d->first)
        loop_after(d->loop, &d->late, d->first->until - now);
}

static void let_in(struct door *d, int fd)
{
    struct caller *c = xcalloc(1, sizeof(*c));
    if (d->n >= d->max)
        send_away(d->first);
    c->door = d;
    c->until = now_ms() + DOOR_MS;
    c->link = xcalloc(1, sizeof(*c->link));
    *c->link = (struct link){.frame = on_frame, .closed = on_closed, .ctx = c};
    *d->last = c;
    d->last = &c->next;
    d->n++;
    link_open(c->link, d->loop, fd);
    if (d->late.at == 0)
        loop_after(d->loop, &d->late, DOOR_MS);
}

static int take_call(struct door *d)
{
    return accept4(d->listener.fd, NULL, NULL, SOCK_CLOEXEC);
}

/* No file for the next caller: one that waits gives up its own; else the call is refused with the spare file. */
static int make_room(struct door *d)
{
    if (d->first) {
        send_away(d->first);
        return take_call(d);
    }
    if (d->spare >= 0) {
        close(d->spare);
        int fd = take_call(d);
        if (fd >= 0)
            close(fd);
        d->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    errno = EMFILE;
    return -1;
}

static void on_call(void *ctx, uint32_t events)
{
    struct door *d = ctx;
    (void)events;
    for (int i = 0; i < AT_ONCE && d->listener.fd >= 0; i++) {
        int fd = take_call(d);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE))
            fd = make_room(d);
        if (fd >= 0) {
            let_in(d, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* The call still waits, and the loop would ask again at once, for ever. */
            loop_change(d->loop, &d->listener, 0);
            loop_after(d->loop, &d->rest, REST_MS);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static void on_rest(void *ctx)
{
    struct door *d = ctx;
    loop_change(d->loop, &d->listener, EPOLLIN);
}

const char *door_port(const struct door *d)
{
    return d->port;
}

struct door *door_open(struct loop *l, uint32_t agents, const char *cookie, const struct door_events *ev,
                       void *ctx)
{
    struct door *d = xcalloc(1, sizeof(*d));
    *d = (struct door){.loop = l, .cookie = cookie, .ev = ev, .ctx = ctx, .last = &d->first};
    /* An agent calls all our addresses at once. */
    d->max = CALLERS_MIN + (agents < 1 << 16 ? 4 * agents : 4u << 16);
    d->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    d->late = (struct timer){.fn = on_late, .ctx = d};
    d->rest = (struct timer){.fn = on_rest, .ctx = d};
    d->sweep = (struct timer){.fn = on_sweep, .ctx = d};
    d->listener = (struct watch){.fd = -1, .fn = on_call, .ctx = d};
    loop_add(l, &d->listener, address_listen(d->port, sizeof(d->port)), EPOLLIN);
    return d;
}

void door_close(struct door *d)
{
    loop_close(d->loop, &d->listener);
    loop_cancel(d->loop, &d->late);
    loop_cancel(d->loop, &d->rest);
    while (d->first)
        send_away(d->first);
    if (d->spare >= 0)
        close(d->spare);
    d->spare = -1;
}
