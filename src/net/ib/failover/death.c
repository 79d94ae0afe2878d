/* death.c: closes connections to processes that have died, in a job that continues without them. The launcher
 * decides which process is dead and notifies every rank, so that all ranks agree. If an adapter first reports
 * that a peer is unreachable, this process reports the peer to the launcher, which ends the peer if it still
 * runs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/connection/connection.h"
#include "net/ib/failover/failover.h"
#include "net/ib/rails/rails.h"
#include "net/ib/rendezvous/transfer.h"
#include "net/lost.h"

#include <stdlib.h>

#include "boot/boot.h"
#include "net/ib/device/device.h"
#include "net/ib/device/survey.h"

/* Lists the operations of all transfers in the send queues of a connection. */
static struct net_op **collect_pending_ops(const struct ib_endpoint *ep, uint32_t *count)
{
    struct net_op **ops = malloc((ep->ops + 1) * sizeof(struct net_op *));
    CHECK_MEMORY(ops != NULL, "the transfers of a process that has died");
    *count = 0;
    for (uint32_t k = 0; k < ep->ib->lanes; k++)
        for (uint32_t at = ep->lanes[k].tail; at != ep->lanes[k].head; at++) {
            struct net_op *op = ep->lanes[k].work[at & (ep->lanes[k].depth - 1)].op;
            if (op && *count < ep->ops)
                ops[(*count)++] = op;
        }
    return ops;
}

/* Called when a peer is lost: destroys its queue pairs, so that no late request of the peer accesses local
 * memory. */
void ib_peer_lost(struct transport *t, struct peer *peer)
{
    struct ib_endpoint *ep = peer->endpoint;
    struct ib *ib = ib_of(t);
    uint32_t count;
    if (ib->allot)
        ib->allot->forget_peer(ep);
    ib_stripes_fail(ep); /* must precede the completion of the stripes' operations below */
    struct net_op **ops = collect_pending_ops(ep, &count);
    ib_endpoint_drop(ep);
    ib_resend_free(ep, err_set(MPIX_ERR_PROC_FAILED, "the peer process has died"));
    for (uint32_t i = 0; i < count; i++)
        ops[i]->done(ops[i], err_set(MPIX_ERR_PROC_FAILED, "the peer process has died"));
    free(ops);
}

/* True if no port is up. The adapter may report an error before the event of the port, so the state of each
 * port is queried too. */
static bool all_ports_are_down(const struct ib *ib)
{
    for (uint32_t i = 0; i < ib->nrails; i++) {
        const struct ib_device *d = ib->rails[i].device;
        struct ibv_port_attr attr;
        if (ib_rail_is_up(&ib->rails[i]) &&
            ib_query_port(&ib->device.verbs, d->context, d->port, &attr) == 0 &&
            (attr.state == IBV_PORT_ACTIVE || attr.state == IBV_PORT_ACTIVE_DEFER))
            return false;
    }
    return true;
}

bool ib_peer_report_suspect(struct ib_endpoint *ep)
{
    struct net *net = ep->ib->base.net;
    if (!net->lost)
        return false;
    if (all_ports_are_down(ep->ib)) /* this process, not the peer, is unreachable */
        ib_fatal(ep->ib, NULL, "%s is down%s; check the cable and the switch", ep->ib->device.name,
                 ep->ib->nrails > 1 ? ", and so are all other ports" : "");
    if (!ep->suspected && !net_is_lost(net, ep->peer->rank)) {
        ep->suspected = true;
        if (ep->peer->card || boot_report_suspect(net->boot, ep->peer->rank) != 0)
            net_lost_give_up_peer(net, ep->peer->rank); /* no launcher reports a process of another job */
    }
    return true;
}
