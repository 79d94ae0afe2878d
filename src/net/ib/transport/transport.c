/* transport.c: start and end of the InfiniBand and RoCE transport, and its table of operations.
 *
 * SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "base/tunable.h"
#include "boot/boot.h"
#include "net/ib/channel/channel.h"
#include "net/ib/connection/connection.h"
#include "net/ib/failover/failover.h"
#include "net/ib/multicast/ib_multicast.h"
#include "net/ib/queue/xrc.h"
#include "net/ib/rails/rails.h"
#include "net/ib/rendezvous/transfer.h"
#include "net/ib/transport/ib_transport.h"
#include "net/guest.h"
#include "net/memlock.h"
#include "net/registry.h"

static TUNABLE_CHOICE(require_ib, "REQUIRE", 0, "nothing|ib",
                      "ib: end the job in MPI_Init unless an InfiniBand or RoCE port can be used. softib "
                      "counts only when FISHPLATE_VERBS names it.");
static TUNABLE_CHOICE(connect_when, "IB_CONNECT", 0, "on-demand|static",
                      "When connections are opened: each with the first message to the peer (on-demand), or "
                      "all of them in MPI_Init (static).");
static TUNABLE_CHOICE(receive_mode, "IB_RECEIVE", 0, "peer|shared|xrc",
                      "Where receive buffers are posted: for each peer (peer), or in shared receive queues "
                      "for all peers (shared), which need less memory with many peers. xrc: shared, and one "
                      "send queue pair for each node instead of each peer, where the adapter has extended "
                      "reliable connections; one rail, no RDMA channel.");
static LABORATORY_CHOICE(
    flow, "IB_FLOW", 2, "hw|static|dynamic",
    "Flow control between two ranks: by the adapter alone, which repeats what finds no buffer (hw), by a "
    "fixed number of credits (static), or by credits whose number grows when a sender waits (dynamic).");
static LABORATORY_CHOICE(growth, "IB_GROWTH", 1, "linear|exponential",
                         "How dynamic flow control adds receive buffers: FISHPLATE_IB_BUFFERS more at a "
                         "time (linear), or twice as many (exponential).");
static TUNABLE_INT(buffers, "IB_BUFFERS", 8, 1, 4096,
                   "Receive buffers that are posted for each peer when its connection opens. With "
                   "dynamic flow control the number grows when a sender has to wait.");
static LABORATORY_INT(buffers_max, "IB_BUFFERS_MAX", 128, 1, 16384,
                      "Upper limit of receive buffers for each peer with dynamic flow control.");
static LABORATORY_INT(
    credit_message, "IB_CREDIT_MESSAGE", 0, 0, 4096,
    "Number of credits owed to a peer at which a message is sent only to return them. 0: half "
    "of the buffers that are posted for the peer.");
static LABORATORY_SIZE(
    frame_size, "IB_FRAME", 32 * 1024, 1024, 1024 * 1024,
    "Largest payload of one frame in bytes. A message up to this size can be sent at once. "
    "Every receive buffer has this size.");
static TUNABLE_INT(
    poll_limit, "IB_POLLSET", -1, -1, POLLSET_MAX,
    "Number of peers whose small messages arrive by RDMA write in a ring that the receiver polls (the RDMA "
    "channel). 0: none. -1: 16. Always none where the adapter does not write the last byte last.");
static LABORATORY_CHOICE(poll_policy, "IB_POLL_POLICY", 0, "first|traffic",
                         "Which peers get a ring of the RDMA channel: the first that send (first), or those "
                         "that send most (traffic), which may take the place of quieter ones.");
static LABORATORY_CHOICE(
    poll_order, "IB_POLL_ORDER", 0, "sequential|circular|prioritised",
    "Order in which the rings of the RDMA channel are polled: always the same, each time "
    "beginning with the next, or those with most traffic first.");
static LABORATORY_INT(
    ring_slots, "IB_RING_SLOTS", 64, 2, 4096,
    "Number of slots of a ring of the RDMA channel, a power of two. Must be the same on all ranks.");
static LABORATORY_SIZE(
    ring_slot, "IB_RING_SLOT", 2048, 128, 65536,
    "Size in bytes of one slot of a ring of the RDMA channel. A message larger than a slot "
    "uses send and receive instead. Must be the same on all ranks.");

#define POLLSET_AUTO 16
#define SMALL_FRAME  2048 /* bytes of a buffer in the shared receive queue for small frames */
#define FINISH_SECONDS \
    10u /* time limit for peers that may have ended without a report, if all sends are acknowledged */
