/* rendezvous_r3.c: R3: the receiver sends CTS and the sender sends the message in pieces through frames. Both
 * sides copy, at the same time; pieces are packed straight into the transport's buffers and unpacked straight
 * out of them, so that data with holes needs no copy of its own. R3 moves data in memory that peers cannot
 * access, and data that is not one block.
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
#include "p2p/device_staging.h"
#include "p2p/rendezvous.h"
#include "p2p/rendezvous_staged.h"

static COUNTER(pieces, "p2p_rendezvous_r3", "Large messages sent in pieces through frames.");

/* Prepares to move bytes `from` to `bytes` of the message. Only GPU memory can cause an error. */
static int pieces_setup(struct p2p_request *r, uint64_t from, uint64_t bytes)
{
    r->pieces.moved = from;
    r->pieces.copying = 0;
    r->pieces.bytes = bytes;
    if (unlikely(r->device))
        return bytes > from ? device_pieces_begin(r, from) : 0;
    if (!r->block)
        dt_cursor_init(&r->pieces.cursor, r->type, r->count, r->buf);
    return 0;
}

/* ---- the receiver's CTS ---- */

void r3_start(struct p2p *p, struct p2p_request *r, uint64_t bytes)
{
    if (!request_publish(r)) {
        rendezvous_end_receive(r, err_set(MPI_ERR_NO_MEM, "out of memory for a large receive"), true);
        return;
    }
    if (unlikely(r->can_stage) && staged_start(r, bytes))
        return;
    counter_add(&pieces, 1);
    request_change_state(r, STATE_RECV_PIECES);
    const int rc = pieces_setup(r, 0, bytes);
    if (rc) {
        request_unpublish(r);
        rendezvous_end_receive(r, rc, true);
        return;
    }
    struct frame_header header = {.kind = FRAME_CTS, .word = r->peer_cookie};
    struct cts cts = {.cookie = r->cookie, .bytes = bytes};
    control_send(p, r->peer, &header, &cts, sizeof(cts));
    if (bytes == 0) {
        request_unpublish(r);
        request_end(r, r->base.error);
    }
}

/* ---- the sender sends ---- */

/* Sends pieces until all are sent or the transport returns ERR_AGAIN. */
static int pieces_send(struct p2p_request *r)
{
    struct peer *to = r->peer;
    struct pieces_part *part = &r->pieces;
    while (part->moved < part->bytes) {
        size_t len = (size_t)MIN(part->bytes - part->moved, to->caps.frame_max);
        if (unlikely(r->device)) {
            const char *data;
            int rc = device_pieces_next(r, len, &data, &len);
            if (rc == 0)
                rc = peer_send_now(to, &r->header, data, len);
            if (rc != 0)
                return rc;
        } else if (r->block) {
            int rc = peer_send_now(to, &r->header, r->buf + part->moved, len);
            if (rc != 0)
                return rc;
        } else {
            void *room;
            int rc = to->ops->reserve(to, len, &room);
            if (rc != 0)
                return rc;
            dt_cursor_pack(&part->cursor, room, len);
            to->ops->commit(to, &r->header, len);
        }
        part->moved += len;
    }
    return 0;
}

/* Ends the transfer after the last piece. If GPU memory could not be copied, the receiver is notified. */
static void pieces_end(struct p2p_request *r, int status)
{
    if (unlikely(status != 0 && r->device)) {
        struct frame_header h = r->header;
        h.aux = (uint16_t)status;
        control_send_first(r->base.p2p, r->peer, &h, NULL, 0);
    }
    request_end(r, status);
}

static int pieces_resume(struct net_pending *item)
{
    struct p2p_request *r = container_of(item, struct p2p_request, pending);
    int rc = pieces_send(r);
    if (rc == ERR_AGAIN)
        return rc;
    pieces_end(r, rc);
    return 0;
}

/* Starts sending the rest of the message to the receive with this cookie. */
static void pieces_start_sending(struct p2p_request *r, uint64_t cookie, uint64_t from, uint64_t bytes)
{
    r->header = (struct frame_header){.kind = FRAME_PIECE, .word = cookie};
    int rc = pieces_setup(r, from, bytes);
    if (rc == 0)
        rc = list_empty(&r->peer->pending) ? pieces_send(r) : ERR_AGAIN;
    if (rc == 0 || (rc != ERR_AGAIN && r->device)) {
        pieces_end(r, rc);
        return;
    }
    r->pending.resume = pieces_resume;
    peer_queue(r->peer, &r->pending);
}

void cts_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                 size_t len)
{
    CHECK(len == sizeof(struct cts), "a request for a message has the wrong length");
    struct cts cts;
    memcpy(&cts, payload, sizeof(cts));
    struct p2p_request *r = request_find_by_cookie(p, from, h->word, STATE_BIT(SEND_ANNOUNCED));
    CHECK(r != NULL && cts.bytes <= r->length, "a message was requested that does not exist");
    request_change_state(r, STATE_SEND_PIECES);
    request_unpublish(r);
    request_unregister(r);
    pieces_start_sending(r, cts.cookie, 0, cts.bytes);
}

void r3_send_rest(struct p2p_request *r, uint64_t cookie, uint64_t from, uint64_t bytes)
{
    request_change_state(r, STATE_SEND_PIECES);
    pieces_start_sending(r, cookie, from, bytes);
}

/* ---- the receiver stores ---- */

/* Receives the rest of a message into a block; the sender already has the cookie of the receive. */
void r3_receive_rest(struct p2p_request *r, uint64_t from, uint64_t bytes)
{
    request_change_state(r, STATE_RECV_PIECES);
    const int rc = pieces_setup(r, from, bytes);
    r->base.error = r->base.error ? r->base.error : rc;
}

static void piece_store(struct p2p_request *r, const void *payload, size_t len)
{
    if (unlikely(r->device))
        device_pieces_store(r, payload, len);
    else if (r->block)
        memcpy(r->buf + r->pieces.moved, payload, len);
    else
        dt_cursor_unpack(&r->pieces.cursor, payload, len);
}

static void piece_store_timed(struct p2p_request *r, const void *payload, size_t len)
{
    uint64_t begun = clock_ns();
    piece_store(r, payload, len);
    r->pieces.copying += clock_ns() - begun;
}

void piece_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                   size_t len)
{
    struct p2p_request *r = request_find_by_cookie(
        p, from, h->word, STATE_BIT(RECV_PIECES) | STATE_BIT(RECV_RPUT) | STATE_BIT(RECV_STAGED));
    /* the sender could not map this process's memory, or has no staging buffer */
    if (r && ((r->state == STATE_RECV_RPUT && r->device) || r->state == STATE_RECV_STAGED)) {
        counter_add(&pieces, 1);
        r3_receive_rest(r, 0, (uint64_t)r->base.bytes);
    }
    CHECK(r != NULL && r->state == STATE_RECV_PIECES && len <= r->pieces.bytes - r->pieces.moved,
          "a piece of a message arrived that nobody waits for");
    if (unlikely(h->aux != 0)) { /* the sender could not copy its GPU memory */
        rendezvous_end_receive(r, h->aux, false);
        return;
    }
    if (unlikely(p->net->oversubscribed))
        piece_store_timed(r, payload, len);
    else
        piece_store(r, payload, len);
    r->pieces.moved += len;
    if (r->pieces.moved == r->pieces.bytes)
        rendezvous_end_receive(r, 0, false);
}
