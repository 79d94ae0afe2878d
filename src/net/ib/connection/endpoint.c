/* endpoint.c: a connection to one peer. It is opened with the first frame (or at start, on request), and
 * closed when more connections are open than the budget allows and it has been idle longest. policy/conn.h
 * decides; this file performs the actions.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/log.h"
#include "base/tunable.h"
#include "net/ib/channel/channel.h"
#include "net/ib/connection/connection.h"
#include "net/ib/queue/xrc.h"

static TUNABLE_INT(max_connections, "IB_MAX_CONNECTIONS", 0, 0, 1000000,
                   "Number of connections that a process keeps open. Beyond it the connection that was idle "
                   "longest is closed and opened again when it is needed. 0: no limit.");

static COUNTER(opened, "ib_connections_opened", "Connections that were opened.");
static COUNTER(closed, "ib_connections_closed", "Connections that were closed to stay within the budget.");
static COUNTER(refused, "ib_connections_kept",
               "Requests of peers to close a connection that was still needed.");

/* ---- opening and closing ---- */

bool ib_endpoint_is_busy(const struct ib_endpoint *ep)
{
    return !list_empty(&ep->peer->pending) || ep->ops > 0 || !list_empty(&ep->held) ||
           ep->control_pending != 0 || ib_has_unacknowledged(ep) || ep->ib->events->is_busy(ep);
}

/* ---- the budget ---- */

/* True if all silent writes have been executed. They may use another queue pair than CLOSE, after which the
 * peer destroys both, so they must complete before CLOSE is sent. If their status is unknown, a completion is
 * requested and the connection can close at the next attempt. */
static bool silent_writes_are_complete(struct ib_endpoint *ep)
{
    struct ib_lane *lane = &ep->lanes[ep->ib->lanes - 1];
    for (uint32_t at = lane->tail; ep->ib->lanes > 1 && at != lane->head; at++)
        if (lane->work[at & (lane->depth - 1)].rdma) {
            ib_lane_request_completion(lane);
            return false;
        }
    return true;
}

static bool may_close(struct ib_endpoint *ep)
{
    return frame_route_is_ready(&ep->route) && !ep->leave.sent && !ib_endpoint_is_busy(ep) &&
           ib_lane_has_room(&ep->lanes[0], 2, true) && silent_writes_are_complete(ep);
}

static struct ib_endpoint *find_longest_idle(struct ib *ib, const struct ib_endpoint *but)
{
    struct ib_endpoint *idle = NULL;
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        struct ib_endpoint *ep = ib->endpoints[i];
        if (ep != but && may_close(ep) && (!idle || ep->used < idle->used))
            idle = ep;
    }
    return idle;
}

/* Closes idle connections, least recently used first, until at most `most` remain; closing connections count
 * as closed. If peers refuse, or all connections are busy, the budget is exceeded until the next attempt. */
static void connections_trim(struct ib *ib, uint32_t most, const struct ib_endpoint *but)
{
    uint32_t staying = 0;
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        enum conn_state state = ib->endpoints[i]->conn.state;
        staying +=
            ib->endpoints[i] != but && (state == CONN_ASKING || state == CONN_HALF || state == CONN_OPEN);
    }
    for (struct ib_endpoint *ep; staying > most && (ep = find_longest_idle(ib, but)) != NULL; staying--)
        ib_endpoint_perform_actions(ep, conn_request_close(&ep->conn));
}

static void close_excess_connection(struct ib *ib, const struct ib_endpoint *for_this)
{
    if (max_connections.value != 0 && ib->open >= (uint32_t)max_connections.value)
        connections_trim(ib, (uint32_t)max_connections.value - 1, for_this);
}

void ib_endpoints_trim(struct ib *ib)
{
    if (max_connections.value != 0 && ib->open > (uint32_t)max_connections.value)
        connections_trim(ib, (uint32_t)max_connections.value, NULL);
}

bool ib_endpoint_close(struct ib_endpoint *ep)
{
    if (may_close(ep))
        ib_endpoint_perform_actions(ep, conn_request_close(&ep->conn));
    return ep->conn.state == CONN_IDLE || ep->conn.state == CONN_FAILED || ep->leave.received;
}

