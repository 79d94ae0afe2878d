/* control.c: control messages. They take no credit; those that wait for room in the send queue are sent in
 * the order of their types. ib->messages has a function that fills each type. Credits of further rails, which
 * travel over those rails, are returned here too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "base/counter.h"
#include "net/ib/channel/channel.h"

static COUNTER(credit_messages, "ib_credit_messages", "Messages sent only to return credits.");
static COUNTER(control_messages, "ib_control_messages",
               "Control messages about rings, sleep and closing of connections.");

static void control_post(struct ib_endpoint *ep, enum ib_type type)
{
    struct {
        struct ib_head head;
        union {
            struct ib_leave leave;
            struct ib_ring_on ring;
            struct ib_rails_message rails;
            struct ib_reserve_message reserve;
            struct ib_write_status fate;
            struct ib_redo_write written;
        } body;
    } m;
    const struct ib_message *message = &ep->ib->messages[type];
    size_t bytes = offsetof(__typeof__(m), body) + (message->fill ? message->fill(ep, &m.body) : 0);
    bool last = type == IB_CLOSE || type == IB_AGREE;
    ib_head_fill(ep, &m.head, type, false);
    counter_add(type == IB_CREDIT ? &credit_messages : &control_messages, 1);
    struct ib_work *w = ib_lane_send_control(&ep->lanes[0], &m, bytes, last || type == IB_LEAVE);
    w->frame = type == IB_LEAVE;
    w->last = last;
    ep->final_markers += last;
    if (message->posted)
        message->posted(ep);
}

/* Returns the set of control messages that may be sent now: none after CLOSE or AGREE, unless the peer
 * continues. A peer that must first repeat messages that a failed connection lost continues. It cannot send
 * KEEP before them, but it may need credits or an answer. */
static uint32_t control_get_sendable_types(const struct ib_endpoint *ep)
{
    if (ep->conn.state == CONN_OPEN)
        return frame_route_is_ready(&ep->route) ? ep->control_pending : ep->control_pending & IB_UNORDERED;
    if (ep->conn.state == CONN_CLOSING)
        return ep->control_pending & (IB_FINAL | IB_ANSWERS | 1u << IB_CREDIT);
    return ep->conn.state == CONN_AGREED ? ep->control_pending & IB_FINAL : 0;
}

/* ---- credits of further rails ---- */

static void pair_send_credits(struct ib_lane *lane)
{
    struct ib_head h;
    struct ib_pairs *j = lane->endpoint->pairs;
    unsigned k = (unsigned)(lane->index - IB_LANES);
    if (!ib_lane_has_room(lane, 1, true)) {
        j->owing |= rail_bit(k);
        return;
    }
    j->owing &= ~rail_bit(k);
    ib_pair_head_fill(lane, &h, IB_CREDIT, false);
    ib_lane_send_control(lane, &h, sizeof(h), false);
}

static void pairs_flush(struct ib_endpoint *ep)
{
    struct ib_pairs *j = ep->pairs;
    for (unsigned k = 1; j->owing && k < j->count; k++)
        if (rail_set_contains(j->owing, k) && j->pair[k].lane.qp && ep->route.state != FRAME_ROUTE_FAILING)
            pair_send_credits(&j->pair[k].lane);
        else
            j->owing &= ~rail_bit(k);
}

void ib_pair_return_credits(struct ib_lane *lane)
{
    struct ib_endpoint *ep = lane->endpoint;
    if (!ep->pairs || !ep->pairs->spread || !lane->qp || ep->route.state == FRAME_ROUTE_FAILING ||
        !credit_message_is_due(&lane->credit))
        return;
    pair_send_credits(lane);
    if (ep->pairs->owing && list_empty(&ep->control_link))
        list_append(&ep->ib->control_waiting, &ep->control_link);
}

/* ---- all of a connection ---- */

void ib_control_flush(struct ib_endpoint *ep)
{
    if (unlikely(ep->conn.state == CONN_FAILED))
        ep->control_pending = 0; /* the peer has ended */
    for (uint32_t now;
         (now = control_get_sendable_types(ep)) != 0 && ib_lane_has_room(&ep->lanes[0], 1, true);) {
        enum ib_type type = (enum ib_type)__builtin_ctz(now);
        ep->control_pending &= ~(1u << type);
        control_post(ep, type);
    }
    if (unlikely(ep->route.pairs))
        pairs_flush(ep);
    bool more = ep->control_pending || (!frame_route_is_ready(&ep->route) && ib_has_unacknowledged(ep)) ||
                (unlikely(ep->route.pairs) && ep->pairs->owing);
    if (more && list_empty(&ep->control_link))
        list_append(&ep->ib->control_waiting, &ep->control_link);
    else if (!more && !list_empty(&ep->control_link))
        list_remove(&ep->control_link);
}

void ib_control_send(struct ib_endpoint *ep, enum ib_type type)
{
    if (unlikely(leave_is_complete(&ep->leave)))
        return; /* the peer may have ended */
    ep->control_pending |= 1u << type;
    ib_control_flush(ep);
}
