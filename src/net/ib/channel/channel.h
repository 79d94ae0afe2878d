/* channel.h: messages of a connection: through a queue pair (send_frame.c), into the peer's ring (ring.c), and the choice between the two
 * (frames.c); control messages (control.c); arrival, order and delivery (receive.c); completion queues (completion.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_CHANNEL_H
#define FP_NET_IB_CHANNEL_H

#include "net/ib/ib.h"

static inline bool ib_has_unacknowledged(const struct ib_endpoint *ep)
{
    return !list_empty(&ep->unacknowledged) || !list_empty(&ep->unacknowledged_rdma);
}

/* Fills the header of a message. */
static inline void ib_head_fill(struct ib_endpoint *ep, struct ib_head *h, enum ib_type type, bool waited)
{
    *h = (struct ib_head){.seq = type <= IB_LEAVE && type != IB_FRAME ? 0 : ep->next_seq++,
                          .type = (uint8_t)type,
                          .flags = waited ? IB_WAITED : 0,
                          .credits = {(uint8_t)credit_take_owed(&ep->lanes[0].credit, UINT8_MAX)},
                          .ring = (uint16_t)ring_rx_take_owed(&ep->rx, UINT16_MAX)};
    if (ep->ib->lanes > 1)
        h->credits[1] = (uint8_t)credit_take_owed(&ep->lanes[1].credit, UINT8_MAX);
    ep->used = ep->ib->tick;
}

/* Fills the header of a message over an additional rail, with the credits of that rail. */
static inline void ib_pair_head_fill(struct ib_lane *lane, struct ib_head *h, enum ib_type type, bool waited)
{
    struct ib_endpoint *ep = lane->endpoint;
    *h = (struct ib_head){.seq = type == IB_FRAME ? ep->next_seq++ : 0,
                          .type = (uint8_t)type,
                          .flags = (uint8_t)(IB_PAIRED | (waited ? IB_WAITED : 0)),
                          .credits = {(uint8_t)credit_take_owed(&lane->credit, UINT8_MAX)},
                          /* A frame that is lost with the pair is sent again, but a CREDIT message is not. */
                          .ring = type == IB_FRAME ? (uint16_t)ring_rx_take_owed(&ep->rx, UINT16_MAX) : 0};
    ep->used = ep->ib->tick;
}

/* Fills the header of a frame that goes through the queue pair. */
static inline void ib_lane_head_fill(struct ib_lane *lane, struct ib_head *h, bool waited)
{
    if (unlikely(lane->index >= IB_LANES))
        ib_pair_head_fill(lane, h, IB_FRAME, waited);
    else
        ib_head_fill(lane->endpoint, h, IB_FRAME, waited);
}

/* The sequence number of a message in a buffer. */
static inline uint16_t ib_buffer_sequence(const struct ib_buffer *b)
{
    return ((const struct ib_head *)(const void *)b->data)->seq;
}

/* Finds the position after which a message belongs in a list sorted by sequence number: usually the end. */
static inline struct list *ib_buffers_find_place(struct list *sorted, const struct ib_buffer *b)
{
    struct list *after = sorted->prev;
    while (after != sorted && (int16_t)(ib_buffer_sequence(list_entry(after, struct ib_buffer, link)) -
                                        ib_buffer_sequence(b)) > 0)
        after = after->prev;
    return after;
}

/* The queue pair of the primary rail for a frame with `len` bytes of payload. With shared receive queues,
 * small and large frames have separate queue pairs. */
static inline struct ib_lane *ib_lane_for_size(struct ib_endpoint *ep, size_t len)
{
    return &ep->lanes[ep->ib->lanes > 1 && len > ep->lanes[0].frame_max];
}

/* send_frame.c: messages through one queue pair. Functions return 0 or ERR_AGAIN. */
int ib_lane_take_credit(struct ib_lane *lane, bool *waited); /* requires an entry in the send queue, too */
struct ib_work *ib_lane_post_message(struct ib_lane *lane, struct ib_buffer *b, const void *at, size_t bytes,
                                     bool frame, bool signal);
