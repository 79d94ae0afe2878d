/* receive.c: processes completions and incoming frames. A connection has several channels (ring, lanes), each
 * of which keeps its own order; the sequence number puts frames of all channels in order [Liu04 6.2.5]. A
 * frame that arrives early waits in its ring slot or, from a lane, on the endpoint's list.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/counter.h"
#include "base/log.h"
#include "net/ib/ib.h"

static COUNTER(lane_arrived, "ib_frames_received", "Frames received through the send/receive channel.");
static COUNTER(posted_most, "ib_posted_most", "Most receive buffers a connection ever had (not a sum).");
static COUNTER(early, "ib_frames_early", "Frames that arrived before another channel had delivered theirs.");

#define SWEEP  1024 /* polls between two looks for registered memory that has gone */
#define LISTEN 64   /* polls between two looks for HELLOs on adapters that carry nothing */

/* ---- one message, in its turn ---- */

static void granted(struct ib_endpoint *ep, const struct ib_head *h)
{
    if (h->credits[0])
        credit_granted(&ep->lanes[0].credit, h->credits[0]);
    if (h->credits[1] && ep->ib->lanes > 1)
        credit_granted(&ep->lanes[1].credit, h->credits[1]);
    if (h->ring && ep->tx.slots && unlikely(!ring_tx_granted(&ep->tx, h->ring)))
        ib_fatal(ep->ib, ep, "it announced more free ring slots than there are");
}

static void rails(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    struct ib_rails_said said;
    if (len != sizeof(*h) + sizeof(said))
        ib_fatal(ep->ib, ep, "it told of its rails in a message of the wrong length");
    memcpy(&said, h + 1, sizeof(said));
    ib_join_heard(ep, &said);
}

static void control(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    switch (h->type) {
    case IB_CREDIT:
    case IB_WAKE:
        break;
    case IB_LEAVE:
        ep->left = true;
        break;
    case IB_ASK:
    case IB_SAW:
        ib_fate(ep, h, len);
        break;
    case IB_WRITE:
    case IB_WROTE:
        ib_written(ep, h, len);
        break;
    case IB_RING_ON:
    case IB_RING_OFF:
    case IB_RING_STOPPED:
        ib_rdma_control(ep, h, len);
        break;
    case IB_RAILS:
        rails(ep, h, len);
        break;
    case IB_RESERVE:
        ib_allot_heard(ep, h, len);
        break;
    case IB_NOTHING:
        break;
    case IB_CLOSE:
        ib_endpoint_do(ep, conn_close(&ep->conn, ib_endpoint_busy(ep)));
        break;
    case IB_AGREE:
        ib_endpoint_do(ep, conn_agree(&ep->conn));
        break;
    case IB_KEEP:
        ib_endpoint_do(ep, conn_keep(&ep->conn));
        ib_owe(
            ep); /* for what arrived meanwhile; the peer may be out of credits and send nothing that asks */
        break;
    default:
        ib_fatal(ep->ib, ep,
                 "it sent a message of unknown kind %u; all ranks must use the same version "
                 "of the library",
                 h->type);
    }
}

static inline bool ordered(const struct ib_head *h)
{
    return h->type == IB_FRAME || h->type > IB_LEAVE;
}

void ib_received(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    ep->used = ep->ib->tick;
    ep->bell_rung = false;
    if (ordered(h))
        ep->expected++;
    granted(ep, h);
    if (likely(h->type == IB_FRAME)) {
        const struct ib_frame *f = (const struct ib_frame *)(const void *)h;
        struct net *net = ep->ib->base.net;
        if (unlikely(len < sizeof(*f)))
            ib_fatal(ep->ib, ep, "it sent a frame that is too short");
        net->deliver(net->deliver_ctx, ep->peer, &f->header, f->payload, len - sizeof(*f));
    } else {
        control(ep, h, len);
    }
}

void ib_owe(struct ib_endpoint *ep)
{
    bool due = credit_due(&ep->lanes[0].credit) || (ep->ib->lanes > 1 && credit_due(&ep->lanes[1].credit)) ||
               (ep->rx_state != IB_RING_NONE && ring_rx_due(&ep->rx));
    if (unlikely(due))
        ib_say(ep, IB_CREDIT);
}

