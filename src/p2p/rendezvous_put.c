/* rendezvous_put.c: PUT and PUTNR: the receiver stores a value in the last byte of a posted receive and
 * offers the receive to the sender, which later writes its message there at once. The receiver polls that
 * byte; the sender sends a notification only if the byte does not change [Takagi13 2.2, steps PR1, PR2, PS1
 * to PS3]. PUTNR sets the byte to a constant. PUT sets it at random, so that the data changes it nearly
 * always, whatever the program sends [Takagi13 3.2, step PR1'].
 *
 *     sender                         receiver
 *       <------------------------- RTR   posted: address, key, room, last byte
 *       write =========================> the last byte has changed: complete
 *       WRITTEN - - - - - - - - - - - -> only when the byte is the same (PUT: one time in 256), when the message
 *     complete when the write is done    is shorter than the room, or when the receiver does not poll
 *
 * offer_policy.h defines which message is written into which receive.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/tunable.h"
#include "p2p/offer.h"
#include "p2p/rendezvous.h"
#include "p2p/protocol.h"

enum { LOOK_AUTO, LOOK_ALWAYS, LOOK_NEVER };
static LABORATORY_CHOICE(
    look_at, "LAST_BYTE_POLL", LOOK_AUTO, "auto|always|never",
    "Whether the receiver of a message by putnr or put waits for its last byte in memory: where every rank "
    "has a core of its own and no progress thread runs (auto), wherever the adapter writes it last "
    "(always), or never, so that the sender sends one more message.");

static COUNTER(random_puts, "p2p_rendezvous_put",
               "Large messages written into an offered buffer; a random value marks the last byte.");
static COUNTER(putnrs, "p2p_rendezvous_putnr",
               "Large messages written into an offered buffer; a constant marks the last byte.");
static COUNTER(made, "p2p_offers", "Receives whose buffer was offered to the sender before it sent.");
static COUNTER(
    notified, "p2p_offer_notifications",
    "Messages written into an offered buffer whose receiver had to be notified by one more message.");

/* ---- the receiver ---- */

static void notify_tool(struct p2p *p, struct envelope env, uint64_t length, enum p2p_protocol protocol)
{
    const struct p2p_watch *watch = p->watch; /* the callback may detach the tool */
    if (likely(!watch))
        return;
    struct p2p_arrival a = {.env = env, .length = length, .protocol = protocol, .expected = true};
    watch->arrived(p, &a);
    if (p->watch)
        p->watch->delivered(p);
    if (p->watch)
        p->watch->chose(p, env, length, protocol);
}

void put_written(struct p2p_request *r, uint64_t length, int error)
{
    struct p2p *p = r->base.p2p;
    enum p2p_protocol protocol = r->offer.protocol;
    if (r->match.posted)
        posted_remove(&p->posted, &r->match);
    offer_end(r, length, true);
    int rc = recv_set_status(r, r->match.env, length);
    counter_add(protocol == PROTOCOL_PUTNR ? &putnrs : &random_puts, 1);
    notify_tool(p, r->match.env, length, protocol);
    request_end(r, error ? error : rc);
}

static void on_put_last_byte(struct last_byte *b)
{
    struct p2p_request *r = container_of(b, struct p2p_request, offer.last);
    put_written(r, r->length, 0);
}

bool put_check_arrived(struct p2p_request *r)
{
    if (!r->offer.last.watched || !last_byte_changed(&r->offer.last))
        return false;
    put_written(r, r->length, 0);
    return true;
}

static void send_ready_to_receive(struct p2p *p, struct p2p_request *r)
{
    struct frame_header h = {.kind = FRAME_RTR,
                             .flags = r->offer.last.watched ? RTR_LOOKS : 0,
                             .aux = r->offer.last.was,
                             .context = (uint32_t)r->match.env.context,
                             .source = r->match.env.source,
                             .tag = r->match.env.tag,
                             .word = r->cookie};
    struct rtr rtr = {.received = r->peer->messages_from[envelope_class(r->match.env)],
                      .address = (uintptr_t)r->buf,
                      .room = r->length,
                      .key = r->key};
    counter_add(&made, 1);
    control_send(p, r->peer, &h, &rtr, sizeof(rtr));
}

