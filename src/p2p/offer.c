/* offer.c: receives that are offered to their sender, from both sides: made, held, used, void, taken back.
 * Why both sides always agree on which message goes where: offers.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/tunable.h"
#include "p2p/engine.h"

enum { LOOK_AUTO, LOOK_ALWAYS, LOOK_NEVER };
static TUNABLE_CHOICE(
    look_at, "LAST_BYTE_POLL", LOOK_AUTO, "auto|always|never",
    "Whether the receiver of a message by putnr or put waits for its last byte in memory: where every rank "
    "has a core of its own and no progress thread runs (auto), wherever the adapter writes it last "
    "(always), or never, so that the sender tells it with a message more.");

static COUNTER(made, "p2p_offers", "Receives whose memory was offered to their sender.");
static COUNTER(wasted, "p2p_offers_void", "Offered receives that got their message in another way, or none.");
static COUNTER(crossed, "p2p_offers_crossed", "Offers that arrived when messages were under way already.");
static COUNTER(told, "p2p_offers_told", "Messages written into an offer whose receiver had to be told.");

#define HOLD_LATENCIES 8    /* how long a send waits for an offer, in times of a small frame */
#define HOLD_NS_MIN    2000 /* ... at least */

static struct link *link_make(struct p2p *p, struct peer *peer)
{
    if (peer->protocol)
        return peer->protocol;
    struct link *l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->peer = peer;
    l->trust.level = TRUST_START;
    list_init(&l->offered);
    list_init(&l->writes);
    list_append(&p->links, &l->all);
    peer->protocol = l;
    return l;
}

void link_close(struct peer *peer)
{
    struct link *l = peer->protocol;
    if (!l)
        return;
    list_remove(&l->all);
    free(l);
    peer->protocol = NULL;
}

void links_close(struct p2p *p)
{
    list_foreach_safe(pos, after, &p->links)
    {
        struct link *l = list_entry(pos, struct link, all);
        l->peer->protocol = NULL;
        free(l);
    }
}

/* ---- the receiver ---- */

static void tell_watcher(struct p2p *p, struct envelope env, uint64_t length, enum p2p_protocol protocol)
{
    if (likely(!p->watch))
        return;
    struct p2p_arrival a = {.env = env, .length = length, .protocol = protocol, .expected = true};
    p->watch->arrived(p, &a);
    if (p->watch)
        p->watch->delivered(p);
    if (p->watch)
        p->watch->chose(p, env, length, protocol);
}

/* No longer offered. The byte goes back to what it was where the message of `length` bytes does not cover it:
 * a receive changes only the part of the buffer that its message fills. */
static void offer_end(struct p2p_request *r, uint64_t length, bool used)
{
    struct p2p *p = r->base.p2p;
    struct link *l = link_of(r->peer);
    last_byte_forget(&p->looks, &r->last);
    if (length < r->length)
        *r->last.at = r->last.before;
    ids_remove(&p->ids, r->cookie);
    r->cookie = 0;
    request_unregister(r);
    list_remove(&r->offer_link);
    l->noffered--;
    trust_learn(&l->trust, used);
    r->offered = false;
    r->base.watched = p->net->lock != NULL;
}

void offer_filled(struct p2p_request *r, uint64_t length, int error)
{
    struct p2p *p = r->base.p2p;
    enum p2p_protocol protocol = (enum p2p_protocol)r->header.kind;
    if (r->match.posted)
        posted_remove(&p->posted, &r->match);
    offer_end(r, length, true);
    int rc = recv_matched(r, r->match.env, length);
    if (protocol == PROTOCOL_PUTNR)
        putnr_used();
    else
        put_used();
    tell_watcher(p, r->match.env, length, protocol);
    request_complete(&r->base, error ? error : rc);
}

static void offer_changed(struct last_byte *b)
{
    struct p2p_request *r = container_of(b, struct p2p_request, last);
    offer_filled(r, r->length, 0);
}

bool offer_seen(struct p2p_request *r)
{
    if (!r->last.watched || !last_byte_changed(&r->last))
        return false;
    offer_filled(r, r->length, 0);
    return true;
}

/* Unless it was seen to be filled before this came. */
void taken_arrived(struct p2p *p, struct peer *from, const struct frame_header *h)
{
    struct p2p_request *r = request_known(p, from, h->word, &recv_ops);
    if (!r)
        return;
    CHECK(r->offered && r->match.posted, "an offer was taken that does not exist");
    posted_remove(&p->posted, &r->match);
}

