/* hello.c: the datagrams of the handshake. One UD queue pair for each rail receives the HELLOs of all peers.
 * Datagrams may be lost, so a process repeats its HELLO at growing intervals until the answer arrives.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "net/ib/channel/channel.h"
#include "net/ib/connection/connection.h"
#include "net/ib/queue/xrc.h"
#include "net/guest.h"

static COUNTER(hellos, "ib_hellos_sent", "Datagrams sent to open connections.");

#define HELLO_QKEY  0x11110000u
#define HELLO_DEPTH 64                   /* entries of each queue; HELLOs that find no entry are repeated */
#define FIRST_WAIT  (2 * 1000 * 1000ull) /* ns; doubles up to IB_HELLO_LONGEST_WAIT */

int ib_hello_post_receive(struct ib *ib, struct ib_buffer *b)
{
    uint32_t adapter = ib->rails[b->rail].adapter->index;
    struct ibv_sge piece = {
        .addr = (uintptr_t)b->data, .length = (uint32_t)ib->ud_pool.size, .lkey = b->lkey[adapter]};
    struct ibv_recv_wr wr = {.wr_id = (uintptr_t)b | IB_KIND_HELLO, .sg_list = &piece, .num_sge = 1}, *bad;
    int rc = ibv_post_recv(ib->uds[b->rail].qp, &wr, &bad);
    return rc == 0 || ib_adapter_is_gone(ib->rails[b->rail].adapter)
               ? 0
               : err_set(MPI_ERR_OTHER, "a receive buffer for handshakes was refused (%s)", err_reason(rc));
}

static int ud_open(struct ib *ib, struct ib_rail *r)
{
    struct ib_ud *ud = &ib->uds[r->index];
    uint32_t depth = (uint32_t)MIN(HELLO_DEPTH, r->device->attr.max_qp_wr);
    struct ibv_qp_init_attr a = {
        .send_cq = r->adapter->cq,
        .recv_cq = r->adapter->cq,
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1, .max_recv_sge = 1}};
    int rc = ib_adapter_reserve_completions(r->adapter, (int)(2 * depth));
    if (rc != 0)
        return rc;
    ud->qp = ib->device.verbs.create_qp(r->device->pd, &a);
    if (!ud->qp || ib_qp_start_datagrams(r->device, ud->qp, HELLO_QKEY) != 0)
        return err_set(MPI_ERR_OTHER, "%s: cannot create the queue pair for handshakes: %s", r->device->name,
                       err_reason(errno));
    for (uint32_t i = 0; i < depth && rc == 0; i++) {
        struct ib_buffer *b = ib_buffer_get(&ib->ud_pool);
        if (!b)
            return MPI_ERR_NO_MEM;
        b->rail = r->index;
        rc = ib_hello_post_receive(ib, b);
    }
    ud->depth = (int)depth;
    r->device->address.ud_qpn = ud->qp->qp_num;
    return rc;
}

int ib_hello_open(struct ib *ib)
{
    /* A buffer has room for the largest packet, which any host can send: a longer one would break the queue
     * pair. */
    size_t packet = 0;
    for (uint32_t i = 0; i < ib->nrails; i++)
        packet =
            MAX(packet, (size_t)128 << (ib->rails[i].waiting ? ib->rails[i].device->port_attr.max_mtu
                                                             : ib->rails[i].device->port_attr.active_mtu));
    ib_pool_init(&ib->ud_pool, ib, IB_GRH_BYTES + MAX(packet, sizeof(struct ib_hello)));
    int rc = 0;
    for (uint32_t i = 0; i < ib->nrails && rc == 0; i++)
        rc = ud_open(ib, &ib->rails[i]);
    return rc;
}

void ib_hello_close(struct ib *ib)
{
    for (uint32_t i = 0; i < IB_RAILS_MAX; i++) {
        if (ib->uds[i].qp)
            ib->device.verbs.destroy_qp(ib->uds[i].qp);
        ib->uds[i].qp = NULL;
    }
}

