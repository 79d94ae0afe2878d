/* send.c: sends frames, puts and gets. A small frame goes into the peer's ring when the peer polls one;
 * everything else goes through a lane and takes a credit. Without credits, ring slots or room in the send
 * queue the result is ERR_AGAIN; the layer above keeps the order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "base/copy.h"
#include "base/counter.h"
#include "net/ib/ib.h"

static COUNTER(lane_frames, "ib_frames_sent", "Frames sent through the send/receive channel.");
static COUNTER(no_credit, "ib_credit_waits", "Frames that had to wait for a credit.");
static COUNTER(no_room, "ib_queue_waits", "Frames, puts and gets that had to wait for room in a send queue.");
static COUNTER(no_memory, "ib_buffer_waits",
               "Frames that had to wait for a buffer because no memory could be registered.");
static COUNTER(credit_messages, "ib_credit_messages", "Messages sent only to return credits.");
static COUNTER(control_messages, "ib_control_messages", "Messages about rings, sleep and closing.");
static COUNTER(put_bytes, "ib_put_bytes", "Bytes written into memory of peers by RDMA.");
static COUNTER(get_bytes, "ib_get_bytes", "Bytes read from memory of peers by RDMA.");

static COUNTER(additions, "ib_atomics",
               "Words in the memory of peers that the adapter changed: additions and swaps.");

#define PIECE_MAX (1u << 30) /* of one RDMA request */

/* ---- the send/receive channel ---- */

static __attribute__((noinline, cold)) int refuse(struct counter *why)
{
    counter_add(why, 1);
    return ERR_AGAIN;
}

static inline struct ib_lane *lane_for(struct ib_endpoint *ep, size_t len)
{
    return &ep->lanes[ep->ib->lanes > 1 && len > ep->lanes[0].frame_max];
}

struct ib_lane *ib_lane_for(struct ib_endpoint *ep, size_t len)
{
    return lane_for(ep, len);
}

/* A credit and a place in the queue for one frame. */
static inline int lane_claim(struct ib_lane *lane, bool *waited)
{
    if (unlikely(!ib_lane_room(lane, 1, false)))
        return refuse(&no_room);
    if (unlikely(!credit_take(&lane->credit, waited)))
        return refuse(&no_credit);
    return 0;
}

int ib_lane_claim(struct ib_lane *lane, bool *waited)
{
    return lane_claim(lane, waited);
}

/* No memory for one more buffer. Those in flight come back, if their completion is asked for; when there are
 * none, waiting would be for ever. */
__attribute__((noinline, cold)) int ib_no_buffer(struct ib_lane *lane)
{
    if (lane->head == lane->tail)
        ib_fatal(lane->endpoint->ib, NULL, "%s", err_detail(MPI_ERR_NO_MEM));
    ib_lane_ask(lane);
    return refuse(&no_memory);
}

static inline struct ib_work *post(struct ib_lane *lane, struct ib_buffer *b, const void *at, size_t bytes,
                                   bool frame, bool signal)
{
    struct ibv_sge piece = {
        .addr = (uintptr_t)at, .length = (uint32_t)bytes, .lkey = b ? b->lkey[lane->adapter] : 0};
    struct ibv_send_wr wr = {.sg_list = &piece,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SOLICITED | (b ? 0 : IBV_SEND_INLINE)};
    struct ib_work *w = ib_lane_signal(lane, &wr, signal);
    w->buffer = b;
    w->frame = frame;
    w->bytes = (uint32_t)bytes;
    ib_lane_send(lane, &wr);
    return w;
}

static inline void post_frame(struct ib_lane *lane, struct ib_buffer *b, const void *at, size_t bytes,
                              bool signal)
{
    post(lane, b, at, bytes, true, signal);
}

void ib_lane_message(struct ib_lane *lane, struct ib_buffer *b, const void *at, size_t bytes, bool signal)
{
    post_frame(lane, b, at, bytes, signal);
}

/* Where the next message is built that goes inline: where it can be found again, if it may have to be. */
static inline char *inline_room(const struct ib_lane *lane, char *else_here)
{
    return unlikely(lane->copies != NULL) ? lane->copies + (size_t)(lane->head & (lane->depth - 1)) * IB_COPY
                                          : else_here;
}