void offer_void(struct p2p_request *r)
{
    counter_add(&wasted, 1);
    offer_end(r, r->base.cancelled ? 0 : (uint64_t)r->base.bytes, false);
}

static void offer_send(struct p2p *p, struct p2p_request *r)
{
    struct frame_header h = {.kind = FRAME_RTR,
                             .flags = r->last.watched ? RTR_LOOKS : 0,
                             .aux = r->last.was,
                             .context = (uint32_t)r->match.env.context,
                             .source = r->match.env.source,
                             .tag = r->match.env.tag,
                             .word = r->cookie};
    struct rtr rtr = {.heard = r->peer->heard[envelope_class(r->match.env)],
                      .address = (uintptr_t)r->buf,
                      .room = r->length,
                      .key = r->key};
    counter_add(&made, 1);
    control_send(p, r->peer, &h, &rtr, sizeof(rtr));
}

/* A write wakes nobody: where a rank sleeps soon, or a thread makes progress while the program computes, the
 * receiver wants to be told and does not look at the byte, unless the user says otherwise. */
static bool offer_looks(const struct p2p *p, const struct peer *peer)
{
    if (!peer->caps.last_byte_last || look_at.value == LOOK_NEVER || !last_bytes_room(&p->looks))
        return false;
    return look_at.value == LOOK_ALWAYS || (!p->net->oversubscribed && !p->net->thread);
}

/* A large receive was posted: offer it, if it is sure to take the next message with this envelope. */
void offer_make(struct p2p *p, struct p2p_request *r)
{
    struct envelope env = r->match.env;
    if (!r->block || match_way(env) != MATCH_EXACT || posted_find(&p->posted, env) != &r->match)
        return;
    struct peer *peer = p->peer_of ? p->peer_of(p->peer_of_arg, env) : NULL;
    bool sure;
    if (!peer || r->length <= peer->eager_max)
        return;
    enum p2p_protocol protocol = rendezvous_offers(peer, &sure);
    if (protocol == PROTOCOL_RENDEZVOUS)
        return;
    struct link *l = link_make(p, peer);
    if (!l || l->recalling || l->noffered == OFFERS_MAX || !(sure || trust_asks(&l->trust)))
        return;
    r->peer = peer;
    if (!request_register(r, r->length))
        return;
    r->cookie = ids_add(&p->ids, r);
    CHECK_MEMORY(r->cookie != 0, "a large receive");
    r->header.kind = (uint8_t)protocol;
    r->offered = true;
    r->cancelling = false;
    r->base.watched = true; /* so that request_complete looks */
    list_append(&l->offered, &r->offer_link);
    l->noffered++;
    last_byte_set(&r->last, (uint8_t *)r->buf + r->length - 1,
                  protocol == PROTOCOL_PUTNR ? putnr_last_byte(p) : put_last_byte(p));
    if (offer_looks(p, peer))
        last_byte_watch(&p->looks, &r->last, true, offer_changed);
    offer_send(p, r);
}

/* MPI_Cancel. The sender may be writing at this moment, so it must be asked; all offers to it come back,
 * which is simple and rare. */
void offer_recall(struct p2p_request *r)
{
    struct link *l = link_of(r->peer);
    r->cancelling = true;
    if (l->recalling)
        return;
    l->recalling = true;
    struct frame_header h = {.kind = FRAME_RECALL};
    control_send(r->base.p2p, r->peer, &h, NULL, 0);
}

/* Nothing is or will be written into any offer. What was written before shows now. */
void recalled_arrived(struct p2p *p, struct peer *from)
{
    struct link *l = link_of(from);
    CHECK(l != NULL && l->recalling, "offers were given back that nobody had asked for");
    while (!list_empty(&l->offered)) {
        struct p2p_request *r = list_entry(l->offered.next, struct p2p_request, offer_link);
        if (offer_seen(r))
            continue;
        CHECK(r->match.posted, "an offer was given back that had been taken");
        if (r->cancelling) {
            posted_remove(&p->posted, &r->match);
            request_cancelled(&r->base);
        } else {
            offer_void(r);
        }
    }
    l->recalling = false;
}

/* ---- the sender ---- */

/* While offers are held, or written to in a way that frames overtake, every message to that peer must look at
 * them before it leaves. */
