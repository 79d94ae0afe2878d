/* rendezvous.c: what all protocols of large messages share: the announcement (RTS, request to send) from both
 * sides, and the frames that belong to several of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/rendezvous.h"

#include <string.h>

#include "base/clock.h"
#include "net/lost.h"
#include "p2p/faulty.h"
#include "p2p/message.h"
#include "p2p/offer.h"
#include "p2p/protocol.h"
#include "p2p/rendezvous_map.h"
#include "p2p/rendezvous_staged.h"
#include "p2p/write.h"

static COUNTER(announced, "p2p_rendezvous", "Messages sent by a rendezvous protocol.");
static COUNTER(held, "p2p_rendezvous_held",
               "Large sends delayed briefly to wait for the receiver to offer its buffer.");

/* ---- the sender announces ---- */

/* Ends a send whose announcement could not be sent. */
static int rts_failed(struct p2p_request *r, int error)
{
    request_unpublish(r);
    request_unregister(r);
    request_end(r, error);
    return error;
}

static int rts_send(struct p2p_request *r)
{
    if (r->cookie == 0 && !request_publish(r))
        return rts_failed(r, err_set(MPI_ERR_NO_MEM, "out of memory for a large send"));
    struct {
        struct rts rts;
        struct gpu_export map;
    } payload = {.rts.cookie = r->cookie};
    struct rts *rts = &payload.rts;
    if (r->registered) {
        rts->address = (uintptr_t)r->buf;
        rts->key = r->key;
        rts->can = (r->peer->caps.get ? RTS_READ : 0) | (r->peer->caps.put ? RTS_WRITE : 0);
        r->header.aux = r->device ? 0 : (uint8_t)r->buf[r->length - 1];
        rts->can |= r->device ? RTS_GPU : 0;
    }
    if (unlikely(!r->registered && protocol_forces_pipe(r))) {
        rts->can |= RTS_PIPE;
        rts->address = laboratory_pipe.propose(r, r->length);
    }
    if (unlikely(gpu_may_have_memory()))
        rts->can |= map_announce(r, &payload.map) | staged_announce(r);
    const bool mapped = rts->can & RTS_MAPGET;
    if (mapped)
        rts->address = (uintptr_t)r->buf;
    int rc = peer_send_now(r->peer, &r->header, &payload, mapped ? sizeof(payload) : sizeof(*rts));
    if (rc == ERR_AGAIN)
        return rc;
    if (rc != 0)
        return rts_failed(r, rc);
    request_change_state(r, STATE_SEND_ANNOUNCED);
    r->peer->announced++;
    r->peer->messages_to[envelope_class(header_envelope(&r->header))]++;
    peer_count_message(r->peer, r->length);
    counter_add(&announced, 1);
    return 0;
}

/* Sends the message if no earlier message waits: writes it to an offer, or announces it. The request may be
 * freed afterwards, unless ERR_AGAIN is returned. */
static int rendezvous_send_or_announce(struct p2p_request *r)
{
    if (r->peer->protocol && put_use_offer(r)) {
        r->pending.resume = write_resume;
        return write_start(r);
    }
    if (r->state == STATE_SEND_HELD) {
        if (offer_is_awaited(r) && !peer_is_lost(r->peer))
            return ERR_AGAIN;
        request_change_state(r, STATE_SEND_TURN);
    }
    int rc =
        likely(r->peer->eager_below != 0) ? 0 : offer_discard_for_send(r->peer, header_envelope(&r->header));
    return rc ? rc : rts_send(r);
}

static int rendezvous_resume(struct net_pending *item)
{
    return rendezvous_send_or_announce(container_of(item, struct p2p_request, pending)) == ERR_AGAIN
               ? ERR_AGAIN
               : 0;
}

void rendezvous_start(struct p2p *p, struct p2p_request *r)
{
    (void)p;
    const struct transport_caps *caps = &r->peer->caps;
    r->header.kind = FRAME_RTS;
    r->header.word = r->length;
    if (request_is_remotely_accessible(r) && (caps->get || caps->put) && !protocol_forces_pipe(r))
        request_register(r, r->length);
    r->hold.since = protocol_offers(r->peer) == PROTOCOL_RENDEZVOUS ? 0 : clock_ns();
    bool hold = offer_is_awaited(r);
    request_change_state(r, hold ? STATE_SEND_HELD : STATE_SEND_TURN);
    counter_add(&held, hold);
    r->pending.resume = rendezvous_resume;
    if (!list_empty(&r->peer->pending) || rendezvous_send_or_announce(r) == ERR_AGAIN)
        peer_queue(r->peer, &r->pending);
}