static inline int frame_through(struct ib_lane *lane, uint64_t head, uint64_t from, uint64_t word,
                                const void *payload, size_t len, bool further, bool signal)
{
    struct ib_endpoint *ep = lane->endpoint;
    size_t bytes = sizeof(struct ib_frame) + len;
    bool waited;
    int rc = lane_claim(lane, &waited);
    if (rc != 0)
        return rc;
    _Alignas(8) char small[IB_COPY];
    struct ib_buffer *b = NULL;
    if (bytes > MIN(ep->ib->inline_max, sizeof(small)) && !(b = ib_buffer_get(lane->pool))) {
        credit_untake(&lane->credit, waited);
        return ib_no_buffer(lane);
    }
    struct ib_frame *f = (struct ib_frame *)(void *)(b ? b->data : inline_room(lane, small));
    if (further)
        ib_spread_head(lane, &f->head, IB_FRAME, waited);
    else
        ib_head_fill(ep, &f->head, IB_FRAME, waited);
    frame_write(&f->header, head, from, word);
    copy_bytes(f->payload, payload, len);
    post_frame(lane, b, f, bytes, signal);
    counter_add(&lane_frames, 1);
    return 0;
}

int ib_lanes_send(struct ib_endpoint *ep, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                  size_t len)
{
    return frame_through(lane_for(ep, len), head, from, word, payload, len, false, false);
}

int ib_lane_frame(struct ib_lane *lane, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                  size_t len, bool signal)
{
    return frame_through(lane, head, from, word, payload, len, lane->index >= IB_LANES, signal);
}

/* ---- frames ---- */

/* Not open: opens it. What wants to be sent waits in the peer's queue. */
__attribute__((noinline, cold)) int ib_not_open(struct ib_endpoint *ep)
{
    if (ep->conn.state == CONN_OPEN)
        return ERR_AGAIN; /* what was sent before it broke goes first */
    ib_endpoint_want(ep);
    ep->peer->opening = true;
    return ERR_AGAIN;
}

static inline int home_send(struct ib_endpoint *ep, uint64_t head, uint64_t from, uint64_t word,
                            const void *payload, size_t len)
{
    return likely(ep->tx_on && len <= ep->tx_frame_max) ? ib_rdma_send(ep, head, from, word, payload, len)
                                                        : ib_lanes_send(ep, head, from, word, payload, len);
}

int ib_home_send(struct ib_endpoint *ep, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                 size_t len)
{
    return home_send(ep, head, from, word, payload, len);
}

int ib_send(struct peer *peer, uint64_t head, uint64_t from, uint64_t word, const void *payload, size_t len)
{
    struct ib_endpoint *ep = peer->endpoint;
    if (unlikely(!ep->plain))
        return ib_spread_send(ep, head, from, word, payload, len);
    return home_send(ep, head, from, word, payload, len);
}

int ib_home_reserve(struct ib_endpoint *ep, size_t len, void **payload)
{
    ep->reserved = NULL;
    ep->reserved_lane = &ep->lanes[0];
    ep->reserved_room = ep->tx_on && len <= ep->tx_frame_max ? ib_rdma_room(ep) : NULL;
    if (ep->reserved_room) {
        *payload = ((struct ib_frame *)(void *)ep->reserved_room)->payload;
        return 0;
    }
    struct ib_lane *lane = lane_for(ep, len);
    int rc = lane_claim(lane, &ep->reserved_waited);
    if (rc != 0)
        return rc;
    ep->reserved = ib_buffer_get(lane->pool);
    if (!ep->reserved) {
        credit_untake(&lane->credit, ep->reserved_waited);
        return ib_no_buffer(lane);
    }
    ep->reserved_lane = lane;
    *payload = ((struct ib_frame *)(void *)ep->reserved->data)->payload;
    return 0;
}

int ib_reserve(struct peer *peer, size_t len, void **payload)
{
    struct ib_endpoint *ep = peer->endpoint;
    return likely(ep->plain) ? ib_home_reserve(ep, len, payload) : ib_spread_reserve(ep, len, payload);
}

