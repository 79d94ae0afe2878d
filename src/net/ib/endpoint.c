/* endpoint.c: a connection to one peer. It is opened with the first frame (or at start, on request), and
 * closed when more connections are open than the budget allows and this one has been idle longest. conn.h
 * decides; this file acts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"
#include "base/tunable.h"
#include "boot/boot.h"
#include "net/guest.h"
#include "net/ib/ib.h"

static TUNABLE_INT(max_connections, "IB_MAX_CONNECTIONS", 0, 0, 1000000,
                   "Number of connections that a process keeps open. Beyond it the connection that was idle "
                   "longest is closed and opened again when it is needed. 0: no limit.");

static COUNTER(opened, "ib_connections_opened", "Connections that were opened.");
static COUNTER(closed, "ib_connections_closed", "Connections that were closed to stay within the budget.");
static COUNTER(refused, "ib_connections_kept",
               "Times a peer asked to close a connection that was still needed.");

#define PART_PATIENCE 5u /* seconds that a guest may take to close its end of a connection */

/* ---- the peer as the layers above see it ---- */

/* Stripes of one transfer arrive in any order, and a frame may overtake them: the layers above wait for completions. */
static void fill_caps(struct ib *ib, const struct ib_endpoint *ep, struct transport_caps *caps)
{
    *caps = (struct transport_caps){
        .frame_max = ib->large.size - sizeof(struct ib_frame),
        .inline_max = 256,
        .eager_best = ib->large.size - sizeof(struct ib_frame),
        .put = true,
        .put_silent = ib->inline_max,
        .get = MIN(ib->device.attr.max_qp_rd_atom, ib->device.attr.max_qp_init_rd_atom) > 0,
        .put_ordered = ib->lanes == 1 && !ep->several,
        .last_byte_last = ib->device.last_byte_last && !ep->several,
        .frames_spread = ib_spreads(ep),
        .striped_from = !ep->several          ? 0
                        : ib->stripe_measured ? ib->rails_from
                                              : 2 * ib->stripe_rules.smallest,
        .striped_measured = ep->several && ib->stripe_measured,
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
        ib_lane_home(lane);
        lane->pool = ib->lanes > 1 && i == 0 ? &ib->small : &ib->large;
        lane->frame_max = lane->pool->size - sizeof(struct ib_frame);
        list_init(&lane->posted);
    }
    if (!ep->bell)
        ep->bell = ib_buffer_get(&ib->bells);
    if (!ep->bell) /* the peer waits, and without a connection it cannot be told */
        ib_fatal(ib, NULL, "no connection to rank %u can be opened: %s", ep->peer->rank,
                 err_detail(MPI_ERR_NO_MEM));
    memset(ep->bell->data, 0, sizeof(uint32_t));
    return 0;
}

static int endpoint_number(struct ib *ib, struct ib_endpoint *ep)
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

