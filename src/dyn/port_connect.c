/* port_connect.c: connects to a port: to its Unix socket on the same machine, else to all its addresses in
 * parallel, since one address may never answer. The first connection whose peer proves that it knows the key
 * is used. If the peer closes a connection during the handshake, this side connects again: the peer drops
 * connections if too many are pending (base/acceptor.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/kill_point.h"
#include "dyn/port.h"
#include "dyn/port_name.h"
#include "obj/proc.h"

#define RETRY_NS 100000000u

enum { LINES_MAX = 1 + PORT_ADDRESSES };

enum line_state {
    LINE_OVER,
    LINE_RETRY,      /* connect again at the time retry_at */
    LINE_CONNECTING, /* connect(2) is in progress */
    LINE_HANDSHAKE,
    LINE_PROVED,
};

/* A connection attempt to one address. */
struct line {
    union {
        struct sockaddr any;
        struct sockaddr_un local;
        struct sockaddr_in tcp;
    } address;
    socklen_t len;
    enum line_state state;
    int fd;
    uint64_t retry_at; /* time of clock_ns() */
    struct handshake handshake;
};

struct connector {
    struct port_name name;
    struct line lines[LINES_MAX];
    int n;
    bool is_local; /* the first line is the Unix socket; other lines are used only if it fails */
    int error;     /* errno of a failed line */
    bool stranger; /* a process without the key has answered */
};

static void line_close(struct line *l, enum line_state state)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    l->state = state;
    l->retry_at = clock_ns() + RETRY_NS;
}

static void line_failed(struct connector *c, struct line *l, int error)
{
    const bool again = error == EAGAIN || error == ECONNRESET || error == ETIMEDOUT || error == EMFILE ||
                       error == ENFILE || error == 0;
    c->error = again ? c->error : error;
    line_close(l, again ? LINE_RETRY : LINE_OVER);
}

static void line_begin_handshake(struct connector *c, struct line *l)
{
    if (l->address.any.sa_family == AF_UNIX && !port_name_peer_is_own(l->fd))
        line_failed(c, l, EACCES);
    else if (handshake_begin(&l->handshake, false, c->name.key) != 0)
        line_failed(c, l, EAGAIN);
    else
        l->state = LINE_HANDSHAKE;
}

static void line_connect(struct connector *c, struct line *l)
{
    l->fd = socket(l->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd >= 0)
        channel_disable_nagle(l->fd);
    if (l->fd < 0)
        line_failed(c, l, errno);
    else if (connect(l->fd, &l->address.any, l->len) == 0)
        line_begin_handshake(c, l);
    else if (errno == EINPROGRESS)
        l->state = LINE_CONNECTING;
    else
        line_failed(c, l, errno);
}

static void line_check_connected(struct connector *c, struct line *l)
{
    struct pollfd p = {.fd = l->fd, .events = POLLOUT};
    int error = 0;
    socklen_t len = sizeof(error);
    if (poll(&p, 1, 0) <= 0)
        return;
    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0)
        line_failed(c, l, error ? error : errno);
    else
        line_begin_handshake(c, l);
}

static void line_advance(struct connector *c, struct line *l)
{
    if (l->state == LINE_RETRY && clock_ns() >= l->retry_at)
        line_connect(c, l);
    if (l->state == LINE_CONNECTING)
        line_check_connected(c, l);
    if (l->state != LINE_HANDSHAKE)
        return;
    switch (handshake_advance(&l->handshake, l->fd)) {
    case HANDSHAKE_MORE:
        break;
    case HANDSHAKE_DONE:
        l->state = LINE_PROVED;
        KILL_POINT(port_connector_proved);
        break;
    case HANDSHAKE_LOST:
        line_failed(c, l, errno);
        break;
    case HANDSHAKE_STRANGER:
        c->stranger = true;
        line_close(l, LINE_OVER);
        break;
    }
}

static void add_address_lines(struct connector *c)
{
    if (c->name.network == port_name_network_id()) {
        struct line *l = &c->lines[c->n++];
        c->is_local = true;
        l->len = port_name_local_address(c->name.local, &l->address.local);
    }
    for (int i = 0; i < c->name.count; i++) {
        struct line *l = &c->lines[c->n++];
        l->address.tcp = (struct sockaddr_in){
            .sin_family = AF_INET, .sin_port = htons(c->name.port), .sin_addr = c->name.addresses[i]};
        l->len = sizeof(l->address.tcp);
    }
    for (int i = 0; i < c->n; i++) {
        c->lines[i].fd = -1;
        c->lines[i].state = LINE_RETRY;
    }
}

/* Returns a connection whose handshake has succeeded, or NULL. *alive: other attempts are still under way. */
static struct line *connector_advance(struct connector *c, bool *alive)
{
    *alive = false;
    for (int i = 0; i < c->n; i++) {
        line_advance(c, &c->lines[i]);
        if (c->lines[i].state == LINE_PROVED)
            return &c->lines[i];
        *alive = *alive || c->lines[i].state != LINE_OVER;
        if (c->is_local && c->lines[0].state != LINE_OVER)
            break;
    }
    return NULL;
}

static void wait_for_lines(struct proc *p, const struct connector *c, struct net_waiter *w)
{
    struct pollfd fds[LINES_MAX];
    for (int i = 0; i < c->n; i++) {
        const struct line *l = &c->lines[i];
        fds[i] = (struct pollfd){
            .fd = l->fd, .events = l->state == LINE_CONNECTING ? POLLOUT : handshake_events(&l->handshake)};
    }
    channel_poll(p, fds, (unsigned)c->n, w);
}

static int connect_failed(const struct connector *c, bool late, unsigned seconds)
{
    if (c->stranger)
        return handshake_error(HANDSHAKE_STRANGER);
    if (late)
        return err_set(MPI_ERR_PORT,
                       "no process accepted the connection within %u seconds: MPI_Comm_accept is not called "
                       "for this port, or "
                       "its machine cannot be reached (the info key timeout sets another time)",
                       seconds);
    return err_set(
        MPI_ERR_PORT,
        "no process listens at that port (%s): it was closed, or the process that opened it has ended",
        strerror(c->error ? c->error : ENETUNREACH));
}

int port_connect(struct proc *p, const char *name, unsigned seconds, struct channel *out)
{
    struct connector c = {0};
    const uint64_t deadline = clock_ns() + seconds * 1000000000ull;
    const struct net_named what = {"process that accepts at a port", NET_NOBODY, false};
    struct net_waiter w = {.awaited_kind = NET_NAMED, .awaited = &what};
    struct line *proved;
    bool alive, late = false;
    if (!port_name_parse(name, &c.name))
        return err_set(MPI_ERR_PORT, "\"%.60s\" is not the name of a port", name);
    add_address_lines(&c);
    while (!(proved = connector_advance(&c, &alive)) && alive && !(late = clock_ns() > deadline))
        wait_for_lines(p, &c, &w);
    net_wait_end(p->net, &w);
    if (proved) {
        channel_init_from_handshake(out, p, proved->fd, true, &proved->handshake);
        proved->fd = -1;
    }
    for (int i = 0; i < c.n; i++)
        line_close(&c.lines[i], LINE_OVER);
    const int rc = proved ? 0 : connect_failed(&c, late, seconds);
    secret_wipe(&c, sizeof(c));
    return rc;
}
