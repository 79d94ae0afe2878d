/* wire.c: sends and receives the frames of one-sided operations. Frames share connections, and their order,
 * with point-to-point messages. A frame that cannot be sent at once is copied and queued. A user's call that
 * sends many frames waits until fewer are queued; the handling of an incoming frame never waits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/counter.h"
#include "net/lost.h"
#include "rma/rma.h"

static COUNTER(frames_sent, "rma_frames_sent", "Frames sent for one-sided operations.");

struct queued_frame {
    struct net_pending pending;
    struct rma *rma;
    struct peer *to;
    struct frame_header header;
    size_t len;
    char payload[];
};

static int wire_resume(struct net_pending *item)
{
    struct queued_frame *f = container_of(item, struct queued_frame, pending);
    int rc = peer_send_now(f->to, &f->header, f->payload, f->len);
    if (rc == ERR_AGAIN)
        return rc;
    f->rma->queued--;
    free(f);
    return 0;
}

static void send_later(struct rma *r, struct peer *to, const struct frame_header *h, const void *payload,
                       size_t len)
{
    struct queued_frame *f = malloc(sizeof(*f) + len);
    CHECK_MEMORY(f, "a one-sided operation");
    f->pending = (struct net_pending){.resume = wire_resume};
    f->rma = r;
    f->to = to;
    f->header = *h;
    f->len = len;
    if (len)
        memcpy(f->payload, payload, len);
    r->queued++;
    peer_queue(to, &f->pending);
}

void rma_send(struct win_peer *to, enum rma_frame what, uint16_t aux, int32_t tag, uint64_t word,
              const void *payload, size_t len)
{
    const struct win *w = to->win;
    const struct frame_header h = {.kind = P2P_FRAME_ONE_SIDED,
                                   .flags = (uint8_t)what,
                                   .aux = aux,
                                   .context = w->comm->context,
                                   .source = w->comm->rank,
                                   .tag = tag,
                                   .word = word};
    counter_add(&frames_sent, 1);
    int rc = peer_send(to->peer, &h, payload, len);
    if (unlikely(rc != 0 && rc != ERR_AGAIN && peer_is_lost(to->peer)))
        to->fault = MPIX_ERR_PROC_FAILED;
    else if (rc != 0)
        send_later(w->proc->rma, to->peer, &h, payload, len);
}

static bool has_few_queued(void *arg)
{
    return ((struct rma *)arg)->queued <= RMA_QUEUED;
}

void rma_wait_few_queued(struct rma *r)
{
    if (unlikely(r->queued > RMA_QUEUED))
        rma_wait(r, has_few_queued, r, false, "room for one-sided operations");
}

void rma_send_throttled(struct win_peer *to, enum rma_frame what, uint16_t aux, int32_t tag, uint64_t word,
                        const void *payload, size_t len)
{
    rma_send(to, what, aux, tag, word, payload, len);
    rma_wait_few_queued(to->win->proc->rma);
}

size_t rma_chunk(const struct win_peer *to)
{
    return MIN(to->peer->caps.frame_max, (size_t)RMA_CHUNK_MAX);
}

static void flush_handle_request(struct win_peer *from, uint64_t number)
{
    rma_send(from, RMA_FLUSHED, (uint16_t)from->found, 0, number, NULL, 0);
    from->found = 0;
}

static void flush_handle_answer(struct win_peer *from, const struct frame_header *h)
{
    from->flushed = h->word;
    if (h->aux)
        from->fault = h->aux;
}

void rma_handle_frame(void *arg, struct peer *peer, const struct frame_header *h, const void *payload,
                      size_t len)
{
    struct rma *r = arg;
    struct win *w = win_of_context(r, h->context);
    /* Ignores the frame if a process died, so that the window could not be created here, or if RMA_COUNTS
     * arrives after the window was freed; no rank waits for it. */
    if (unlikely(!w && (net_outlives_deaths(r->proc->net) || h->flags == RMA_COUNTS)))
        return;
    if (unlikely(h->flags == RMA_ENTRY && !h->aux)) {
        directory_handle_announcement(w, peer, h, payload, len);
        return;
    }
    CHECK(w != NULL, "a one-sided operation arrived for a window that does not exist");
    struct win_peer *from = win_peer_for_sender(w, h->source);
    CHECK(from->peer == peer, "a one-sided operation carries a rank that is not its sender's");
    switch ((enum rma_frame)h->flags) {
    case RMA_PUT:
        put_handle_frame(w, from, h, payload, len);
        break;
    case RMA_GET:
        get_handle_frame(w, from, h, payload, len);
        break;
    case RMA_ACC:
    case RMA_GET_ACC:
        accumulate_handle_frame(w, from, h, payload, len);
        break;
    case RMA_SWAP:
        swap_handle_frame(w, from, h, payload, len);
        break;
    case RMA_REPLY:
        operation_handle_reply(r, peer, h, payload, len);
        break;
    case RMA_UNLOCK:
        lock_handle_unlock(w, from, h->aux);
        flush_handle_request(from, h->word);
        break;
    case RMA_FLUSH:
        flush_handle_request(from, h->word);
        break;
    case RMA_FLUSHED:
        flush_handle_answer(from, h);
        break;
    case RMA_LOCK:
        lock_handle_request(w, from, h->aux);
        break;
    case RMA_LOCKED:
        from->granted = true;
        break;
    case RMA_POST:
        from->posts++;
        counts_handle_address(from, payload, len);
        break;
    case RMA_COUNTS:
        counts_handle_address(from, payload, len);
        break;
    case RMA_COMPLETE:
        w->completes++;
        break;
    case RMA_ENTRY_QUERY:
        directory_handle_query(w, from);
        break;
    case RMA_ENTRY:
        directory_handle_reply(from, payload, len);
        break;
    case RMA_WATCH:
        watch_handle_report(w, payload, len);
        break;
    default:
        err_panic(__FILE__, __LINE__,
                  "a one-sided operation of an unknown kind arrived; all ranks must use the same version "
                  "of the library");
    }
    if (unlikely(r->proc->threaded))
        net_ring_own_doorbell(r->proc->net);
}