/* ---- through a lane ---- */

/* The buffer has been read. Control messages took no credit; their buffer is posted again and that is all. */
static void lane_consumed(struct ib_lane *lane, struct ib_buffer *b, bool frame, bool waited)
{
    const struct ib_endpoint *ep = lane->endpoint;
    uint32_t n = frame ? credit_consumed(&lane->credit, waited) : 1;
    if (unlikely(lane->credit.most_posted > posted_most.value))
        posted_most.value = lane->credit.most_posted;
    if (lane->shared) {
        ib_buffer_put(lane->pool, b);
        if (n > 1)
            ib_shared_grow(lane->shared, n - 1);
        ib_shared_refill(lane->shared);
        return;
    }
    if (n == 0 || !lane->qp || ep->breaking) { /* let go; or the message has closed the connection */
        ib_buffer_put(lane->pool, b);
        return;
    }
    ib_lane_repost(lane, b);
    if (unlikely(n > 1))
        ib_lane_post(lane, n - 1);
}

static inline void owe_for(struct ib_lane *lane)
{
    if (unlikely(lane->index >= IB_LANES))
        ib_spread_owe(lane);
    ib_owe(lane->endpoint);
}

static void lane_take(struct ib_lane *lane, struct ib_buffer *b)
{
    struct ib_endpoint *ep = lane->endpoint;
    const struct ib_head *h = (const struct ib_head *)(const void *)b->data;
    bool frame = h->type == IB_FRAME, waited = h->flags & IB_WAITED;
    bool fits_ring = frame && b->length <= ep->ib->ring_frame_max;
    ib_received(ep, h, b->length);
    lane_consumed(lane, b, frame, waited);
    if (frame && ep->conn.state == CONN_CLOSING)
        ib_owe(ep);
    if (!frame || ep->conn.state != CONN_OPEN)
        return;
    if (fits_ring && ep->ib->pollset.limit > 0)
        ib_rdma_candidate(ep);
    owe_for(lane);
}

static uint16_t seq_of(const struct ib_buffer *b)
{
    return ((const struct ib_head *)(const void *)b->data)->seq;
}

/* Sorted by seq; nearly always it belongs at the end. False: it is there already, and has come again because the
 * connection broke before its sender knew that. */
static bool hold(struct ib_endpoint *ep, struct ib_buffer *b)
{
    struct list *after = ep->held.prev;
    int16_t ahead = 1;
    while (after != &ep->held &&
           (ahead = (int16_t)(seq_of(b) - seq_of(list_entry(after, struct ib_buffer, link)))) < 0)
        after = after->prev;
    if (unlikely((after != &ep->held && ahead == 0) || (int16_t)(seq_of(b) - ep->expected) < 0))
        return false;
    counter_add(&early, 1);
    list_prepend(after, &b->link);
    return true;
}

/* It came through a queue pair that is gone, and owes nothing. */
static void orphan_take(struct ib_endpoint *ep, struct ib_buffer *b)
{
    ib_received(ep, (const struct ib_head *)(const void *)b->data, b->length);
    ib_buffer_put(b->shared ? b->shared->pool : &ep->ib->large, b);
}

/* Whatever has its turn now, from any channel. */
void ib_drain(struct ib_endpoint *ep)
{
    for (bool more = true; more;) {
        more = ib_rdma_take(ep) > 0;
        while (!list_empty(&ep->held)) {
            struct ib_buffer *b = list_entry(ep->held.next, struct ib_buffer, link);
            if (seq_of(b) != ep->expected)
                break;
            list_remove(&b->link);
            if (likely(b->lane != NULL))
                lane_take(b->lane, b);
            else
                orphan_take(ep, b);
            more = true;
        }
    }
}

