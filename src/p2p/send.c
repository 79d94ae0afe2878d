/* send.c: starting a send: eager when it fits into one frame, rendezvous otherwise. The blocking eager send
 * of one block is decided here and is one call into the transport.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/device_staging.h"
#include "p2p/offer.h"
#include "p2p/rendezvous.h"

/* Bytes: shorter messages are queued while the receiver grants no credits, since an announcement needs as
 * many frames. */
#define STARVED_LEAST 1024

static COUNTER(eager_sent, "p2p_eager_sent", "Messages sent eagerly, in one frame.");
static COUNTER(eager_queued, "p2p_eager_queued", "Eager messages that had to wait for room at the receiver.");

static COUNTER(starved, "p2p_starved_rendezvous",
               "Small messages sent by rendezvous because the receiver granted no credits.");

static struct frame_header eager_header(struct envelope env, uint64_t length)
{
    return (struct frame_header){.kind = FRAME_EAGER,
                                 .context = (uint32_t)env.context,
                                 .source = env.source,
                                 .tag = env.tag,
                                 .word = length};
}

/* Sends the whole message in one frame, directly from memory or packed into the transport's buffer. */
static int send_frame(struct p2p_request *r)
{
    struct peer *to = r->peer;
    int rc = likely(to->eager_below != 0) ? 0 : offer_discard_for_send(to, header_envelope(&r->header));
    if (rc != 0)
        return rc;
    if (unlikely(r->device)) {
        rc = device_send_frame(r);
    } else if (r->block) {
        rc = peer_send_now(to, &r->header, r->buf, r->length);
    } else {
        void *room;
        rc = to->ops->reserve(to, r->length, &room);
        if (rc == 0) {
            dt_pack_all(r->type, r->count, r->buf, room);
            to->ops->commit(to, &r->header, r->length);
        }
    }
    if (rc == 0) {
        to->messages_to[envelope_class(header_envelope(&r->header))]++;
        peer_count_message(to, r->length);
    }
    return rc;
}

static void eager_finished(struct p2p_request *r)
{
    counter_add(&eager_sent, 1);
    if (r->header.kind == FRAME_EAGER_SYNC)
        request_change_state(r, STATE_SEND_ACK);
    else
        request_end(r, 0);
}

static void eager_failed(struct p2p_request *r, int error)
{
    request_unpublish(r);
    request_end(r, error);
}

static int eager_resume(struct net_pending *item)
{
    struct p2p_request *r = container_of(item, struct p2p_request, pending);
    int rc = send_frame(r);
    if (rc == ERR_AGAIN)
        return rc;
    if (rc != 0)
        eager_failed(r, rc);
    else
        eager_finished(r);
    return 0;
}

/* True if the peer grants no credits on an open connection. The announcement waits as well, but the data then
 * needs no credits [Liu04 5.3]. */
static bool should_announce_instead(const struct p2p_request *r)
{
    const struct transport_caps *caps = &r->peer->caps;
    return unlikely(caps->starves) && !r->peer->opening && r->length >= STARVED_LEAST && r->block &&
           (caps->get || caps->put);
}

static void send_start(struct p2p *p, struct p2p_request *r, enum send_mode mode)
{
    struct peer *to = r->peer;
    if (unlikely(p->debug != NULL))
        note_send(p, r);
    if (r->length > to->eager_max) {
        rendezvous_start(p, r);
        return;
    }
    if (mode == SEND_SYNCHRONOUS) {
        if (!request_publish(r)) {
            request_end(r, err_set(MPI_ERR_NO_MEM, "out of memory for a synchronous send"));
            return;
        }
        r->header.kind = FRAME_EAGER_SYNC;
        r->header.word = r->cookie;
    }
    int rc = list_empty(&to->pending) ? send_frame(r) : ERR_AGAIN;
    if (rc == ERR_AGAIN && should_announce_instead(r)) {
        counter_add(&starved, 1);
        request_unpublish(r);
        rendezvous_start(p, r);
    } else if (rc == ERR_AGAIN) {
        counter_add(&eager_queued, 1);
        request_change_state(r, STATE_SEND_EAGER);
        r->pending.resume = eager_resume;
        peer_queue(to, &r->pending);
    } else if (rc != 0) {
        eager_failed(r, rc);
    } else {
        eager_finished(r);
    }
}