static int find_address(struct ib *ib, struct ib_endpoint *ep, struct ib_rail_said said[IB_RAILS_MAX],
                        uint32_t *rails)
{
    *rails = 0;
    if (ep->peer->card) { /* ib_meets has looked at it */
        memcpy(&ep->address, ep->peer->card->ib, sizeof(ep->address));
        return 0;
    }
    void *value;
    size_t len;
    int rc = boot_get(ib->base.net->boot, ep->peer->rank, "ib", &value, &len);
    if (rc != 0)
        return err_set(MPI_ERR_OTHER,
                       "rank %u, on another node, has no InfiniBand or RoCE port; FISHPLATE_LOG=info shows "
                       "what each rank "
                       "found",
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

/* The place of a guest who has gone, or a new one. What was allocated for it serves the next. */
static struct ib_endpoint *endpoint_new(struct ib *ib)
{
    struct ib_endpoint *ep = NULL;
    for (uint32_t i = 0; i < ib->nendpoints; i++)
        if (!ib->endpoints[i]->peer) {
            struct ib_endpoint *old = ib->endpoints[i];
            struct ib_endpoint fresh = {.id = old->id, .bell = old->bell, .again = true};
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

int ib_connect(struct transport *t, struct peer *peer)
{
    struct ib *ib = ib_of(t);
    struct ib_endpoint *ep = endpoint_new(ib);
    if (!ep)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the connection to rank %u", peer->rank);
    struct ib_rail_said said[IB_RAILS_MAX];
    uint32_t rails;
    bool again = ep->again;
    ep->ib = ib;
    ep->peer = peer;
    list_init(&ep->held);
    list_init(&ep->unsaid_link);
    list_init(&ep->asking);
    list_init(&ep->kept);
    list_init(&ep->kept_rdma);
    int rc = find_address(ib, ep, said, &rails);
    rc = rc ? rc : lanes_init(ib, ep);
    ep->several = rc == 0 && ib_rails_several(ib, &ep->address);
    if (rc == 0 && rails > 0) /* a guest has none: its connection ends with its queue pairs */
        rc = ib_ways_open(ep, said, rails);
    rc = rc || again ? rc : endpoint_number(ib, ep);
    if (rc != 0 && again) {
        ep->peer = NULL;
        return rc;
    }
    if (rc != 0) {
        if (ep->bell)
            ib_buffer_put(&ib->bells, ep->bell);
        free(ep->ways);
        free(ep);
        return rc;
    }
    peer->endpoint = ep;
    fill_caps(ib, ep, &peer->caps);
    return 0;
}

void ib_disconnect(struct transport *t, struct peer *peer)
{
    struct ib *ib = ib_of(t);
    struct ib_endpoint *ep = peer->endpoint;
    ib_kept_free(ep, 0);
    ib_rdma_reset(ep);
    ib_join_free(ep);
    ib->open -= ep->lanes[0].qp != NULL;
    for (uint32_t i = 0; i < ib->lanes; i++)
        ib_lane_destroy(&ep->lanes[i]);
    if (ep->ah)
        ib->device.verbs.destroy_ah(ep->ah);
    ep->ah = NULL;
    list_remove(&ep->asking);
    list_remove(&ep->unsaid_link);
    ep->conn = (struct conn){0};
    ib_set_ready(ep, false);
    ep->unsaid = 0;
    ep->peer = NULL;
    ep->again = true;
    /* freed with the table: completions that are still on their way may name its lanes */
}

/* ---- opening and closing ---- */

bool ib_endpoint_busy(const struct ib_endpoint *ep)
{
    return !list_empty(&ep->peer->pending) || ep->ops > 0 || !list_empty(&ep->held) || ep->unsaid != 0 ||
           !list_empty(&ep->kept) || !list_empty(&ep->kept_rdma) ||
           (unlikely(ep->ib->allot != NULL) && ib_allot_busy(ep)) || !ib_spread_may_end(ep);
}

void ib_endpoints_free(struct ib *ib)
{
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        for (uint32_t k = 0; k < IB_LANES; k++) {
            free(ib->endpoints[i]->lanes[k].work);
            free(ib->endpoints[i]->lanes[k].copies);
            free(ib->endpoints[i]->lanes[k].rdma);
        }
        free(ib->endpoints[i]->ways);
        free(ib->endpoints[i]);
    }
    free(ib->endpoints);
    free(ib->by_qpn);
}

/* ---- the budget ---- */

/* A silent write may go through another queue pair than CLOSE, after which the peer drops both: it must have come before, or it never
 * does. If that is not known, the adapter is asked, and the connection may close the next time. */
static bool has_written(struct ib_endpoint *ep)
{
    struct ib_lane *lane = &ep->lanes[ep->ib->lanes - 1];
    for (uint32_t at = lane->tail; ep->ib->lanes > 1 && at != lane->head; at++)
        if (lane->work[at & (lane->depth - 1)].rdma) {
            ib_lane_ask(lane);
            return false;
        }
    return true;
}

static bool may_close(struct ib_endpoint *ep)
{
    return ep->ready && !ep->breaking && !ep->leaving && !ib_endpoint_busy(ep) &&
           ib_lane_room(&ep->lanes[0], 2, true) && has_written(ep);
}

static struct ib_endpoint *idle_longest(struct ib *ib, const struct ib_endpoint *but)
{
    struct ib_endpoint *idle = NULL;
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        struct ib_endpoint *ep = ib->endpoints[i];
        if (ep != but && may_close(ep) && (!idle || ep->used < idle->used))
            idle = ep;
    }
    return idle;
}

/* Asks connections to close, the one that was idle longest first, until no more than `most` are left. Those
 * that are closing count as closed. A peer may refuse, and all may be busy: then the number is exceeded until
 * the next time. */
static void trim(struct ib *ib, uint32_t most, const struct ib_endpoint *but)
{
    uint32_t staying = 0;
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        enum conn_state state = ib->endpoints[i]->conn.state;
        staying +=
            ib->endpoints[i] != but && (state == CONN_ASKING || state == CONN_HALF || state == CONN_OPEN);
    }
    for (struct ib_endpoint *ep; staying > most && (ep = idle_longest(ib, but)) != NULL; staying--)
        ib_endpoint_do(ep, conn_idle(&ep->conn));
}

static void make_room(struct ib *ib, const struct ib_endpoint *for_this)
{
    if (max_connections.value != 0 && ib->open >= (uint32_t)max_connections.value)
        trim(ib, (uint32_t)max_connections.value - 1, for_this);
}

/* Who waits for a message sends nothing, and would wait for a dead peer for ever. A request that does nothing
 * finds out: it needs no help of the peer's program, which may be busy, and fails when the peer is gone; or when the peer has agreed
 * to close, and that did not arrive. */
void ib_endpoints_pulse(struct ib *ib)
{
    ib_moves_patience(ib);
    ib_rails_look(ib);
    ib_join_ports(ib, true);
    ib_paths_look(ib, true);
    ib_moves_ports(ib, true);
    if (max_connections.value != 0 && ib->open > (uint32_t)max_connections.value)
        trim(ib, (uint32_t)max_connections.value, NULL);
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        struct ib_endpoint *ep = ib->endpoints[i];
        struct ib_lane *lane = &ep->lanes[0];
        bool closing = ep->conn.state == CONN_CLOSING; /* the answer may be lost */
        if (!(ep->ready || closing) || ep->breaking || ep->left)
            continue;
        if (lane->head == lane->tail)
            ib_lane_end(lane, false);
        else
            ib_lane_ask(lane);
    }
}

