/* receive.c: delivers messages in order. A connection has several channels (ring, queue pairs), each of which
 * preserves its own order; the sequence number orders the frames of all channels [Liu04 6.2.5]. A frame that
 * arrives early stays in its ring slot or, if it came through a queue pair, in the endpoint's list `held`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/counter.h"
#include "net/ib/channel/channel.h"

static COUNTER(lane_arrived, "ib_frames_received", "Frames received through the send/receive channel.");
static COUNTER(ring_arrived, "ib_ring_frames_received",
               "Frames received through the rings of the RDMA channel.");
static COUNTER(posted_most, "ib_receives_posted_max",
               "Largest number of receive buffers that one connection had (a maximum, not a sum).");
static COUNTER(early, "ib_frames_early",
               "Frames that arrived ahead of earlier frames of another channel and had to wait for them.");

/* ---- delivery of one message ---- */

static void head_apply_credits(struct ib_endpoint *ep, const struct ib_head *h)
{
    if (h->credits[0])
        credit_add_granted(&ep->lanes[0].credit, h->credits[0]);
    if (h->credits[1] && ep->ib->lanes > 1)
        credit_add_granted(&ep->lanes[1].credit, h->credits[1]);
    if (h->ring && ep->tx.slots && unlikely(!ring_tx_release_slots(&ep->tx, h->ring)))
        ib_fatal(ep->ib, ep, "it announced more free ring slots than there are");
}

static void control_receive(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    if (h->type >= IB_TYPES)
        ib_fatal(ep->ib, ep,
                 "it sent a message of unknown kind %u; all ranks must use the same version of the library",
                 h->type);
    const struct ib_message *message = &ep->ib->messages[h->type];
    if (message->take)
        message->take(ep, h, len);
}

static inline bool head_is_ordered(const struct ib_head *h)
{
    return h->type == IB_FRAME || h->type > IB_LEAVE;
}

static void endpoint_deliver(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    ep->used = ep->ib->tick;
    ep->peer_bell_set = false;
    if (head_is_ordered(h))
        ep->expected++;
    head_apply_credits(ep, h);
    if (likely(h->type == IB_FRAME)) {
        const struct ib_frame *f = (const struct ib_frame *)(const void *)h;
        struct net *net = ep->ib->base.net;
        if (unlikely(len < sizeof(*f)))
            ib_fatal(ep->ib, ep, "it sent a frame that is too short");
        net->deliver(net->deliver_ctx, ep->peer, &f->header, f->payload, len - sizeof(*f));
    } else {
        control_receive(ep, h, len);
    }
}

void ib_endpoint_return_credits(struct ib_endpoint *ep)
{
    bool due = credit_message_is_due(&ep->lanes[0].credit) ||
               (ep->ib->lanes > 1 && credit_message_is_due(&ep->lanes[1].credit)) ||
               (ep->rx_state != IB_RING_NONE && ring_rx_message_is_due(&ep->rx));
    if (unlikely(due))
        ib_control_send(ep, IB_CREDIT);
}

/* ---- through a ring ---- */

/* Delivers frames from the head of the ring as long as they are next in order. */
static inline int ring_take_frames(struct ib_endpoint *ep)
{
    int events = 0;
    bool broken = false;
    size_t size;
    const char *frame;
    while (ep->rx_state != IB_RING_NONE && events < IB_POLL_BATCH &&
           (frame = ring_rx_peek(&ep->rx, &size, &broken)) != NULL) {
        const struct ib_head *h = (const struct ib_head *)(const void *)frame;
        if (unlikely(size < sizeof(*h) || h->seq != ep->expected)) {
            broken = size < sizeof(*h);
            break;
        }
        endpoint_deliver(ep, h, size);
        ring_rx_consume(&ep->rx);
        events++;
    }
    if (unlikely(broken))
        ib_fatal(ep->ib, ep, "its ring holds bytes that are not a frame");
    if (events > 0)
        counter_add(&ring_arrived, (uint64_t)events);
    return events;
}