#define START_PINNED (8u << 20) /* bytes that every job pins; the rest of the limit is for messages */

static void transport_read_settings(struct ib *ib)
{
    ib->receive = (enum ib_receive)receive_mode.value;
    ib->lanes = ib->receive == IB_RECEIVE_PEER ? 1 : 2;
    ib->rules = (struct credit_rules){
        .scheme = (enum credit_scheme)flow.value,
        .growth = (enum credit_growth)growth.value,
        .first = (uint32_t)buffers.value,
        .buffers_max =
            (uint32_t)(flow.value == CREDIT_DYNAMIC ? MAX(buffers.value, buffers_max.value) : buffers.value),
        .step = (uint32_t)buffers.value,
        .tell_at = (uint32_t)credit_message.value,
        .calm_after = 1024};
    uint32_t most_receives = (uint32_t)MAX(ib->device.attr.max_qp_wr, 32) - 16;
    ib->rules.buffers_max = MIN(ib->rules.buffers_max, most_receives);
    ib->rules.first = MIN(ib->rules.first, ib->rules.buffers_max);
    uint32_t slots = 2;
    while (2 * slots <= (uint32_t)ring_slots.value)
        slots *= 2;
    ib->ring_slots = slots;
    ib->ring_slot_size = (uint32_t)ALIGN_UP((size_t)ring_slot.value, CACHE_LINE);
    ib->ring_frame_max = ring_frame_max(ib->ring_slot_size);
    ib_pool_init(&ib->small, ib, SMALL_FRAME);
    ib_pool_init(&ib->large, ib, sizeof(struct ib_frame) + (size_t)frame_size.value);
    ib_pool_init(&ib->rings, ib, (size_t)slots * ib->ring_slot_size);
    ib_pool_init(&ib->bells, ib, CACHE_LINE);
}

/* Decides whether rings are used. A ring is polled for the last byte of a frame, which the adapter must place
 * last; only the device knows. */
static void choose_polling(struct ib *ib)
{
    int64_t limit = poll_limit.value;
    if (limit < 0)
        limit = POLLSET_AUTO;
    /* With XRC a peer may write into a ring after this process has closed the connection. */
    if (ib->xrc || !ib->device.last_byte_last)
        limit = 0;
    pollset_open(&ib->pollset, (enum pollset_policy)poll_policy.value, (enum pollset_order)poll_order.value,
                 (uint32_t)limit);
}

static int transport_start(struct ib *ib, struct boot *boot)
{
    const struct verbs *v = &ib->device.verbs;
    if (!v->softib && memlock_check(START_PINNED, ib->device.name) != 0) /* softib pins no memory */
        return MPI_ERR_NO_MEM;
    transport_read_settings(ib);
    int rc = ib_rails_open(ib, boot);
    rc = rc ? rc : ib_stripe_open(ib);
    rc = rc ? rc : ib_lane_probe_device(ib);
    rc = rc ? rc : ib_xrc_open(ib);
    choose_polling(ib);
    rc = rc ? rc : ib_memory_open(ib);
    rc = rc ? rc : ib_shared_open(ib, 0);
    rc = rc ? rc : ib_hello_open(ib);
    rc = rc ? rc : ib_event_open(ib);
    struct ib_rail_info said[IB_RAILS_MAX];
    memset(said, 0, sizeof(said));
    return rc ? rc : boot_put(boot, "ib", said, ib_rails_describe(ib, said) * sizeof(*said));
}