int ib_lane_send_frame(struct ib_lane *lane, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                       size_t len, bool signal);
int ib_lane_reserve_frame(struct ib_lane *lane, void **payload);
void ib_lane_commit_frame(struct ib_endpoint *ep, const struct frame_header *header, size_t len);
struct ib_work *ib_lane_send_control(struct ib_lane *lane, const void *message, size_t bytes, bool signal);
int ib_lane_refuse_full(void); /* counts the refusal; ERR_AGAIN */

/* control.c */
void ib_control_send(struct ib_endpoint *ep, enum ib_type type); /* now, or when the send queue has room */
void ib_control_flush(struct ib_endpoint *ep);                   /* sends the messages that waited for room */
void ib_pair_return_credits(struct ib_lane *lane); /* sends credits of a further rail if they are due */

/* ring.c */
int ib_ring_send_frame(struct ib_endpoint *ep, uint64_t head, uint64_t from, uint64_t word,
                       const void *payload, size_t len); /* through the queue pair if the ring has no room */
char *ib_ring_reserve_slot(struct ib_endpoint *ep, struct ib_lane *lane); /* NULL: no room */
void ib_ring_post_slot(struct ib_endpoint *ep, size_t size);
void ib_ring_post_slot_over(struct ib_endpoint *ep, struct ib_lane *lane, uint8_t peer_adapter, size_t size,
                            bool signal); /* over a further rail */
void ib_ring_count_candidate(
    struct ib_endpoint *ep); /* a frame that would fit a ring came through a queue pair */
size_t ib_ring_fill_offer(struct ib_endpoint *ep, void *body);
void ib_ring_take_control(struct ib_endpoint *ep, const struct ib_head *h, size_t len);
void ib_ring_reset(struct ib_endpoint *ep);
bool ib_rings_set_bells(struct ib *ib); /* before sleep: peers that write into rings must wake this process */

/* frames.c: over the primary rail. */
int ib_frame_open_connection(struct ib_endpoint *ep); /* ERR_AGAIN; opens the connection if it is closed */
int ib_primary_reserve_frame(struct ib_endpoint *ep, size_t len, void **payload);
void ib_primary_commit_frame(struct ib_endpoint *ep, const struct frame_header *header, size_t len);

static inline int ib_primary_send_inline(struct ib_endpoint *ep, uint64_t head, uint64_t from, uint64_t word,
                                         const void *payload, size_t len)
{
    return likely(ep->tx_on && len <= ep->tx_frame_max)
               ? ib_ring_send_frame(ep, head, from, word, payload, len)
               : ib_lane_send_frame(ib_lane_for_size(ep, len), head, from, word, payload, len, false);
}

/* receive.c */
/* True for messages that must be repeated on the next connection. Messages about a connection itself are not
 * repeated: IB_NOTHING with the same sequence number replaces them. */
static inline bool ib_head_outlives_connection(const struct ib_head *h)
{
    return h->type == IB_FRAME || h->type == IB_RAILS || h->type == IB_RESERVE;
}
void ib_lane_receive_message(struct ib_lane *lane, struct ib_buffer *b, uint32_t length);
/* Handles a message that was sent for an earlier generation of the connection (queue/xrc.h). */
void ib_endpoint_receive_late(struct ib_endpoint *ep, struct ib_buffer *b, uint32_t length);
void ib_buffer_detach_lane(struct ib_buffer *b);         /* a held message outlives its queue pair */
void ib_endpoint_drain(struct ib_endpoint *ep);          /* delivers all messages that are next in order */
void ib_endpoint_return_credits(struct ib_endpoint *ep); /* sends credits if they are due */
int ib_rings_poll(struct ib *ib);
bool ib_rings_are_empty(const struct ib *ib);

/* completion.c */
int ib_completions_poll(struct ib *ib);
void ib_completions_drain(struct ib *ib); /* handles all completions; not reentrant */

#endif