/* ---- through a lane ---- */

/* Called when a message was handled. Control messages took no credit: their buffers are only reposted. */
static void lane_release_buffer(struct ib_lane *lane, struct ib_buffer *b, bool frame, bool waited)
{
    const struct ib_endpoint *ep = lane->endpoint;
    uint32_t n = frame ? credit_frame_consumed(&lane->credit, waited) : 1;
    if (unlikely(lane->credit.most_posted > posted_most.value))
        posted_most.value = lane->credit.most_posted;
    if (lane->shared) {
        ib_buffer_put(lane->pool, b);
        if (n > 1)
            ib_shared_grow(lane->shared, n - 1);
        ib_shared_refill(lane->shared);
        return;
    }
    if (n == 0 || !lane->qp ||
        ep->route.state == FRAME_ROUTE_FAILING) { /* n = 0: the flow control retires the buffer */
        ib_buffer_put(lane->pool, b);
        return;
    }
    ib_lane_post_receive(lane, b);
    if (unlikely(n > 1))
        ib_lane_post_receives(lane, n - 1);
}

static inline void return_lane_credits(struct ib_lane *lane)
{
    if (unlikely(lane->index >= IB_LANES))
        ib_pair_return_credits(lane);
    ib_endpoint_return_credits(lane->endpoint);
}

static void lane_handle_buffer(struct ib_lane *lane, struct ib_buffer *b)
{
    struct ib_endpoint *ep = lane->endpoint;
    const struct ib_head *h = (const struct ib_head *)(const void *)b->data;
    bool frame = h->type == IB_FRAME, waited = h->flags & IB_WAITED;
    bool fits_ring = frame && b->length <= ep->ib->ring_frame_max;
    endpoint_deliver(ep, h, b->length);
    lane_release_buffer(lane, b, frame, waited);
    if (frame && ep->conn.state == CONN_CLOSING)
        ib_endpoint_return_credits(ep);
    if (!frame || ep->conn.state != CONN_OPEN)
        return;
    if (fits_ring && ep->ib->pollset.limit > 0)
        ib_ring_count_candidate(ep);
    return_lane_credits(lane);
}

/* Holds a frame that arrived ahead of earlier ones. Returns false for a duplicate: the sender repeats frames
 * if the connection broke before it received their acknowledgement. */
static bool frame_hold_out_of_order(struct ib_endpoint *ep, struct ib_buffer *b)
{
    struct list *after = ib_buffers_find_place(&ep->held, b);
    const uint16_t seq = ib_buffer_sequence(b);
    if (unlikely(
            (int16_t)(seq - ep->expected) < 0 ||
            (after != &ep->held && ib_buffer_sequence(list_entry(after, struct ib_buffer, link)) == seq)))
        return false;
    counter_add(&early, 1);
    list_prepend(after, &b->link);
    return true;
}

/* Handles a held message whose queue pair was destroyed. Returns no credit for the message. */
static void handle_detached_buffer(struct ib_endpoint *ep, struct ib_buffer *b)
{
    endpoint_deliver(ep, (const struct ib_head *)(const void *)b->data, b->length);
    ib_buffer_put(b->shared ? b->shared->pool : &ep->ib->large, b);
}

/* True with XRC while this process cannot send an answer yet: frames must be held (queue/xrc.h). */
static bool endpoint_must_hold_frames(const struct ib_endpoint *ep)
{
    return ep->ib->xrc && ep->conn.state != CONN_OPEN && ep->conn.state != CONN_CLOSING;
}

/* Delivers all frames that are next in order, from any channel. */
void ib_endpoint_drain(struct ib_endpoint *ep)
{
    if (unlikely(endpoint_must_hold_frames(ep)))
        return;
    for (bool more = true; more;) {
        more = ring_take_frames(ep) > 0;
        while (!list_empty(&ep->held)) {
            struct ib_buffer *b = list_entry(ep->held.next, struct ib_buffer, link);
            if (ib_buffer_sequence(b) != ep->expected)
                break;
            list_remove(&b->link);
            if (likely(b->lane != NULL))
                lane_handle_buffer(b->lane, b);
            else
                handle_detached_buffer(ep, b);
            more = true;
        }
    }
}