static void transport_stop(struct ib *ib)
{
    ib_event_close(ib);
    ib_barriers_close(ib);
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        ib_resend_free(ib->endpoints[i], 0);
        ib_pairs_free(ib->endpoints[i]);
    }
    ib_self_close(ib);
    ib_hello_close(ib);
    ib_shared_close(ib);
    ib_xrc_close(ib);
    ib_memory_close(ib);
    ib_rails_close(ib);
    ib_buffers_close(ib);
    ib_rails_free(ib);
    ib_device_close(&ib->device);
    ib_stripe_close(ib);
    ib_endpoints_free(ib);
    free(ib);
}

/* Logs one line for each node: the ports that are used, the other ports, and the reasons. */
static void report_ports(const struct ib *ib, const struct boot *boot)
{
    char line[1500], text[128];
    const struct ib_survey *s = &ib->device.survey;
    net_port_describe(ib->device.used, text, sizeof(text));
    int n = snprintf(line, sizeof(line), "node %u uses %s, MTU %u: %s", boot->node, text,
                     ib->device.used->mtu, ib->device.used->why);
    for (uint32_t i = 0; i < s->count && n > 0 && (size_t)n < sizeof(line); i++) {
        if (&s->ports[i] == ib->device.used)
            continue;
        net_port_describe(&s->ports[i], text, sizeof(text));
        n += snprintf(line + n, sizeof(line) - (size_t)n, "; %s %s: %s", s->ports[i].chosen ? "and" : "not",
                      text, s->ports[i].why);
    }
    log_info("%s", line);
}

static void transport_report(const struct ib *ib, const struct boot *boot)
{
    static const char *const receives[] = {"per-peer", "shared", "XRC shared"};
    static const char *const schemes[] = {"by the adapter", "static", "dynamic"};
    if (boot->rank == 0)
        log_info(
            "nodes are connected over %s, %s: %s receive buffers, flow control %s, RDMA channel for up to "
            "%u peers",
            ib->device.name, net_port_kind(ib->device.used), receives[ib->receive], schemes[ib->rules.scheme],
            ib->pollset.limit);
    if (boot->local_rank == 0 && log_threshold >= LOG_INFO)
        report_ports(ib, boot);
}

static int ib_list_ports(struct transport *t, struct net_port **ports, uint32_t *count)
{
    struct ib_survey s;
    if (!t) {
        int rc = ib_device_list(&s);
        if (rc != 0)
            return rc;
        *ports = s.ports;
        *count = s.count;
        return 0;
    }
    s = ib_of(t)->device.survey;
    struct net_port *copy = calloc(s.count + 1, sizeof(*copy));
    if (!copy)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a list of %u ports", s.count);
    memcpy(copy, s.ports, s.count * sizeof(*copy));
    *ports = copy;
    *count = s.count;
    return 0;
}

/* True if atomic operations can be offered. With several rails a connection is reopened over another rail
 * after a failure. Puts and gets are then repeated, but whether an atomic operation was executed is unknown;
 * and operations of two adapters are not atomic towards each other. */
static bool transport_has_atomics(const struct ib *ib)
{
    return ib->nrails <= 1 && ib_device_has_atomics(&ib->device);
}