/* ---- the receiver answers ---- */

void rts_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                 size_t len)
{
    CHECK(len >= sizeof(struct rts), "an announcement of a message has the wrong length");
    struct rts rts;
    struct gpu_export map;
    memcpy(&rts, payload, sizeof(rts));
    const bool mapped = rts.can & RTS_MAPGET;
    CHECK(len == sizeof(rts) + (mapped ? sizeof(map) : 0),
          "an announcement of a message has the wrong length");
    if (mapped)
        memcpy(&map, (const char *)payload + sizeof(rts), sizeof(map));
    struct announcement a = {.from = from,
                             .env = header_envelope(h),
                             .length = h->word,
                             .rts = &rts,
                             .map = mapped ? &map : NULL,
                             .last = (uint8_t)h->aux};
    from->messages_from[envelope_class(a.env)]++;
    struct p2p_request *r = posted_remove_matching(p, a.env);
    if (r) {
        rendezvous_start_receive(p, r, &a);
        return;
    }
    if (unlikely(p->faults) && fault_check_unexpected(p, from, h, rts.cookie))
        return;
    struct message *m = message_new(p, from, h, sizeof(map));
    if (mapped)
        memcpy(m->payload, &map, sizeof(map));
    m->length = h->word;
    m->cookie = rts.cookie;
    m->last = a.last;
    m->rts = rts;
}

void rendezvous_start_receive(struct p2p *p, struct p2p_request *r, const struct announcement *a)
{
    r->peer = a->from;
    r->peer_cookie = a->rts->cookie;
    r->base.error = recv_set_status(r, a->env, a->length); /* reported when the data has arrived */
    uint64_t bytes = (uint64_t)r->base.bytes;
    enum p2p_protocol protocol = protocol_choose(p, r, a);
    r->mark = peer_pace_begin(r->peer, PACE_IN, r->ticket.began ? r->ticket.began : clock_ns());
    if (unlikely(p->watch != NULL))
        p->watch->chose(p, a->env, a->length, protocol);
    switch (protocol) {
    case PROTOCOL_SPLIT:
        split_start(p, r, a->rts, bytes);
        break;
    case PROTOCOL_RPUT:
        rput_start(p, r, a->rts, bytes);
        break;
    case PROTOCOL_PIPE:
        laboratory_pipe.start(p, r, a->rts, bytes);
        break;
    case PROTOCOL_GETCQE:
        getcqe_start(p, r, a->rts, bytes);
        break;
    case PROTOCOL_MAPGET:
        mapget_start(p, r, a, bytes);
        break;
    case PROTOCOL_MAPPUT:
        mapput_start(p, r, bytes);
        break;
    case PROTOCOL_GET:
        get_start(p, r, a->rts, bytes, a->last);
        break;
    default:
        r3_start(p, r, bytes);
    }
}

void fin_send(struct p2p_request *r, int status)
{
    struct frame_header fin = {.kind = FRAME_FIN, .aux = (uint16_t)status, .word = r->peer_cookie};
    control_send(r->base.p2p, r->peer, &fin, NULL, 0);
}

void rendezvous_end_receive(struct p2p_request *r, int status, bool fin)
{
    request_unpublish(r);
    request_unregister(r);
    protocol_end(r, status);
    if (fin)
        fin_send(r, status);
    request_end(r, status ? status : r->base.error);
}

void rendezvous_request_write(struct p2p_request *r, uint8_t flags, uint64_t offset, uint64_t bytes)
{
    struct frame_header header = {.kind = FRAME_CTS_WRITE, .flags = flags, .word = r->peer_cookie};
    struct cts_write cts = {.cts = {.cookie = r->cookie, .bytes = bytes},
                            .address = (uintptr_t)r->buf + offset,
                            .key = r->key,
                            .offset = offset};
    control_send(r->base.p2p, r->peer, &header, &cts, sizeof(cts));
}