void ib_commit(struct peer *peer, const struct frame_header *header, size_t len)
{
    struct ib_endpoint *ep = peer->endpoint;
    if (unlikely(ep->reserved_lane->index >= IB_LANES)) {
        ib_spread_commit(ep, header, len);
        return;
    }
    if (!ep->reserved) {
        struct ib_frame *f = (struct ib_frame *)(void *)ep->reserved_room;
        ib_head_fill(ep, &f->head, IB_FRAME, false);
        f->header = *header;
        ib_rdma_post(ep, sizeof(*f) + len);
        return;
    }
    struct ib_frame *f = (struct ib_frame *)(void *)ep->reserved->data;
    ib_head_fill(ep, &f->head, IB_FRAME, ep->reserved_waited);
    f->header = *header;
    post_frame(ep->reserved_lane, ep->reserved, f, sizeof(*f) + len, false);
    counter_add(&lane_frames, 1);
    ep->reserved = NULL;
}

/* ---- control messages: no credit, and sent in the order of their types when several wait ---- */

static size_t control_body(struct ib_endpoint *ep, enum ib_type type, void *body)
{
    if (type == IB_RAILS)
        return ib_join_say(ep, body);
    if (type == IB_RESERVE)
        return ib_allot_say(ep, body);
    if (type == IB_ASK || type == IB_SAW) {
        memcpy(body, type == IB_ASK ? &ep->asks : &ep->answers, sizeof(struct ib_fate));
        return sizeof(struct ib_fate);
    }
    if (type == IB_WRITE)
        return ib_kept_tell(ep, body);
    if (type != IB_RING_ON)
        return 0;
    struct ib_ring_on on = {
        .address = (uintptr_t)ep->rx.ring, .slots = ep->rx.slots, .slot_size = ep->rx.slot_size};
    memcpy(on.rkey, ep->rx_memory->rkey, sizeof(on.rkey));
    memcpy(body, &on, sizeof(on));
    return sizeof(on);
}

/* Inline where the adapter can; control messages are short. */
struct ib_work *ib_lane_control(struct ib_lane *lane, const void *message, size_t bytes, bool signal)
{
    struct ib *ib = lane->endpoint->ib;
    struct ib_buffer *b = NULL;
    if (bytes > ib->inline_max) {
        b = ib_buffer_get(lane->pool);
        if (!b)
            ib_fatal(ib, NULL, "%s", err_detail(MPI_ERR_NO_MEM));
    }
    void *at = b ? b->data : inline_room(lane, NULL);
    if (at)
        memcpy(at, message, bytes);
    return post(lane, b, at ? at : message, bytes, false, signal);
}

static void control_post(struct ib_endpoint *ep, enum ib_type type)
{
    struct {
        struct ib_head head;
        union {
            struct ib_ring_on ring;
            struct ib_rails_said rails;
            struct ib_reserve_said reserve;
            struct ib_fate fate;
            struct ib_written written;
        } body;
    } m;
    size_t bytes = offsetof(__typeof__(m), body) + control_body(ep, type, &m.body);
    bool last = type == IB_CLOSE || type == IB_AGREE;
    ib_head_fill(ep, &m.head, type, false);
    counter_add(type == IB_CREDIT ? &credit_messages : &control_messages, 1);
    struct ib_work *w = ib_lane_control(&ep->lanes[0], &m, bytes, last || type == IB_LEAVE);
    w->frame = type == IB_LEAVE;
    w->last = last;
    if (!last)
        return;
    ep->last_words++; /* the ends of pairs may be on their way since a CLOSE that was not accepted */
    if (ep->ib->lanes > 1 && ep->lanes[1].head != ep->lanes[1].tail) {
        ib_lane_end(&ep->lanes[1], true);
        ep->last_words++;
    }
    ib_spread_last(ep);
}

/* What may be said now: nothing follows a CLOSE or an AGREE, unless the peer wants to go on. One that has still to send what a broken
 * connection lost does, and cannot say KEEP before it has: it may need credits, or an answer. */
static uint32_t sayable(const struct ib_endpoint *ep)
{
    if (ep->conn.state == CONN_OPEN)
        return ep->ready ? ep->unsaid : ep->unsaid & IB_UNORDERED;
    if (ep->conn.state == CONN_CLOSING)
        return ep->unsaid & (IB_LAST_WORDS | IB_ANSWERS | 1u << IB_CREDIT);
    return ep->conn.state == CONN_AGREED ? ep->unsaid & IB_LAST_WORDS : 0;
}

