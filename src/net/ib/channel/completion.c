/* completion.c: polls the completion queues of all adapters and passes each completion to its queue pair or
 * to the handshake.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/channel/channel.h"
#include "net/ib/queue/xrc.h"

static struct ib_lane *find_send_lane(const struct ib *ib, const struct ib_adapter *a,
                                      const struct ibv_wc *wc)
{
    struct ib_endpoint *ep = ib->endpoints[ib_send_endpoint(wc->wr_id)];
    uint32_t index = ib_send_lane(wc->wr_id);
    if (unlikely(index >= IB_LANES && !ep->pairs))
        return NULL;
    struct ib_lane *lane =
        likely(index < IB_LANES) ? &ep->lanes[index] : &ep->pairs->pair[index - IB_LANES].lane;
    return lane->qp && lane->qp->qp_num == wc->qp_num && lane->rail->adapter == a
               ? lane
               : NULL; /* NULL: the queue pair of the completion was destroyed */
}

static __attribute__((noinline, cold)) void
handle_failed_completion(struct ib *ib, const struct ib_adapter *a, const struct ibv_wc *wc)
{
    if (ib->closing)
        return;
    unsigned kind = wc->wr_id & 3;
    if (kind == IB_KIND_SEND) {
        if (ib->xrc)
            ib_xrc_send_failed(ib, wc->qp_num);
        struct ib_lane *lane = find_send_lane(ib, a, wc);
        if (lane)
            ib->events->send_failed(lane, wc);
    } else if (wc->status != IBV_WC_WR_FLUSH_ERR &&
               !ib_adapter_is_gone(a)) { /* for flushed receives the failed send carries the reason */
        const struct ib_buffer *b = (const struct ib_buffer *)(uintptr_t)(wc->wr_id & ~(uint64_t)3);
        ib_fatal(ib, kind == IB_KIND_RECEIVE && b->lane ? b->lane->endpoint : NULL,
                 "%s failed: %s (verbs status %d, vendor code 0x%x)%s",
                 kind == IB_KIND_HELLO_SENT ? "the sending of a handshake" : "a receive",
                 ib->device.verbs.wc_status_str(wc->status), wc->status, wc->vendor_err,
                 ib->device.verbs.softib ? "; softib printed the reason above" : "");
    }
}

/* Finds the lane of a message that arrived through XRC. NULL: the message was late (it is stored for its
 * order) or has no receiver, and its buffer is no longer the caller's. */
static struct ib_lane *find_xrc_lane(struct ib *ib, const struct ibv_wc *wc, struct ib_buffer *b)
{
    struct ib_shared *s = b->shared;
    bool late;
    struct ib_endpoint *ep =
        wc->wc_flags & IBV_WC_WITH_IMM ? ib_xrc_find_endpoint(ib, ntohl(wc->imm_data), &late) : NULL;
    if (ep && !late)
        return &ep->lanes[s - ib->shared[s->adapter]];
    if (ep && ep->paths)
        ib_endpoint_receive_late(ep, b, wc->byte_len);
    else
        ib_buffer_put(s->pool, b);
    ib_shared_refill(s);
    return NULL;
}

static void handle_receive_completion(struct ib *ib, const struct ibv_wc *wc)
{
    struct ib_buffer *b = (struct ib_buffer *)(uintptr_t)wc->wr_id;
    struct ib_lane *lane = b->lane;
    list_remove(&b->link);
    if (ib->xrc) {
        b->shared->posted--;
        lane = find_xrc_lane(ib, wc, b);
        if (!lane)
            return;
    } else if (ib->lanes > 1) {
        struct ib_shared *s = b->shared;
        s->posted--;
        lane = ib_lane_find(ib, wc->qp_num, s);
        if (!lane) { /* the connection is closed */
            ib_buffer_put(s->pool, b);
            return;
        }
    }
    ib_lane_receive_message(lane, b, wc->byte_len);
}

/* True if the queue pair of a receive completion still exists. Otherwise its buffers have been released. */
static bool completion_is_current(const struct ib *ib, const struct ib_adapter *a, const struct ibv_wc *wc)
{
    const struct ib_buffer *b = (const struct ib_buffer *)(uintptr_t)wc->wr_id;
    return ib->lanes > 1 ||
           (b->lane && b->lane->qp && b->lane->qp->qp_num == wc->qp_num && b->lane->rail->adapter == a);
}

static void completion_handle(struct ib *ib, const struct ib_adapter *a, const struct ibv_wc *wc)
{
    void *buffer = (void *)(uintptr_t)(wc->wr_id & ~(uint64_t)3);
    bool good = wc->status == IBV_WC_SUCCESS;
    if (unlikely(!good))
        handle_failed_completion(ib, a, wc);
    switch ((enum ib_kind)(wc->wr_id & 3)) {
    case IB_KIND_RECEIVE:
        if (likely(good && completion_is_current(ib, a, wc)))
            handle_receive_completion(ib, wc);
        break;
    case IB_KIND_SEND: {
        struct ib_lane *lane = good ? find_send_lane(ib, a, wc) : NULL;
        if (lane)
            ib_lane_retire_sends(lane, ib_send_work_index(wc->wr_id));
        break;
    }
    case IB_KIND_HELLO_SENT:
        ib->uds[((struct ib_buffer *)buffer)->rail].sends--;
        ib_buffer_put(&ib->ud_pool, buffer);
        break;
    case IB_KIND_HELLO:
        if (good)
            ib->events->hello_arrived(ib, buffer, wc->byte_len);
        break;
    }
}

static inline int poll_adapter(struct ib *ib, const struct ib_adapter *a)
{
    struct ibv_wc wc[IB_POLL_BATCH];
    int n = ibv_poll_cq(a->cq, IB_POLL_BATCH, wc);
    if (unlikely(n < 0)) {
        if (ib_adapter_is_gone(a))
            return 0;
        ib_fatal(ib, NULL, "the completion queue cannot be read");
    }
    if (likely(n == 0))
        return 0;
    ib->completions_ns = 0;
    for (int i = 0; i < n; i++)
        completion_handle(ib, a, &wc[i]);
    return n;
}

/* Polls the adapters other than the first. Without connections or transfers on them, only the HELLO of a peer
 * whose path to the first adapter is broken can arrive there. */
static __attribute__((noinline, cold)) int poll_other_adapters(struct ib *ib)
{
    int n = 0;
    bool all = ib->tick % IB_LISTEN == 0;
    for (uint32_t i = 1; i < ib->nadapters; i++)
        if (all || ib->adapters[i].under_way > 0)
            n += poll_adapter(ib, &ib->adapters[i]);
    return n;
}

int ib_completions_poll(struct ib *ib)
{
    int n = poll_adapter(ib, &ib->adapters[0]);
    if (unlikely(ib->nadapters > 1) && (ib->elsewhere > 0 || ib->tick % IB_LISTEN == 0))
        n += poll_other_adapters(ib);
    return n;
}

void ib_completions_drain(struct ib *ib)
{
    int most = 0;
    for (uint32_t i = 0; i < ib->nadapters; i++)
        most = MAX(most, ib->adapters[i].cq_size);
    while (ib_completions_poll(ib) > 0 && most-- > 0) /* `most` excludes completions that arrive later */
        ;
}
