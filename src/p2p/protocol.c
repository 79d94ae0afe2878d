/* protocol.c: selects the protocol of a large message.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/protocol.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/tunable.h"
#include "p2p/device_staging.h"
#include "p2p/rendezvous_map.h"
#include "p2p/rendezvous_staged.h"
#include "tune/setting.h"

enum {
    RENDEZVOUS_AUTO,
    RENDEZVOUS_RPUT,
    RENDEZVOUS_GETCQE,
    RENDEZVOUS_GET,
    RENDEZVOUS_PUTNR,
    RENDEZVOUS_PUT,
    RENDEZVOUS_SPLIT,
    RENDEZVOUS_PIPE,
    RENDEZVOUS_MAPGET,
    RENDEZVOUS_MAPPUT,
    RENDEZVOUS_STAGED,
    RENDEZVOUS_R3
};
static TUNABLE_CHOICE(
    rendezvous, "RENDEZVOUS", RENDEZVOUS_AUTO,
    "auto|rput|getcqe|get|putnr|put|split|pipe|mapget|mapput|staged|r3",
    "How large messages move: written by the sender (rput), read by the receiver, which is notified (getcqe) "
    "or sees (get) when that is done, written into a receive that was offered before (putnr, put), read by "
    "the receiver and written by the sender at the same time, a part each (split), registered and written "
    "piece by piece (pipe), copied by a GPU from GPU memory of the sender (mapget) or into GPU memory of the "
    "receiver (mapput), which the other process of the node maps, written from staging buffer to staging "
    "buffer in host memory if they are in GPU memory (staged), copied in pieces (r3), or as measured to be "
    "fastest (auto). A protocol that cannot be used for a message is replaced by one that can.");

void protocol_report_missing(void)
{
    if (rendezvous.value == RENDEZVOUS_PIPE && &laboratory_pipe == NULL)
        log_warn("FISHPLATE_RENDEZVOUS=pipe: this library was built without the laboratory, to which this "
                 "protocol belongs; other protocols are used.");
}

static bool is_automatic(void)
{
    return rendezvous.value == RENDEZVOUS_AUTO;
}

/* The protocol by which receives are offered to this peer. If a processor must copy anyway, an offer gains
 * nothing. */
enum p2p_protocol protocol_offers(const struct peer *peer)
{
    if (!peer->caps.put)
        return PROTOCOL_RENDEZVOUS;
    switch (rendezvous.value) {
    case RENDEZVOUS_PUTNR:
        return PROTOCOL_PUTNR;
    case RENDEZVOUS_PUT:
        return PROTOCOL_PUT;
    case RENDEZVOUS_AUTO:
        return peer->caps.cpu_moves || peer->caps.software ? PROTOCOL_RENDEZVOUS : PROTOCOL_PUT;
    default:
        return PROTOCOL_RENDEZVOUS;
    }
}

bool protocol_waits_for_offers(void)
{
    return !is_automatic();
}

static struct traffic *peer_traffic(struct p2p *p, const struct peer *peer)
{
    return &p->traffic[peer->caps.cpu_moves];
}

/* Reports the cost of a message to the tuner: the elapsed time if each rank has a core. If ranks share cores,
 * the elapsed time includes that of other ranks: the cost of a message in pieces is then the copy time of
 * this rank, doubled for the sender's copy. */
void protocol_end(struct p2p_request *r, int status)
{
    struct p2p *p = r->base.p2p;
    struct traffic *t = peer_traffic(p, r->peer);
    const uint64_t now = clock_ns();
    if (status == 0 && r->state != STATE_RECV_RPUT && /* the sender measures the speed of its write */
        r->state != STATE_RECV_PIPE)                  /* the time is mostly that of registering pieces */
        peer_pace_end(r->peer, PACE_IN, 0, (uint64_t)r->base.bytes, r->mark, now);
    if (status != 0)
        traffic_cancel(t, &r->ticket);
    else
        traffic_end(t, &r->ticket, now,
                    unlikely(p->net->oversubscribed) && r->state == STATE_RECV_PIECES ? 2 * r->pieces.copying
                                                                                      : 0);
}

void protocol_fall_back(struct p2p *p, struct p2p_request *r, uint64_t bytes)
{
    traffic_cancel(peer_traffic(p, r->peer), &r->ticket);
    r3_start(p, r, bytes);
}

/* The protocol for reading: GET if polling the last byte detects completion (the adapter writes it last, the
 * receive has room for the whole message, and few bytes are polled), else GETCQE. */
static enum p2p_protocol protocol_for_reading(struct p2p *p, const struct peer *from, uint64_t bytes,
                                              uint64_t length)
{
    const bool is_visible = from->caps.last_byte_last && bytes == length && last_bytes_has_room(&p->looks);
    return is_visible && rendezvous.value != RENDEZVOUS_GETCQE ? PROTOCOL_GET : PROTOCOL_GETCQE;
}

bool protocol_can_pipeline(const struct p2p_request *r, uint64_t bytes)
{
    return &laboratory_pipe != NULL && r->block && !r->device && bytes > 0 && r->peer->caps.put &&
           r->peer->transport->ops->mem_register_piece;
}

