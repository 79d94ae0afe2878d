/* events.c: the tables of handlers for events and for control messages; see events.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/channel/channel.h"
#include "net/ib/connection/connection.h"
#include "net/ib/failover/failover.h"
#include "net/ib/rails/rails.h"
#include "net/ib/rendezvous/transfer.h"
#include "net/ib/events.h"

#include <string.h>

/* ---- queue pairs and channels ---- */

static void on_last_message_sent(struct ib_endpoint *ep)
{
    ib_endpoint_perform_actions(ep, 0); /* the connection may have waited only for this marker */
}

static void on_first_frame(struct ib_endpoint *ep)
{
    ib_endpoint_perform_actions(ep, conn_frame_received(&ep->conn));
}

/* ---- connections ---- */

static bool allot_has_messages(const struct ib_endpoint *ep)
{
    return unlikely(ep->ib->allot != NULL) && ep->ib->allot->has_messages(ep);
}

static bool endpoint_has_work(const struct ib_endpoint *ep)
{
    return (unlikely(ep->ib->allot != NULL) && ep->ib->allot->is_busy(ep)) || !ib_spread_has_room(ep);
}

static void on_closing(struct ib_endpoint *ep)
{
    ib_resend_collect(ep);
    if (!conn_will_reopen(&ep->conn))
        ib_pairs_free(ep);
}

static void on_connected(struct ib_endpoint *ep, const struct ib_hello *h)
{
    ib_resend_acknowledge(ep, h->expected);
}

static void on_primary_rail_back(struct ib_endpoint *ep)
{
    ep->pairs->up |= rail_bit(0);
    adapt_restore_rail(&ep->pairs->adapt, 0);
    ib_stripes_set_pair(ep, 0, true);
    ib_spread_reset_primary(ep);
    ep->control_pending |= 1u << IB_RAILS | (allot_has_messages(ep) ? 1u << IB_RESERVE : 0);
}

/* Called when the connection has opened. The peer has destroyed the old queue pairs, so messages that they
 * did not deliver can be repeated. */
static void on_opened(struct ib_endpoint *ep)
{
    if (ep->paths) {
        ib_failover_finish(ep);
        if (ep->pairs)
            on_primary_rail_back(ep);
        if (leave_must_be_repeated(&ep->leave)) {
            leave_record_sent(&ep->leave);
            ep->control_pending |= 1u << IB_LEAVE;
        }
        ib_resend_continue(ep);
    }
    ib_spread_start(ep);
}

/* ---- further rails ---- */

static void on_pairs_created(struct ib_endpoint *ep)
{
    ib_stripes_set_weights(ep);
    ib_spread_open(ep);
}

static void on_pair_state_changed(struct ib_endpoint *ep, unsigned pair, bool up)
{
    ib_stripes_set_pair(ep, pair, up);
    ib_spread_update_route(ep);
}

static void on_pairs_freed(struct ib_endpoint *ep)
{
    ib_stripes_forget(ep);
    ib_spread_close(ep);
}

const struct ib_events ib_events = {.failed = ib_failover_start,
                                    .last_sent = on_last_message_sent,
                                    .send_failed = ib_failover_send_failed,
                                    .hello_arrived = ib_hello_receive,
                                    .wanted = ib_endpoint_open,
                                    .first_frame = on_first_frame,
                                    .is_busy = endpoint_has_work,
                                    .closing = on_closing,
                                    .connected = on_connected,
                                    .opened = on_opened,
                                    .unreachable = ib_peer_report_suspect,
                                    .pairs_known = on_pairs_created,
                                    .pair_connected = ib_spread_reset_pair,
                                    .pair_changed = on_pair_state_changed,
                                    .pair_dropped = ib_resend_collect_lane,
                                    .pair_settled = ib_stripes_repeat,
                                    .pairs_freed = on_pairs_freed};

/* ---- control messages ---- */

static size_t fill_leave(struct ib_endpoint *ep, void *body)
{
    const struct ib_leave leave = {.awaits = ep->ib->ends_together && !ep->peer->card};
    memcpy(body, &leave, sizeof(leave));
    return sizeof(leave);
}

static void handle_leave(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    struct ib_leave leave;
    if (len != sizeof(*h) + sizeof(leave))
        ib_fatal(ep->ib, ep, "its message that it ends has the wrong length");
    memcpy(&leave, h + 1, sizeof(leave));
    leave_record_received(&ep->leave, leave.awaits);
}

static void handle_rails(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    struct ib_rails_message said;
    if (len != sizeof(*h) + sizeof(said))
        ib_fatal(ep->ib, ep, "it sent a list of rails in a message of the wrong length");
    memcpy(&said, h + 1, sizeof(said));
    ib_pairs_take_message(ep, &said);
}

static void handle_closing(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    (void)len;
    if (h->type == IB_CLOSE) {
        ib_endpoint_perform_actions(ep, conn_close_received(&ep->conn, ib_endpoint_is_busy(ep)));
    } else if (h->type == IB_AGREE) {
        ib_endpoint_perform_actions(ep, conn_close_accepted(&ep->conn));
    } else {
        ib_endpoint_perform_actions(ep, conn_close_refused(&ep->conn));
        /* Frames may have arrived meanwhile. A peer without credits sends nothing that would return them. */
        ib_endpoint_return_credits(ep);
    }
}

/* Posts markers on all other queue pairs of the endpoint: their completion ends these queue pairs. */
static void post_final_markers(struct ib_endpoint *ep)
{
    if (ep->ib->lanes > 1 && ep->lanes[1].head != ep->lanes[1].tail) {
        ib_lane_post_marker(&ep->lanes[1], true);
        ep->final_markers++;
    }
    ib_spread_post_markers(ep);
}

static void reserve_posted(struct ib_endpoint *ep)
{
    if (allot_has_messages(ep))
        ep->control_pending |= 1u << IB_RESERVE;
}

static size_t fill_reserve_message(struct ib_endpoint *ep, void *body)
{
    return ep->ib->allot->fill_message(ep, body);
}

static void handle_reserve(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    if (!ep->ib->allot || !ep->pairs)
        ib_fatal(ep->ib, ep, "it reserves rails: FISHPLATE_IB_STRIPE must be the same on all ranks");
    ep->ib->allot->take_message(ep, h, len);
}

const struct ib_message ib_messages[IB_TYPES] = {
    [IB_QUERY] = {.fill = ib_resend_fill_query, .take = ib_resend_take_status},
    [IB_ANSWER] = {.fill = ib_resend_fill_answer, .take = ib_resend_take_status},
    [IB_WRITE] = {.fill = ib_resend_fill_write, .take = ib_resend_take_write},
    [IB_WRITTEN] = {.take = ib_resend_take_write},
    [IB_LEAVE] = {.fill = fill_leave, .take = handle_leave},
    [IB_RING_ON] = {.fill = ib_ring_fill_offer, .take = ib_ring_take_control},
    [IB_RING_OFF] = {.take = ib_ring_take_control},
    [IB_RING_STOPPED] = {.take = ib_ring_take_control},
    [IB_RAILS] = {.fill = ib_pairs_fill_message, .take = handle_rails},
    [IB_RESERVE] = {.fill = fill_reserve_message, .take = handle_reserve, .posted = reserve_posted},
    [IB_CLOSE] = {.take = handle_closing, .posted = post_final_markers},
    [IB_AGREE] = {.take = handle_closing, .posted = post_final_markers},
    [IB_KEEP] = {.take = handle_closing},
};
