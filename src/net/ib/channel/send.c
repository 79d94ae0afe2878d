/* send.c: messages through one queue pair: a frame takes a credit, a control message does not. Without credits or room in the send
 * queue the result is ERR_AGAIN; the layer above preserves the order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "base/copy.h"
#include "base/counter.h"
#include "net/ib/channel/channel.h"

static COUNTER(lane_frames, "ib_frames_sent", "Frames sent through the send/receive channel.");
static COUNTER(no_credit, "ib_credit_waits", "Frames that had to wait for a credit.");
static COUNTER(no_room, "ib_queue_waits", "Frames, puts and gets that had to wait for room in a send queue.");
static COUNTER(no_memory, "ib_buffer_waits",
               "Frames that had to wait for a buffer because no memory could be registered.");

/* ---- the send/receive channel ---- */

static __attribute__((noinline, cold)) int refuse(struct counter *why)
{
    counter_add(why, 1);
    return ERR_AGAIN;
}

static inline struct ib_lane *lane_for_length(struct ib_endpoint *ep, size_t len)
{
    return &ep->lanes[ep->ib->lanes > 1 && len > ep->lanes[0].frame_max];
}

__attribute__((noinline, cold)) int ib_lane_refuse_full(void)
{
    return refuse(&no_room);
}

struct ib_lane *ib_lane_for_size(struct ib_endpoint *ep, size_t len)
{
    return lane_for_length(ep, len);
}

/* Takes a credit and a send queue entry for one frame. */
static inline int lane_take_credit_and_entry(struct ib_lane *lane, bool *waited)
{
    if (unlikely(!ib_lane_has_room(lane, 1, false)))
        return refuse(&no_room);
    if (unlikely(!credit_take(&lane->credit, waited)))
        return refuse(&no_credit);
    return 0;
}

int ib_lane_take_credit(struct ib_lane *lane, bool *waited)
{
    return lane_take_credit_and_entry(lane, waited);
}

/* No memory for one more buffer. Buffers in flight come back if their completion is requested; when there are
 * none, waiting would be for ever. */
__attribute__((noinline, cold)) int ib_lane_refuse_no_buffer(struct ib_lane *lane)
{
    if (lane->head == lane->tail)
        ib_fatal(lane->endpoint->ib, NULL, "%s", err_detail(MPI_ERR_NO_MEM));
    ib_lane_request_completion(lane);
    return refuse(&no_memory);
}

static inline struct ib_work *lane_post_work(struct ib_lane *lane, struct ib_buffer *b, const void *at,
                                             size_t bytes, bool frame, bool signal)
{
    struct ibv_sge piece = {
        .addr = (uintptr_t)at, .length = (uint32_t)bytes, .lkey = b ? b->lkey[lane->adapter] : 0};
    struct ibv_send_wr wr = {.sg_list = &piece,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SOLICITED | (b ? 0 : IBV_SEND_INLINE)};
    struct ib_work *w = ib_lane_prepare_work(lane, &wr, signal);
    w->buffer = b;
    w->frame = frame;
    w->bytes = (uint32_t)bytes;
    ib_lane_post_send(lane, &wr);
    return w;
}

static inline void post_frame(struct ib_lane *lane, struct ib_buffer *b, const void *at, size_t bytes,
                              bool signal)
{
    lane_post_work(lane, b, at, bytes, true, signal);
}

void ib_lane_post_message(struct ib_lane *lane, struct ib_buffer *b, const void *at, size_t bytes,
                          bool signal)
{
    post_frame(lane, b, at, bytes, signal);
}

/* The buffer in which the next inline message is built: one that is kept if the message may have to be repeated. */
static inline char *inline_buffer(const struct ib_lane *lane, char *else_here)
{
    return unlikely(lane->copies != NULL) ? lane->copies + (size_t)(lane->head & (lane->depth - 1)) * IB_COPY
                                          : else_here;
}

