/* peers.c: the endpoints of peers: created when a peer is first used, reused when a guest has departed, freed
 * when the transport closes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "boot/boot.h"
#include "net/ib/channel/channel.h"
#include "net/ib/connection/connection.h"
#include "net/ib/failover/failover.h"
#include "net/ib/multicast/ib_multicast.h"
#include "net/ib/rails/rails.h"
#include "net/ib/rendezvous/transfer.h"
#include "net/ib/transport/ib_transport.h"
#include "net/guest.h"

#define PART_PATIENCE 5u /* s; time limit for a guest's answer to CLOSE */

/* Fills the capabilities. Stripes of one transfer arrive in any order, and a frame may arrive before them, so
 * the layers above wait for completions. */
static void fill_caps(struct ib *ib, const struct ib_endpoint *ep, struct transport_caps *caps)
{
    *caps = (struct transport_caps){
        .frame_max = ib->large.size - sizeof(struct ib_frame),
        .inline_max = 256,
        .eager_best = ib->large.size - sizeof(struct ib_frame),
        .gpu_memory = true,
        .put = true,
        .put_silent = ib->inline_max,
        .get = MIN(ib->device.attr.max_qp_rd_atom, ib->device.attr.max_qp_init_rd_atom) > 0,
        .put_ordered = ib->lanes == 1 && !ep->has_several_rails,
        .last_byte_last = ib->device.last_byte_last && !ep->has_several_rails,
        .frames_spread = ib_frames_can_spread(ep),
        .striped_from = ep->has_several_rails ? 2 * ib->stripe_rules.smallest : 0,
        .starves = ib->rules.scheme != CREDIT_HW,
        .software = ib->device.verbs.softib,
        .latency_ns = ib->device.verbs.softib ? 300 : 1000,
        .bandwidth_mbs = 10000};
}

static int lanes_init(struct ib *ib, struct ib_endpoint *ep)
{
    for (uint32_t i = 0; i < ib->lanes; i++) {
        struct ib_lane *lane = &ep->lanes[i];
        lane->endpoint = ep;
        lane->index = (uint8_t)i;
        ib_lane_use_primary(lane);
        lane->pool = ib->lanes > 1 && i == 0 ? &ib->small : &ib->large;
        lane->frame_max = lane->pool->size - sizeof(struct ib_frame);
        list_init(&lane->posted);
    }
    if (!ep->bell)
        ep->bell = ib_buffer_get(&ib->bells);
    if (!ep->bell) /* the peer waits, and cannot be notified without a connection */
        ib_fatal(ib, NULL, "no connection to rank %u can be opened: %s", ep->peer->rank,
                 err_detail(MPI_ERR_NO_MEM));
    memset(ep->bell->data, 0, sizeof(uint32_t));
    return 0;
}

static int endpoint_assign_id(struct ib *ib, struct ib_endpoint *ep)
{
    if (ib->nendpoints == ib->endpoints_room) {
        uint32_t room = MAX(2 * ib->endpoints_room, 16);
        struct ib_endpoint **more = realloc(ib->endpoints, room * sizeof(*more));
        if (!more)
            return err_set(MPI_ERR_NO_MEM, "out of memory for the connection to rank %u", ep->peer->rank);
        ib->endpoints = more;
        ib->endpoints_room = room;
    }
    ep->id = ib->nendpoints;
    ib->endpoints[ib->nendpoints++] = ep;
    return 0;
}

static int find_address(struct ib *ib, struct ib_endpoint *ep, struct ib_rail_info said[IB_RAILS_MAX],
                        uint32_t *rails)
{
    *rails = 0;
    if (ep->peer->card) { /* ib_can_connect has checked the card */
        memcpy(&ep->address, ep->peer->card->ib, sizeof(ep->address));
        return 0;
    }
    void *value;
    size_t len;
    int rc = boot_get(ib->base.net->boot, ep->peer->rank, "ib", &value, &len);
    if (rc != 0)
        return err_set(MPI_ERR_OTHER,
                       "rank %u, on another node, has no InfiniBand or RoCE port; FISHPLATE_LOG=info shows "
                       "what each rank found",
                       ep->peer->rank);
    bool fits = len >= sizeof(*said) && len <= IB_RAILS_MAX * sizeof(*said) && len % sizeof(*said) == 0;
    if (fits) {
        memcpy(said, value, len);
        *rails = (uint32_t)(len / sizeof(*said));
        ep->address = said[0].address;
        for (uint32_t i = 0; i < *rails; i++)
            fits = fits && said[i].adapter < IB_ADAPTERS_MAX;
    }
    free(value);
    if (!fits || ep->address.ethernet != ib->device.address.ethernet)
        return err_set(MPI_ERR_OTHER,
                       "rank %u and rank %u use different kinds of network (InfiniBand and RoCE)",
                       ib->base.net->rank, ep->peer->rank);
    return 0;
}

