/* local.c: the table of operations of the shared-memory wire, which has no state and no lock of its own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "local/local.h"
#include "barrier/switch.h"
#include "hca/send_queue.h"
#include "local/lane.h"
#include "memory/share.h"

static bool local_attach(struct qp *q, uint32_t node)
{
    (void)q, (void)node;
    return true;
}

static void local_detach(struct qp *q)
{
    (void)q;
}

/* Sends a datagram to a process of this machine, which may drop it. Whether `ud_drop=` drops a datagram
 * differs from attempt to attempt, so that a sender that repeats it succeeds eventually. */
static enum answer local_send_datagram(uint32_t node, uint32_t qpn, const struct request *r,
                                       const struct iovec *iov, int n)
{
    int why;
    struct peer *p = peer_find(qpn >> QP_BITS, &why);
    (void)node;
    if (p)
        ud_deliver(p, qpn, r, iov, n);
    else
        port_count((uint32_t)(r->dlid >> proc.fab.lmc) - 1, CNT_RX_DROPS, 1);
    peer_release(p);
    return p || !why ? ANS_OK : ANS_REFUSED;
}

static void local_send_multicast(struct qp *q, const struct path *to, const struct request *r,
                                 const struct iovec *iov, int n)
{
    lane_send(q->linear, to->dgid.raw, r, iov, n, q->no_self_mcast ? qp_to_ibv(q)->qp_num : 0);
}

static void local_join_group(const uint8_t gid[16], bool join)
{
    (void)gid, (void)join; /* the registry contains the members */
}

static void send_to_switch(const struct softib_packet *p)
{
    shlock_lock(&proc.reg->sw_lock);
    switch_handle_packet(p);
    shlock_unlock(&proc.reg->sw_lock);
}

static void local_receive_from_switch(const struct softib_packet *p)
{
    switch_store_packet(p->port, p);
}

const struct wire local_wire = {
    .attach = local_attach,
    .detach = local_detach,
    .progress = local_progress,
    .reserve = local_reserve_bandwidth,
    .moved = local_detach,
    .quiet = local_detach,
    .datagram = local_send_datagram,
    .multicast = local_send_multicast,
    .group = local_join_group,
    .to_switch = send_to_switch,
    .from_switch = local_receive_from_switch,
};

static void local_poll(void)
{
    lane_poll();
    if (UNLIKELY(share_has_open_copies()))
        share_help();
}

static int sleep_or_share_copies(uint64_t until)
{
    return share_help_or_sleep(until) ? 0 : -1;
}

const struct attendant local_attendant = {.poll = local_poll, .sleep = sleep_or_share_copies};
