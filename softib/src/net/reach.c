/* reach.c: opens a connection to another node by trying its addresses. The lock of this wire protects
 * everything here. A failed address is counted at the port that tried it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/reach.h"
#include "net/address.h"
#include "net/conn.h"
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define GRACE_NS (10 * NS_MS)
#define LIMIT_NS (3 * NS_S)
#define PATIENCE (30 * NS_S) /* time limit for a HELLO_ACK after the TCP connection is established */

static void close_attempt(struct attempt *a, bool failed)
{
    close(a->fd);
    a->fd = -1;
    a->good = false;
    if (failed)
        port_count(a->c->linear, CNT_UNREACHABLE, 1);
}

void reach_cancel_attempts(struct conn *c)
{
    for (unsigned i = 0; i < FAB_ADDRS; i++)
        if (c->reach.a[i].c && c->reach.a[i].fd >= 0)
            close_attempt(&c->reach.a[i], false);
}

bool reach_has_connection(const struct conn *c)
{
    bool alive = false;
    for (unsigned i = 0; i < FAB_ADDRS; i++)
        alive |= c->reach.a[i].c && c->reach.a[i].fd >= 0 && c->reach.a[i].connected;
    return alive;
}

static void reach_send_hello(struct attempt *a)
{
    int err = 0;
    socklen_t len = sizeof(err);
    greet_hello(a->c, a->hello);
    getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &err, &len);
    a->connected = !err && send(a->fd, a->hello, sizeof(a->hello), MSG_DONTWAIT | MSG_NOSIGNAL) ==
                               (ssize_t)sizeof(a->hello);
    if (a->connected)
        net_watch_change(a->fd, &a->w, EPOLLIN);
    else
        close_attempt(a, true);
}

static bool is_greeting_accepted(const struct attempt *a)
{
    static bool said;
    enum greet_answer g = greet_check(a->hello, a->in);
    if (g == GREET_WRONG_KEY && !said) {
        softib_log(
            "node%u answers, but uses a different key: SOFTIB_KEY, or the key file, must be the same on "
            "all nodes of the fabric",
            a->c->node);
        said = true;
    }
    return g == GREET_GOOD;
}

static void reach_receive_reply(struct attempt *a, uint32_t ev)
{
    ssize_t n = recv(a->fd, a->in + a->have, sizeof(a->in) - a->have, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR) && !(ev & (EPOLLERR | EPOLLHUP)))
        return;
    a->have += n > 0 ? (size_t)n : 0;
    a->good = a->have == sizeof(a->in) && is_greeting_accepted(a);
    if (a->good)
        net_watch_change(a->fd, &a->w, 0);
    else if (n <= 0 || a->have == sizeof(a->in))
        close_attempt(a, true); /* closed, or answered by another process */
}

static void reach_on_attempt(struct watch *w, uint32_t ev)
{
    struct attempt *a = CONTAINER_OF(w, struct attempt, w);
    if (a->fd < 0 || a->c->broken)
        return;
    if (a->good)
        close_attempt(a, true); /* the only remaining event is an error */
    else if (a->connected)
        reach_receive_reply(a, ev);
    else
        reach_send_hello(a);
    reach_tick(a->c, now_ns());
}

/* True if the socket is bound to the port's address. A port with one address sends from it; with several,
 * the kernel's routing table selects one. */
static bool reach_bind_source_address(int fd, uint32_t linear)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = proc.fab.port[linear].addr[0]};
    return proc.fab.port[linear].addrs > 1 || !bind(fd, (struct sockaddr *)&from, sizeof(from));
}

static void reach_report_no_socket(uint32_t node)
{
    static bool said;
    if (!said)
        softib_log("no connection to node%u can be opened: %s.%s", node, strerror(errno),
                   errno == EMFILE || errno == ENFILE ? " Raise the limit of open files (ulimit -n)" : "");
    said = true;
}

static void attempt_begin(struct conn *c, unsigned i)
{
    struct attempt *a = &c->reach.a[i];
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)(proc.fab.base_of[c->node] + c->slot)),
                             .sin_addr = proc.fab.port[c->to].addr[i]};
    *a = (struct attempt){.w = {reach_on_attempt}, .c = c};
    a->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (a->fd < 0)
        reach_report_no_socket(c->node);
    if (a->fd >= 0 && (!reach_bind_source_address(a->fd, c->linear) ||
                       (connect(a->fd, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS) ||
                       !net_watch(a->fd, &a->w, EPOLLOUT)))
        close_attempt(a, true);
}

static void reach_begin_attempts(struct conn *c)
{
    c->reach.remembered = false;
    c->reach.decide_at = 0;
    c->reach.since = now_ns();
    for (unsigned i = 0; i < proc.fab.port[c->to].addrs; i++)
        attempt_begin(c, i);
}

static bool reach_check_proof(const struct attempt *a)
{
    uint8_t out[PROOF_BYTES];
    greet_proof(a->hello, a->in, out);
    return send(a->fd, out, sizeof(out), MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(out);
}

/* Chooses the connection with the index `rail` among those that answered. */
static void reach_choose_connection(struct conn *c, unsigned good)
{
    unsigned skip = proc.fab.port[c->to].rail % good, i = 0;
    for (;; i++)
        if (c->reach.a[i].good && !skip--)
            break;
    int fd = c->reach.a[i].fd;
    bool proved = reach_check_proof(&c->reach.a[i]);
    struct sockaddr_in me = {0};
    socklen_t len = sizeof(me);
    getsockname(fd, (struct sockaddr *)&me, &len);
    address_register(c->to, i);
    c->reach.a[i].fd = -1;
    for (unsigned k = 0; k < FAB_ADDRS; k++)
        if (c->reach.a[k].c && c->reach.a[k].fd >= 0)
            close_attempt(&c->reach.a[k], !c->reach.a[k].good);
    c->reach.done(c, fd, &me.sin_addr);
    if (!proved)
        conn_mark_broken(c);
}

void reach_tick(struct conn *c, uint64_t now)
{
    struct reach *r = &c->reach;
    unsigned good = 0, open = 0;
    for (unsigned i = 0; i < FAB_ADDRS; i++)
        if (r->a[i].c && r->a[i].fd >= 0) {
            open++;
            good += r->a[i].good;
        }
    uint64_t limit = reach_has_connection(c) ? PATIENCE : LIMIT_NS;
    if (!r->decide_at && good)
        r->decide_at = now + GRACE_NS + 4 * (now - r->since);
    if (good && (good == open || now >= r->decide_at)) {
        reach_choose_connection(c, good);
    } else if (open && now - r->since < limit) {
        net_schedule_tick(good ? r->decide_at : r->since + limit);
    } else if (r->remembered) { /* the remembered address does not answer any more: tries all addresses */
        reach_cancel_attempts(c);
        address_drop(c->to);
        reach_begin_attempts(c);
        reach_tick(c, now_ns());
    } else {
        r->done(c, -1, NULL);
    }
}

bool reach_begin(struct conn *c, void (*done)(struct conn *c, int fd, const struct in_addr *me))
{
    unsigned last;
    c->reach =
        (struct reach){.done = done, .since = now_ns(), .remembered = address_is_registered(c->to, &last)};
    if (c->reach.remembered)
        attempt_begin(c, last);
    else
        reach_begin_attempts(c);
    reach_tick(c, now_ns());
    return !c->broken;
}