static int ib_open(struct net *net, struct boot *boot, struct transport **out)
{
    if (boot->nnodes < 2 && !boot->several && !require_ib.value) {
        if (boot->rank == 0)
            ib_device_check_names();
        return 0;
    }
    struct ib *ib = calloc(1, sizeof(*ib));
    if (!ib)
        return err_set(MPI_ERR_NO_MEM, "out of memory at start-up");
    ib->base = (struct transport){.ops = &ib_transport, .net = net};
    ib->events = &ib_events;
    ib->messages = ib_messages;
    ib->job = net->world;
    ib->next_timer = UINT64_MAX;
    ib->stop_fd = -1;
    list_init(&ib->opening);
    list_init(&ib->control_waiting);
    list_init(&ib->multicasts);
    int rc = ib_device_open(&ib->device, boot, require_ib.value != 0);
    if (rc != 0) {
        free(ib);
        if (require_ib.value)
            return err_set(MPI_ERR_UNSUPPORTED_OPERATION, "FISHPLATE_REQUIRE=ib, but %s", err_detail(rc));
        net->why_missing = strdup(err_detail(rc));
        return 0;
    }
    rc = transport_start(ib, boot);
    if (rc != 0) {
        transport_stop(ib);
        return rc;
    }
    net->published = true;
    ib->base.port = ib->device.used;
    ib->base.adds = transport_has_atomics(ib);
    ib->base.adds_beside_cpu = ib->base.adds && ib->device.attr.atomic_cap == IBV_ATOMIC_GLOB;
    ib_barriers_open(ib);
    ib->base.multicast = &ib_multicast;
    transport_report(ib, boot);
    *out = &ib->base;
    return 0;
}

static void ib_close(struct transport *t)
{
    transport_stop(ib_of(t));
}

static bool ib_can_reach(struct transport *t, uint32_t rank)
{
    return rank != t->net->rank;
}

static void ib_fill_card(struct transport *t, struct net_card *card)
{
    _Static_assert(sizeof(card->ib) == sizeof(struct ib_address), "a card has room for an address");
    memcpy(card->ib, &ib_of(t)->device.address, sizeof(card->ib));
    card->has_ib = 1;
}

/* True if the port of this card may be connected. Whether both ports are on one network is unknown before.
 * There is no path between different kinds of network, or between two software fabrics. */
static bool ib_can_connect(struct transport *t, const struct net_card *card)
{
    const struct ib_device *d = &ib_of(t)->device;
    struct ib_address theirs;
    struct net_card mine;
    memcpy(&theirs, card->ib, sizeof(theirs));
    if (!card->has_ib || theirs.ethernet != d->address.ethernet)
        return false;
    return !d->verbs.softib || (net_fill_card(t->net, &mine) == 0 && mine.fabric == card->fabric);
}

/* ---- start and end of a job ---- */

/* True if all connections have opened once. Some may have been closed again to stay within the budget. */
static bool all_connections_opened(const struct ib *ib)
{
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        if (ib->endpoints[i]->conn.state == CONN_FAILED)
            ib_endpoint_open(ib->endpoints[i]); /* ends the job with the reason */
        if (!conn_has_no_pending_hello(&ib->endpoints[i]->conn))
            return false;
    }
    return true;
}

/* Opens static connections to all ranks on other nodes before MPI_Init returns. */
static int ib_open_static_connections(struct transport *t)
{
    struct ib *ib = ib_of(t);
    struct net *net = t->net;
    if (connect_when.value == 0)
        return 0;
    for (uint32_t r = 0; r < net->size; r++) {
        struct peer *peer;
        if (net->boot->node_of[r] == net->boot->node)
            continue;
        int rc = net_peer(net, r, &peer);
        if (rc != 0)
            return rc;
        if (peer->transport == t)
            ib_endpoint_open(peer->endpoint);
    }
    ib->opening_all = true;
    while (!all_connections_opened(ib))
        if (net_progress(net) == 0)
            usleep(50);
    ib->opening_all = false;
    return 0;
}

/* True if all sends have reached the peer's adapter; messages that only return credits are ignored. Requests a
 * completion also after LEAVE, since replies (src/ft) may follow it; if the peer has ended, the completion is an
 * error, which ends the connection. */
static bool endpoint_is_flushed(struct ib_endpoint *ep)
{
    bool done = ep->control_pending == 0;
    for (uint32_t k = 0; k < ep->ib->lanes; k++) {
        struct ib_lane *lane = &ep->lanes[k];
        if (lane->qp && !ib_lane_has_only_credits(lane)) {
            done = false;
            ib_lane_request_completion(lane);
        }
    }
    return ib_spread_all_sends_done(ep) && done;
}

