/* ud.c: datagrams, unicast and multicast, with the faults that SOFTIB_FABRIC sets. A datagram that no QP
 * can receive is dropped and counted; the sender's request succeeds in any case.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/route_header.h"
#include "hca/send_queue.h"
#include "memory/copy.h"
#include "hca/wire.h"
#include "memory/gpu.h"
#include <stdlib.h>

/* A copy of a datagram that is delayed until after the next one. */
struct held_datagram {
    struct request r;
    uint32_t qpn;
    bool multicast;
    union ibv_gid gid;
    uint32_t length;
    char data[];
};

/* True if ud_drop= discards the datagram at this receiver; others of its group may receive it. */
static bool ud_is_dropped(uint32_t qpn, uint64_t number)
{
    if (LIKELY(!proc.fab.ud_drop))
        return false;
    uint64_t s = ((proc.fab.seed + number) * 0x9E3779B97F4A7C15ull ^ qpn) | 1;
    rng_next(&s); /* consecutive seeds give similar first values, which are discarded */
    return (uint32_t)(rng_next(&s) >> 32) < proc.fab.ud_drop;
}

void ud_deliver_numbered(struct peer *to, uint32_t qpn, const struct request *r, const struct iovec *iov,
                         int n, uint64_t number)
{
    struct target t;
    struct landing l;
    struct iovec all[MAX_SGE + 1];
    uint32_t arg;
    if (target_find(to, qpn, r, &t) != ANS_OK) {
        struct fab_place at;
        if (fabric_find_lid(&proc.fab, r->dlid, &at))
            port_count(at.linear, CNT_RX_DROPS, 1);
        return;
    }
    uint32_t port = atomic_load(&t.qp->port);
    if (!port_up(port) || ud_is_dropped(qpn, number) || target_prepare(&t, r, &l, &arg) != ANS_OK) {
        port_count(port, CNT_RX_DROPS, 1);
    } else {
        struct ibv_grh grh = r->grh;
        all[0] = (struct iovec){&grh, GRH_BYTES};
        memcpy(&all[1], iov, (size_t)n * sizeof(*iov));
        target_finish(&t, r, &l, copy_to_peer(to, l.seg, l.nseg, all, n + 1, r->length + GRH_BYTES));
        port_count(port, CNT_RX_PACKETS, 1);
        port_count(port, CNT_RX_BYTES, r->length);
    }
    target_release(&t);
}

void ud_deliver(struct peer *to, uint32_t qpn, const struct request *r, const struct iovec *iov, int n)
{
    const uint64_t number = proc.fab.ud_drop ? atomic_fetch_add(&proc.ud_delivered, 1) : 0;
    ud_deliver_numbered(to, qpn, r, iov, n, number ^ (uint64_t)proc.slot << 40);
}

static void send_multicast(struct qp *q, const struct path *to, const struct request *r,
                           const struct iovec *iov, int n)
{
    wire_near->multicast(q, to, r, iov, n);
    if (wire_far)
        wire_far->multicast(q, to, r, iov, n);
}

static enum answer send_unicast(uint32_t qpn, const struct request *r, const struct iovec *iov, int n)
{
    struct fab_place at;
    return fabric_find_lid(&proc.fab, r->dlid, &at) ? wire_to_node(at.node)->datagram(at.node, qpn, r, iov, n)
                                                    : ANS_OK;
}

static bool ud_is_randomly_lost(struct qp *q, uint32_t p)
{
    return p && (uint32_t)(rng_next(&q->rng) >> 32) < p;
}

static void send_held_datagram(struct qp *q, struct held_datagram *h)
{
    struct iovec iov = {h->data, h->length};
    struct path to = {.dgid = h->gid};
    if (h->multicast)
        send_multicast(q, &to, &h->r, &iov, 1);
    else
        send_unicast(h->qpn, &h->r, &iov, 1);
    free(h);
}

/* Delays this datagram until the next one was sent, if ud_reorder= selects it. Returns true if it does. */
static bool hold_datagram(struct qp *q, struct wqe *w, const struct request *r, bool mc,
                          const struct iovec *iov, int n)
{
    struct held_datagram *h = q->held ? NULL : malloc(sizeof(*h) + w->length);
    if (!h)
        return false;
    *h = (struct held_datagram){*r, w->remote_qpn, mc, w->path.dgid, w->length};
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        gpu_read(h->data + at, iov[i].iov_base, iov[i].iov_len);
        at += iov[i].iov_len;
    }
    q->held = h;
    return true;
}

void ud_free_held(struct qp *q)
{
    free(q->held);
    q->held = NULL;
}

enum answer ud_execute(struct qp *q, struct wqe *w)
{
    struct iovec iov[MAX_SGE];
    struct request r;
    bool mc = path_is_multicast(&w->path);
    int n = sq_fill_iov(q, w, 0, iov);
    if (n < 0)
        return ANS_LOCAL;
    if (w->length > proc.fab.port[q->linear].mtu)
        return ANS_LENGTH;
    sq_fill_request(q, w, &r);
    r.has_grh = w->path.is_global;
    r.sl = w->path.sl;
    r.dlid = w->path.dlid;
    r.slid = (uint16_t)(fabric_port_lid(&proc.fab, q->linear) + w->path.src_path_bits);
    r.qkey = w->remote_qkey & 0x80000000u ? q->attr.qkey : w->remote_qkey;
    memset(&r.grh, 0, sizeof(r.grh));
    if (r.has_grh)
        route_header_write(&r.grh, q->linear, &w->path, w->length);

    port_count(q->linear, CNT_TX_PACKETS, 1);
    port_count(q->linear, CNT_TX_BYTES, w->length);
    if (!port_up(q->linear) || ud_is_randomly_lost(q, proc.fab.ud_loss)) {
        port_count(q->linear, CNT_TX_DROPS, 1);
        return ANS_OK;
    }
    struct held_datagram *late = q->held;
    enum answer a = ANS_OK;
    if (ud_is_randomly_lost(q, proc.fab.ud_reorder) && hold_datagram(q, w, &r, mc, iov, n))
        return ANS_OK;
    for (int copies = ud_is_randomly_lost(q, proc.fab.ud_dup) ? 2 : 1; copies; copies--) {
        if (mc)
            send_multicast(q, &w->path, &r, iov, n);
        else
            a = send_unicast(w->remote_qpn, &r, iov, n);
    }
    if (late) {
        q->held = NULL;
        send_held_datagram(q, late);
    }
    return a;
}
