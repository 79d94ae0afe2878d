/* migrate.c: automatic path migration [InfiniBand 17.2.8]. If the adapter of the primary rail has a second
 * port, or its port a second path, each connection has an alternate path: when the first path fails, the
 * adapter moves the connection, with all its outstanding requests, to the alternate path. This library
 * repeats nothing; credits, rings and order are unaffected.
 *
 * Both ends load the alternate path; it is armed when the adapters have exchanged their migration states. If
 * a port of this process goes down, the process requests migration at once, and moves back when the port is
 * up again. The event thread counts migrations; ib_migration_check handles them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/counter.h"
#include "base/log.h"
#include "net/ib/channel/channel.h"
#include "net/ib/connection/connection.h"
#include "net/ib/failover/failover.h"
#include "net/ib/rails/rails.h"
#include "net/ib/rendezvous/rendezvous.h"

static COUNTER(migrated, "ib_paths_migrated",
               "Times a connection moved to its alternate path or back (automatic path migration).");

/* Chooses the alternate path: another rail on the primary rail's adapter, preferably on another port. RoCE
 * has no alternate paths. */
void ib_migration_find_alternate(struct ib *ib)
{
    for (uint32_t i = 1; i < ib->nrails; i++) {
        struct ib_rail *r = &ib->rails[i];
        if (r->waiting || r->adapter != &ib->adapters[0] || r->device->address.ethernet ||
            r->device->address.subnet != ib->device.address.subnet)
            continue;
        if (!ib->alternate ||
            (ib->alternate->device->port == ib->device.port && r->device->port != ib->device.port))
            ib->alternate = r;
    }
}

static bool has_alternate(const struct ib_endpoint *ep)
{
    return ep->primary == 0 && ep->peer_rail == 0 && !ep->address.ethernet &&
           ep->alternate.subnet == ep->address.subnet &&
           (ep->ib->alternate || ep->alternate.lid != ep->address.lid);
}

/* Loads the alternate path; without effect if the adapter does not support path migration. */
void ib_migration_arm(struct ib_lane *lane)
{
    struct ib_endpoint *ep = lane->endpoint;
    struct ib *ib = ep->ib;
    if (lane->path.armed || !has_alternate(ep))
        return;
    bool back = lane->path.moved;
    const struct ib_rail *r = back || !ib->alternate ? &ib->rails[0] : ib->alternate;
    struct ibv_qp_attr a = {.path_mig_state = IBV_MIG_REARM,
                            .alt_port_num = r->device->port,
                            .alt_pkey_index = r->device->pkey_index,
                            .alt_timeout = ib_lane_ack_timeout()};
    ib_device_fill_route(r->device, back ? &ep->address : &ep->alternate, &a.alt_ah_attr);
    if (ib_lane_service_level(lane) != IB_SERVICE_LEVEL_DEFAULT)
        a.alt_ah_attr.sl = (uint8_t)ib_lane_service_level(lane);
    lane->path.armed = ib->device.verbs.modify_qp(lane->qp, &a, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE) == 0;
}

/* Requests migration. The request has no effect unless the path is armed at both ends; the path must be
 * loaded again afterwards. */
static void lane_migrate(struct ib_lane *lane)
{
    struct ibv_qp_attr a = {.path_mig_state = IBV_MIG_MIGRATED};
    lane->endpoint->ib->device.verbs.modify_qp(lane->qp, &a, IBV_QP_PATH_MIG_STATE);
    lane->path.armed = false;
    lane->path.moving = true;
}

/* Counts a migration; called in the event thread. */
void ib_migration_count_event(struct ib *ib, struct ib_lane *lane)
{
    atomic_fetch_add(&lane->path.events, 1);
    atomic_store(&ib->ports, 1);
    atomic_store(&ib->attention, 1);
}

static void lane_check_migration(struct ib_lane *lane, bool rested)
{
    struct ib *ib = lane->endpoint->ib;
    bool primary_up = ib_rail_is_up(&ib->rails[0]), other_up = !ib->alternate || ib_rail_is_up(ib->alternate);
    for (uint32_t n = atomic_exchange(&lane->path.events, 0); n > 0; n--) {
        lane->path.moved = !lane->path.moved;
        lane->path.armed = lane->path.moving = false;
        lane->path.left_first = !primary_up;
        counter_add(&migrated, 1);
        log_debug("lane %u to rank %u moved to its %s path", lane->index, lane->endpoint->peer->rank,
                  lane->path.moved ? "alternate" : "first");
    }
    bool leave = !primary_up && other_up && !lane->path.moved;
    bool back = rested && primary_up && lane->path.moved && lane->path.left_first;
    if (lane->path.armed && (leave || back))
        lane_migrate(lane);
    else if (primary_up && other_up &&
             rested) /* not at once: late packets of the peer's old path could trigger a migration */
        ib_migration_arm(lane);
}

void ib_migration_check(struct ib *ib, bool rested)
{
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        struct ib_endpoint *ep = ib->endpoints[i];
        for (uint32_t k = 0; ep->peer && ep->conn.state == CONN_OPEN && k < ib->lanes; k++)
            if (has_alternate(ep))
                lane_check_migration(&ep->lanes[k], rested);
    }
}
