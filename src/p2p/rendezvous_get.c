/* rendezvous_get.c: the receiver reads the data from the sender's memory and then tells it so (FIN). One
 * copy, or none of the processor's time where the transport has a DMA engine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "p2p/engine.h"

static COUNTER(gets, "p2p_rendezvous_get", "Large messages the receiver read from the sender's memory.");

bool get_possible(const struct p2p_request *r, const struct peer *from, const struct rts *rts)
{
    return r->block && rts->reachable && from->caps.get;
}

static void get_done(struct net_op *op, int status)
{
    struct p2p_request *r = container_of(op, struct p2p_request, op);
    int error = r->base.error ? r->base.error : status;
    request_unregister(r);
    way_learn(&r->base.p2p->ways, WAY_GET, (uint64_t)r->base.bytes, clock_ns() - r->started);
    struct frame_header fin = {.kind = FRAME_FIN, .aux = (uint16_t)status, .word = r->peer_cookie};
    control_send(r->base.p2p, r->peer, &fin, NULL, 0);
    request_complete(&r->base, error);
}

void get_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes)
{
    (void)p;
    counter_add(&gets, 1);
    r->peer_cookie = rts->cookie;
    r->op.done = get_done;
    if (bytes == 0) {
        get_done(&r->op, 0);
        return;
    }
    struct transport *t = r->peer->transport;
    int rc = t->ops->mem_register(t, r->buf, bytes, &r->mem, &r->key);
    if (rc != 0) {
        get_done(&r->op, rc);
        return;
    }
    r->registered = true;
    rc = r->peer->ops->get(r->peer, r->buf, &r->mem, rts->address, &rts->key, bytes, &r->op);
    CHECK(rc == 0, "a transport refused a read of a peer's memory that it had offered");
}

void fin_arrived(struct p2p *p, struct peer *from, const struct frame_header *h)
{
    struct p2p_request *r = request_known(p, from, h->word, &send_ops);
    CHECK(r != NULL && r->header.kind == FRAME_RTS,
          "the end of a message was reported for a send that does not exist");
    ids_remove(&p->ids, h->word);
    request_unregister(r);
    request_complete(&r->base, h->aux);
}
