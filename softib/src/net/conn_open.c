/* conn_open.c: opens, finds, wakes and closes connections. For a connection that this process opens, all
 * addresses of the peer are tried (reach.c); the caller of an incoming one has authenticated (greet.c). In
 * both cases node and member slot of the peer are known.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/conn.h"
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void conn_free(struct conn *c)
{
    for (struct conn **p = &conns; *p; p = &(*p)->next)
        if (*p == c) {
            *p = c->next;
            break;
        }
    conn_user->lost(c);
    if (conn_hot == c)
        conn_hot = NULL;
    reach_cancel_attempts(c);
    if (c->fd >= 0)
        close(c->fd);
    conn_out_free(c);
    free(c);
}

void conn_free_closed(void)
{
    if (LIKELY(!conn_test_and_clear_broken()))
        return;
    for (struct conn *c = conns, *next; c; c = next) {
        next = c->next;
        if (c->broken)
            conn_free(c);
    }
}

static void conn_on_socket_event(struct watch *w, uint32_t ev)
{
    struct conn *c = CONTAINER_OF(w, struct conn, w);
    if (c->broken)
        return;
    if ((c->rx_pause || c->rx_full) && ev & (EPOLLERR | EPOLLHUP)) {
        conn_mark_broken(c); /* otherwise epoll would report the error until the pause ends */
        return;
    }
    if (ev & (EPOLLIN | EPOLLERR | EPOLLHUP))
        conn_receive(c);
    if (!c->broken && ev & EPOLLOUT)
        conn_send(c);
}

static struct conn *allocate_conn(void)
{
    struct conn *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->w.ready = conn_on_socket_event;
    c->fd = -1;
    c->next = conns;
    conns = c;
    return c;
}

static void conn_adopt(struct conn *c, int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    c->fd = fd;
}

/* Called when the search for an address has ended. fd: a connected socket, with the local address *me; <
 * 0: there is none. */
static void conn_on_address_found(struct conn *c, int fd, const struct in_addr *me)
{
    conn_user->routed(c->to, me);
    if (fd < 0) {
        conn_mark_broken(c);
        return;
    }
    c->connecting = false;
    conn_adopt(c, fd);
    conn_update_watch(c); /* replaces the epoll watch of the connection attempt */
    conn_send(c);
}

struct conn *conn_open(uint32_t node, uint32_t slot, uint32_t linear, uint32_t to)
{
    for (struct conn *c = conns; c; c = c->next)
        if (c->outgoing && !c->broken && c->slot == slot && c->linear == linear && c->to == to)
            return c;
    struct conn *c = allocate_conn();
    if (!c)
        return NULL;
    c->outgoing = c->connecting = true;
    c->node = node;
    c->slot = slot;
    c->linear = linear;
    c->to = to;
    return reach_begin(c, conn_on_address_found) ? c : NULL;
}

bool conn_accepted(int fd, uint32_t node, uint32_t slot, uint32_t linear, uint32_t from)
{
    struct conn *c = allocate_conn();
    if (!c)
        return false;
    c->node = node;
    c->slot = slot;
    c->linear = linear;
    c->to = from;
    conn_adopt(c, fd);
    conn_update_watch(c); /* replaces the epoll watch of the caller */
    return true;
}

static void conn_tick_one(struct conn *c, uint64_t now)
{
    if (c->connecting)
        reach_tick(c, now);
    bool again = c->rx_full && !conn_is_congested(c);
    if (c->rx_pause > now)
        net_schedule_tick(c->rx_pause);
    else if (c->rx_pause || again) {
        c->rx_pause = 0;
        c->rx_full = c->rx_full && !again;
        conn_update_watch(c);
        conn_parse(c);
        conn_receive(c);
    }
    if (c->tx_pause > now)
        net_schedule_tick(c->tx_pause);
    else if (c->tx_pause) {
        c->tx_pause = 0;
        conn_send(c);
    }
}

void conn_tick(uint64_t now)
{
    for (struct conn *c = conns; c; c = c->next)
        if (!c->broken)
            conn_tick_one(c, now);
}

void conn_reset_after_fork(void)
{
    for (struct conn *c = conns; c; c = c->next) {
        reach_cancel_attempts(c);
        if (c->fd >= 0)
            close(c->fd);
    }
    conns = conn_hot = NULL; /* not freed: in the parent another thread may have held the allocator's lock */
}
