/* reopen.c: detects that a connection has failed, and reopens it: at once over another rail, or over the same
 * rail when its port comes up. The job ends if neither happens in time. See docs/failover.md.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"
#include "base/tunable.h"
#include "net/ib/channel/channel.h"
#include "net/ib/connection/connection.h"
#include "net/ib/failover/failover.h"
#include "net/ib/rails/rails.h"

static TUNABLE_INT(
    patience, "IB_RAIL_PATIENCE", 10, 1, 3600,
    "Seconds that a process waits for a port to come up again, or for an answer over another rail, when a "
    "connection has failed. Then the job ends.");

static COUNTER(moves, "ib_connections_moved",
               "Connections that failed and were opened again, over another rail or the same one.");

#define FAILED_ATTEMPTS_MAX 16

/* Counts attempts that failed before anything could be sent. After FAILED_ATTEMPTS_MAX consecutive ones the
 * path is not the cause, and the job ends. */
static void count_failed_attempt(struct ib_endpoint *ep, const char *why)
{
    bool sent = false;
    for (uint32_t k = 0; k < ep->ib->lanes; k++)
        sent |= ep->lanes[k].tail != ep->lanes[k].started;
    ep->failed_attempts = sent || ep->switched_port ? 0 : ep->failed_attempts + 1;
    if (ep->failed_attempts > FAILED_ATTEMPTS_MAX)
        ib_fatal(ep->ib, ep, "%s; it was opened again %d times, and nothing could be sent", why,
                 FAILED_ATTEMPTS_MAX);
}

bool ib_failover_start(struct ib_endpoint *ep, const char *why)
{
    struct ib *ib = ep->ib;
    if (!ep->paths || ib->closing)
        return false;
    if (ep->route.state == FRAME_ROUTE_FAILING || ep->conn.state == CONN_IDLE ||
        ep->conn.state == CONN_FAILED)
        return true;
    if (ep->failed_since == 0 && conn_has_no_pending_hello(&ep->conn)) {
        ep->failed_since = clock_ns();
        if (why)
            log_warn("the connection to rank %u over %s failed: %s; it is opened again", ep->peer->rank,
                     ib->rails[ep->primary].device->name, why);
    }
    ep->switched_port = !ib_rail_is_up(&ib->rails[ep->primary]);
    if (why)
        count_failed_attempt(ep, why);
    frame_route_set_failing(&ep->route);
    ib->failures = true;
    atomic_store(&ib->attention, 1);
    return true;
}

static bool has_only_credit_messages(const struct ib_endpoint *ep)
{
    for (uint32_t k = 0; k < ep->ib->lanes; k++)
        if (!ib_lane_has_only_credits(&ep->lanes[k]))
            return false;
    return true;
}

/* True for errors that a new connection would not fix. With XRC, IBV_WC_REM_INV_REQ_ERR may mean that the
 * process of the receive queue has died. */
static bool status_is_permanent(const struct ib *ib, enum ibv_wc_status s)
{
    return s == IBV_WC_LOC_LEN_ERR || s == IBV_WC_LOC_PROT_ERR || (s == IBV_WC_REM_INV_REQ_ERR && !ib->xrc) ||
           s == IBV_WC_REM_ACCESS_ERR || s == IBV_WC_LOC_QP_OP_ERR;
}

/* Handles the first failed send of a queue pair; all sends before it succeeded. */
void ib_failover_send_failed(struct ib_lane *lane, const struct ibv_wc *wc)
{
    struct ib_endpoint *ep = lane->endpoint;
    struct ib *ib = ep->ib;
    uint32_t place = ib_send_work_index(wc->wr_id);
    if (lane->failed)
        return; /* a flushed request: the first failure was handled already */
    lane->failed = true;
    if (((place - lane->tail) & 0xffffff) != 0)
        ib_lane_retire_sends(lane, place - 1);
    const bool ended = leave_permits_failure(&ep->leave, ib_lane_has_only_credits(lane), ep->paths != NULL);
    if (lane->index >= IB_LANES) { /* the other rails are not affected */
        if (!(ended && !lane->bare) &&
            !lane->given_up) /* ib_lane_set_error was called: its caller drops the pair after all frames were processed */
            ib_pair_report_failure(lane, ib->device.verbs.wc_status_str(wc->status));
        return;
    }
    /* The peer has closed the connection; or AGREE was lost, and the peer's next probe (poll.c) fails. */
    if (ep->conn.state == CONN_AGREED && (!ep->paths || has_only_credit_messages(ep))) {
        ib_endpoint_perform_actions(ep, conn_peer_disconnected(&ep->conn));
        return;
    }
    if (!ended && !status_is_permanent(ib, wc->status) &&
        ib_failover_start(ep, ib->device.verbs.wc_status_str(wc->status))) {
        if (wc->status != IBV_WC_WR_FLUSH_ERR)
            ep->status = wc->status;
        return;
    }
    if (!ended && !ib_peer_report_suspect(ep))
        ib_fatal(ib, ep, "%s (verbs status %d, vendor code 0x%x)", ib->device.verbs.wc_status_str(wc->status),
                 wc->status, wc->vendor_err);
    if (ep->conn.state != CONN_FAILED)
        log_debug("rank %u has ended: %s", ep->peer->rank, ib->device.verbs.wc_status_str(wc->status));
    ep->status = wc->status;
    ib_endpoint_perform_actions(ep, conn_peer_died(&ep->conn));
}

