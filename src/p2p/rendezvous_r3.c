/* rendezvous_r3.c: R3: the receiver asks (CTS) and the sender sends the message in pieces through frames.
 * Both sides copy, at the same time; pieces are packed straight into the transport's buffers and unpacked
 * straight out of them, so that data with holes needs no copy of its own. The way for memory that cannot be
 * reached from outside or is not one block.
 *
 *     sender                         receiver
 *       RTS ---------------------------> match
 *       <------------------------- CTS
 *       PIECE, PIECE, ... -------------> complete with the last one
 *     complete when the last one has left
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"

#include "p2p/engine.h"

static COUNTER(pieces, "p2p_rendezvous_r3", "Large messages sent in pieces through frames.");

void r3_start(struct p2p *p, struct p2p_request *r, uint64_t bytes)
{
    counter_add(&pieces, 1);
    r->moved = 0;
    r->expected = bytes;
    r->cookie = ids_add(&p->ids, r);
    CHECK_MEMORY(r->cookie != 0, "a large receive");
    if (!r->block)
        dt_cursor_init(&r->cursor, r->type, r->count, r->buf);
    struct frame_header header = {.kind = FRAME_CTS, .word = r->peer_cookie};
    struct cts cts = {.cookie = r->cookie, .bytes = bytes};
    control_send(p, r->peer, &header, &cts, sizeof(cts));
    if (bytes == 0) {
        ids_remove(&p->ids, r->cookie);
        request_complete(&r->base, r->base.error);
    }
}

/* Sends pieces until the message is out or the peer has no room. */
static int pieces_send(struct p2p_request *r)
{
    struct peer *to = r->peer;
    while (r->moved < r->expected) {
        size_t len = (size_t)MIN(r->expected - r->moved, to->caps.frame_max);
        if (r->block) {
            int rc = peer_send_now(to, &r->header, r->buf + r->moved, len);
            if (rc != 0)
                return rc;
        } else {
            void *room;
            int rc = to->ops->reserve(to, len, &room);
            if (rc != 0)
                return rc;
            dt_cursor_pack(&r->cursor, room, len);
            to->ops->commit(to, &r->header, len);
        }
        r->moved += len;
    }
    return 0;
}

static int pieces_resume(struct net_pending *item)
{
    struct p2p_request *r = container_of(item, struct p2p_request, pending);
    int rc = pieces_send(r);
    if (rc == ERR_AGAIN)
        return rc;
    r->queued = false;
    request_complete(&r->base, rc);
    return 0;
}

void cts_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                 size_t len)
{
    CHECK(len == sizeof(struct cts), "a request for a message has the wrong length");
    struct cts cts;
    memcpy(&cts, payload, sizeof(cts));
    struct p2p_request *r = request_known(p, from, h->word, &send_ops);
    CHECK(r != NULL && r->header.kind == FRAME_RTS && cts.bytes <= r->length,
          "a message was asked for that does not exist");
    ids_remove(&p->ids, h->word);
    request_unregister(r);
    choice_drop(&p->sends, &r->ticket);
    r->header = (struct frame_header){.kind = FRAME_PIECE, .word = cts.cookie};
    r->expected = cts.bytes;
    r->pending.resume = pieces_resume;
    if (!r->block)
        dt_cursor_init(&r->cursor, r->type, r->count, r->buf);
    if (list_empty(&from->pending) && pieces_send(r) == 0) {
        request_complete(&r->base, 0);
        return;
    }
    r->queued = true;
    peer_queue(from, &r->pending);
}

static void piece_take(struct p2p_request *r, const void *payload, size_t len)
{
    if (r->block)
        memcpy(r->buf + r->moved, payload, len);
    else
        dt_cursor_unpack(&r->cursor, payload, len);
}

static void piece_take_timed(struct p2p_request *r, const void *payload, size_t len)
{
    uint64_t begun = clock_ns();
    piece_take(r, payload, len);
    r->copying = (r->moved == 0 ? 0 : r->copying) + clock_ns() - begun;
}

void piece_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                   size_t len)
{
    struct p2p_request *r = request_known(p, from, h->word, &recv_ops);
    CHECK(r != NULL && len <= r->expected - r->moved, "a piece of a message arrived that nobody waits for");
    if (unlikely(p->net->oversubscribed))
        piece_take_timed(r, payload, len);
    else
        piece_take(r, payload, len);
    r->moved += len;
    if (r->moved == r->expected) {
        rendezvous_took(r, 0);
        ids_remove(&p->ids, h->word);
        request_complete(&r->base, r->base.error);
    }
}
