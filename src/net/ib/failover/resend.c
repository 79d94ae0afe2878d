/* resend.c: repeats the messages and transfers that the queue pairs of a failed connection did not deliver.
 * They are recorded before the queue pairs are destroyed, and repeated in order when the connection is open
 * again; see docs/failover.md.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "net/ib/channel/channel.h"
#include "net/ib/failover/failover.h"
#include "net/ib/rails/rails.h"
#include "net/ib/rendezvous/transfer.h"

static COUNTER(resent, "ib_frames_resent", "Frames that were sent again because a connection failed.");
static COUNTER(queries, "ib_write_status_queries",
               "RDMA writes whose completion was queried at the peer after a connection failed.");
static COUNTER(redone, "ib_transfers_resent",
               "RDMA writes and reads that were repeated because a connection failed.");

/* A put or get that may not have been executed. */
struct ib_unacknowledged {
    struct list link;
    struct ib_rdma rdma;
    struct net_op *op;
    uint32_t queried_in;             /* generation in which IB_QUERY or IB_WRITE was sent */
    uint64_t number;                 /* number of the transfer in IB_QUERY */
    enum net_delivery_status status; /* answer of the peer; NET_DELIVERY_QUERY: not received yet */
    char copy[IB_COPY];              /* data of a silent put */
};

/* ---- recording messages and transfers ---- */

/* The buffer pool for the record of a message of `length` bytes. */
static struct ib_pool *message_pool(struct ib_endpoint *ep, uint32_t length)
{
    return ib_lane_for_size(ep, length - MIN(length, sizeof(struct ib_frame)))->pool;
}

static void record_message(struct ib_endpoint *ep, const char *data, uint32_t bytes)
{
    const struct ib_head *h = (const struct ib_head *)(const void *)data;
    if (h->type != IB_FRAME && h->type <= IB_LEAVE)
        return;
    bool whole = ib_head_outlives_connection(h);
    uint32_t length = whole ? bytes : (uint32_t)sizeof(*h);
    struct ib_buffer *b = ib_buffer_get(message_pool(ep, length));
    if (!b)
        ib_fatal(ep->ib, NULL, "%s", err_detail(MPI_ERR_NO_MEM));
    memcpy(b->data, data, length);
    if (!whole)
        ((struct ib_head *)(void *)b->data)->type = IB_NOTHING;
    b->length = length;
    list_prepend(ib_buffers_find_place(&ep->unacknowledged, b), &b->link);
}

static void record_ring_frames(struct ib_endpoint *ep)
{
    for (uint32_t at = ep->tx.tail; at != ep->tx.head; at++) {
        const char *slot = ring_slot_at(ep->tx.mirror, at & (ep->tx.slots - 1), ep->tx.slot_size);
        uint32_t word;
        memcpy(&word, slot, sizeof(word));
        record_message(ep, slot + RING_HEAD_BYTES, word & ((1u << RING_SIZE_BITS) - 1));
    }
}

static void record_rdma(struct ib_lane *lane, const struct ib_work *w, uint32_t place)
{
    struct ib_unacknowledged *k = malloc(sizeof(*k));
    if (!k)
        ib_fatal(lane->endpoint->ib, lane->endpoint, "out of memory for a transfer that must be repeated");
    k->rdma = lane->rdma[place];
    k->op = w->op;
    k->queried_in = 0;
    k->status = NET_DELIVERY_QUERY;
    if (!k->op) {
        memcpy(k->copy, lane->copies + (size_t)place * IB_COPY, MIN(k->rdma.len, IB_COPY));
        k->rdma.local = (uintptr_t)k->copy;
    }
    list_append(&lane->endpoint->unacknowledged_rdma, &k->link);
}

