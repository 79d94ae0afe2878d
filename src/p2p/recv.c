/* recv.c: starting a receive, and the messages that wait for one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "dt/count.h"
#include "p2p/engine.h"

static COUNTER(unexpected_seen, "p2p_unexpected", "Messages that arrived before their receive was posted.");

struct message *message_new(struct p2p *p, struct peer *from, const struct frame_header *h, size_t payload)
{
    bool pooled = payload <= MESSAGE_SMALL;
    struct message *m = pooled ? pool_get(&p->messages) : malloc(sizeof(*m) + payload);
    CHECK_MEMORY(m != NULL, "a message that arrived before its receive was posted; post receives earlier or "
                            "send less at once");
    m->obj = object_init(MAGIC_MESSAGE);
    m->p2p = p;
    m->comm = NULL;
    m->from = from;
    m->kind = h->kind;
    m->cookie = 0;
    m->pooled = pooled;
    m->match.env = (struct envelope){.context = h->context, .source = h->source, .tag = h->tag};
    m->match.order = p->order++;
    unexpected_add(&p->unexpected, &m->match);
    counter_add(&unexpected_seen, 1);
    return m;
}

void message_free(struct message *m)
{
    m->obj.magic = MAGIC_FREED;
    if (m->pooled)
        pool_put(&m->p2p->messages, m);
    else
        free(m);
}

void recv_copy(struct p2p_request *r, const void *payload, size_t len)
{
    size_t take = MIN(len, r->length);
    if (likely(r->block))
        copy_bytes(r->buf, payload, take);
    else
        dt_unpack_all(r->type, r->count, r->buf, payload, take);
}

/* A message that ends inside a basic element was not sent as what is received. That is looked for only where
 * the elements have to be told apart anyway: in one block, bytes stay bytes. */
int recv_uneven(const struct p2p_request *r, struct envelope env, uint64_t length)
{
    MPI_Count elements;
    if (length > r->length)
        return err_set(MPI_ERR_TRUNCATE,
                       "a message of %llu bytes from rank %d with tag %d arrived for a receive of %llu bytes",
                       (unsigned long long)length, env.source, env.tag, (unsigned long long)r->length);
    dt_get_elements(r->type, (MPI_Count)length, &elements);
    return elements != MPI_UNDEFINED ? 0
                                     : err_set(MPI_ERR_TYPE,
                                               "a message of %llu bytes from rank %d with tag %d ends inside "
                                               "an element of the datatype it "
                                               "is received with: it was sent with another",
                                               (unsigned long long)length, env.source, env.tag);
}

void recv_message(struct p2p *p, struct p2p_request *r, struct message *m)
{
    if (m->kind == FRAME_RTS) {
        struct announcement a = {
            .from = m->from, .env = m->match.env, .length = m->length, .rts = &m->rts, .last = m->last};
        rendezvous_take(p, r, &a);
    } else {
        eager_take(p, r, m);
    }
    message_free(m);
}

void recv_start(struct p2p *p, struct p2p_request *r, struct envelope env)
{
    if (unlikely(p->unexpected.count != 0)) {
        struct match_entry *e = unexpected_find(&p->unexpected, env);
        if (e) {
            unexpected_remove(&p->unexpected, e);
            r->match.env = env; /* for the doctor: a large message may be long on its way */
            recv_message(p, r, message_of(e));
            return;
        }
    }
    r->match.env = env;
    r->match.order = p->order++;
    posted_add(&p->posted, &r->match);
    if (unlikely(r->length > p->offer_above))
        offer_make(p, r);
}

int p2p_irecv(struct p2p *p, void *buf, MPI_Count count, struct dtype *type, struct envelope env,
              struct request **out)
{
    struct p2p_request *r = p2p_request_new(p, &recv_ops);
    if (!r)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a receive request");
    dtype_retain(type);
    request_data(r, buf, count, type);
    recv_start(p, r, env);
    *out = &r->base;
    return 0;
}

int p2p_recv(struct p2p *p, void *buf, MPI_Count count, struct dtype *type, struct envelope env,
             MPI_Status *status)
{
    struct p2p_request r;
    request_setup(&r.base, p, &recv_ops);
    r.cookie = 0;
    r.stack = true;
    r.queued = r.registered = r.offered = r.match.posted = false;
    request_data(&r, buf, count, type);
    recv_start(p, &r, env);
    int rc = p2p_wait(p, &r.base);
    request_status(&r.base, status);
    return rc;
}

bool p2p_is_short(const struct request *r)
{
    return r->ops == &recv_ops && (uint64_t)r->bytes < ((const struct p2p_request *)r)->length;
}

int p2p_imrecv(struct p2p *p, struct message *message, void *buf, MPI_Count count, struct dtype *type,
               struct request **out)
{
    struct p2p_request *r = p2p_request_new(p, &recv_ops);
    if (!r)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a receive request");
    dtype_retain(type);
    request_data(r, buf, count, type);
    r->base.comm = message->comm;
    recv_message(p, r, message);
    *out = &r->base;
    return 0;
}

static void probe_status(const struct message *m, MPI_Status *status)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    status->MPI_SOURCE = m->match.env.source;
    status->MPI_TAG = m->match.env.tag;
    status_set_bytes(status, (MPI_Count)m->length);
    status_set_cancelled(status, false);
}

bool p2p_iprobe(struct p2p *p, struct envelope env, MPI_Status *status)
{
    struct match_entry *e = unexpected_find(&p->unexpected, env);
    if (e)
        probe_status(message_of(e), status);
    return e != NULL;
}

struct message *p2p_improbe(struct p2p *p, struct envelope env, MPI_Status *status)
{
    struct match_entry *e = unexpected_find(&p->unexpected, env);
    if (!e)
        return NULL;
    unexpected_remove(&p->unexpected, e);
    probe_status(message_of(e), status);
    return message_of(e);
}

void p2p_message_bind(struct message *m, struct comm *comm)
{
    m->comm = comm;
}