void ib_flush(struct ib_endpoint *ep)
{
    bool sent = likely(ep->ready) || ib_kept_send(ep);
    if (unlikely(ep->conn.state == CONN_FAILED))
        ep->unsaid = 0; /* nobody listens */
    for (uint32_t now; (now = sayable(ep)) != 0 && ib_lane_room(&ep->lanes[0], 1, true);) {
        enum ib_type type = (enum ib_type)__builtin_ctz(now);
        ep->unsaid &= ~(1u << type);
        control_post(ep, type);
        if (unlikely(type == IB_RESERVE && ib_allot_unsaid(ep)))
            ep->unsaid |= 1u << IB_RESERVE;
    }
    if (unlikely(ep->spread))
        ib_spread_flush(ep);
    bool more = ep->unsaid || !sent || (unlikely(ep->spread) && ep->join->spread->owing);
    if (more && list_empty(&ep->unsaid_link))
        list_append(&ep->ib->unsaid, &ep->unsaid_link);
    else if (!more && !list_empty(&ep->unsaid_link))
        list_remove(&ep->unsaid_link);
}

void ib_say(struct ib_endpoint *ep, enum ib_type type)
{
    if (unlikely(ep->left && ep->leaving))
        return; /* it may be gone */
    ep->unsaid |= 1u << type;
    ib_flush(ep);
}

/* ---- one-sided ---- */

/* What it takes to do it again. A silent put leaves nothing else behind. */
static void keep(struct ib_lane *lane, struct ib_work *w, const struct ib_rdma *whole, bool silent)
{
    uint32_t place = lane->head & (lane->depth - 1);
    lane->rdma[place] = *whole;
    w->rdma = true;
    if (silent)
        memcpy(lane->copies + (size_t)place * IB_COPY, (const void *)whole->local, MIN(whole->len, IB_COPY));
}

/* Posts one transfer, in as many requests as it takes; the last one tells op, which is NULL for a silent put. */
int ib_lane_rdma(struct ib_lane *lane, const struct ib_transfer *t, size_t len, struct net_op *op)
{
    struct ib_endpoint *ep = lane->endpoint;
    size_t most = MIN(PIECE_MAX, lane->rail->device->port_attr.max_msg_sz);
    size_t pieces = likely(len <= most) ? 1 : (len + most - 1) / most; /* a division takes its time */
    if (unlikely(pieces > lane->depth - IB_CONTROL_ROOM))
        return err_set(MPI_ERR_OTHER,
                       "a transfer of %zu bytes takes %zu requests, and a send queue holds %u: raise "
                       "FISHPLATE_IB_SEND_DEPTH",
                       len, pieces, lane->depth);
    if (unlikely(!ib_lane_room(lane, (uint32_t)pieces, false)))
        return refuse(&no_room);
    ep->used = ep->ib->tick;
    ep->ops += op != NULL;
    for (size_t done = 0; done < len; done += most) {
        struct ibv_sge piece = {
            .addr = t->local + done, .length = (uint32_t)MIN(most, len - done), .lkey = t->lkey};
        struct ibv_send_wr wr = {.sg_list = &piece,
                                 .num_sge = 1,
                                 .opcode = t->opcode,
                                 .wr.rdma = {.remote_addr = t->remote + done, .rkey = t->rkey}};
        bool end = done + most >= len;
        wr.send_flags = op ? 0 : IBV_SEND_INLINE;
        struct ib_work *w = ib_lane_signal(lane, &wr, end && op);
        w->op = end ? op : NULL;
        w->frame = true;
        if (unlikely(lane->rdma != NULL) && end && t->whole)
            keep(lane, w, t->whole, op == NULL);
        ib_lane_send(lane, &wr);
    }
    return 0;
}

/* Over the rail that carries the connection. */
int ib_home_rdma(struct ib_endpoint *ep, const struct ib_rdma *r, struct net_op *op)
{
    struct ib_lane *lane = &ep->lanes[ep->ib->lanes - 1];
    struct ib_transfer t = {.opcode = r->opcode,
                            .local = r->local,
                            .remote = r->remote,
                            .lkey = r->mem.handle ? ib_lkey(&r->mem, lane->adapter) : 0,
                            .rkey = ib_rkey(&r->key, ep->their_adapter),
                            .whole = r};
    return ib_lane_rdma(lane, &t, r->len, op);
}