bool protocol_forces_pipe(const struct p2p_request *r)
{
    return unlikely(rendezvous.value == RENDEZVOUS_PIPE) && protocol_can_pipeline(r, r->length);
}

bool protocol_forces_map(void)
{
    return rendezvous.value == RENDEZVOUS_MAPGET || rendezvous.value == RENDEZVOUS_MAPPUT;
}

static enum p2p_protocol protocol_choose_auto(struct p2p *p, struct p2p_request *r,
                                              const struct announcement *a, bool write)
{
    const uint64_t bytes = (uint64_t)r->base.bytes;
    const struct transport_caps *caps = &a->from->caps;
    struct traffic *t = peer_traffic(p, a->from);
    enum path path = t->rule;
    const struct traffic_options options = {.write = write,
                                            .cpu_moves = caps->cpu_moves,
                                            .software = caps->software,
                                            .shared_cores = p->net->oversubscribed,
                                            .exchange = caps->cpu_moves && a->from->announced > 0};
    if (tune_is_enabled())
        path = traffic_begin(t, bytes, traffic_list_paths(&options, bytes), options.exchange, clock_ns(),
                             &r->ticket);
    switch (path) {
    case PATH_PIECES:
        return PROTOCOL_R3;
    case PATH_WRITE:
        return PROTOCOL_RPUT;
    case PATH_SPLIT:
        return PROTOCOL_SPLIT;
    default:
        return caps->cpu_moves ? PROTOCOL_GETCQE : protocol_for_reading(p, a->from, bytes, a->length);
    }
}

/* The protocol for GPU memory on one node; PROTOCOL_RENDEZVOUS when it cannot be mapped. */
static enum p2p_protocol choose_gpu_mapped(const struct p2p_request *r, const struct announcement *a)
{
    const bool get = mapget_is_possible(r, a), put = mapput_is_possible(r, a);
    if (r->base.bytes == 0 || rendezvous.value == RENDEZVOUS_R3)
        return PROTOCOL_RENDEZVOUS;
    if (get && !(put && rendezvous.value == RENDEZVOUS_MAPPUT))
        return PROTOCOL_MAPGET;
    return put ? PROTOCOL_MAPPUT : PROTOCOL_RENDEZVOUS;
}

/* True if STAGED replaces R3 for this message. With a software adapter processors copy the data in any case, and
 * the two ends would only wait for each other; less than one chunk overlaps with nothing. */
static bool chooses_staging(const struct p2p_request *r, uint64_t can)
{
    const bool gains = !r->peer->caps.software && (uint64_t)r->base.bytes >= DEVICE_CHUNK;
    return staged_is_possible(r, can) && rendezvous.value != RENDEZVOUS_R3 &&
           (gains || rendezvous.value == RENDEZVOUS_STAGED);
}

enum p2p_protocol protocol_choose(struct p2p *p, struct p2p_request *r, const struct announcement *a)
{
    uint64_t bytes = (uint64_t)r->base.bytes;
    r->ticket = (struct traffic_ticket){.bytes = bytes}; /* resets the ticket, since requests are reused */
    r->can_stage = chooses_staging(r, a->rts->can);
    if (unlikely(a->rts->can & (RTS_MAPGET | RTS_MAPPUT))) {
        const enum p2p_protocol mapped = choose_gpu_mapped(r, a);
        if (mapped != PROTOCOL_RENDEZVOUS)
            return mapped;
    }
    if (unlikely(r->can_stage && rendezvous.value == RENDEZVOUS_STAGED))
        return PROTOCOL_R3;
    bool read = request_is_remotely_accessible(r) && a->rts->can & RTS_READ && a->from->caps.get;
    bool write = request_is_remotely_accessible(r) && a->rts->can & RTS_WRITE && bytes > 0;
    if (bytes == 0 && read)
        return PROTOCOL_GETCQE; /* no data to read: GETCQE ends at once */
    if (unlikely(a->rts->can & RTS_PIPE) && rendezvous.value != RENDEZVOUS_R3 &&
        protocol_can_pipeline(r, bytes))
        return PROTOCOL_PIPE;
    if (rendezvous.value == RENDEZVOUS_R3 || (!read && !write))
        return PROTOCOL_R3;
    if (!read || (write && rendezvous.value == RENDEZVOUS_RPUT))
        return PROTOCOL_RPUT;
    if (unlikely(r->device || a->rts->can & RTS_GPU)) /* processors cannot poll the last byte in GPU memory */
        return PROTOCOL_GETCQE;
    if (rendezvous.value == RENDEZVOUS_SPLIT && write && bytes >= 2)
        return PROTOCOL_SPLIT;
    return is_automatic() ? protocol_choose_auto(p, r, a, write)
                          : protocol_for_reading(p, a->from, bytes, a->length);
}

/* ---- for people ---- */

size_t p2p_describe_choices(const struct p2p *p, char *out, size_t size)
{
    const size_t at = traffic_describe(&p->traffic[1], "shared memory", out, size);
    return at + traffic_describe(&p->traffic[0], "adapter", out + at, size - at);
}