/* Applies the credits in a message over a further rail, which belong to that rail. */
static void pair_apply_credits(struct ib_lane *lane, struct ib_head *h)
{
    if (h->flags & IB_PAIRED && h->credits[0]) {
        credit_add_granted(&lane->credit, h->credits[0]);
        h->credits[0] = 0;
    }
}

void ib_lane_receive_message(struct ib_lane *lane, struct ib_buffer *b, uint32_t length)
{
    struct ib_endpoint *ep = lane->endpoint;
    const struct ib_head *h = (const struct ib_head *)(const void *)b->data;
    b->length = length;
    b->lane = lane;
    if (unlikely(length < sizeof(*h)))
        ib_fatal(ep->ib, ep, "it sent a message that is too short");
    if (unlikely(ep->conn.state == CONN_HALF) && !ep->ib->xrc)
        ep->ib->events->first_frame(ep);
    counter_add(&lane_arrived, 1);
    if (unlikely(lane->index >= IB_LANES))
        pair_apply_credits(lane, (struct ib_head *)(void *)b->data);
    if (head_is_ordered(h) && (h->seq != ep->expected || unlikely(endpoint_must_hold_frames(ep)))) {
        if (unlikely(!frame_hold_out_of_order(ep, b))) {
            head_apply_credits(ep, h); /* the credits of a duplicate are new */
            lane_release_buffer(lane, b, h->type == IB_FRAME, h->flags & IB_WAITED);
            return_lane_credits(lane);
        }
        ib_endpoint_drain(ep);
        return;
    }
    lane_handle_buffer(lane, b);
    if (unlikely(!list_empty(&ep->held)))
        ib_endpoint_drain(ep);
}

/* Detaches a held buffer from its destroyed queue pair. The credits and ring slots in its header are void, as
 * is an offer or withdrawal of a ring in the message. */
void ib_buffer_detach_lane(struct ib_buffer *b)
{
    struct ib_head *h = (struct ib_head *)(void *)b->data;
    if (!ib_head_outlives_connection(h))
        h->type = IB_NOTHING;
    memset(h->credits, 0, sizeof(h->credits));
    h->ring = 0;
    b->lane = NULL;
}

void ib_endpoint_receive_late(struct ib_endpoint *ep, struct ib_buffer *b, uint32_t length)
{
    struct ib_head *h = (struct ib_head *)(void *)b->data;
    b->length = length;
    if (length < sizeof(*h))
        ib_fatal(ep->ib, ep, "it sent a message that is too short");
    const bool ordered = head_is_ordered(h);
    if (h->type == IB_LEAVE) /* LEAVE concerns the process, not the generation, and is not repeated */
        control_receive(ep, h, length);
    ib_buffer_detach_lane(b);
    if (!ordered || !frame_hold_out_of_order(ep, b))
        ib_buffer_put(b->shared->pool, b);
    ib_endpoint_drain(ep);
}

int ib_rings_poll(struct ib *ib)
{
    struct pollset *set = &ib->pollset;
    int events = 0;
    for (uint32_t k = 0; k < set->count; k++) {
        uint32_t place = pollset_round_place(set, k);
        struct ib_endpoint *ep = ib->endpoints[set->members[place].id];
        int n = ring_take_frames(ep);
        if (likely(n == 0))
            continue;
        events += n;
        for (int i = 0; i < n && place < set->count && set->members[place].id == ep->id; i++)
            place = pollset_count_hit(set, place); /* a frame may have changed the polling set */
        if (unlikely(!list_empty(&ep->held)))
            ib_endpoint_drain(ep);
        ib_endpoint_return_credits(ep);
    }
    if (events > 0)
        pollset_end_round(set);
    return events;
}