static void record_work_request(struct ib_lane *lane, uint32_t place)
{
    struct ib_endpoint *ep = lane->endpoint;
    struct ib_work *w = &lane->work[place];
    if (w->bytes > 0)
        record_message(ep, w->buffer ? w->buffer->data : lane->copies + (size_t)place * IB_COPY, w->bytes);
    if (w->rdma)
        record_rdma(lane, w, place);
    else if (w->op) { /* another pair of rails repeats a stripe; an atomic operation cannot be repeated */
        if (!ib_is_stripe(w->op))
            ib_fatal(
                ep->ib, ep,
                "the connection failed during an atomic operation (the lock of a window, or an accumulate "
                "by the adapter), and whether it was done is unknown");
        struct net_op *op = w->op;
        w->op = NULL;
        ep->ops--;
        op->done(op, MPI_ERR_OTHER);
    }
}

void ib_resend_collect_lane(struct ib_lane *lane)
{
    for (uint32_t at = lane->tail; at != lane->head; at++)
        record_work_request(lane, at & (lane->depth - 1));
}

void ib_resend_collect(struct ib_endpoint *ep)
{
    if (!ep->paths || !ep->lanes[0].qp)
        return;
    leave_connection_failed(&ep->leave, ib_lane_has_only_credits(&ep->lanes[0]) &&
                                            !(ep->control_pending & 1u << IB_LEAVE));
    if (ep->pairs) {
        ep->pairs->up &= ~rail_bit(0);
        ib_stripes_set_pair(ep, 0, false);
    }
    ib_spread_rejoin_pairs(ep);
    record_ring_frames(ep);
    for (uint32_t k = 0; k < ep->ib->lanes; k++)
        ib_resend_collect_lane(&ep->lanes[k]);
    list_foreach_safe(pos, after, &ep->held) ib_buffer_detach_lane(list_entry(pos, struct ib_buffer, link));
}

static void complete_recorded_rdma(struct ib_endpoint *ep, struct ib_unacknowledged *k)
{
    struct net_op *op = k->op;
    list_remove(&k->link);
    free(k);
    if (!op)
        return;
    ep->ops--;
    op->done(op, 0);
}

/* Completes puts that precede an acknowledged frame: they preceded it in the same queue pair. */
static void complete_arrived_rdma(struct ib_endpoint *ep, uint16_t expected)
{
    list_foreach_safe(pos, after, &ep->unacknowledged_rdma)
    {
        struct ib_unacknowledged *k = list_entry(pos, struct ib_unacknowledged, link);
        if (k->rdma.opcode == IBV_WR_RDMA_WRITE && (int16_t)(expected - k->rdma.seq) > 0)
            complete_recorded_rdma(ep, k);
    }
}

/* Releases the records of messages before `expected`, which have arrived. Sequence numbers wrap: a record
 * whose distance from `expected` exceeds the number of missing messages precedes it. */
void ib_resend_acknowledge(struct ib_endpoint *ep, uint16_t expected)
{
    if (!ep->paths)
        return;
    if (ep->ib->lanes == 1 && !ib_frames_can_spread(ep))
        complete_arrived_rdma(ep, expected);
    uint16_t missing = (uint16_t)(ep->next_seq - expected);
    list_foreach_safe(pos, after, &ep->unacknowledged)
    {
        struct ib_buffer *b = list_entry(pos, struct ib_buffer, link);
        if ((uint16_t)(ib_buffer_sequence(b) - expected) < missing)
            continue;
        list_remove(pos);
        ib_buffer_put(message_pool(ep, b->length), b);
    }
    if (!ep->pairs)
        return;
    ep->pairs->pair[0].mine = ep->primary;
    ep->pairs->pair[0].yours = ep->peer_rail;
    ib_stripes_repeat(ep, 0);
}

static bool send_frame(struct ib_endpoint *ep, struct ib_buffer *b)
{
    struct ib_head *h = (struct ib_head *)(void *)b->data;
    bool frame = h->type == IB_FRAME, waited = false;
    struct ib_lane *lane = frame ? ib_lane_for_size(ep, b->length - sizeof(struct ib_frame)) : &ep->lanes[0];
    if (frame ? ib_lane_take_credit(lane, &waited) != 0 : !ib_lane_has_room(lane, 1, false))
        return false;
    uint16_t seq = h->seq;
    uint16_t next = ep->next_seq;
    ib_head_fill(ep, h, (enum ib_type)h->type, waited);
    ep->next_seq = next;
    h->seq = seq;
    list_remove(&b->link);
    ib_lane_post_message(lane, b, b->data, b->length, true, false);
    counter_add(&resent, 1);
    return true;
}