static inline int lane_send_frame(struct ib_lane *lane, uint64_t head, uint64_t from, uint64_t word,
                                  const void *payload, size_t len, bool further, bool signal)
{
    struct ib_endpoint *ep = lane->endpoint;
    size_t bytes = sizeof(struct ib_frame) + len;
    bool waited;
    int rc = lane_take_credit_and_entry(lane, &waited);
    if (rc != 0)
        return rc;
    _Alignas(8) char small[IB_COPY];
    struct ib_buffer *b = NULL;
    if (bytes > MIN(ep->ib->inline_max, sizeof(small)) && !(b = ib_buffer_get(lane->pool))) {
        credit_return_unused(&lane->credit, waited);
        return ib_lane_refuse_no_buffer(lane);
    }
    struct ib_frame *f = (struct ib_frame *)(void *)(b ? b->data : inline_buffer(lane, small));
    if (further)
        ib_pair_head_fill(lane, &f->head, IB_FRAME, waited);
    else
        ib_head_fill(ep, &f->head, IB_FRAME, waited);
    frame_write(&f->header, head, from, word);
    copy_bytes(f->payload, payload, len);
    post_frame(lane, b, f, bytes, signal);
    counter_add(&lane_frames, 1);
    return 0;
}

int ib_channel_send_frame(struct ib_endpoint *ep, uint64_t head, uint64_t from, uint64_t word,
                          const void *payload, size_t len)
{
    return lane_send_frame(lane_for_length(ep, len), head, from, word, payload, len, false, false);
}

int ib_lane_send_frame(struct ib_lane *lane, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                       size_t len, bool signal)
{
    return lane_send_frame(lane, head, from, word, payload, len, lane->index >= IB_LANES, signal);
}

/* ---- frames that are built in place ---- */

int ib_lane_reserve_frame(struct ib_lane *lane, void **payload)
{
    struct ib_endpoint *ep = lane->endpoint;
    int rc = lane_take_credit_and_entry(lane, &ep->reserved_waited);
    if (rc != 0)
        return rc;
    ep->reserved_room = NULL;
    ep->reserved_lane = lane;
    ep->reserved = ib_buffer_get(lane->pool);
    if (!ep->reserved) {
        credit_return_unused(&lane->credit, ep->reserved_waited);
        return ib_lane_refuse_no_buffer(lane);
    }
    *payload = ((struct ib_frame *)(void *)ep->reserved->data)->payload;
    return 0;
}

void ib_lane_commit_frame(struct ib_endpoint *ep, const struct frame_header *header, size_t len)
{
    struct ib_lane *lane = ep->reserved_lane;
    struct ib_frame *f = (struct ib_frame *)(void *)ep->reserved->data;
    if (unlikely(lane->index >= IB_LANES))
        ib_pair_head_fill(lane, &f->head, IB_FRAME, ep->reserved_waited);
    else
        ib_head_fill(ep, &f->head, IB_FRAME, ep->reserved_waited);
    f->header = *header;
    post_frame(lane, ep->reserved, f, sizeof(*f) + len, false);
    counter_add(&lane_frames, 1);
    ep->reserved = NULL;
}

/* ---- control messages ---- */

/* Sends a control message, inline if the adapter can. */
struct ib_work *ib_lane_send_control(struct ib_lane *lane, const void *message, size_t bytes, bool signal)
{
    struct ib *ib = lane->endpoint->ib;
    struct ib_buffer *b = NULL;
    if (bytes > ib->inline_max) {
        b = ib_buffer_get(lane->pool);
        if (!b)
            ib_fatal(ib, NULL, "%s", err_detail(MPI_ERR_NO_MEM));
    }
    void *at = b ? b->data : inline_buffer(lane, NULL);
    if (at)
        memcpy(at, message, bytes);
    return lane_post_work(lane, b, at ? at : message, bytes, false, signal);
}