/* Processes all messages that have arrived. Sets the queue pairs to the error state: no more arrive. */
static void process_arrived_messages(struct ib_endpoint *ep)
{
    for (uint32_t k = 0; k < ep->ib->lanes; k++)
        ib_lane_set_error(&ep->lanes[k]);
    ib_spread_fail_pairs(ep);
    ib_completions_drain(ep->ib);
    if (ep->conn.state == CONN_OPEN || ep->conn.state == CONN_CLOSING)
        ib_endpoint_drain(ep);
}

static void endpoint_reopen_failed(struct ib_endpoint *ep)
{
    process_arrived_messages(ep);
    frame_route_reset(&ep->route);
    if (!ep->peer || ep->conn.state == CONN_IDLE || ep->conn.state == CONN_FAILED) {
        ep->failed_since = 0; /* an arrived message has closed the connection */
        return;
    }
    if (ep->failed_since == 0 &&
        conn_has_no_pending_hello(&ep->conn)) /* a frame that had arrived opened the connection */
        ep->failed_since = clock_ns();
    ib_endpoint_reopen(ep);
}

void ib_failover_reopen_all(struct ib *ib)
{
    ib->failures = false;
    for (uint32_t i = 0; i < ib->nendpoints; i++)
        if (ib->endpoints[i]->peer && ib->endpoints[i]->route.state == FRAME_ROUTE_FAILING)
            endpoint_reopen_failed(ib->endpoints[i]);
}

/* Checks the ports. Connections of a port that went down fail at once, before the adapter's retries end;
 * connections return to a port that has been up again for a while (rested). */
void ib_failover_check_ports(struct ib *ib, bool rested)
{
    uint32_t up = ib_rails_list_up(ib);
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        struct ib_endpoint *ep = ib->endpoints[i];
        if (!ep->peer || !ep->paths || ep->leave.received)
            continue;
        if (!rail_set_contains(up, ep->primary) && up != 0)
            ib_failover_start(ep, "the port went down");
        else if (rested && ep->switched_port && frame_route_is_ready(&ep->route) && ep->paths->at != 0 &&
                 rail_set_contains(up, ep->paths->path[0].a) &&
                 rail_set_contains(ep->paths->peer_up, ep->paths->path[0].b)) {
            log_info("the connection to rank %u goes back to %s", ep->peer->rank, ib->device.name);
            ib_failover_start(ep, NULL);
            ep->paths->next = 0;
            ep->switched_port = false;
        }
    }
}

void ib_failover_finish(struct ib_endpoint *ep)
{
    if (ep->failed_since == 0 ||
        ep->route.state == FRAME_ROUTE_FAILING) /* the new connection is about to be destroyed */
        return;
    counter_add(&moves, 1);
    log_info("the connection to rank %u is open again, over %s, after %.0f ms", ep->peer->rank,
             ep->ib->rails[ep->primary].device->name, (double)(clock_ns() - ep->failed_since) / 1e6);
    ep->failed_since = 0;
}

/* Ends the job if this process has had no usable port for FISHPLATE_IB_RAIL_PATIENCE seconds. */
static void check_usable_ports(struct ib *ib, uint64_t now)
{
    uint64_t since = 0;
    for (uint32_t i = 0; i < ib->nrails; i++) {
        uint64_t down = atomic_load(&ib->rails[i].down);
        if (down == 0)
            return;
        since = MAX(since, down);
    }
    if (now - since >= (uint64_t)patience.value * 1000000000u)
        ib_fatal(ib, NULL, "%s has been down for %d seconds%s; check the cable and the switch",
                 ib->device.name, (int)patience.value, ib->nrails > 1 ? ", and so have all other ports" : "");
}

/* Extends the time limits if this process was stopped (two pulses missed) and could not see ports come up. */
static void patience_extend_deadline(struct ib *ib, uint64_t now)
{
    uint64_t gap = now - ib->pulsed, most = 2 * IB_PULSE * UINT64_C(1000000);
    bool stopped = gap > most;
    ib->pulsed = now;
    if (!stopped)
        return;
    for (uint32_t i = 0; i < ib->nrails; i++) {
        uint64_t down = atomic_load(&ib->rails[i].down);
        if (down != 0) /* an event of the port that arrives now takes precedence */
            atomic_compare_exchange_strong(&ib->rails[i].down, &down, MIN(down + gap, now));
    }
    for (uint32_t i = 0; i < ib->nendpoints; i++)
        if (ib->endpoints[i]->failed_since != 0)
            ib->endpoints[i]->failed_since = MIN(ib->endpoints[i]->failed_since + gap, now);
}

void ib_failover_check_patience(struct ib *ib)
{
    uint64_t now = clock_ns();
    patience_extend_deadline(ib, now);
    check_usable_ports(ib, now);
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        struct ib_endpoint *ep = ib->endpoints[i];
        if (!ep->peer || ep->failed_since == 0 ||
            now - ep->failed_since < (uint64_t)patience.value * 1000000000u)
            continue;
        if (leave_is_complete(&ep->leave)) { /* the peer has ended: only the acknowledgement was lost */
            ep->failed_since = 0;
            ib_endpoint_perform_actions(ep, conn_peer_died(&ep->conn));
            continue;
        }
        if (ib_peer_report_suspect(ep))
            continue;
        ib_fatal(ib, ep, "%s (verbs status %d), and %s in %d seconds",
                 ib->device.verbs.wc_status_str(ep->status), ep->status,
                 ep->paths->count > 1 ? "no other way was found" : "it did not come back",
                 (int)patience.value);
    }
}