/* Returns the delivery status, for which the peer must be queried. The query precedes all other messages,
 * because later frames could match the receive into which the transfer writes. Both ends have destroyed their
 * queue pairs, so no old write can arrive, and the answer remains true until the transfer is repeated. */
static enum net_delivery_status query_delivery_status(struct ib_endpoint *ep, struct ib_unacknowledged *k)
{
    const struct net *net = ep->ib->base.net;
    if (!k->op || !net->fate)
        return NET_DELIVERY_REPEAT;
    if (k->status != NET_DELIVERY_QUERY)
        return k->status;
    enum net_delivery_status fate = net->fate(net->deliver_ctx, k->op, &k->number);
    if (fate == NET_DELIVERY_QUERY && k->queried_in != ep->conn.mine) {
        k->queried_in = ep->conn.mine;
        ep->query = (struct ib_write_status){.number = k->number};
        ep->control_pending |= 1u << IB_QUERY; /* ib_control_flush sends it */
        counter_add(&queries, 1);
    }
    return fate;
}

static void write_status_received(struct ib_endpoint *ep, const struct ib_write_status *f)
{
    list_foreach_safe(pos, after, &ep->unacknowledged_rdma)
    {
        struct ib_unacknowledged *k = list_entry(pos, struct ib_unacknowledged, link);
        if (k->queried_in == ep->conn.mine && k->number == f->number)
            k->status = f->seen ? NET_DELIVERY_DONE : NET_DELIVERY_REPEAT;
    }
    ib_resend_continue(ep);
}

void ib_resend_take_status(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    const struct net *net = ep->ib->base.net;
    struct ib_write_status f;
    if (len != sizeof(*h) + sizeof(f))
        ib_fatal(ep->ib, ep, "its query about an RDMA write has the wrong length");
    memcpy(&f, h + 1, sizeof(f));
    if (h->type == IB_ANSWER) {
        write_status_received(ep, &f);
        return;
    }
    f.seen = net->has_arrived ? net->has_arrived(net->deliver_ctx, ep->peer, f.number) : 0;
    ep->answer = f;
    ib_control_send(ep, IB_ANSWER);
}

/* True if the write must not be repeated: another process may have changed the word (a window's lock). */
static bool must_not_repeat(const struct ib_unacknowledged *k)
{
    return k->op && k->op->once && k->rdma.opcode == IBV_WR_RDMA_WRITE;
}

/* ---- silent writes ---- */

/* Requests the first recorded silent write from the peer (IB_WRITE). IB_WRITTEN completes it; then the next
 * one is requested. */
static bool resend_silent_write(struct ib_endpoint *ep, struct ib_unacknowledged *k)
{
    if (k->queried_in != ep->conn.mine) {
        k->queried_in = ep->conn.mine;
        ep->control_pending |= 1u << IB_WRITE; /* ib_control_flush sends it */
        counter_add(&redone, 1);
    }
    return false;
}

static struct ib_unacknowledged *first_recorded_rdma(const struct ib_endpoint *ep)
{
    return list_entry(ep->unacknowledged_rdma.next, struct ib_unacknowledged, link);
}

size_t ib_resend_fill_query(struct ib_endpoint *ep, void *body)
{
    memcpy(body, &ep->query, sizeof(ep->query));
    return sizeof(ep->query);
}

size_t ib_resend_fill_answer(struct ib_endpoint *ep, void *body)
{
    memcpy(body, &ep->answer, sizeof(ep->answer));
    return sizeof(ep->answer);
}

size_t ib_resend_fill_write(struct ib_endpoint *ep, void *body)
{
    struct ib_redo_write *out = body;
    const struct ib_unacknowledged *k = first_recorded_rdma(ep);
    *out = (struct ib_redo_write){
        .address = k->rdma.remote, .key = k->rdma.key, .length = (uint32_t)MIN(k->rdma.len, IB_COPY)};
    memcpy(out->bytes, k->copy, out->length);
    return sizeof(*out);
}

