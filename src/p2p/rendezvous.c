/* rendezvous.c: large messages are announced first (request to send); when the receive is there, the data is
 * moved in the way both sides can: by one read of the sender's memory, or in pieces through frames.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/tunable.h"

#include "p2p/engine.h"

static TUNABLE_CHOICE(
    rendezvous, "RENDEZVOUS", 0, "auto|copy|get",
    "How large messages move: sent in pieces (copy), read from the sender's memory (get), or whichever "
    "has proved faster (auto).");

static COUNTER(announced, "p2p_rendezvous", "Messages that were announced before their data moved.");

static int rts_send(struct p2p_request *r)
{
    struct rts rts = {.cookie = r->cookie};
    if (r->registered) {
        rts.address = (uintptr_t)r->buf;
        rts.key = r->key;
        rts.reachable = 1;
    }
    return peer_send_now(r->peer, &r->header, &rts, sizeof(rts));
}

/* Nobody has heard of this message, and nobody will. */
static void rts_failed(struct p2p_request *r, int rc)
{
    ids_remove(&r->base.p2p->ids, r->cookie);
    request_unregister(r);
    request_complete(&r->base, rc);
}

static int rts_resume(struct net_pending *item)
{
    struct p2p_request *r = container_of(item, struct p2p_request, pending);
    int rc = rts_send(r);
    if (rc == ERR_AGAIN)
        return rc;
    r->queued = false;
    if (rc != 0)
        rts_failed(r, rc);
    return 0;
}

void rendezvous_start(struct p2p *p, struct p2p_request *r)
{
    r->cookie = ids_add(&p->ids, r);
    CHECK(r->cookie != 0, "out of memory for a large send");
    r->header.kind = FRAME_RTS;
    r->header.word = r->length;
    r->moved = 0;
    struct transport *t = r->peer->transport;
    r->registered =
        r->block && r->peer->caps.get && t->ops->mem_register(t, r->buf, r->length, &r->mem, &r->key) == 0;
    counter_add(&announced, 1);
    int rc = list_empty(&r->peer->pending) ? rts_send(r) : ERR_AGAIN;
    if (rc == ERR_AGAIN) {
        r->queued = true;
        r->pending.resume = rts_resume;
        peer_queue(r->peer, &r->pending);
    } else if (rc != 0) {
        rts_failed(r, rc);
    }
}

void rts_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                 size_t len)
{
    CHECK(len == sizeof(struct rts), "an announcement of a message has the wrong length");
    struct rts rts;
    memcpy(&rts, payload, sizeof(rts));
    struct envelope env = {.context = h->context, .source = h->source, .tag = h->tag};
    struct match_entry *e = posted_find(&p->posted, env);
    if (e) {
        posted_remove(&p->posted, e);
        rendezvous_take(p, container_of(e, struct p2p_request, match), from, env, h->word, &rts);
        return;
    }
    struct message *m = message_new(p, from, h, 0);
    m->length = h->word;
    m->cookie = rts.cookie;
    m->rts = rts;
}

void rendezvous_take(struct p2p *p, struct p2p_request *r, struct peer *from, struct envelope env,
                     uint64_t length, const struct rts *rts)
{
    r->peer = from;
    r->base.error = recv_matched(r, env, length); /* kept until the data is there */
    uint64_t bytes = (uint64_t)r->base.bytes;
    enum way way = WAY_COPY;
    if (get_possible(r, from, rts))
        way = rendezvous.value ? (enum way)(rendezvous.value - 1) : way_pick(&p->ways, bytes);
    if (unlikely(p->watch != NULL))
        p->watch->chose(p, env, length, way == WAY_GET ? PROTOCOL_GET : PROTOCOL_COPY);
    r->started = clock_ns();
    if (way == WAY_GET)
        get_start(p, r, rts, bytes);
    else
        copy_start(p, r, rts, bytes);
}
