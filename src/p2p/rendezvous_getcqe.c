/* rendezvous_getcqe.c: GETCQE: the receiver reads the data from the sender's memory; when the transport says
 * that this is done, the message is there and the sender is told [Takagi13 2.1]. One copy, or none of the
 * processor's time where the transport has an adapter for it.
 *
 *     sender                         receiver
 *       RTS (address, key) ------------> match
 *       <=========================  read
 *       <--------------------------- FIN   the read is done: complete
 *     complete
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "p2p/engine.h"

static COUNTER(gets, "p2p_rendezvous_getcqe",
               "Large messages the receiver read from the sender's memory, told by the transport when done.");

void fin_send(struct p2p_request *r, int status)
{
    uint64_t took = r->ticket.began ? clock_ns() - r->ticket.began : 0;
    struct frame_header fin = {.kind = FRAME_FIN,
                               .aux = (uint16_t)status,
                               .context = (uint32_t)MIN(took, UINT32_MAX),
                               .word = r->peer_cookie};
    control_send(r->base.p2p, r->peer, &fin, NULL, 0);
}

static void getcqe_done(struct net_op *op, int status)
{
    struct p2p_request *r = container_of(op, struct p2p_request, op);
    request_unregister(r);
    rendezvous_took(r, status);
    fin_send(r, status);
    request_complete(&r->base, status ? status : r->base.error);
}

static int getcqe_read(struct p2p_request *r)
{
    int rc = r->peer->ops->get(r->peer, r->buf, &r->mem, r->remote, &r->key, r->expected, &r->op);
    if (rc != 0 && rc != ERR_AGAIN)
        getcqe_done(&r->op, rc);
    return rc;
}

static int getcqe_resume(struct net_pending *item)
{
    return getcqe_read(container_of(item, struct p2p_request, pending)) == ERR_AGAIN ? ERR_AGAIN : 0;
}

void getcqe_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes)
{
    r->op.done = getcqe_done;
    if (bytes == 0) {
        counter_add(&gets, 1);
        getcqe_done(&r->op, 0);
        return;
    }
    if (!request_register(r, bytes)) {
        rendezvous_in_pieces(p, r, bytes);
        return;
    }
    counter_add(&gets, 1);
    r->key = rts->key;
    r->remote = rts->address;
    r->expected = bytes;
    if (getcqe_read(r) == ERR_AGAIN) {
        r->pending.resume = getcqe_resume;
        peer_queue(r->peer, &r->pending);
    }
}

void fin_arrived(struct p2p *p, struct peer *from, const struct frame_header *h)
{
    struct p2p_request *r = request_known(p, from, h->word, &send_ops);
    CHECK(r != NULL && (r->header.kind == FRAME_RTS || r->split),
          "the end of a message was reported for a send that does not exist");
    ids_remove(&p->ids, h->word);
    if (unlikely(r->ticket.open))
        medium_took(p, r, h->context);
    if (r->split) {
        split_sent(r, h->aux);
        return;
    }
    request_unregister(r);
    request_complete(&r->base, h->aux);
}
