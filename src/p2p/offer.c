/* offer.c: makes, stores, uses, discards and recalls offers of receives, at the receiver and at the sender.
 * See offer.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/offer.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "p2p/rendezvous.h"
#include "p2p/protocol.h"

static COUNTER(wasted, "p2p_offers_void", "Offered receive buffers that the sender did not use.");
static COUNTER(
    crossed, "p2p_offers_crossed",
    "Offered receive buffers not used because messages were under way already when the offer arrived.");

#define HOLD_LATENCIES 8    /* a send waits for an offer for this many latencies of a small frame */
#define HOLD_NS_MIN    2000 /* ... but at least for this many ns */

struct link *link_make(struct p2p *p, struct peer *peer)
{
    if (peer->protocol)
        return peer->protocol;
    struct link *l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->peer = peer;
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

void offer_begin(struct p2p_request *r, enum p2p_protocol protocol, uint8_t last)
{
    struct link *l = peer_link(r->peer);
    request_change_state(r, STATE_RECV_OFFERED);
    r->offer.protocol = protocol;
    list_append(&l->offered, &r->offer.link);
    l->noffered++;
    last_byte_set(&r->offer.last, (uint8_t *)r->buf + r->length - 1, last);
}

/* Ends an offer. The last byte gets its former value if the message does not cover it: a receive changes only
 * the part of the buffer that its message fills. */
void offer_end(struct p2p_request *r, uint64_t length, bool used)
{
    struct p2p *p = r->base.p2p;
    struct link *l = peer_link(r->peer);
    last_byte_forget(&p->looks, &r->offer.last);
    if (length < r->length)
        *r->offer.last.at = r->offer.last.before;
    request_unpublish(r);
    request_unregister(r);
    list_remove(&r->offer.link);
    l->noffered--;
}

/* Withdraws the offer: the receive gets its message by another protocol, or is cancelled. */
static void offer_withdraw(struct p2p_request *r)
{
    counter_add(&wasted, 1);
    offer_end(r, 0, false);
    request_change_state(r, STATE_RECV_UNMATCHED);
}

bool offer_finish_or_withdraw(struct p2p_request *r)
{
    if (put_check_arrived(r))
        return true;
    offer_withdraw(r);
    return false;
}

/* Handles TAKEN: the sender writes into an offered receive. Ignored if the receive is already complete. */
void taken_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                   size_t len)
{
    struct p2p_request *r = ids_find(&p->ids, h->word);
    if (!r || r->peer != from)
        return;
    CHECK(request_is_in_state(r, STATE_BIT(RECV_OFFERED) | STATE_BIT(RECV_RECALLED)),
          "an offer was taken that does not exist");
    posted_remove(&p->posted, &r->match);
    request_change_state(r, STATE_RECV_TAKEN);
}

/* Recalls all offers made to a sender, for MPI_Cancel of one receive: the sender may be writing at this
 * moment. */
void offer_recall_all(struct p2p_request *r)
{
    struct link *l = peer_link(r->peer);
    if (r->state == STATE_RECV_RECALLED)
        return;
    request_change_state(r, STATE_RECV_RECALLED);
    if (l->recalling)
        return;
    l->recalling = true;
    struct frame_header h = {.kind = FRAME_RECALL};
    control_send(r->base.p2p, r->peer, &h, NULL, 0);
}

/* Handles the peer's confirmation that it writes into no offer any more; what it wrote before is visible
 * now. */
void recalled_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                      size_t len)
{
    struct link *l = peer_link(from);
    CHECK(l != NULL && l->recalling, "offers were returned that were not recalled");
    while (!list_empty(&l->offered)) {
        struct p2p_request *r = list_entry(l->offered.next, struct p2p_request, offer.link);
        bool cancel = r->state == STATE_RECV_RECALLED;
        if (put_check_arrived(r))
            continue;
        CHECK(r->state != STATE_RECV_TAKEN, "an offer was given back that had been taken");
        offer_withdraw(r);
        if (!cancel)
            continue;
        posted_remove(&p->posted, &r->match);
        request_finish_cancel(r);
    }
    l->recalling = false;
}

/* ---- the sender ---- */

/* Makes every send to the peer check the offers first (eager_below 0), while the peer has offers, or while
 * writes are in progress that frames can overtake. */
static void update_eager_limit(struct peer *to)
{
    const struct link *l = peer_link(to);
    bool look = l->offers.count > 0 || (!to->caps.put_ordered && !list_empty(&l->writes));
    to->eager_below = look ? 0 : to->eager_max + 1;
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
    if (offers_add(&l->offers, &offer, rtr.received, from->messages_to[envelope_class(offer.env)])) {
        update_eager_limit(from);
        return;
    }
    counter_add(&crossed, 1);
}

bool offer_claim_for_send(struct peer *to, struct envelope env, struct offer *offer)
{
    struct link *l = peer_link(to);
    if (!l || !offers_remove_matching(&l->offers, env, offer))
        return false;
    update_eager_limit(to);
    return true;
}

/* Sends TAKEN for a message that is being written to an offer, if frames can overtake the write: its receive
 * must not match the next message. */
static int offer_send_taken(struct peer *to, struct p2p_request *r, struct envelope env)
{
    if (r->write.taken_sent || !envelope_equal(header_envelope(&r->header), env))
        return 0;
    struct frame_header h = {.kind = FRAME_TAKEN, .word = r->peer_cookie};
    int rc = peer_send_now(to, &h, NULL, 0);
    r->write.taken_sent = rc == 0;
    return rc;
}

int offer_discard_for_send(struct peer *to, struct envelope env)
{
    struct offer offer;
    int rc = 0;
    offer_claim_for_send(to, env, &offer);
    if (!to->caps.put_ordered)
        list_foreach(pos, &peer_link(to)->writes) rc =
            rc ? rc : offer_send_taken(to, list_entry(pos, struct p2p_request, write.link), env);
    return rc;
}

void offer_write_begin(struct p2p_request *r)
{
    list_append(&peer_link(r->peer)->writes, &r->write.link);
    r->write.taken_sent = false;
    update_eager_limit(r->peer);
}

bool offer_is_awaited(const struct p2p_request *r)
{
    if (!r->registered || !protocol_waits_for_offers() || protocol_offers(r->peer) == PROTOCOL_RENDEZVOUS)
        return false;
    uint64_t limit = MAX((uint64_t)r->peer->caps.latency_ns * HOLD_LATENCIES, (uint64_t)HOLD_NS_MIN);
    return clock_ns() - r->hold.since < limit;
}

static void offer_send_recalled(struct p2p *p, struct peer *to)
{
    struct frame_header h = {.kind = FRAME_RECALLED};
    control_send(p, to, &h, NULL, 0);
}

void offer_write_end(struct p2p_request *r)
{
    struct link *l = peer_link(r->peer);
    list_remove(&r->write.link);
    update_eager_limit(r->peer);
    if (l->answer && list_empty(&l->writes)) {
        l->answer = false;
        offer_send_recalled(r->base.p2p, r->peer);
    }
}

/* Handles RECALL: discards the peer's offers, and answers when no write into them is in progress. Without a
 * link (out of memory) no offer was stored. */
void recall_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                    size_t len)
{
    struct link *l = peer_link(from);
    if (l) {
        l->offers.count = 0;
        update_eager_limit(from);
    }
    if (l && !list_empty(&l->writes))
        l->answer = true;
    else
        offer_send_recalled(p, from);
}
