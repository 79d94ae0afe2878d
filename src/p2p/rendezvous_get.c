/* rendezvous_get.c: GET: like GETCQE, but the receiver does not wait for the transport to say that the read
 * is done: the announcement carries the last byte of the data, the receiver stores its complement where that
 * byte belongs, and looks there [Takagi13 3.1, steps GS1', GR1', GR2'].
 *
 *     sender                         receiver
 *       RTS (address, key, last byte) -> match; store the complement; look at it
 *       <=========================  read
 *       <--------------------------- FIN   the byte has changed: complete
 *     complete
 *
 * The transport's word still comes, perhaps before the change is seen. Until then the transfer and its
 * registration live on in an object of their own, since the request may be gone.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/engine.h"

static COUNTER(gets, "p2p_rendezvous_get",
               "Large messages the receiver read from the sender's memory, looking at the last byte.");

struct read {
    struct net_op op;
    struct net_pending pending;
    struct net_mem mem;
    struct net_key key;
    struct p2p *p2p;
    struct peer *peer;
    struct p2p_request *r; /* NULL once it has its message */
    uint64_t remote, bytes;
    char *buf;
};

/* The message is there, or has failed. */
static void get_end(struct p2p_request *r, int status)
{
    last_byte_forget(&r->base.p2p->looks, &r->last);
    rendezvous_took(r, status);
    fin_send(r, status);
    request_complete(&r->base, status ? status : r->base.error);
}

static void get_done(struct net_op *op, int status)
{
    struct read *read = container_of(op, struct read, op);
    struct p2p_request *r = read->r;
    struct transport *t = read->peer->transport;
    t->ops->mem_release(t, &read->mem);
    pool_put(&read->p2p->reads, read);
    if (r)
        get_end(r, status);
}

static void get_changed(struct last_byte *b)
{
    struct p2p_request *r = container_of(b, struct p2p_request, last);
    r->read->r = NULL;
    get_end(r, 0);
}

static int get_read(struct read *read)
{
    int rc = read->peer->ops->get(read->peer, read->buf, &read->mem, read->remote, &read->key, read->bytes,
                                  &read->op);
    if (rc != 0 && rc != ERR_AGAIN)
        get_done(&read->op, rc);
    return rc;
}

static int get_resume(struct net_pending *item)
{
    return get_read(container_of(item, struct read, pending)) == ERR_AGAIN ? ERR_AGAIN : 0;
}

static struct read *read_new(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes)
{
    struct transport *t = r->peer->transport;
    if (p->reads.item_size == 0)
        pool_init(&p->reads, sizeof(struct read), 32);
    struct read *read = pool_get(&p->reads);
    struct net_key mine;
    if (read && t->ops->mem_register(t, r->buf, bytes, &read->mem, &mine) != 0) {
        pool_put(&p->reads, read);
        read = NULL;
    }
    if (!read)
        return NULL;
    read->op.done = get_done;
    read->pending.resume = get_resume;
    read->key = rts->key;
    read->p2p = p;
    read->peer = r->peer;
    read->r = r;
    read->remote = rts->address;
    read->bytes = bytes;
    read->buf = r->buf;
    return read;
}

void get_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes, uint8_t last)
{
    struct read *read = read_new(p, r, rts, bytes);
    if (!read) {
        rendezvous_in_pieces(p, r, bytes);
        return;
    }
    counter_add(&gets, 1);
    r->read = read;
    last_byte_set(&r->last, (uint8_t *)r->buf + bytes - 1, (uint8_t)~last);
    last_byte_watch(&p->looks, &r->last, false, get_changed);
    if (get_read(read) == ERR_AGAIN)
        peer_queue(read->peer, &read->pending);
}
