/* conn.c: common functions of connections: the list of connections, broken connections, events to wait
 * for, the rate of ports.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/conn.h"
#include <sys/epoll.h>

#define BURST_NS (500 * NS_US)

struct conn *conns, *conn_hot;
const struct conn_user *conn_user;
static bool any_broken;

void conn_update_watch(struct conn *c)
{
    net_watch_change(c->fd, &c->w, (c->rx_pause || c->rx_full ? 0 : EPOLLIN) | (c->want_out ? EPOLLOUT : 0));
}

void conn_mark_broken(struct conn *c)
{
    c->broken = any_broken = true;
}

bool conn_test_and_clear_broken(void)
{
    bool any = any_broken;
    any_broken = false;
    return any;
}

/* Reserves time in a token bucket of half a millisecond, so that a late wake-up costs no bandwidth. */
static uint64_t conn_reserve_time(_Atomic uint64_t *free_at, uint64_t rate, uint64_t bytes, uint64_t now)
{
    uint64_t need = (uint64_t)((__uint128_t)bytes * NS_S / rate), old = atomic_load(free_at), end;
    do
        end = max_u64(old, now > BURST_NS ? now - BURST_NS : 0) + need;
    while (!atomic_compare_exchange_weak(free_at, &old, end));
    return end > now + BURST_NS ? end - BURST_NS / 2 : 0;
}

uint64_t port_reserve_time(uint32_t linear, bool out, uint64_t bytes)
{
    const struct fab_port *f = &proc.fab.port[linear];
    struct reg_port *r = &proc.reg->port[linear], *bus = &proc.reg->port[fabric_bus_port(&proc.fab, linear)];
    if (!f->rate && !f->bus)
        return 0;
    uint64_t now = now_ns(), end = 0;
    if (f->rate)
        end = conn_reserve_time(out ? &r->tx_free : &r->rx_free, f->rate, bytes, now);
    return f->bus ? max_u64(end, conn_reserve_time(&bus->bus_free, f->bus, bytes, now)) : end;
}

void conn_received(struct conn *c, uint32_t linear, uint32_t bytes)
{
    uint64_t wait = port_reserve_time(linear, false, bytes);
    if (!wait)
        return;
    c->rx_pause = max_u64(c->rx_pause, wait);
    conn_update_watch(c);
    net_schedule_tick(c->rx_pause);
}