/* Returns a new endpoint, or reuses that of a departed guest. */
static struct ib_endpoint *endpoint_new(struct ib *ib)
{
    struct ib_endpoint *ep = NULL;
    for (uint32_t i = 0; i < ib->nendpoints; i++)
        if (!ib->endpoints[i]->peer) {
            struct ib_endpoint *old = ib->endpoints[i];
            struct ib_endpoint fresh = {.id = old->id, .bell = old->bell};
            for (uint32_t k = 0; k < IB_LANES; k++) {
                fresh.lanes[k].work = old->lanes[k].work;
                fresh.lanes[k].depth = old->lanes[k].depth;
            }
            *old = fresh;
            return old;
        }
    if (posix_memalign((void **)&ep, CACHE_LINE, ALIGN_UP(sizeof(*ep), CACHE_LINE)) != 0)
        return NULL;
    memset(ep, 0, sizeof(*ep));
    return ep;
}

int ib_peer_connect(struct transport *t, struct peer *peer)
{
    struct ib *ib = ib_of(t);
    struct ib_endpoint *ep = endpoint_new(ib);
    if (!ep)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the connection to rank %u", peer->rank);
    struct ib_rail_info said[IB_RAILS_MAX];
    uint32_t rails;
    bool again = ep->bell != NULL; /* the endpoint of a departed guest is reused */
    ep->ib = ib;
    ep->peer = peer;
    list_init(&ep->held);
    list_init(&ep->control_link);
    list_init(&ep->opening_link);
    list_init(&ep->unacknowledged);
    list_init(&ep->unacknowledged_rdma);
    int rc = find_address(ib, ep, said, &rails);
    rc = rc ? rc : lanes_init(ib, ep);
    ep->has_several_rails = rc == 0 && ib_has_several_rails(ib, &ep->address);
    if (rc == 0 && rails > 0) /* not for guests: their connections are not reopened after a failure */
        rc = ib_paths_find(ep, said, rails);
    rc = rc || again ? rc : endpoint_assign_id(ib, ep);
    if (rc != 0 && again) {
        ep->peer = NULL;
        return rc;
    }
    if (rc != 0) {
        if (ep->bell)
            ib_buffer_put(&ib->bells, ep->bell);
        free(ep->paths);
        free(ep);
        return rc;
    }
    peer->endpoint = ep;
    fill_caps(ib, ep, &peer->caps);
    return 0;
}

void ib_peer_disconnect(struct transport *t, struct peer *peer)
{
    struct ib *ib = ib_of(t);
    struct ib_endpoint *ep = peer->endpoint;
    ib_resend_free(ep, 0);
    ib_pairs_free(ep);
    ib_endpoint_drop(ep);
    if (ep->ah)
        ib->device.verbs.destroy_ah(ep->ah);
    ep->ah = NULL;
    ep->peer = NULL;
    /* The endpoint is not freed: completions in flight may still refer to its lanes. */
}

/* Disconnects from a peer that disconnects too, or has ended. The connection stays OPEN while frames are
 * unacknowledged: the peer's adapter acknowledges them, or they fail because the peer has ended. After CLOSE
 * no message of this process can be lost. */
void ib_peer_close_guest(struct transport *t, struct peer *peer, bool begin)
{
    struct ib_endpoint *ep = peer->endpoint;
    const uint64_t end = clock_ns() + PART_PATIENCE * 1000000000ull;
    while (!ib_endpoint_close(ep) && !begin && (ep->conn.state == CONN_OPEN || clock_ns() < end))
        if (net_progress(t->net) == 0)
            usleep(20);
}

void ib_endpoints_free(struct ib *ib)
{
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        for (uint32_t k = 0; k < IB_LANES; k++) {
            free(ib->endpoints[i]->lanes[k].work);
            free(ib->endpoints[i]->lanes[k].copies);
            free(ib->endpoints[i]->lanes[k].rdma);
        }
        free(ib->endpoints[i]->paths);
        free(ib->endpoints[i]);
    }
    free(ib->endpoints);
    free(ib->by_qpn);
}
