/* rendezvous.c: large messages are announced first (RTS, request to send), unless the receiver has offered
 * its memory before. When the receive is there, the receiver chooses how the data moves: one file a protocol.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/tunable.h"

#include "p2p/engine.h"

enum {
    RENDEZVOUS_AUTO,
    RENDEZVOUS_RPUT,
    RENDEZVOUS_GETCQE,
    RENDEZVOUS_GET,
    RENDEZVOUS_PUTNR,
    RENDEZVOUS_PUT,
    RENDEZVOUS_SPLIT,
    RENDEZVOUS_R3
};
static TUNABLE_CHOICE(
    rendezvous, "RENDEZVOUS", RENDEZVOUS_AUTO, "auto|rput|getcqe|get|putnr|put|split|r3",
    "How large messages move: written by the sender (rput), read by the receiver, who is told (getcqe) or "
    "sees (get) when that is done, written into a receive that was offered before (putnr, put), read by the "
    "receiver and written by the sender at the same time, a part each (split), copied in pieces (r3), or as "
    "measured to be fastest (auto). What cannot be done gives way to what can.");

static COUNTER(announced, "p2p_rendezvous", "Messages that were announced before their data moved.");
static COUNTER(held, "p2p_rendezvous_held", "Large sends that waited a moment for the receiver's offer.");

static int rts_send(struct p2p_request *r)
{
    if (r->cookie == 0) {
        r->cookie = ids_add(&r->base.p2p->ids, r);
        CHECK_MEMORY(r->cookie != 0, "a large send");
    }
    struct rts rts = {.cookie = r->cookie};
    if (r->registered) {
        rts.address = (uintptr_t)r->buf;
        rts.key = r->key;
        rts.can = (r->peer->caps.get ? RTS_READ : 0) | (r->peer->caps.put ? RTS_WRITE : 0);
        r->header.aux = (uint8_t)r->buf[r->length - 1];
    }
    int rc = peer_send_now(r->peer, &r->header, &rts, sizeof(rts));
    if (rc == 0) {
        r->peer->told[envelope_class(header_envelope(&r->header))]++;
        peer_count(r->peer, r->length);
        counter_add(&announced, 1);
    } else if (rc != ERR_AGAIN) { /* nobody has heard of this message, and nobody will */
        ids_remove(&r->base.p2p->ids, r->cookie);
        request_unregister(r);
        request_complete(&r->base, rc);
    }
    return rc;
}

/* It is this message's turn: into an offer, or announced. Afterwards the request may be gone, unless this
 * returns ERR_AGAIN. */
static int rendezvous_go(struct p2p_request *r)
{
    if (r->peer->protocol && offer_use(r)) {
        r->pending.resume = write_resume;
        return write_start(r);
    }
    if (r->held) {
        if (offer_awaited(r))
            return ERR_AGAIN;
        r->held = false;
        if (r->peer->protocol)
            trust_learn(&link_of(r->peer)->hold, false);
    }
    int rc = likely(r->peer->eager_below != 0) ? 0 : offer_pass(r->peer, header_envelope(&r->header));
    return rc ? rc : rts_send(r);
}

static int rendezvous_resume(struct net_pending *item)
{
    struct p2p_request *r = container_of(item, struct p2p_request, pending);
    r->queued = false;
    if (rendezvous_go(r) != ERR_AGAIN)
        return 0;
    r->queued = true;
    return ERR_AGAIN;
}

void rendezvous_start(struct p2p *p, struct p2p_request *r)
{
    (void)p;
    const struct transport_caps *caps = &r->peer->caps;
    r->header.kind = FRAME_RTS;
    r->header.word = r->length;
    r->moved = 0;
    r->split = r->registered = false;
    if (r->block && (caps->get || caps->put))
        request_register(r, r->length);
    r->started = clock_ns();
    r->held = offer_awaited(r);
    counter_add(&held, r->held);
    r->pending.resume = rendezvous_resume;
    if (list_empty(&r->peer->pending) && rendezvous_go(r) != ERR_AGAIN)
        return;
    r->queued = true;
    peer_queue(r->peer, &r->pending);
}

void rts_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                 size_t len)
{
    CHECK(len == sizeof(struct rts), "an announcement of a message has the wrong length");
    struct rts rts;
    memcpy(&rts, payload, sizeof(rts));
    struct announcement a = {
        .from = from, .env = header_envelope(h), .length = h->word, .rts = &rts, .last = (uint8_t)h->aux};
    from->heard[envelope_class(a.env)]++;
    struct p2p_request *r = take_posted(p, a.env);
    if (r) {
        rendezvous_take(p, r, &a);
        return;
    }
    struct message *m = message_new(p, from, h, 0);
    m->length = h->word;
    m->cookie = rts.cookie;
    m->last = a.last;
    m->rts = rts;
}

bool rendezvous_measures(void)
{
    return rendezvous.value == RENDEZVOUS_AUTO;
}

enum p2p_protocol rendezvous_offers(const struct peer *peer, bool *sure)
{
    *sure = rendezvous.value != RENDEZVOUS_AUTO;
    if (!peer->caps.put)
        return PROTOCOL_RENDEZVOUS;
    switch (rendezvous.value) {
    case RENDEZVOUS_PUTNR:
        return PROTOCOL_PUTNR;
    case RENDEZVOUS_PUT:
        return PROTOCOL_PUT;
    case RENDEZVOUS_AUTO: /* where a processor must do the copying anyway, nothing is won */
        return peer->caps.cpu_moves || peer->caps.software ? PROTOCOL_RENDEZVOUS : PROTOCOL_PUT;
    default:
        return PROTOCOL_RENDEZVOUS;
    }
}