/* True if the receiver may poll the last byte. A write wakes no sleeping process: if ranks share cores, or if
 * a thread makes progress while the program computes, the receiver requests a notification, unless
 * LAST_BYTE_POLL is set. */
static bool put_can_poll(const struct p2p *p, const struct peer *peer)
{
    if (!peer->caps.last_byte_last || look_at.value == LOOK_NEVER || !last_bytes_has_room(&p->looks))
        return false;
    return look_at.value == LOOK_ALWAYS || (!p->net->oversubscribed && !p->net->thread);
}

/* The initial value of the last byte. PUTNR uses zero, often the last byte of a message of numbers, so that
 * the cost of a constant can be measured. */
static uint8_t choose_last_byte_value(struct p2p *p, enum p2p_protocol protocol)
{
    if (protocol == PROTOCOL_PUTNR)
        return 0;
    p->dice = p->dice * 1664525u + 1013904223u;
    return (uint8_t)(p->dice >> 24);
}

/* The protocol by which the receive is offered to the peer; PROTOCOL_RENDEZVOUS: no offer. */
static enum p2p_protocol put_choose_offer(struct p2p *p, const struct p2p_request *r, struct peer *peer)
{
    if (!peer || r->length <= peer->eager_max)
        return PROTOCOL_RENDEZVOUS;
    enum p2p_protocol protocol = protocol_offers(peer);
    if (protocol == PROTOCOL_RENDEZVOUS)
        return protocol;
    struct link *l = link_make(p, peer);
    bool may = l && !l->recalling && l->noffered < OFFERS_MAX;
    return may ? protocol : PROTOCOL_RENDEZVOUS;
}

/* Offers a large receive that was just posted, if it is certain to match the next message with this
 * envelope. */
void put_offer(struct p2p *p, struct p2p_request *r)
{
    struct envelope env = r->match.env;
    if (unlikely(p->debug != NULL)) { /* no offers: a note could not precede the message written into them */
        note_check_at_post(p, r);
        return;
    }
    if (!r->block || r->device || match_kind(env) != MATCH_EXACT || posted_find(&p->posted, env) != &r->match)
        return;
    struct peer *peer = p->peer_of ? p->peer_of(p->peer_of_arg, env) : NULL;
    enum p2p_protocol protocol = put_choose_offer(p, r, peer);
    if (protocol == PROTOCOL_RENDEZVOUS)
        return;
    r->peer = peer;
    if (!request_register(r, r->length))
        return;
    if (!request_publish(r)) { /* out of memory: the receive is not offered */
        request_unregister(r);
        return;
    }
    offer_begin(r, protocol, choose_last_byte_value(p, protocol));
    if (put_can_poll(p, peer))
        last_byte_watch(&p->looks, &r->offer.last, true, on_put_last_byte);
    send_ready_to_receive(p, r);
}

/* ---- the sender ---- */

static void put_on_write_done(struct p2p_request *r, int status)
{
    request_unregister(r);
    offer_write_end(r);
    request_end(r, status);
}

bool put_use_offer(struct p2p_request *r)
{
    struct offer offer;
    if (!offer_claim_for_send(r->peer, header_envelope(&r->header), &offer) || !r->block || r->device ||
        !r->peer->caps.put || r->length > offer.room)
        return false;
    if (!r->registered && !(protocol_forces_pipe(r) && request_register(r, r->length)))
        return false; /* a PIPE message is not registered yet */
    request_change_state(r, STATE_SEND_PUT);
    request_unpublish(r); /* the cookie of an announcement, which is not sent */
    bool tell = !offer.looks || r->length != offer.room || (uint8_t)r->buf[r->length - 1] == offer.last;
    r->peer_cookie = offer.cookie;
    r->write.remote = offer.address;
    r->write.key = offer.key;
    r->write.from = 0;
    r->write.bytes = r->length;
    r->write.tell = tell;
    r->write.looked = !tell;
    r->write.whole = true;
    r->write.done = put_on_write_done;
    counter_add(&notified, tell);
    peer_count_message(r->peer, r->length);
    offer_write_begin(r);
    return true;
}
