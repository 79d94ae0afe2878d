/* recv.c: starting a receive.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dt/count.h"
#include "p2p/device_staging.h"
#include "p2p/faulty.h"
#include "p2p/message.h"
#include "p2p/rendezvous.h"

int recv_copy_payload(struct p2p_request *r, const void *payload, size_t len)
{
    size_t take = MIN(len, r->length);
    if (unlikely(r->device))
        return device_deliver(r, payload, take);
    if (likely(r->block))
        copy_bytes(r->buf, payload, take);
    else
        dt_unpack_all(r->type, r->count, r->buf, payload, take);
    return 0;
}

bool recv_is_filled(struct p2p_request *r)
{
    if (r->state != STATE_RECV_SUSPENDED)
        return offer_finish_or_withdraw(r);
    fault_resume_receive(r);
    return false;
}

/* The error for a message that ends inside a basic element: it was not sent with the type of the receive. Not
 * checked for a receive of one block, whose elements need not be distinguished. */
int recv_check_whole_elements(const struct p2p_request *r, struct envelope env, uint64_t length)
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

/* Matches a receive with an unexpected message (or its announcement), which it frees. */
static void recv_message(struct p2p *p, struct p2p_request *r, struct message *m)
{
    if (m->kind == FRAME_RTS) {
        const bool mapped = m->rts.can & RTS_MAPGET;
        struct gpu_export map;
        if (mapped)
            memcpy(&map, m->payload, sizeof(map));
        struct announcement a = {.from = m->from,
                                 .env = m->match.env,
                                 .length = m->length,
                                 .rts = &m->rts,
                                 .map = mapped ? &map : NULL,
                                 .last = m->last};
        rendezvous_start_receive(p, r, &a);
    } else {
        eager_receive_stored(p, r, m);
    }
    message_free(m);
}

/* Checks a receive that was just posted: ends it if no possible sender is alive, and offers it to its sender
 * if it is large. */
static __attribute__((noinline)) void recv_check_posted(struct p2p *p, struct p2p_request *r)
{
    if (unlikely(p->faults) && fault_check_posted(p, r))
        return;
    if (r->length > p->offer_above)
        put_offer(p, r);
}

/* Matches the receive with a message that has arrived before it. False if there is none. */
static __attribute__((noinline)) bool recv_match_unexpected(struct p2p *p, struct p2p_request *r,
                                                            struct envelope env)
{
    struct match_entry *e = unexpected_find(&p->unexpected, env);
    if (!e)
        return false;
    unexpected_remove(&p->unexpected, e);
    r->match.env = env; /* for hang diagnosis: a large message may be in transit for long */
    if (unlikely(p->debug != NULL))
        note_check_at_receive(p, r, message_of(e));
    recv_message(p, r, message_of(e));
    return true;
}

static inline void recv_start(struct p2p *p, struct p2p_request *r, struct envelope env)
{
    if (unlikely(p->unexpected.count != 0) && recv_match_unexpected(p, r, env))
        return;
    r->match.env = env;
    r->match.order = p->order++;
    posted_add(&p->posted, &r->match);
    if (unlikely(r->length >= p->check_posted_from))
        recv_check_posted(p, r);
}

static struct p2p_request *request_new(struct p2p *p, void *buf, MPI_Count count, struct dtype *type)
{
    struct p2p_request *r = p2p_request_new(p, &recv_ops, STATE_RECV_UNMATCHED);
    if (!r) {
        err_set(MPI_ERR_NO_MEM, "out of memory for a receive request");
        return NULL;
    }
    dtype_retain(type);
    request_describe_data(r, buf, count, type);
    return r;
}

int p2p_irecv(struct p2p *p, void *buf, MPI_Count count, struct dtype *type, struct envelope env,
              struct request **out)
{
    struct p2p_request *r = request_new(p, buf, count, type);
    if (!r)
        return MPI_ERR_NO_MEM;
    recv_start(p, r, env);
    *out = &r->base;
    return 0;
}

int p2p_recv(struct p2p *p, void *buf, MPI_Count count, struct dtype *type, struct envelope env,
             MPI_Status *status)
{
    struct p2p_request r;
    request_begin(&r, p, &recv_ops, STATE_RECV_UNMATCHED, true);
    request_describe_data(&r, buf, count, type);
    recv_start(p, &r, env);
    int rc = p2p_wait(p, &r.base);
    request_status(&r.base, status);
    return rc;
}

bool p2p_receive_is_short(const struct request *r)
{
    return r->ops == &recv_ops && (uint64_t)r->bytes < ((const struct p2p_request *)r)->length;
}

int p2p_imrecv(struct p2p *p, struct message *message, void *buf, MPI_Count count, struct dtype *type,
               struct request **out)
{
    struct p2p_request *r = request_new(p, buf, count, type);
    if (!r)
        return MPI_ERR_NO_MEM;
    r->base.comm = message->comm;
    if (unlikely(p->debug != NULL))
        note_check_at_receive(p, r, message);
    recv_message(p, r, message);
    *out = &r->base;
    return 0;
}
