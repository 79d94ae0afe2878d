/* send_frame.c: messages through one queue pair. A frame takes a credit, a control message does not. The result is
 * ERR_AGAIN if there is no credit or no room in the send queue; the layer above preserves the order.
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

static __attribute__((noinline, cold)) int count_refusal(struct counter *why)
{
    counter_add(why, 1);
    return ERR_AGAIN;
}

__attribute__((noinline, cold)) int ib_lane_refuse_full(void)
{
    return count_refusal(&no_room);
}

/* Takes a credit for one frame, for which the send queue must have an entry. */
int ib_lane_take_credit(struct ib_lane *lane, bool *waited)
{
    if (unlikely(!ib_lane_has_room(lane, 1, false)))
        return count_refusal(&no_room);
    if (unlikely(!credit_take(&lane->credit, waited)))
        return count_refusal(&no_credit);
    return 0;
}

/* Called when no memory can be registered for one more buffer. Requests a completion that returns the buffers
 * in flight; if none is in flight the frame could never be sent, and the job ends. */
static __attribute__((noinline, cold)) int refuse_no_buffer(struct ib_lane *lane)
{
    if (lane->head == lane->tail)
        ib_fatal(lane->endpoint->ib, NULL, "%s", err_detail(MPI_ERR_NO_MEM));
    ib_lane_request_completion(lane);
    return count_refusal(&no_memory);
}

struct ib_work *ib_lane_post_message(struct ib_lane *lane, struct ib_buffer *b, const void *at, size_t bytes,
                                     bool frame, bool signal)
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

/* Returns the memory in which the next inline message is built. If the message may have to be repeated after
 * a failure, this memory outlives the call. */
static inline char *inline_buffer(const struct ib_lane *lane, char *else_here)
{
    return unlikely(lane->copies != NULL) ? lane->copies + (size_t)(lane->head & (lane->depth - 1)) * IB_COPY
                                          : else_here;
}

int ib_lane_send_frame(struct ib_lane *lane, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                       size_t len, bool signal)
{
    const size_t bytes = sizeof(struct ib_frame) + len;
    bool waited;
    int rc = ib_lane_take_credit(lane, &waited);
    if (rc != 0)
        return rc;
    _Alignas(8) char small[IB_COPY];
    struct ib_buffer *b = NULL;
    if (bytes > MIN(lane->endpoint->ib->inline_max, sizeof(small)) && !(b = ib_buffer_get(lane->pool))) {
        credit_return_unused(&lane->credit, waited);
        return refuse_no_buffer(lane);
    }
    struct ib_frame *f = (struct ib_frame *)(void *)(b ? b->data : inline_buffer(lane, small));
    ib_lane_head_fill(lane, &f->head, waited);
    frame_write(&f->header, head, from, word);
    copy_bytes(f->payload, payload, len);
    ib_lane_post_message(lane, b, f, bytes, true, signal);
    counter_add(&lane_frames, 1);
    return 0;
}

/* ---- frames that the caller builds in a send buffer ---- */

int ib_lane_reserve_frame(struct ib_lane *lane, void **payload)
{
    struct ib_endpoint *ep = lane->endpoint;
    int rc = ib_lane_take_credit(lane, &ep->reserved_waited);
    if (rc != 0)
        return rc;
    ep->reserved_room = NULL;
    ep->reserved_lane = lane;
    ep->reserved = ib_buffer_get(lane->pool);
    if (!ep->reserved) {
        credit_return_unused(&lane->credit, ep->reserved_waited);
        return refuse_no_buffer(lane);
    }
    *payload = ((struct ib_frame *)(void *)ep->reserved->data)->payload;
    return 0;
}

void ib_lane_commit_frame(struct ib_endpoint *ep, const struct frame_header *header, size_t len)
{
    struct ib_lane *lane = ep->reserved_lane;
    struct ib_frame *f = (struct ib_frame *)(void *)ep->reserved->data;
    ib_lane_head_fill(lane, &f->head, ep->reserved_waited);
    f->header = *header;
    ib_lane_post_message(lane, ep->reserved, f, sizeof(*f) + len, true, false);
    counter_add(&lane_frames, 1);
    ep->reserved = NULL;
}

/* ---- control messages ---- */

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
    return ib_lane_post_message(lane, b, at ? at : message, bytes, false, signal);
}
