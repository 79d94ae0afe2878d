/* cancel.c: cancels operations that have not been matched. A receive is cancelled locally; for a send that
 * has left, a query to the receiver determines whether the message is still unmatched.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/faulty.h"
#include "p2p/message.h"
#include "p2p/offer.h"

/* States of sends whose message may still be unmatched at the receiver. */
#define UNMATCHED_SENDS (STATE_BIT(SEND_ACK) | STATE_BIT(SEND_ANNOUNCED))

void request_finish_cancel(struct p2p_request *r)
{
    if (unlikely(r->base.error)) { /* cancelled by peer_death.c, not by the program */
        request_end(r, r->base.error);
        return;
    }
    r->base.cancelled = true;
    request_end(r, 0);
}

int recv_cancel(struct request *base)
{
    struct p2p *p = base->p2p;
    struct p2p_request *r = p2p_request(base);
    if (r->state == STATE_RECV_SUSPENDED)
        fault_resume_receive(r);
    if (base->complete)
        return 0;
    /* A receive that was matched is no longer posted, even when its data is still on the way. */
    if (r->match.posted) {
        if (request_is_in_state(
                r, OFFERED_STATES)) { /* the sender may be writing into the memory of the receive */
            offer_recall_all(r);
            return 0;
        }
        posted_remove(&p->posted, &r->match);
        request_finish_cancel(r);
    }
    return 0;
}

int send_cancel(struct request *base)
{
    struct p2p_request *r = p2p_request(base);
    if (base->complete)
        return 0;
    if (request_is_in_state(r, STATE_BIT(SEND_EAGER) | STATE_BIT(SEND_HELD) |
                                   STATE_BIT(SEND_TURN))) { /* the message has not left */
        list_remove(&r->pending.link);
        peer_remove_stalled(r->peer);
        request_unpublish(r);
        request_unregister(r);
        request_finish_cancel(r);
        return 0;
    }
    if (!request_is_in_state(r, UNMATCHED_SENDS))
        return 0; /* the message is matched: the send completes as usual */
    struct frame_header ask = r->header;
    ask.kind = FRAME_CANCEL;
    ask.word = r->cookie;
    control_send(base->p2p, r->peer, &ask, NULL, 0);
    return 0;
}

void cancel_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                    size_t len)
{
    struct envelope env = header_envelope(h);
    struct frame_header answer = {.kind = FRAME_CANCELLED, .word = h->word};
    struct list *bucket = &p->unexpected.buckets[MATCH_EXACT][match_hash(env) & (p->unexpected.nbuckets - 1)];
    list_foreach_safe(pos, after, bucket)
    {
        /* link[MATCH_EXACT] is the first member of the entry */
        struct message *m = message_of((struct match_entry *)pos);
        if (m->from != from || m->cookie != h->word || !envelope_equal(m->match.env, env))
            continue;
        unexpected_remove(&p->unexpected, &m->match);
        message_free(m);
        answer.flags = 1;
        break;
    }
    control_send(p, from, &answer, NULL, 0);
}

void cancelled_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                       size_t len)
{
    if (!h->flags) /* the message was matched: the send completes as usual */
        return;
    struct p2p_request *r = request_find_by_cookie(p, from, h->word, UNMATCHED_SENDS);
    CHECK(r != NULL, "a send was cancelled that does not exist");
    request_unpublish(r);
    request_unregister(r);
    request_finish_cancel(r);
}

int p2p_cancel(struct p2p *p, struct request *r)
{
    (void)p;
    return r->ops->cancel ? r->ops->cancel(r) : 0;
}