static bool parted(struct ib_endpoint *ep)
{
    if (may_close(ep))
        ib_endpoint_do(ep, conn_idle(&ep->conn));
    return ep->conn.state == CONN_IDLE || ep->conn.state == CONN_FAILED || ep->left;
}

/* The other end does the same, or has ended. */
void ib_part(struct transport *t, struct peer *peer, bool begin)
{
    struct ib_endpoint *ep = peer->endpoint;
    uint64_t end = clock_ns() + PART_PATIENCE * 1000000000ull;
    while (!parted(ep) && !begin && clock_ns() < end)
        if (net_progress(t->net) == 0)
            usleep(20);
}

static void destroy(struct ib_endpoint *ep)
{
    struct ib *ib = ep->ib;
    ib_kept_collect(ep);
    ib_rdma_reset(ep);
    if (!conn_goes_on(&ep->conn))
        ib_join_free(ep);
    for (uint32_t i = 0; i < ib->lanes; i++)
        ib_lane_destroy(&ep->lanes[i]);
    ep->unsaid = ep->last_words = 0;
    list_remove(&ep->unsaid_link);
    ib->open--;
    counter_add(&closed, ep->conn.state == CONN_IDLE);
    log_debug("connection to rank %u closed, %u open", ep->peer->rank, ib->open);
}

static int lanes_create(struct ib_endpoint *ep)
{
    int rc = ib_shared_open(ep->ib, ep->lanes[0].adapter);
    for (uint32_t i = 0; i < ep->ib->lanes && rc == 0; i++)
        rc = ib_lane_create(&ep->lanes[i]);
    return rc;
}

/* An adapter that has nothing left, or is not there any more, is passed over. */
static void create(struct ib_endpoint *ep)
{
    struct ib *ib = ep->ib;
    make_room(ib, ep);
    ib->open++;
    if (!ep->ways) /* else the numbers go on: the next connection sends what this one lost */
        ep->next_seq = ep->expected = 0;
    ep->bell_rung = false;
    ep->used = ib->tick;
    if (ep->broken == 0)
        ep->left = ep->leaving = false;
    atomic_store((_Atomic uint32_t *)(void *)ep->bell->data, 0);
    int rc = lanes_create(ep);
    for (unsigned k = 1; rc != 0 && ep->ways && k < ep->ways->count; k++) {
        for (uint32_t i = 0; i < ib->lanes; i++)
            ib_lane_destroy(&ep->lanes[i]);
        ib_way_next(ep);
        rc = lanes_create(ep);
    }
    if (rc != 0)
        ib_fatal(ib, NULL, "%s", err_detail(rc));
}

/* The end of the old queue pairs is known; now what they did not deliver can go. */
static void reopened(struct ib_endpoint *ep)
{
    if (!ep->ways)
        return;
    ib_moved(ep);
    if (ep->join) {
        ep->join->up |= rail_bit(0);
        adapt_back(&ep->join->adapt, 0);
        ib_stripe_rail(ep, 0, true);
        ib_spread_home(ep);
        ep->unsaid |= 1u << IB_RAILS | (ib_allot_unsaid(ep) ? 1u << IB_RESERVE : 0);
    }
    if (ep->leaving)
        ep->unsaid |= 1u << IB_LEAVE;
    ib_flush(ep);
}

static bool nothing_kept(const struct ib_endpoint *ep)
{
    return list_empty(&ep->kept) && list_empty(&ep->kept_rdma);
}

static void unanswered(struct ib_endpoint *ep)
{
    if (ib_accuse(ep))
        return;
    if (ep->why != IBV_WC_SUCCESS)
        ib_fatal(ep->ib, ep, "%s (verbs status %d)", ep->ib->device.verbs.wc_status_str(ep->why), ep->why);
    ib_fatal(ep->ib, ep, "it does not answer and has probably ended");
}

