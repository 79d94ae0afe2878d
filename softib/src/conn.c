/*
 * Connections of wire (b): made, found again, paced and buried. One this process opened is looked for under
 * all addresses of its peer (reach.c), one that came was greeted first (greet.c); either way it is known whose
 * node and slot is at the other end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conn.h"
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BURST_NS (500 * NS_US)

struct conn *conns, *conn_hot;
static bool any_broken;

void conn_watch(struct conn *c)
{
    wire_watch_again(c->fd, &c->w, (c->rx_pause || c->rx_full ? 0 : EPOLLIN) | (c->want_out ? EPOLLOUT : 0));
}

static void conn_free(struct conn *c)
{
    for (struct conn **p = &conns; *p; p = &(*p)->next)
        if (*p == c) {
            *p = c->next;
            break;
        }
    remote_lost(c);
    if (conn_hot == c)
        conn_hot = NULL;
    reach_end(c);
    if (c->fd >= 0)
        close(c->fd);
    conn_out_free(c);
    free(c);
}

void conn_break(struct conn *c)
{
    c->broken = any_broken = true;
}

/* Connections are only marked while they are in use; here nobody uses one. */
void conn_bury(void)
{
    if (LIKELY(!any_broken))
        return;
    any_broken = false;
    for (struct conn *c = conns, *next; c; c = next) {
        next = c->next;
        if (c->broken)
            conn_free(c);
    }
}

static void on_conn(struct watch *w, uint32_t ev)
{
    struct conn *c = CONTAINER_OF(w, struct conn, w);
    if (c->broken)
        return;
    if ((c->rx_pause || c->rx_full) && ev & (EPOLLERR | EPOLLHUP)) {
        conn_break(c); /* it would be told again and again until the pause is over */
        return;
    }
    if (ev & (EPOLLIN | EPOLLERR | EPOLLHUP))
        conn_receive(c);
    if (!c->broken && ev & EPOLLOUT)
        conn_send(c);
}

static struct conn *conn_make(void)
{
    struct conn *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->w.ready = on_conn;
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

struct conn *conn_open(uint32_t node, uint32_t slot, uint32_t linear, uint32_t to)
{
    for (struct conn *c = conns; c; c = c->next)
        if (c->outgoing && !c->broken && c->slot == slot && c->linear == linear && c->to == to)
            return c;
    struct conn *c = conn_make();
    if (!c)
        return NULL;
    c->outgoing = c->connecting = true;
    c->node = node;
    c->slot = slot;
    c->linear = linear;
    c->to = to;
    return reach_begin(c) ? c : NULL;
}

bool conn_accepted(int fd, uint32_t node, uint32_t slot, uint32_t linear, uint32_t from)
{
    struct conn *c = conn_make();
    if (!c)
        return false;
    c->node = node;
    c->slot = slot;
    c->linear = linear;
    c->to = from;
    conn_adopt(c, fd);
    conn_watch(c); /* its events were the caller's until now */
    return true;
}

void conn_reached(struct conn *c, int fd)
{
    c->connecting = false;
    conn_adopt(c, fd);
    conn_watch(c); /* its events were the attempt's until now */
    conn_send(c);
}

/* A token bucket that holds half a millisecond, so that a late wake-up costs nothing. */
uint64_t port_book(_Atomic uint64_t *free_at, uint64_t rate, uint64_t bytes, uint64_t now)
{
    uint64_t need = (uint64_t)((__uint128_t)bytes * NS_S / rate), old = atomic_load(free_at), end;
    do
        end = max_u64(old, now > BURST_NS ? now - BURST_NS : 0) + need;
    while (!atomic_compare_exchange_weak(free_at, &old, end));
    return end > now + BURST_NS ? end - BURST_NS / 2 : 0;
}

void conn_received(struct conn *c, uint32_t linear, uint32_t bytes)
{
    uint64_t rate = proc.fab.port[linear].rate;
    if (!rate)
        return;
    uint64_t wait = port_book(&proc.reg->port[linear].rx_free, rate, bytes, now_ns());
    if (!wait)
        return;
    c->rx_pause = max_u64(c->rx_pause, wait);
    conn_watch(c);
    engine_tick_at(c->rx_pause);
}

static void tick(struct conn *c, uint64_t now)
{
    if (c->connecting)
        reach_tick(c, now);
    bool again = c->rx_full && !conn_crowded(c);
    if (c->rx_pause > now)
        engine_tick_at(c->rx_pause);
    else if (c->rx_pause || again) {
        c->rx_pause = 0;
        c->rx_full = c->rx_full && !again;
        conn_watch(c);
        conn_parse(c);
        conn_receive(c);
    }
    if (c->tx_pause > now)
        engine_tick_at(c->tx_pause);
    else if (c->tx_pause) {
        c->tx_pause = 0;
        conn_send(c);
    }
}

void conn_tick(uint64_t now)
{
    for (struct conn *c = conns; c; c = c->next)
        if (!c->broken)
            tick(c, now);
}

uint32_t conn_ask(struct conn *c)
{
    struct frame f = {
        .type = FRAME_PING,
        .qp_type = IBV_QPT_RC,
        .dst_qpn = c->slot << QP_BITS,
        .src_qpn = proc.slot << QP_BITS,
        .slid = fabric_lid(&proc.fab, c->linear),
        .dlid = fabric_lid(&proc.fab, c->to),
    };
    c->ping = (c->ping + 1) & 0xffffffu;
    c->ping += !c->ping;
    f.seq = c->ping;
    conn_reply(c, &f, NULL);
    conn_send(c);
    return c->ping;
}