/* True if this process may end as far as this connection is concerned. A peer must not mistake the end of
 * this process for a failure, so LEAVE is sent on every connection, also on those that open meanwhile. When
 * all processes end together, each waits for the LEAVE of the other; otherwise a peer could send to a process
 * that has ended, and wait until its adapter gives up.
 *
 * No data is given up after a time limit: a process waits for the acknowledgement of its frames however long
 * the peer is stopped. If the peer dies, the launcher reports its death (ib_peer_lost) and the connection
 * becomes idle. Only if everything is acknowledged, and the peer may have ended without a report, the wait
 * ends after FINISH_SECONDS (late). */
static bool endpoint_may_end(struct ib_endpoint *ep, bool together, bool late)
{
    const struct leave *leave = &ep->leave;
    if (ep->failed_since != 0 || ep->route.state == FRAME_ROUTE_FAILING)
        /* Lost messages must be repeated. If the ranks do not end together, the end of the peer may have
         * caused the failure. */
        return leave_permits_end(leave) || (!together && late);
    switch (ep->conn.state) {
    case CONN_OPEN:
        if (!frame_route_is_ready(&ep->route) || !endpoint_is_flushed(ep))
            return false;
        if (!leave->sent) {
            ib_control_send(ep, IB_LEAVE);
            leave_record_sent(&ep->leave);
        }
        return endpoint_is_flushed(ep) && (leave->received || !together);
    case CONN_CLOSING:
    case CONN_AGREED:
        return !together;
    case CONN_HALF: /* the peer requested the connection; this process has nothing to send */
        return !together || (late && !ep->conn.resumes);
    case CONN_ASKING: /* only if the connection was open before, messages may have to be repeated */
        return !(together && ep->conn.resumes);
    default:
        return true;
    }
}

bool ib_may_end(struct ib *ib, bool together, bool late)
{
    bool done = true;
    ib->ends_together = together;
    for (uint32_t i = 0; i < ib->nendpoints; i++)
        if (ib->endpoints[i]->peer) /* guests end at any time */
            done &= endpoint_may_end(ib->endpoints[i], together && !ib->endpoints[i]->peer->card, late);
    return done;
}

static void ib_finish(struct transport *t, bool together)
{
    struct ib *ib = ib_of(t);
    const uint64_t end = clock_ns() + FINISH_SECONDS * 1000000000ull;
    KILL_POINT(ib_finishing);
    while (!ib_may_end(ib, together, clock_ns() >= end) || (together && !ib_xrc_is_finished(ib)))
        if (net_progress(t->net) == 0)
            usleep(20);
    ib->closing = true;
}

static void ib_disarm(struct transport *t)
{
    atomic_store_explicit(&ib_of(t)->sleeps_with_rings, 0, memory_order_relaxed);
}

const struct transport_ops ib_transport = {
    .name = "ib",
    .doc = "InfiniBand and RoCE through verbs, between nodes",
    .open = ib_open,
    .close = ib_close,
    .reaches = ib_can_reach,
    .card = ib_fill_card,
    .reaches_card = ib_can_connect,
    .part = ib_peer_close_guest,
    .connect = ib_peer_connect,
    .disconnect = ib_peer_disconnect,
    .lost = ib_peer_lost,
    .settle = ib_open_static_connections,
    .finish = ib_finish,
    .send = ib_send,
    .reserve = ib_reserve,
    .commit = ib_commit,
    .put = ib_put,
    .get = ib_get,
    .atomic = ib_atomic,
    .atomic_open = ib_self_open,
    .atomic_here = ib_self_atomic,
    .mem_register = ib_memory_register,
    .mem_release = ib_memory_release,
    .mem_register_piece = ib_memory_register_piece,
    .poll = ib_poll,
    .arm = ib_arm,
    .disarm = ib_disarm,
    .ports = ib_list_ports,
};
