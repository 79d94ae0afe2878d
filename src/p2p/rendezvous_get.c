/* rendezvous_get.c: GET: like GETCQE, but the receiver does not wait until the transport reports the end of
 * the read: the announcement carries the last byte of the data, the receiver stores its complement where that
 * byte belongs, and polls it [Takagi13 3.1, steps GS1', GR1', GR2'].
 *
 *     sender                         receiver
 *       RTS (address, key, last byte) -> match; store the complement; poll it
 *       <=========================  read
 *       <--------------------------- FIN   the byte has changed: complete
 *     complete
 *
 * The transport still reports the end, perhaps before the change is seen. Until then the transfer and its
 * registration exist in an object of their own, since the request may have ended.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/rendezvous.h"
#include "p2p/protocol.h"

static COUNTER(gets, "p2p_rendezvous_get",
               "Large messages that the receiver read from the sender's memory, detecting the end by polling "
               "the last byte.");

struct get {
    struct read read;
    struct net_mem mem;
    struct p2p *p2p;
    struct p2p_request *r; /* NULL: the receive has ended */
};

/* The read has ended: completes the receive and notifies the sender. */
static void get_finish(struct p2p_request *r, int status)
{
    last_byte_forget(&r->base.p2p->looks, &r->get.last);
    rendezvous_end_receive(r, status, true);
}

static void get_done(struct read *read, int status)
{
    struct get *get = container_of(read, struct get, read);
    struct p2p_request *r = get->r;
    struct transport *t = read->peer->transport;
    t->ops->mem_release(t, &get->mem);
    pool_put(&get->p2p->gets, get);
    if (r)
        get_finish(r, status);
}

static void on_get_last_byte(struct last_byte *b)
{
    struct p2p_request *r = container_of(b, struct p2p_request, get.last);
    r->get.get->r = NULL;
    get_finish(r, 0);
}

static bool get_is_complete(const struct read *read)
{
    const struct get *get = container_of(read, struct get, read);
    return !get->r || last_byte_changed(&get->r->get.last);
}

static struct get *get_new(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes)
{
    struct transport *t = r->peer->transport;
    if (p->gets.item_size == 0)
        pool_init(&p->gets, sizeof(struct get), 32);
    struct get *get = pool_get(&p->gets);
    struct net_key mine;
    if (get && t->ops->mem_register(t, r->buf, bytes, &get->mem, &mine) != 0) {
        pool_put(&p->gets, get);
        get = NULL;
    }
    if (!get)
        return NULL;
    get->p2p = p;
    get->r = r;
    read_announced(&get->read, r, &get->mem, rts, bytes);
    get->read.done = get_done;
    get->read.seen = get_is_complete;
    return get;
}

void get_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes, uint8_t last)
{
    struct get *get = get_new(p, r, rts, bytes);
    if (!get) {
        protocol_fall_back(p, r, bytes);
        return;
    }
    counter_add(&gets, 1);
    request_change_state(r, STATE_RECV_GET);
    r->get.get = get;
    last_byte_set(&r->get.last, (uint8_t *)r->buf + bytes - 1, (uint8_t)~last);
    last_byte_watch(&p->looks, &r->get.last, false, on_get_last_byte);
    read_start(&get->read);
}
