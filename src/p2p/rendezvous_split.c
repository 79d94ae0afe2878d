/* rendezvous_split.c: SPLIT: the receiver reads the first part of the message while the sender writes the rest.
 * One copy, done by two processors at once: about twice as fast as reading where processors move the bytes and
 * both ranks have one.
 *
 *     sender                         receiver
 *       RTS (address, key) ------------> match
 *       <----------- CTS_WRITE (split)   address, key and offset of the second part
 *       write =========================>
 *       <=========================  read
 *       WRITTEN ----------------------->
 *       <--------------------------- FIN   the read is done
 *     complete when both are done        complete when both are done
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "p2p/engine.h"

static COUNTER(splits, "p2p_rendezvous_split",
               "Large messages of which the receiver read a part while the sender wrote the rest.");

void split_sent(struct p2p_request *r, int status)
{
    if (status != 0)
        r->base.error = status;
    if (--r->parts > 0)
        return;
    request_unregister(r);
    request_complete(&r->base, r->base.error);
}

static void part_done(struct p2p *p, struct p2p_request *r, int status)
{
    if (status != 0)
        r->status = status;
    if (--r->parts > 0)
        return;
    ids_remove(&p->ids, r->cookie);
    request_unregister(r);
    rendezvous_took(r, r->status);
    request_complete(&r->base, r->status ? r->status : r->base.error);
}

static void split_read_done(struct net_op *op, int status)
{
    struct p2p_request *r = container_of(op, struct p2p_request, op);
    fin_send(r, status);
    r->read_ns = clock_ns() - r->ticket.began;
    part_done(r->base.p2p, r, status);
}

void split_written(struct p2p *p, struct p2p_request *r, int error, uint64_t ns)
{
    if (r->ticket.open && r->read_ns != 0)
        choice_shared(choice_of(p, r->peer), &r->ticket, r->expected, r->read_ns, ns);
    part_done(p, r, error);
}

static int split_read(struct p2p_request *r)
{
    int rc = r->peer->ops->get(r->peer, r->buf, &r->mem, r->remote, &r->key, r->expected, &r->op);
    if (rc != 0 && rc != ERR_AGAIN)
        split_read_done(&r->op, rc);
    return rc;
}

static int split_resume(struct net_pending *item)
{
    return split_read(container_of(item, struct p2p_request, pending)) == ERR_AGAIN ? ERR_AGAIN : 0;
}

void split_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes)
{
    if (!request_register(r, bytes)) {
        rendezvous_in_pieces(p, r, bytes);
        return;
    }
    counter_add(&splits, 1);
    uint64_t mine = choice_share(choice_of(p, r->peer), &r->ticket);
    r->split = true;
    r->parts = 2;
    r->status = 0;
    r->read_ns = 0;
    r->cookie = ids_add(&p->ids, r);
    CHECK_MEMORY(r->cookie != 0, "a large receive");
    struct frame_header header = {.kind = FRAME_CTS_WRITE, .flags = CTS_SPLIT, .word = rts->cookie};
    struct cts_write cts = {.cts = {.cookie = r->cookie, .bytes = bytes - mine},
                            .address = (uintptr_t)r->buf + mine,
                            .key = r->key,
                            .offset = mine};
    control_send(p, r->peer, &header, &cts, sizeof(cts));
    r->op.done = split_read_done;
    r->key = rts->key;
    r->remote = rts->address;
    r->expected = mine;
    if (split_read(r) == ERR_AGAIN) {
        r->pending.resume = split_resume;
        peer_queue(r->peer, &r->pending);
    }
}