/* Stores 8-byte words atomically, as the adapter does, so that no reader sees part of a word. */
static void store_words(char *to, const char *from, uint32_t length)
{
    const bool words = ((uintptr_t)to | length) % sizeof(uint64_t) == 0;
    for (uint32_t i = 0; words && i < length; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, from + i, sizeof(word));
        atomic_store_explicit((_Atomic uint64_t *)(void *)(to + i), word, memory_order_release);
    }
    for (uint32_t i = 0; !words && i < length; i++)
        atomic_store_explicit((_Atomic char *)(to + i), from[i], memory_order_release);
}

void ib_resend_take_write(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    struct ib_redo_write w;
    if (h->type == IB_WRITTEN) {
        if (list_empty(&ep->unacknowledged_rdma) || first_recorded_rdma(ep)->op ||
            first_recorded_rdma(ep)->queried_in != ep->conn.mine)
            ib_fatal(ep->ib, ep, "it has repeated an RDMA write that was not requested");
        complete_recorded_rdma(ep, first_recorded_rdma(ep));
        ib_resend_continue(ep);
        return;
    }
    if (len != sizeof(*h) + sizeof(w))
        ib_fatal(ep->ib, ep, "its request to repeat an RDMA write has the wrong length");
    memcpy(&w, h + 1, sizeof(w));
    if (w.length > IB_COPY)
        ib_fatal(ep->ib, ep, "it requested an RDMA write that is too long");
    if (ib_memory_is_registered(ep->ib, w.address, w.length, &w.key))
        store_words((char *)(uintptr_t)w.address, w.bytes, w.length);
    ib_control_send(ep, IB_WRITTEN);
}

static bool send_rdma(struct ib_endpoint *ep, struct ib_unacknowledged *k)
{
    uint32_t ops = ep->ops;
    if (!k->op)
        return resend_silent_write(ep, k);
    if (must_not_repeat(k))
        ib_fatal(
            ep->ib, ep,
            "the connection failed while the lock of a window was written, and whether it was written is "
            "unknown");
    enum net_delivery_status fate = query_delivery_status(ep, k);
    if (fate == NET_DELIVERY_QUERY)
        return false;
    if (fate == NET_DELIVERY_DONE) {
        complete_recorded_rdma(ep, k);
        return true;
    }
    if (ib_rdma_post_primary(ep, &k->rdma, k->op) != 0)
        return false;
    ep->ops = ops; /* counted when the transfer was first posted */
    list_remove(&k->link);
    free(k);
    counter_add(&redone, 1);
    return true;
}

static void resend_recorded_rdma(struct ib_endpoint *ep)
{
    if (ep->route.state != FRAME_ROUTE_RESENDING)
        return;
    while (!list_empty(&ep->unacknowledged_rdma))
        if (!send_rdma(ep, list_entry(ep->unacknowledged_rdma.next, struct ib_unacknowledged, link)))
            return;
    while (!list_empty(&ep->unacknowledged))
        if (!send_frame(ep, list_entry(ep->unacknowledged.next, struct ib_buffer, link)))
            return;
    frame_route_resend_finished(&ep->route);
}

void ib_resend_continue(struct ib_endpoint *ep)
{
    resend_recorded_rdma(ep);
    ib_control_flush(ep);
}

void ib_resend_free(struct ib_endpoint *ep, int status)
{
    if (!ep->paths)
        return;
    list_foreach_safe(pos, after, &ep->unacknowledged)
    {
        struct ib_buffer *b = list_entry(pos, struct ib_buffer, link);
        list_remove(pos);
        ib_buffer_put(message_pool(ep, b->length), b);
    }
    list_foreach_safe(pos, after, &ep->unacknowledged_rdma)
    {
        struct ib_unacknowledged *k = list_entry(pos, struct ib_unacknowledged, link);
        struct net_op *op = k->op;
        list_remove(pos);
        free(k);
        if (op && status)
            op->done(op, status);
    }
}
