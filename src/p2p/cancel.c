/* cancel.c: taking back what has not been matched. A receive is cancelled here; a send that has left is
 * cancelled by asking the receiver whether it still waits there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/engine.h"

void request_cancelled(struct request *r)
{
    r->cancelled = true;
    request_complete(r, 0);
}

int recv_cancel(struct request *base)
{
    struct p2p *p = base->p2p;
    struct p2p_request *r = p2p_request(base);
    if (base->complete)
        return 0;
    /* A receive that was matched is no longer posted, even when its data is still on the way. */
    if (r->match.posted) {
        if (r->offered) { /* its memory may be written to at this moment */
            offer_recall(r);
            return 0;
        }
        posted_remove(&p->posted, &r->match);
        request_cancelled(base);
    }
    return 0;
}

int send_cancel(struct request *base)
{
    struct p2p_request *r = p2p_request(base);
    if (base->complete)
        return 0;
    uint8_t kind = r->header.kind;
    if (r->queued &&
        (kind == FRAME_EAGER || kind == FRAME_EAGER_SYNC || kind == FRAME_RTS)) { /* it never left */
        list_remove(&r->pending.link);
        peer_unstall(r->peer);
        r->queued = false;
        if (r->cookie)
            ids_remove(&base->p2p->ids, r->cookie);
        request_unregister(r);
        request_cancelled(base);
        return 0;
    }
    if (ids_find(&base->p2p->ids, r->cookie) != r)
        return 0; /* matched already: it will complete */
    struct frame_header ask = r->header;
    ask.kind = FRAME_CANCEL;
    ask.word = r->cookie;
    control_send(base->p2p, r->peer, &ask, NULL, 0);
    return 0;
}

void cancel_arrived(struct p2p *p, struct peer *from, const struct frame_header *h)
{
    struct envelope env = header_envelope(h);
    struct frame_header answer = {.kind = FRAME_CANCELLED, .word = h->word};
    struct list *bucket = &p->unexpected.buckets[MATCH_EXACT][match_hash(env) & (p->unexpected.nbuckets - 1)];
    list_foreach_safe(pos, after, bucket)
    {
        struct message *m = message_of((struct match_entry *)pos); /* link[MATCH_EXACT] comes first */
        if (m->from != from || m->cookie != h->word || !envelope_equal(m->match.env, env))
            continue;
        unexpected_remove(&p->unexpected, &m->match);
        message_free(m);
        answer.flags = 1;
        break;
    }
    control_send(p, from, &answer, NULL, 0);
}

void cancelled_arrived(struct p2p *p, struct peer *from, const struct frame_header *h)
{
    if (!h->flags) /* it was matched: the usual end comes or has come */
        return;
    struct p2p_request *r = request_known(p, from, h->word, &send_ops);
    CHECK(r != NULL, "a send was cancelled that does not exist");
    ids_remove(&p->ids, h->word);
    request_unregister(r);
    request_cancelled(&r->base);
}

int p2p_cancel(struct p2p *p, struct request *r)
{
    (void)p;
    return r->ops->cancel ? r->ops->cancel(r) : 0;
}