static int one_sided(struct ib_endpoint *ep, enum ibv_wr_opcode opcode, uintptr_t local,
                     const struct net_mem *mem, uint64_t remote, const struct net_key *key, size_t len,
                     struct net_op *op)
{
    if (unlikely(!ep->ready))
        return ib_not_open(ep);
    if (ib_stripes(ep->ib, ep, len) && op)
        return ib_stripe(ep, opcode, local, mem, remote, key, len, op);
    struct ib_rdma r = {.opcode = opcode,
                        .local = local,
                        .remote = remote,
                        .len = len,
                        .mem = mem ? *mem : (struct net_mem){0},
                        .key = *key,
                        .seq = ep->next_seq};
    return ib_home_rdma(ep, &r, op);
}

/* A silent put in one request of which nothing need be kept: flags of barriers, where each instruction is a part of the latency. */
static bool put_at_once(struct ib_endpoint *ep, const void *local, uint64_t remote, const struct net_key *key,
                        size_t len)
{
    struct ib_lane *lane = &ep->lanes[ep->ib->lanes - 1];
    if (unlikely(!ep->ready || lane->rdma || !ib_lane_room(lane, 1, false)))
        return false;
    struct ibv_sge all = {.addr = (uintptr_t)local, .length = (uint32_t)len};
    struct ibv_send_wr wr;
    wr.next = NULL;
    wr.sg_list = &all;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_INLINE;
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = ib_rkey(key, ep->their_adapter);
    ep->used = ep->ib->tick;
    ib_lane_signal(lane, &wr, false)->frame = true;
    ib_lane_send(lane, &wr);
    return true;
}

int ib_put(struct peer *peer, const void *local, const struct net_mem *mem, uint64_t remote,
           const struct net_key *key, size_t len, struct net_op *op)
{
    if (!op && likely(put_at_once(peer->endpoint, local, remote, key, len))) {
        counter_add(&put_bytes, len);
        return 0;
    }
    int rc = one_sided(peer->endpoint, IBV_WR_RDMA_WRITE, (uintptr_t)local, mem, remote, key, len, op);
    counter_add(&put_bytes, rc == 0 ? len : 0);
    return rc;
}

int ib_get(struct peer *peer, void *local, const struct net_mem *mem, uint64_t remote,
           const struct net_key *key, size_t len, struct net_op *op)
{
    int rc = one_sided(peer->endpoint, IBV_WR_RDMA_READ, (uintptr_t)local, mem, remote, key, len, op);
    counter_add(&get_bytes, rc == 0 ? len : 0);
    return rc;
}

void ib_atomic_request(const struct net_atomic *change, uint64_t remote, uint32_t rkey,
                       struct ibv_send_wr *out)
{
    out->opcode = change->swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    out->wr.atomic.remote_addr = remote;
    out->wr.atomic.rkey = rkey;
    out->wr.atomic.compare_add = change->operand;
    out->wr.atomic.swap = change->value;
}

int ib_atomic(struct peer *peer, const struct net_atomic *change, uint64_t *old, const struct net_mem *mem,
              uint64_t remote, const struct net_key *key, struct net_op *op)
{
    struct ib_endpoint *ep = peer->endpoint;
    if (unlikely(!ep->ready))
        return ib_not_open(ep);
    struct ib_lane *lane = &ep->lanes[ep->ib->lanes - 1]; /* as one_sided: requests keep their order */
    if (unlikely(!ib_lane_room(lane, 1, false)))
        return refuse(&no_room);
    struct ibv_sge piece = {
        .addr = (uintptr_t)old, .length = sizeof(*old), .lkey = ib_lkey(mem, lane->adapter)};
    struct ibv_send_wr wr = {.sg_list = &piece, .num_sge = 1};
    ib_atomic_request(change, remote, ib_rkey(key, ep->their_adapter), &wr);
    ep->used = ep->ib->tick;
    ep->ops++;
    struct ib_work *w = ib_lane_signal(lane, &wr, true);
    w->op = op;
    w->frame = true;
    ib_lane_send(lane, &wr);
    counter_add(&additions, 1);
    return 0;
}