/* With a core for each rank, what counts is how long a message takes. Where ranks take turns that would mostly
 * be the others' turns; what counts then is the work: this rank's copy, and one like it at the sender if there
 * is one. */
void rendezvous_took(struct p2p_request *r, int status)
{
    struct p2p *p = r->base.p2p;
    struct choice *c = choice_of(p, r->peer);
    if (!r->ticket.open)
        return;
    if (status != 0)
        choice_drop(c, &r->ticket);
    else if (unlikely(p->net->oversubscribed) && r->ticket.way == WAY_PIECES)
        choice_learn_work(c, &r->ticket, clock_ns(), 2 * r->copying);
    else
        choice_learn(c, &r->ticket, clock_ns());
}

void rendezvous_in_pieces(struct p2p *p, struct p2p_request *r, uint64_t bytes)
{
    choice_drop(choice_of(p, r->peer), &r->ticket);
    r3_start(p, r, bytes);
}

/* Reading, in the way asked for if the last byte can tell: it must be the message's own, and there must be
 * few enough to look at. */
static enum p2p_protocol reading(struct p2p *p, const struct peer *from, uint64_t bytes, uint64_t length)
{
    bool tells = from->caps.last_byte_last && bytes == length && last_bytes_room(&p->looks);
    return tells && rendezvous.value != RENDEZVOUS_GETCQE ? PROTOCOL_GET : PROTOCOL_GETCQE;
}

#define SPLIT_MIN 16384 /* below this a second control message costs more than a half saves */

/* The ways that are worth measuring. Where a processor moves the bytes, two of them move more than one, unless
 * ranks share processors; an adapter does by itself what it is told to. */
static unsigned open_ways(const struct p2p *p, const struct peer *from, uint64_t bytes, bool write)
{
    unsigned open = WAY_BIT(WAY_READ);
    if (from->caps.cpu_moves)
        open |= WAY_BIT(WAY_PIECES);
    else if (write)
        open |= WAY_BIT(WAY_WRITE);
    if ((from->caps.cpu_moves || from->caps.software) && write && !p->net->oversubscribed &&
        bytes >= SPLIT_MIN)
        open |= WAY_BIT(WAY_SPLIT);
    return open;
}

static enum p2p_protocol measured(struct p2p *p, struct p2p_request *r, const struct announcement *a,
                                  unsigned open)
{
    uint64_t bytes = (uint64_t)r->base.bytes;
    switch (choice_ask(choice_of(p, a->from), bytes, open, WAY_READ, clock_ns(), &r->ticket)) {
    case WAY_PIECES:
        return PROTOCOL_R3;
    case WAY_WRITE:
        return PROTOCOL_RPUT;
    case WAY_SPLIT:
        return PROTOCOL_SPLIT;
    default:
        return a->from->caps.cpu_moves ? PROTOCOL_GETCQE : reading(p, a->from, bytes, a->length);
    }
}

static enum p2p_protocol choose(struct p2p *p, struct p2p_request *r, const struct announcement *a)
{
    uint64_t bytes = (uint64_t)r->base.bytes;
    bool read = r->block && a->rts->can & RTS_READ && a->from->caps.get;
    bool write = r->block && a->rts->can & RTS_WRITE && bytes > 0;
    if (bytes == 0 && read)
        return PROTOCOL_GETCQE; /* there is nothing to read: it ends at once */
    if (rendezvous.value == RENDEZVOUS_R3 || (!read && !write))
        return PROTOCOL_R3;
    if (!read || (write && rendezvous.value == RENDEZVOUS_RPUT))
        return PROTOCOL_RPUT;
    if (rendezvous.value == RENDEZVOUS_SPLIT && write && bytes >= 2)
        return measured(p, r, a, WAY_BIT(WAY_SPLIT)); /* for the shares of the two */
    if (rendezvous.value == RENDEZVOUS_AUTO && a->length <= a->from->eager_max) {
        r->ticket.began = clock_ns(); /* the sender measures reading against sending at once (medium.c) */
        return a->from->caps.cpu_moves ? PROTOCOL_GETCQE : reading(p, a->from, bytes, a->length);
    }
    if (rendezvous.value == RENDEZVOUS_AUTO)
        return measured(p, r, a, open_ways(p, a->from, bytes, write));
    return reading(p, a->from, bytes, a->length);
}

void rendezvous_take(struct p2p *p, struct p2p_request *r, const struct announcement *a)
{
    if (unlikely(r->offered))
        offer_void(r);
    r->peer = a->from;
    r->peer_cookie = a->rts->cookie;
    r->split = false;
    r->ticket = (struct choice_ticket){.bytes = 0};
    r->base.error = recv_matched(r, a->env, a->length); /* kept until the data is there */
    uint64_t bytes = (uint64_t)r->base.bytes;
    enum p2p_protocol protocol = choose(p, r, a);
    if (unlikely(p->watch != NULL))
        p->watch->chose(p, a->env, a->length, protocol);
    switch (protocol) {
    case PROTOCOL_SPLIT:
        split_start(p, r, a->rts, bytes);
        break;
    case PROTOCOL_RPUT:
        rput_start(p, r, a->rts, bytes);
        break;
    case PROTOCOL_GETCQE:
        getcqe_start(p, r, a->rts, bytes);
        break;
    case PROTOCOL_GET:
        get_start(p, r, a->rts, bytes, a->last);
        break;
    default:
        r3_start(p, r, bytes);
    }
}