bool rendezvous_register_receive(struct p2p *p, struct p2p_request *r, uint64_t bytes)
{
    if (!request_register(r, bytes)) {
        protocol_fall_back(p, r, bytes);
        return false;
    }
    if (!request_publish(r)) {
        rendezvous_end_receive(r, err_set(MPI_ERR_NO_MEM, "out of memory for a large receive"), true);
        return false;
    }
    return true;
}

/* ---- frames of several protocols ---- */

void fin_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                 size_t len)
{
    struct p2p_request *r = request_find_by_cookie(
        p, from, h->word, STATE_BIT(SEND_ANNOUNCED) | STATE_BIT(SEND_SPLIT) | STATE_BIT(SEND_SPLIT_FIN));
    CHECK(r != NULL, "the end of a message was reported for a send that does not exist");
    request_unpublish(r);
    if (r->state == STATE_SEND_ANNOUNCED)
        getcqe_fin(r, h->aux);
    else
        split_fin(r, h->aux);
}

void cts_write_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                       size_t len)
{
    if (unlikely(h->flags & CTS_MAP)) {
        mapput_requested(p, from, h, payload, len);
        return;
    }
    CHECK(len == sizeof(struct cts_write), "an answer to an announcement has the wrong length");
    struct cts_write cts;
    memcpy(&cts, payload, sizeof(cts));
    const bool pipe = h->flags & CTS_PIPE, staged = h->flags & CTS_STAGED;
    struct p2p_request *r =
        request_find_by_cookie(p, from, h->word,
                               STATE_BIT(SEND_ANNOUNCED) | (staged ? STATE_BIT(SEND_STAGED)
                                                            : pipe ? STATE_BIT(SEND_PIPE)
                                                                   : 0));
    if (!r && staged && cts.offset > 0)
        return; /* the send has failed meanwhile */
    CHECK(r != NULL &&
              (staged ? staged_accepts(r, &cts)
               : pipe ? protocol_can_pipeline(r, r->length)
                      : r->registered) &&
              from->caps.put && cts.offset <= r->length && cts.cts.bytes <= r->length - cts.offset &&
              cts.cts.bytes > 0,
          "an answer arrived to an announcement that was not made");
    if (staged) {
        staged_requested(r, &cts);
        return;
    }
    if (pipe) {
        laboratory_pipe.requested(r, &cts, h->flags);
        return;
    }
    r->peer_cookie = cts.cts.cookie;
    r->write.remote = cts.address;
    r->write.key = cts.key;
    r->write.from = cts.offset;
    r->write.bytes = cts.cts.bytes;
    r->write.tell = true;
    r->write.looked = false;
    if (h->flags & CTS_SPLIT)
        split_requested(r);
    else
        rput_requested(r);
}

/* Handles the frame that ends a write. An error may arrive after the data: the receive has completed then,
 * and the error is ignored. */
void written_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                     size_t len)
{
    uint64_t length;
    CHECK(len == sizeof(length), "the end of a transfer was reported with the wrong length");
    memcpy(&length, payload, sizeof(length));
    struct p2p_request *r = request_find_by_cookie(p, from, h->word,
                                                   OFFERED_STATES | STATE_BIT(RECV_RPUT) |
                                                       STATE_BIT(RECV_SPLIT) | STATE_BIT(RECV_SPLIT_WRITTEN) |
                                                       STATE_BIT(RECV_PIPE) | STATE_BIT(RECV_STAGED));
    if (!r && h->aux != 0)
        return;
    CHECK(r != NULL && length <= r->length,
          "the end of a transfer was reported for a receive that does not exist");
    if (r->state == STATE_RECV_RPUT)
        rendezvous_end_receive(r, h->aux, false);
    else if (r->state == STATE_RECV_STAGED)
        staged_written(r, length, h->aux);
    else if (r->state == STATE_RECV_PIPE)
        laboratory_pipe.written(r, length, h->aux);
    else if (request_is_in_state(r, OFFERED_STATES))
        put_written(r, length, h->aux);
    else
        split_written(r, h->aux);
}