static void lane_arrival(struct ib_lane *lane, struct ib_buffer *b, uint32_t length)
{
    struct ib_endpoint *ep = lane->endpoint;
    const struct ib_head *h = (const struct ib_head *)(const void *)b->data;
    b->length = length;
    b->lane = lane;
    if (unlikely(length < sizeof(*h)))
        ib_fatal(ep->ib, ep, "it sent a message that is too short");
    if (unlikely(ep->conn.state == CONN_HALF))
        ib_endpoint_do(ep, conn_frame(&ep->conn));
    counter_add(&lane_arrived, 1);
    if (unlikely(lane->index >= IB_LANES))
        ib_spread_credits(lane, (struct ib_head *)(void *)b->data);
    if (ordered(h) && h->seq != ep->expected) {
        if (unlikely(!hold(ep, b))) {
            granted(ep, h); /* what it tells of credits is new */
            lane_consumed(lane, b, h->type == IB_FRAME, h->flags & IB_WAITED);
            owe_for(lane);
        }
        ib_drain(ep);
        return;
    }
    lane_take(lane, b);
    if (unlikely(!list_empty(&ep->held)))
        ib_drain(ep);
}

/* An immediate: a frame is in the ring. The receive buffer it took was not used; the immediate is not 0 when
 * an earlier frame found no credit. */
static void imm_arrival(struct ib_lane *lane, struct ib_buffer *b, bool waited)
{
    struct ib_endpoint *ep = lane->endpoint;
    ep->rx_announced++;
    lane_consumed(lane, b, true, waited);
    ib_drain(ep);
    ib_owe(ep);
}

/* ---- the completion queue ---- */

static bool all_news(const struct ib_endpoint *ep)
{
    for (uint32_t k = 0; k < ep->ib->lanes; k++)
        if (!ib_only_news(&ep->lanes[k]))
            return false;
    return true;
}

/* What a new connection would not mend: it would fail in the same way, again and again. */
static bool hopeless(enum ibv_wc_status s)
{
    return s == IBV_WC_LOC_LEN_ERR || s == IBV_WC_LOC_PROT_ERR || s == IBV_WC_REM_INV_REQ_ERR ||
           s == IBV_WC_REM_ACCESS_ERR || s == IBV_WC_LOC_QP_OP_ERR;
}

/* A send of this connection failed. Those before it did not. */
static void send_failed(struct ib *ib, struct ib_lane *lane, const struct ibv_wc *wc)
{
    struct ib_endpoint *ep = lane->endpoint;
    uint32_t place = ib_send_place(wc->wr_id);
    if (lane->failed)
        return; /* the first failure said it; this one is flushed */
    lane->failed = true;
    if (((place - lane->tail) & 0xffffff) != 0)
        ib_lane_retire(lane, place - 1);
    if (!lane->bare && lane->index >= IB_LANES && ep->left && (ep->leaving || ib_only_news(lane)))
        return;
    if (lane->index >= IB_LANES && lane->given_up) /* whoever gave it up drops it when all was looked at */
        return;
    if (lane->index >= IB_LANES) { /* the other rails go on */
        ib_join_failed(lane, ib->device.verbs.wc_status_str(wc->status));
        return;
    }
    /* The peer has closed already; or it has not heard that it may, and finds out (ib_endpoints_pulse). */
    if (ep->conn.state == CONN_AGREED && (!ep->ways || all_news(ep))) {
        ib_endpoint_do(ep, conn_left(&ep->conn));
        return;
    }
    if (!(ep->left && (ep->leaving || ib_only_news(lane))) && !hopeless(wc->status) &&
        ib_break(ep, ib->device.verbs.wc_status_str(wc->status))) {
        if (wc->status != IBV_WC_WR_FLUSH_ERR)
            ep->why = wc->status;
        return;
    }
    if ((!ep->left || !(ep->leaving || ib_only_news(lane))) &&
        !ib_accuse(ep)) /* after both LEAVEs we need nothing */
        ib_fatal(ib, ep, "%s (verbs status %d, vendor code 0x%x)", ib->device.verbs.wc_status_str(wc->status),
                 wc->status, wc->vendor_err);
    if (ep->conn.state != CONN_FAILED)
        log_debug("rank %u has ended: %s", ep->peer->rank, ib->device.verbs.wc_status_str(wc->status));
    ep->why = wc->status;
    ib_endpoint_do(ep, conn_lost(&ep->conn));
}