void ib_endpoint_do(struct ib_endpoint *ep, unsigned actions)
{
    ib_set_ready(ep, ep->conn.state == CONN_OPEN && nothing_kept(ep));
    if (actions & CONN_DO_DESTROY)
        destroy(ep);
    if (actions & CONN_DO_CREATE)
        create(ep);
    if (actions & CONN_DO_HELLO)
        ib_hello_send(ep);
    if (actions & CONN_DO_OPENED) {
        counter_add(&opened, 1);
        log_debug("connection to rank %u open, %u in all", ep->peer->rank, ep->ib->open);
        reopened(ep);
        ib_spread_begin(ep);
    }
    if (actions & (CONN_DO_OPENED | CONN_DO_RESUME)) {
        ep->peer->opening = false;
        ep->ib->base.idle = false;
    }
    if (actions & (CONN_DO_CLOSE | CONN_DO_AGREE))
        ib_say(ep, actions & CONN_DO_CLOSE ? IB_CLOSE : IB_AGREE);
    if (actions & CONN_DO_KEEP) {
        counter_add(&refused, 1);
        ib_say(ep, IB_KEEP);
    }
    if (actions & CONN_DO_FAIL && !list_empty(&ep->peer->pending))
        unanswered(ep);
    if (conn_settled(&ep->conn))
        list_remove(&ep->asking);
    /* Credits owed since then are not said any more: they end with the connection. */
    if (ep->conn.state == CONN_AGREED && !(ep->unsaid & IB_LAST_WORDS) && ep->last_words == 0)
        ib_endpoint_do(ep, conn_left(&ep->conn));
}

/* By the next way, where there are several. */
void ib_endpoint_again(struct ib_endpoint *ep)
{
    unsigned actions = conn_broken(&ep->conn);
    if (actions & CONN_DO_DESTROY)
        ib_endpoint_do(ep, CONN_DO_DESTROY);
    ib_way_next(ep);
    ib_endpoint_do(ep, actions & ~(unsigned)CONN_DO_DESTROY);
}

void ib_endpoint_want(struct ib_endpoint *ep)
{
    if (ep->conn.state == CONN_FAILED) {
        unanswered(ep);
        return;
    }
    ib_endpoint_do(ep, conn_want(&ep->conn));
}

static void check_hello(struct ib_endpoint *ep, const struct ib_hello *h)
{
    if (h->lanes != ep->ib->lanes || h->scheme != (uint32_t)ep->ib->rules.scheme)
        ib_fatal(ep->ib, ep,
                 "it uses other settings: FISHPLATE_IB_RECEIVE and FISHPLATE_IB_FLOW must be the same on all "
                 "ranks");
}

/* A HELLO: connecting needs what it says, so it is done here, between making the queue pairs and answering.
 */
void ib_endpoint_hello(struct ib_endpoint *ep, const struct ib_hello *h)
{
    if (ep->breaking) /* nothing is connected that is about to be dropped; it says HELLO again */
        return;
    unsigned actions = conn_hello(&ep->conn, h->mine, h->yours, h->ready != 0);
    unsigned before = CONN_DO_DESTROY | CONN_DO_CREATE;
    check_hello(ep, h);
    if (actions & CONN_DO_BREAK)
        ib_break(ep, NULL);
    if (actions & CONN_DO_DESTROY)
        ib_endpoint_do(ep, CONN_DO_DESTROY);
    if (actions & CONN_DO_CREATE && ep->ways && ep->ways->next != RAIL_NONE)
        ib_way_next(ep);
    if (actions & CONN_DO_CREATE)
        ib_endpoint_do(ep, CONN_DO_CREATE);
    if (actions & CONN_DO_CONNECT) {
        ib_kept_told(ep, h->expected);
        ep->address = h->address;
        ep->their_adapter = h->adapter;
        ep->alternate = h->alternate;
        ep->peer_bell = h->bell;
        ep->peer_bell_key = h->bell_key;
        ep->tx_by_imm = h->ring_by_imm != 0;
        for (uint32_t i = 0; i < ep->ib->lanes; i++) {
            credit_start(&ep->lanes[i].credit, &ep->ib->rules, h->posted[i]);
            if (ib_lane_connect(&ep->lanes[i], &h->address, h->qpn[i], h->psn[i], h->rd_atomic) != 0)
                ib_fatal(ep->ib, ep, "%s", err_detail(MPI_ERR_OTHER));
            ib_path_arm(&ep->lanes[i]);
        }
    }
    ib_endpoint_do(ep, actions & ~before);
}