static void look_first(struct peer *to)
{
    const struct link *l = link_of(to);
    bool look = l->offers.count > 0 || (!to->caps.put_ordered && !list_empty(&l->writes));
    to->eager_below = look ? 0 : to->eager_sure + 1;
}

void rtr_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                 size_t len)
{
    CHECK(len == sizeof(struct rtr), "an offer of a receive has the wrong length");
    struct rtr rtr;
    memcpy(&rtr, payload, sizeof(rtr));
    struct link *l = link_make(p, from);
    struct offer offer = {.env = header_envelope(h),
                          .cookie = h->word,
                          .address = rtr.address,
                          .room = rtr.room,
                          .key = rtr.key,
                          .last = (uint8_t)h->aux,
                          .looks = h->flags & RTR_LOOKS};
    if (!l)
        return;
    if (offers_add(&l->offers, &offer, rtr.heard, from->told[envelope_class(offer.env)])) {
        look_first(from);
        return;
    }
    counter_add(&crossed, 1);
    trust_learn(&l->hold, true); /* waiting a moment would have helped */
}

static bool offer_taken(struct peer *to, struct envelope env, struct offer *offer)
{
    struct link *l = link_of(to);
    if (!l || !offers_take(&l->offers, env, offer))
        return false;
    look_first(to);
    return true;
}

/* A message with this envelope is being written, and frames would overtake it: its receive must not take the
 * next one. */
static int taken_tell(struct peer *to, struct p2p_request *r, struct envelope env)
{
    if (r->taken || !envelope_equal(header_envelope(&r->header), env))
        return 0;
    struct frame_header h = {.kind = FRAME_TAKEN, .word = r->peer_cookie};
    int rc = peer_send_now(to, &h, NULL, 0);
    r->taken = rc == 0;
    return rc;
}

int offer_pass(struct peer *to, struct envelope env)
{
    struct offer offer;
    int rc = 0;
    offer_taken(to, env, &offer);
    if (!to->caps.put_ordered)
        list_foreach(pos, &link_of(to)->writes) rc =
            rc ? rc : taken_tell(to, list_entry(pos, struct p2p_request, offer_link), env);
    return rc;
}

bool offer_use(struct p2p_request *r)
{
    struct offer offer;
    struct link *l = link_of(r->peer);
    if (!offer_taken(r->peer, header_envelope(&r->header), &offer) || !r->registered || !r->peer->caps.put ||
        r->length > offer.room)
        return false;
    if (r->held)
        trust_learn(&l->hold, true);
    r->header.kind = FRAME_WRITTEN;
    r->peer_cookie = offer.cookie;
    r->remote = offer.address;
    r->key = offer.key;
    r->expected = r->length;
    r->from = 0;
    r->tell = !offer.looks || r->length != offer.room || (uint8_t)r->buf[r->length - 1] == offer.last;
    counter_add(&told, r->tell);
    peer_count(r->peer, r->length);
    list_append(&l->writes, &r->offer_link);
    r->offered = true;
    r->taken = false;
    look_first(r->peer);
    return true;
}

bool offer_awaited(const struct p2p_request *r)
{
    bool sure;
    enum p2p_protocol protocol = rendezvous_offers(r->peer, &sure);
    if (!r->registered || protocol == PROTOCOL_RENDEZVOUS)
        return false;
    const struct link *l = link_of(r->peer);
    /* A nonblocking send would stay here until the program calls again, while the receiver could be reading.
     */
    if (!sure && !(r->stack && l && l->hold.level > 0))
        return false;
    uint64_t limit = MAX((uint64_t)r->peer->caps.latency_ns * HOLD_LATENCIES, (uint64_t)HOLD_NS_MIN);
    return clock_ns() - r->started < limit;
}

static void answer(struct p2p *p, struct link *l)
{
    struct frame_header h = {.kind = FRAME_RECALLED};
    l->answer = false;
    control_send(p, l->peer, &h, NULL, 0);
}

void offer_written(struct p2p_request *r)
{
    if (!r->offered)
        return;
    struct link *l = link_of(r->peer);
    r->offered = false;
    list_remove(&r->offer_link);
    look_first(r->peer);
    if (l->answer && list_empty(&l->writes))
        answer(r->base.p2p, l);
}

void recall_arrived(struct p2p *p, struct peer *from)
{
    struct link *l = link_make(p, from);
    CHECK_MEMORY(l != NULL, "a control message");
    l->offers.count = 0;
    look_first(from);
    l->answer = true;
    if (list_empty(&l->writes))
        answer(p, l);
}