static struct ib_lane *send_lane(const struct ib *ib, const struct ib_adapter *a, const struct ibv_wc *wc)
{
    struct ib_endpoint *ep = ib->endpoints[ib_send_endpoint(wc->wr_id)];
    uint32_t index = ib_send_lane(wc->wr_id);
    if (unlikely(index >= IB_LANES && !ep->join))
        return NULL;
    struct ib_lane *lane =
        likely(index < IB_LANES) ? &ep->lanes[index] : &ep->join->pairs[index - IB_LANES].lane;
    return lane->qp && lane->qp->qp_num == wc->qp_num && lane->rail->adapter == a
               ? lane
               : NULL; /* else: of one that is gone */
}

static __attribute__((noinline, cold)) void failed(struct ib *ib, const struct ib_adapter *a,
                                                   const struct ibv_wc *wc)
{
    if (ib->closing)
        return;
    unsigned kind = wc->wr_id & 3;
    if (kind == IB_KIND_SEND) {
        struct ib_lane *lane = send_lane(ib, a, wc);
        if (lane)
            send_failed(ib, lane, wc);
    } else if (wc->status != IBV_WC_WR_FLUSH_ERR &&
               !ib_adapter_gone(a)) { /* flushed receives: the send that failed says why */
        const struct ib_buffer *b = (const struct ib_buffer *)(uintptr_t)(wc->wr_id & ~(uint64_t)3);
        ib_fatal(ib, kind == IB_KIND_RECEIVE && b->lane ? b->lane->endpoint : NULL,
                 "%s failed: %s (verbs status %d, vendor code 0x%x)%s",
                 kind == IB_KIND_HELLO_SENT ? "the sending of a handshake" : "a receive",
                 ib->device.verbs.wc_status_str(wc->status), wc->status, wc->vendor_err,
                 ib->device.verbs.softib ? "; softib says above why" : "");
    }
}

static void receive_completed(struct ib *ib, const struct ibv_wc *wc)
{
    struct ib_buffer *b = (struct ib_buffer *)(uintptr_t)wc->wr_id;
    struct ib_lane *lane = b->lane;
    list_remove(&b->link);
    if (ib->lanes > 1) {
        struct ib_shared *s = b->shared;
        s->posted--;
        lane = ib_lane_find(ib, wc->qp_num, s);
        if (!lane) { /* of a connection that is closed */
            ib_buffer_put(s->pool, b);
            return;
        }
    }
    if (unlikely(wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM))
        imm_arrival(lane, b, wc->imm_data != 0);
    else
        lane_arrival(lane, b, wc->byte_len);
}

/* True when a receive completion is of a queue pair that still exists (its buffers went back with it
 * otherwise). */
static bool current(const struct ib *ib, const struct ib_adapter *a, const struct ibv_wc *wc)
{
    const struct ib_buffer *b = (const struct ib_buffer *)(uintptr_t)wc->wr_id;
    return ib->lanes > 1 ||
           (b->lane && b->lane->qp && b->lane->qp->qp_num == wc->qp_num && b->lane->rail->adapter == a);
}

static void completed(struct ib *ib, const struct ib_adapter *a, const struct ibv_wc *wc)
{
    void *buffer = (void *)(uintptr_t)(wc->wr_id & ~(uint64_t)3);
    bool good = wc->status == IBV_WC_SUCCESS;
    if (unlikely(!good))
        failed(ib, a, wc);
    switch ((enum ib_kind)(wc->wr_id & 3)) {
    case IB_KIND_RECEIVE:
        if (likely(good && current(ib, a, wc)))
            receive_completed(ib, wc);
        break;
    case IB_KIND_SEND: {
        struct ib_lane *lane = good ? send_lane(ib, a, wc) : NULL;
        if (lane)
            ib_lane_retire(lane, ib_send_place(wc->wr_id));
        break;
    }
    case IB_KIND_HELLO_SENT:
        ib->uds[((struct ib_buffer *)buffer)->rail].sends--;
        ib_buffer_put(&ib->ud_pool, buffer);
        break;
    case IB_KIND_HELLO:
        if (good)
            ib_hello_arrived(ib, buffer, wc->byte_len);
        break;
    }
}