static void hello_fill(const struct ib_endpoint *ep, struct ib_hello *h)
{
    struct ib *ib = ep->ib;
    struct net_name to = net_process_name(ib->base.net, ep->peer->rank);
    const struct ib_rail *home = &ib->rails[ep->primary];
    *h = (struct ib_hello){.magic = IB_HELLO_MAGIC,
                           .version = IB_HELLO_VERSION,
                           .job = ib->job,
                           .to_job = to.world,
                           .from = ib->base.net->rank,
                           .to = (uint32_t)to.rank,
                           .mine = ep->conn.mine,
                           .yours = ep->conn.yours,
                           .ready = conn_is_open(&ep->conn),
                           .lanes = ib->lanes,
                           .receive = (uint32_t)ib->receive,
                           .scheme = (uint32_t)ib->rules.scheme,
                           .rd_atomic = (uint32_t)MIN(home->device->attr.max_qp_rd_atom, 16),
                           .bell = (uintptr_t)ep->bell->data,
                           .bell_key = ep->bell->rkey[home->adapter->index],
                           .expected = ep->expected,
                           .rail = home->index,
                           .adapter = home->adapter->index,
                           .up = ib_rails_list_up(ib),
                           .address = home->device->address};
    for (uint32_t i = 0; i < ib->lanes; i++) {
        h->qpn[i] = ep->lanes[i].qp->qp_num;
        h->psn[i] = ep->lanes[i].psn;
        h->posted[i] = ib->rules.first;
    }
    if (ib->xrc)
        ib_xrc_fill_hello(ep, h);
}

static struct ibv_ah *get_address_handle(struct ib_endpoint *ep)
{
    struct ibv_ah_attr route;
    if (ep->ah)
        return ep->ah;
    const struct ib_device *d = ep->ib->rails[ep->primary].device;
    ib_device_fill_route(d, &ep->address, &route);
    ep->ah = d->verbs.create_ah(d->pd, &route);
    if (!ep->ah && (!ep->paths || ep->paths->count == 1) && ep->failed_since == 0)
        ib_fatal(ep->ib, ep, "no route to it (LID %u): %s", ep->address.lid, err_reason(errno));
    return ep->ah;
}

static void hello_schedule_repeat(struct ib_endpoint *ep)
{
    if (conn_has_no_pending_hello(&ep->conn))
        return;
    /* After a failure the interval starts anew for each path. */
    uint32_t tries = ep->failed_since ? ep->conn.tries % IB_PATH_TRIES : ep->conn.tries;
    uint64_t wait = FIRST_WAIT << MIN(tries, 8u);
    ep->deadline = clock_ns() + MIN(wait, IB_HELLO_LONGEST_WAIT);
    if (list_empty(&ep->opening_link)) {
        list_append(&ep->ib->opening, &ep->opening_link);
        ep->opening_since = clock_ns();
    }
    ep->ib->next_timer = MIN(ep->ib->next_timer, ep->deadline);
}

void ib_hello_send(struct ib_endpoint *ep)
{
    struct ib *ib = ep->ib;
    struct ib_ud *ud = &ib->uds[ep->primary];
    struct ibv_ah *ah = get_address_handle(ep);
    struct ib_buffer *b = ud->sends < ud->depth && ah ? ib_buffer_get(&ib->ud_pool) : NULL;
    hello_schedule_repeat(ep);
    if (!b && ah && ud->sends == 0) /* no HELLO is in flight whose buffer could be reused */
        ib_fatal(ib, ep, "no handshake can be sent: %s", err_detail(MPI_ERR_NO_MEM));
    if (!b)
        return; /* ib_hello_repeat sends the HELLO later */
    b->rail = ep->primary;
    hello_fill(ep, (struct ib_hello *)(void *)b->data);
    struct ibv_sge piece = {
        .addr = (uintptr_t)b->data, .length = sizeof(struct ib_hello), .lkey = b->lkey[ep->lanes[0].adapter]};
    struct ibv_send_wr wr = {.wr_id = (uintptr_t)b | IB_KIND_HELLO_SENT,
                             .sg_list = &piece,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
                             .wr.ud = {.ah = ah,
                                       .remote_qpn = ep->address.ud_qpn,
                                       .remote_qkey = HELLO_QKEY}},
                       *bad;
    counter_add(&hellos, 1);
    ud->sends++;
    if (ibv_post_send(ud->qp, &wr, &bad) != 0) {
        ud->sends--;
        ib_buffer_put(&ib->ud_pool, b);
    }
}