void ib_endpoint_drop(struct ib_endpoint *ep)
{
    struct ib *ib = ep->ib;
    ib_ring_reset(ep);
    ib->open -= ep->lanes[0].qp != NULL;
    for (uint32_t i = 0; i < ib->lanes; i++)
        ib_lane_destroy(&ep->lanes[i]);
    list_remove(&ep->opening_link);
    list_remove(&ep->control_link);
    ep->control_pending = ep->final_markers = ep->ops = 0;
    ep->conn = (struct conn){0};
    frame_route_reset(&ep->route);
    ep->failed_since = 0;
}

static void endpoint_destroy_queue(struct ib_endpoint *ep)
{
    struct ib *ib = ep->ib;
    ib->events->closing(ep);
    ib_ring_reset(ep);
    for (uint32_t i = 0; i < ib->lanes; i++)
        ib_lane_destroy(&ep->lanes[i]);
    ep->control_pending = ep->final_markers = 0;
    list_remove(&ep->control_link);
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

/* Creates the queue pairs. If the adapter is out of resources or removed, tries the other paths. */
static void endpoint_create_queue(struct ib_endpoint *ep)
{
    struct ib *ib = ep->ib;
    close_excess_connection(ib, ep);
    ib->open++;
    if (!ep->paths) /* with `paths` the numbers continue: the next connection repeats lost messages */
        ep->next_seq = ep->expected = 0;
    ep->peer_bell_set = false;
    ep->used = ib->tick;
    if (!ep->conn.resumes)
        ep->leave = (struct leave){0};
    atomic_store((_Atomic uint32_t *)(void *)ep->bell->data, 0);
    int rc = lanes_create(ep);
    for (unsigned k = 1; rc != 0 && ep->paths && k < ep->paths->count; k++) {
        for (uint32_t i = 0; i < ib->lanes; i++)
            ib_lane_destroy(&ep->lanes[i]);
        ib_path_use_next(ep);
        rc = lanes_create(ep);
    }
    if (rc != 0)
        ib_fatal(ib, NULL, "%s", err_detail(rc));
}

static void endpoint_report_unanswered(struct ib_endpoint *ep)
{
    if (ep->ib->events->unreachable(ep))
        return;
    if (ep->status != IBV_WC_SUCCESS)
        ib_fatal(ep->ib, ep, "%s (verbs status %d)", ep->ib->device.verbs.wc_status_str(ep->status),
                 ep->status);
    ib_fatal(ep->ib, ep, "it does not answer and has probably ended");
}

void ib_endpoint_perform_actions(struct ib_endpoint *ep, unsigned actions)
{
    frame_route_follow_connection(&ep->route, ep->conn.state == CONN_OPEN, ib_has_unacknowledged(ep));
    if (actions & CONN_DO_DESTROY)
        endpoint_destroy_queue(ep);
    if (actions & CONN_DO_CREATE)
        endpoint_create_queue(ep);
    if (actions & CONN_DO_HELLO)
        ib_hello_send(ep);
    if (actions & CONN_DO_OPENED) {
        counter_add(&opened, 1);
        log_debug("connection to rank %u open, %u in all", ep->peer->rank, ep->ib->open);
        ep->ib->events->opened(ep);
    }
    if (actions & (CONN_DO_OPENED | CONN_DO_RESUME)) {
        ep->peer->opening = false;
        ep->ib->base.idle = false;
    }
    if (actions & (CONN_DO_CLOSE | CONN_DO_AGREE))
        ib_control_send(ep, actions & CONN_DO_CLOSE ? IB_CLOSE : IB_AGREE);
    if (actions & CONN_DO_KEEP) {
        counter_add(&refused, 1);
        ib_control_send(ep, IB_KEEP);
    }
    if (actions & CONN_DO_FAIL && !list_empty(&ep->peer->pending))
        endpoint_report_unanswered(ep);
    if (conn_has_no_pending_hello(&ep->conn))
        list_remove(&ep->opening_link);
    /* Credits that are still owed to the peer end with the connection. */
    if (ep->conn.state == CONN_AGREED && !(ep->control_pending & IB_FINAL) && ep->final_markers == 0)
        ib_endpoint_perform_actions(ep, conn_peer_disconnected(&ep->conn));
}

/* Reopens the connection, over the next path if there are several. */
void ib_endpoint_reopen(struct ib_endpoint *ep)
{
    unsigned actions = conn_queue_pair_failed(&ep->conn);
    if (actions & CONN_DO_DESTROY)
        ib_endpoint_perform_actions(ep, CONN_DO_DESTROY);
    ib_path_use_next(ep);
    ib_endpoint_perform_actions(ep, actions & ~(unsigned)CONN_DO_DESTROY);
}

void ib_endpoint_open(struct ib_endpoint *ep)
{
    if (ep->conn.state == CONN_FAILED) {
        endpoint_report_unanswered(ep);
        return;
    }
    ib_endpoint_perform_actions(ep, conn_request_open(&ep->conn));
}

static void check_hello(struct ib_endpoint *ep, const struct ib_hello *h)
{
    if (h->lanes != ep->ib->lanes || h->receive != (uint32_t)ep->ib->receive ||
        h->scheme != (uint32_t)ep->ib->rules.scheme)
        ib_fatal(
            ep->ib, ep,
            "it uses other settings: FISHPLATE_IB_RECEIVE and FISHPLATE_LAB=IB_FLOW must be the same on all "
            "ranks");
}

static int lanes_connect(struct ib_endpoint *ep, const struct ib_hello *h)
{
    int rc = ep->ib->xrc ? ib_xrc_accept(ep, h) : 0;
    for (uint32_t i = 0; i < ep->ib->lanes && rc == 0; i++) {
        credit_start(&ep->lanes[i].credit, &ep->ib->rules, h->posted[i]);
        if (!ep->ib->xrc)
            rc = ib_lane_connect(&ep->lanes[i], &h->address, h->qpn[i], h->psn[i], h->rd_atomic);
    }
    return rc;
}

/* Connects the XRC initiator to the target in the HELLO. False: the initiator is connected to another target,
 * and the connection is reopened. */
static bool xrc_connect_target(struct ib_endpoint *ep, const struct ib_hello *h)
{
    int rc;
    const bool connected = ib_xrc_connect(ep, h, &rc);
    if (rc != 0 || (!connected && !ep->paths))
        ib_fatal(ep->ib, ep, "%s", rc ? err_detail(rc) : "the target of its XRC initiator is gone");
    if (!connected)
        ib_endpoint_reopen(ep);
    return connected;
}

/* Handles a HELLO. Connecting needs its contents, so it is done here, between the actions CREATE and
 * HELLO. */
void ib_endpoint_handle_hello(struct ib_endpoint *ep, const struct ib_hello *h)
{
    if (ep->route.state ==
        FRAME_ROUTE_FAILING) /* the queue pairs are about to be destroyed; the peer repeats its HELLO */
        return;
    unsigned actions = conn_hello_received(&ep->conn, h->mine, h->yours, h->ready != 0);
    unsigned before = CONN_DO_DESTROY | CONN_DO_CREATE;
    check_hello(ep, h);
    if (actions & CONN_DO_BREAK)
        ep->ib->events->failed(ep, NULL);
    if (actions & CONN_DO_DESTROY)
        ib_endpoint_perform_actions(ep, CONN_DO_DESTROY);
    if (actions & CONN_DO_CREATE && ep->paths && ep->paths->next != RAIL_NONE)
        ib_path_use_next(ep);
    if (actions & CONN_DO_CREATE)
        ib_endpoint_perform_actions(ep, CONN_DO_CREATE);
    if (actions & CONN_DO_CONNECT) {
        ep->address = h->address;
        ep->peer_adapter = h->adapter;
        ep->peer_bell = h->bell;
        ep->peer_bell_key = h->bell_key;
        if (lanes_connect(ep, h) != 0)
            ib_fatal(ep->ib, ep, "%s", err_detail(MPI_ERR_OTHER));
        ep->ib->events->connected(ep, h);
    }
    if (ep->ib->xrc && actions & CONN_DO_OPENED && !xrc_connect_target(ep, h))
        return;
    ib_endpoint_perform_actions(ep, actions & ~before);
    if (ep->ib->xrc && actions & CONN_DO_OPENED)
        ib_endpoint_drain(ep); /* frames that were held until now */
}
