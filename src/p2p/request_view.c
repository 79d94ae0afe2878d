/* request_view.c: what a request waits for, and which messages wait for a receive.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/request_view.h"

#include "p2p/message.h"

/* States of sends that may be queued in peer->pending. */
#define QUEUED_STATES \
    (STATE_BIT(SEND_EAGER) | STATE_BIT(SEND_HELD) | STATE_BIT(SEND_TURN) | STATE_BIT(SEND_PIECES))
#define WRITING_STATES \
    (STATE_BIT(SEND_RPUT) | STATE_BIT(SEND_PUT) | STATE_BIT(SEND_SPLIT) | STATE_BIT(SEND_SPLIT_WRITE))

static void view_send(const struct p2p_request *r, struct p2p_view *out)
{
    out->env = header_envelope(&r->header);
    out->peer = r->peer->rank;
    bool writes = request_is_in_state(r, WRITING_STATES);
    bool queued = writes ? r->write.phase == WRITE_QUEUED : request_is_in_state(r, QUEUED_STATES);
    out->step = queued ? PAGE_QUEUED : PAGE_POSTED;
}

static void view_receive(const struct p2p_request *r, struct p2p_view *out)
{
    out->env = r->match.env;
    out->peer = r->match.posted ? VIEW_NO_PEER : r->peer->rank;
    out->step = r->match.posted ? PAGE_POSTED : PAGE_MOVING;
}

bool p2p_view_request(const struct request *base, struct p2p_view *out)
{
    const struct p2p_request *r = (const struct p2p_request *)base;
    if (base->ops != &send_ops && base->ops != &recv_ops)
        return false;
    *out = (struct p2p_view){.send = base->ops == &send_ops, .bytes = r->length};
    if (out->send)
        view_send(r, out);
    else
        view_receive(r, out);
    return true;
}

size_t p2p_view_unexpected(const struct p2p *p, struct p2p_view *out, size_t most)
{
    const struct match_table *t = &p->unexpected;
    size_t n = 0;
    for (uint32_t i = 0; i < t->nbuckets && n < MIN(most, t->count); i++) {
        list_foreach(pos, &t->buckets[MATCH_EXACT][i])
        {
            const struct message *m = message_of((struct match_entry *)pos);
            if (n < most)
                out[n++] = (struct p2p_view){
                    .send = true, .env = m->match.env, .peer = m->from->rank, .bytes = m->length};
        }
    }
    return n;
}