static inline int poll_adapter(struct ib *ib, const struct ib_adapter *a)
{
    struct ibv_wc wc[IB_POLL_BATCH];
    int n = ibv_poll_cq(a->cq, IB_POLL_BATCH, wc);
    if (unlikely(n < 0)) {
        if (ib_adapter_gone(a))
            return 0;
        ib_fatal(ib, NULL, "the completion queue cannot be read");
    }
    if (likely(n == 0))
        return 0;
    ib->found = 0;
    for (int i = 0; i < n; i++)
        completed(ib, a, &wc[i]);
    return n;
}

/* Without transfers and connections there is nothing to find on the other adapters, but for a HELLO of a peer whose own way
 * to the first one is broken. */
static __attribute__((noinline, cold)) int poll_elsewhere(struct ib *ib)
{
    int n = 0;
    bool all = ib->tick % LISTEN == 0;
    for (uint32_t i = 1; i < ib->nadapters; i++)
        if (all || ib->adapters[i].under_way > 0)
            n += poll_adapter(ib, &ib->adapters[i]);
    return n;
}

int ib_poll_completions(struct ib *ib)
{
    int n = poll_adapter(ib, &ib->adapters[0]);
    if (unlikely(ib->nadapters > 1) && (ib->elsewhere > 0 || ib->tick % LISTEN == 0))
        n += poll_elsewhere(ib);
    return n;
}

/* Each once. What one of them sends ends transfers, and then others may come to the list or leave it. */
static void flush_all(struct ib *ib)
{
    struct list end;
    list_append(&ib->unsaid, &end);
    while (ib->unsaid.next != &end) {
        struct list *pos = ib->unsaid.next;
        list_remove(pos);
        list_append(&ib->unsaid, pos);
        ib_flush(list_entry(pos, struct ib_endpoint, unsaid_link));
    }
    list_remove(&end);
}

static __attribute__((noinline, cold)) void look_after(struct ib *ib)
{
    atomic_store(&ib->attention, 0);
    int broken = atomic_load(&ib->broken);
    if (broken)
        ib_fatal(ib, NULL, "the adapter has failed: %s",
                 ib->device.verbs.event_type_str((enum ibv_event_type)(broken - 1)));
    if (ib->drops)
        ib_join_drops(ib);
    if (atomic_exchange(&ib->pulse, 0))
        ib_endpoints_pulse(ib);
    if (atomic_exchange(&ib->ports, 0)) {
        ib_rails_look(ib);
        ib_join_ports(ib, false);
        ib_paths_look(ib, false);
        ib_moves_ports(ib, false);
    }
    if (ib->breaks)
        ib_moves(ib);
    if (ib->stuck)
        ib_stripe_again(ib);
    flush_all(ib);
    if (!list_empty(&ib->asking))
        ib_hello_timers(ib);
    for (uint32_t i = 0; i < ib->nadapters * IB_LANES && ib->lanes > 1; i++) {
        struct ib_shared *s = &ib->shared[i / IB_LANES][i % IB_LANES];
        if (atomic_exchange(&s->low, 0) && s->srq)
            ib_shared_low(s);
    }
}

int ib_poll(struct transport *t)
{
    struct ib *ib = ib_of(t);
    int events = ib->pollset.count > 0 ? ib_rdma_poll(ib) : 0;
    ib->tick++;
    /* A frame that was waited for is answered first: completions wait until the next poll, where frames do not come in a
     * stream. */
    bool at_once = events > 0 && ib->silent && ib->tick % LISTEN != 0;
    ib->silent = events == 0;
    if (!at_once)
        events += ib_poll_completions(ib);
    if (unlikely(ib->tick % SWEEP == 0))
        regcache_sweep(ib->regcache);
    if (unlikely(!list_empty(&ib->unsaid) || !list_empty(&ib->asking) ||
                 atomic_load_explicit(&ib->attention, memory_order_relaxed)))
        look_after(ib);
    return events;
}
