/* write.c: the sender's half of every protocol in which it writes into the receiver's memory: RPUT when it
 * was told where to, PUTNR and PUT when that was offered. The write may be refused for a while (the send
 * queue is full) and may fail; the receiver hears of it (WRITTEN) unless it can see it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "p2p/engine.h"

/* Before any message that waits behind this one: it might find the receive that this one is in. */
static void tell(struct p2p_request *r, int status)
{
    uint64_t took = r->split ? MIN(clock_ns() - r->started, (uint64_t)UINT32_MAX) : 0;
    struct frame_header h = {
        .kind = FRAME_WRITTEN, .aux = (uint16_t)status, .context = (uint32_t)took, .word = r->peer_cookie};
    control_send_first(r->base.p2p, r->peer, &h, &r->expected, sizeof(r->expected));
}

static void write_end(struct p2p_request *r, int status)
{
    if (r->tell || status != 0)
        tell(r, status);
    if (r->split) {
        split_sent(r, status);
        return;
    }
    request_unregister(r);
    offer_written(r);
    request_complete(&r->base, status);
}

static void write_done(struct net_op *op, int status)
{
    struct p2p_request *r = container_of(op, struct p2p_request, op);
    if (r->starting) {
        r->ended = true;
        r->status = status;
    } else {
        write_end(r, status);
    }
}

int write_start(struct p2p_request *r)
{
    struct peer *to = r->peer;
    r->op.done = write_done;
    r->starting = true;
    r->ended = false;
    if (r->split)
        r->started = clock_ns();
    int rc = to->ops->put(to, r->buf + r->from, &r->mem, r->remote, &r->key, r->expected, &r->op);
    r->starting = false;
    if (rc == ERR_AGAIN)
        return rc;
    if (rc != 0 || r->ended) {
        write_end(r, rc ? rc : r->status);
    } else if (r->tell && to->caps.put_ordered) { /* the word follows the data by itself */
        r->tell = false;
        tell(r, 0);
    }
    return 0;
}

int write_resume(struct net_pending *item)
{
    struct p2p_request *r = container_of(item, struct p2p_request, pending);
    r->queued = false;
    if (write_start(r) != ERR_AGAIN)
        return 0; /* the request may be gone */
    r->queued = true;
    return ERR_AGAIN;
}

void write_go(struct p2p_request *r)
{
    if (write_start(r) != ERR_AGAIN)
        return;
    r->queued = true;
    r->pending.resume = write_resume;
    peer_queue(r->peer, &r->pending);
}

/* The receiver's half. An error may come after the data: the request is gone then, and nobody asks. */
void written_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                     size_t len)
{
    uint64_t length;
    CHECK(len == sizeof(length), "the end of a transfer was reported with the wrong length");
    memcpy(&length, payload, sizeof(length));
    struct p2p_request *r = request_known(p, from, h->word, &recv_ops);
    if (!r && h->aux != 0)
        return;
    CHECK(r != NULL && r->registered && length <= r->length,
          "the end of a transfer was reported for a receive that does not exist");
    if (r->offered)
        offer_filled(r, length, h->aux);
    else if (r->split)
        split_written(p, r, h->aux, h->context);
    else
        rput_written(p, r, h->aux);
}
