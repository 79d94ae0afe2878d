/* write.c: executes and repeats the write of a rendezvous protocol, and notifies the peer. The write may be
 * refused for a while (the send queue is full) and may fail; the receiver is notified (WRITTEN) unless it
 * polls the last byte.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/write.h"

#include "base/clock.h"
#include "base/kill_point.h"

/* Notifies the receiver ahead of all queued messages, which could match the receive that was written. */
static void write_send_fin(struct p2p_request *r, int status)
{
    struct frame_header h = {.kind = FRAME_WRITTEN, .aux = (uint16_t)status, .word = r->peer_cookie};
    control_send_first(r->base.p2p, r->peer, &h, &r->write.bytes, sizeof(r->write.bytes));
}

static void write_end(struct p2p_request *r, int status)
{
    const struct write_part *w = &r->write;
    if (w->whole && w->bytes >= PACE_LEAST && status == 0)
        peer_pace_end(r->peer, PACE_OUT, 0, w->bytes, w->mark, clock_ns());
    KILL_POINT(write_finished);
    if (r->write.tell || status != 0)
        write_send_fin(r, status);
    r->write.done(r, status);
}

static void write_done(struct net_op *op, int status)
{
    struct p2p_request *r = container_of(op, struct p2p_request, write.op);
    if (r->write.phase == WRITE_STARTING) {
        r->write.phase = WRITE_ENDED;
        r->write.status = status;
    } else {
        write_end(r, status);
    }
}

bool write_is_op(const struct net_op *op, bool *looked, uint64_t *cookie)
{
    if (op->done != write_done)
        return false;
    const struct p2p_request *r = container_of(op, struct p2p_request, write.op);
    *looked = r->write.looked;
    *cookie = r->peer_cookie;
    return true;
}

int write_start(struct p2p_request *r)
{
    struct peer *to = r->peer;
    struct write_part *w = &r->write;
    w->op = (struct net_op){.done = write_done};
    w->phase = WRITE_STARTING;
    w->mark = peer_pace_begin(to, PACE_OUT, w->whole && w->bytes >= PACE_LEAST ? clock_ns() : 0);
    int rc = to->ops->put(to, r->buf + w->from, &r->mem, w->remote, &w->key, w->bytes, &w->op);
    if (rc == ERR_AGAIN) {
        w->phase = WRITE_QUEUED;
        return rc;
    }
    if (rc != 0 || w->phase == WRITE_ENDED) {
        write_end(r, rc ? rc : w->status);
        return 0;
    }
    w->phase = WRITE_UNDER_WAY;
    if (w->tell && to->caps.put_ordered) { /* a frame sent now arrives after the data */
        w->tell = false;
        write_send_fin(r, 0);
    }
    return 0;
}

int write_resume(struct net_pending *item)
{
    return write_start(container_of(item, struct p2p_request, pending));
}

void write_start_or_queue(struct p2p_request *r)
{
    if (write_start(r) != ERR_AGAIN)
        return;
    r->pending.resume = write_resume;
    peer_queue(r->peer, &r->pending);
}