/* Checks a message that is not below eager_below. True: the message may be sent in a frame; an offered
 * receive for it was withdrawn. */
static __attribute__((noinline)) bool eager_is_allowed(struct peer *to, struct envelope env, uint64_t length)
{
    if (unlikely(to->eager_below == 1) && length > 0)
        return false; /* a note must be sent first (note.c) */
    if (length > to->eager_max)
        return false;
    return to->eager_below != 0 || offer_discard_for_send(to, env) == 0;
}

/* Sends the message in one frame without a request. Returns 0 if it was sent; ERR_AGAIN: it needs a
 * request. */
static inline int try_eager(const void *buf, MPI_Count count, struct dtype *type, struct peer *to,
                            struct envelope env)
{
    uint64_t length = (uint64_t)(count * type->size);
    MPI_Aint offset;
    if (unlikely(!dt_is_contiguous_block(type, count, &offset) || !list_empty(&to->pending)))
        return ERR_AGAIN;
    if (unlikely(length >= to->eager_below) && !eager_is_allowed(to, env, length))
        return ERR_AGAIN;
    if (unlikely(gpu_memory_is_device(ptr_add(buf, offset))))
        return ERR_AGAIN;
    int rc = to->ops->send(to, frame_head(FRAME_EAGER, 0, 0, (uint32_t)env.context),
                           frame_from(env.source, env.tag), length, ptr_add(buf, offset), length);
    if (likely(rc == 0)) {
        to->messages_to[envelope_class(env)]++;
        peer_count_message(to, length);
        counter_add(&eager_sent, 1);
    }
    return rc;
}

static void send_setup(struct p2p_request *r, const void *buf, MPI_Count count, struct dtype *type,
                       struct peer *to, struct envelope env)
{
    request_describe_data(r, buf, count, type);
    r->peer = to;
    r->header = eager_header(env, r->length);
}

int p2p_isend(struct p2p *p, const void *buf, MPI_Count count, struct dtype *type, struct peer *to,
              struct envelope env, enum send_mode mode, struct request **out)
{
    if (likely(mode != SEND_SYNCHRONOUS)) {
        int rc = try_eager(buf, count, type, to, env);
        if (likely(rc != ERR_AGAIN)) {
            *out = &p->sent;
            return rc;
        }
    }
    struct p2p_request *r = p2p_request_new(p, &send_ops, STATE_SEND_NEW);
    if (!r)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a send request");
    dtype_retain(type);
    send_setup(r, buf, count, type, to, env);
    send_start(p, r, mode);
    *out = &r->base;
    return 0;
}

/* Out of line, so that the eager send has no stack frame for a request it does not need. */
static __attribute__((noinline)) int send_with_request(struct p2p *p, const void *buf, MPI_Count count,
                                                       struct dtype *type, struct peer *to,
                                                       struct envelope env, enum send_mode mode)
{
    struct p2p_request r;
    request_begin(&r, p, &send_ops, STATE_SEND_NEW, true);
    send_setup(&r, buf, count, type, to, env);
    send_start(p, &r, mode);
    return p2p_wait(p, &r.base);
}

int p2p_send(struct p2p *p, const void *buf, MPI_Count count, struct dtype *type, struct peer *to,
             struct envelope env, enum send_mode mode)
{
    if (likely(mode != SEND_SYNCHRONOUS)) {
        int rc = try_eager(buf, count, type, to, env);
        if (likely(rc != ERR_AGAIN))
            return rc;
    }
    return send_with_request(p, buf, count, type, to, env, mode);
}
