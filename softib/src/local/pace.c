/* pace.c: rate and latency of ports when both ends are on this machine: computes when the last byte of a
 * request would have arrived and when its acknowledgement would be back.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "local/local.h"
#include "hca/responder.h"
#include "hca/send_queue.h"

/* Reserves time on one direction of a link: a token bucket whose level is the time at which the link is
 * next idle. */
static uint64_t pace_reserve_time(_Atomic uint64_t *free_at, uint64_t rate, uint64_t bytes, uint64_t now)
{
    if (!rate)
        return now;
    uint64_t need = (uint64_t)((__uint128_t)bytes * NS_S / rate);
    uint64_t old = atomic_load(free_at), end;
    do
        end = max_u64(old, now) + need;
    while (!atomic_compare_exchange_weak(free_at, &old, end));
    return end;
}

/* Reserves time on one direction of a port, and on the adapter's bus, which carries both directions and has
 * no virtual lanes. Both virtual lanes of a port share the rate of its link: a packet of the high-priority
 * lane delays later packets of the other lane, but waits for packets of its own lane only. */
static uint64_t pace_reserve_port_time(uint32_t linear, bool out, uint64_t bytes, uint64_t now, uint8_t sl)
{
    const struct fab_port *f = &proc.fab.port[linear];
    struct reg_port *r = &proc.reg->port[linear], *bus = &proc.reg->port[fabric_bus_port(&proc.fab, linear)];
    uint64_t end = pace_reserve_time(out ? &r->tx_free : &r->rx_free, f->rate, bytes, now);
    if (f->high && sl >= f->high)
        end = pace_reserve_time(out ? &r->tx_high_free : &r->rx_high_free, f->rate, bytes, now);
    return f->bus ? max_u64(end, pace_reserve_time(&bus->bus_free, f->bus, bytes, now)) : end;
}

/* A packet leaves the sender's port once, and the switch copies it. All senders together are limited to
 * the rate of the slowest port of the group. Other traffic of the members' ports is accounted for when a
 * member takes the packet, so that the work of the sender does not depend on the number of members. With
 * wire=tcp the traffic of ports of other nodes is not known. */
static void reserve_multicast(struct qp *q, struct wqe *w)
{
    uint64_t now = now_ns(), bytes = w->length + 30ull;
    uint64_t end = pace_reserve_port_time(q->linear, true, bytes, now, w->path.sl);
    int row = group_row(w->path.dgid.raw);
    if (row >= 0) {
        struct reg_lane *l = &proc.reg->lane[row];
        end = max_u64(end, pace_reserve_time(&l->free_at, atomic_load(&l->slowest), bytes, now));
    }
    w->due = end + proc.fab.port[q->linear].latency;
}

uint64_t pace_send_start(uint32_t from, uint32_t length)
{
    const struct fab_port *f = &proc.fab.port[from];
    if (!proc.fab.paced)
        return 0;
    return now_ns() - f->latency - (f->rate ? (uint64_t)((__uint128_t)(length + 30) * NS_S / f->rate) : 0);
}

uint64_t pace_arrival_time(const struct reg_packet *p, uint32_t port, bool books)
{
    uint64_t latency = fabric_latency(&proc.fab, p->from, port);
    uint64_t end = books ? pace_reserve_port_time(port, false, p->length + 30ull, p->began, 0) : p->began;
    return end + latency;
}

void local_reserve_bandwidth(struct qp *q, struct wqe *w)
{
    bool ud = qp_to_ibv(q)->qp_type == IBV_QPT_UD;
    uint16_t dlid = ud ? w->path.dlid : q->path.dlid;
    struct fab_place at;
    if (ud && path_is_multicast(&w->path)) {
        reserve_multicast(q, w);
        return;
    }
    if (!fabric_find_lid(&proc.fab, dlid, &at))
        return;
    uint64_t now = now_ns();
    uint64_t latency = fabric_latency(&proc.fab, q->linear, at.linear);
    bool read = w->opcode == IBV_WR_RDMA_READ; /* the data is transferred in the other direction */
    uint32_t from = read ? at.linear : q->linear, to = read ? q->linear : at.linear;
    /* With 30 bytes of headers and CRCs per packet. */
    uint64_t bytes = w->length + 30ull * count_packets(w->length, (uint32_t)q->attr.path_mtu);
    const uint8_t sl = ud ? w->path.sl : q->path.sl;
    uint64_t end = max_u64(pace_reserve_port_time(from, true, bytes, now, sl),
                           pace_reserve_port_time(to, false, bytes, now, sl));
    w->due = end + latency * (read ? 2 : 1);
    w->ack_at = read || !qp_is_reliable(q) || !latency ? 0 : w->due + latency;
}
