/* way.c: see way.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/way.h"

#include "base/clock.h"
#include "base/tunable.h"
#include "p2p/echo.h"
#include "p2p/pipe_policy.h"

enum {
    RENDEZVOUS_AUTO,
    RENDEZVOUS_RPUT,
    RENDEZVOUS_GETCQE,
    RENDEZVOUS_GET,
    RENDEZVOUS_PUTNR,
    RENDEZVOUS_PUT,
    RENDEZVOUS_SPLIT,
    RENDEZVOUS_PIPE,
    RENDEZVOUS_R3
};
static TUNABLE_CHOICE(
    rendezvous, "RENDEZVOUS", RENDEZVOUS_AUTO, "auto|rput|getcqe|get|putnr|put|split|pipe|r3",
    "How large messages move: written by the sender (rput), read by the receiver, who is told (getcqe) or "
    "sees (get) when that is done, written into a receive that was offered before (putnr, put), read by "
    "the receiver and written by the sender at the same time, a part each (split), registered and written "
    "piece by piece (pipe), copied in pieces (r3), "
    "or as measured to be fastest (auto). A protocol that cannot be used for a message is replaced by one "
    "that can.");

bool way_measures(void)
{
    return rendezvous.value == RENDEZVOUS_AUTO;
}

enum p2p_protocol way_offers(const struct peer *peer, bool *sure)
{
    *sure = rendezvous.value != RENDEZVOUS_AUTO;
    if (!peer->caps.put)
        return PROTOCOL_RENDEZVOUS;
    switch (rendezvous.value) {
    case RENDEZVOUS_PUTNR:
        return PROTOCOL_PUTNR;
    case RENDEZVOUS_PUT:
        return PROTOCOL_PUT;
    case RENDEZVOUS_AUTO: /* where a processor must do the copying anyway, nothing is won */
        return peer->caps.cpu_moves || peer->caps.software ? PROTOCOL_RENDEZVOUS : PROTOCOL_PUT;
    default:
        return PROTOCOL_RENDEZVOUS;
    }
}

/* With a core for each rank, what counts is how long a message takes. Where ranks take turns that would mostly
 * be the others' turns; what counts then is the work: this rank's copy, and one like it at the sender if there
 * is one. */
void way_took(struct p2p_request *r, int status)
{
    struct p2p *p = r->base.p2p;
    struct choice *c = choice_of(p, r->peer);
    const uint64_t now = clock_ns();
    if (status == 0 &&
        r->state != STATE_RECV_RPUT && /* which the sender measures: its write alone, without its answer */
        r->state != STATE_RECV_PIPE)   /* which is mostly the registering */
        peer_pace_end(r->peer, PACE_IN, 0, (uint64_t)r->base.bytes, r->mark, now);
    if (r->ticket.flow == CHOICE_ECHO && !r->ticket.open && status == 0)
        r->peer->echo.took = (uint32_t)MIN(now - r->ticket.began, (uint64_t)UINT32_MAX);
    if (!r->ticket.open)
        return;
    if (status != 0)
        choice_drop(c, &r->ticket);
    else if (unlikely(p->net->oversubscribed) && r->ticket.way == WAY_PIECES)
        choice_learn_work(c, &r->ticket, now, 2 * r->pieces.copying);
    else
        choice_learn(c, &r->ticket, now);
}

void way_in_pieces(struct p2p *p, struct p2p_request *r, uint64_t bytes)
{
    choice_drop(choice_of(p, r->peer), &r->ticket);
    r3_start(p, r, bytes);
}

/* Reading, in the way asked for if the last byte can tell: it must be the message's own, and there must be
 * few enough to look at. */
static enum p2p_protocol reading(struct p2p *p, const struct peer *from, uint64_t bytes, uint64_t length)
{
    bool tells = from->caps.last_byte_last && bytes == length && last_bytes_room(&p->looks);
    return tells && rendezvous.value != RENDEZVOUS_GETCQE ? PROTOCOL_GET : PROTOCOL_GETCQE;
}

/* ---- memory that is new ---- */

static bool pieces_open(const struct p2p_request *r)
{
    return r->block && r->peer->caps.put && r->peer->transport->ops->mem_register_piece;
}

bool way_can_pipe(const struct p2p_request *r)
{
    return pieces_open(r) && r->length > 0;
}

uint64_t way_piece(const struct p2p_request *r, uint64_t bytes)
{
    const struct net_pin *pin = &r->peer->transport->pin;
    const uint64_t best = pipe_piece_bytes(bytes, pin->base_ns, pin->unit_ns);
    return best ? best : pipe_piece_forced(bytes);
}

/* Only when it is asked for: over softib, where the processor that registers the next piece is the one that would move this one, a
 * message has been faster as one, and on other adapters nobody has measured it yet. */
static bool in_pieces(const struct p2p_request *r, uint64_t bytes)
{
    return rendezvous.value == RENDEZVOUS_PIPE && pieces_open(r) && bytes > 0;
}

bool way_in_a_pipe(const struct p2p_request *r)
{
    return in_pieces(r, r->length);
}

/* A message has at most PIPE_PIECES, whatever the sender says. */
uint64_t way_pipe_piece(const struct p2p_request *r, const struct rts *rts, uint64_t bytes)
{
    uint64_t wanted = rts->can & RTS_WRITE ? 0 : rts->address;
    if (wanted == 0 || wanted > bytes)
        wanted = way_piece(r, bytes);
    return MAX(wanted, (bytes + PIPE_PIECES - 1) / PIPE_PIECES);
}

#define SPLIT_MIN 16384 /* below this a second control message costs more than a half saves */

/* This rank has large messages for the sender of this one, which has its processor to use for them. The lower of the two
 * decides for both (choice.h). */
static bool crosses(const struct peer *from)
{
    return from->caps.cpu_moves && from->announced > 0;
}

static bool leads(const struct p2p *p, const struct peer *peer)
{
    return p->net->rank < peer->rank;
}

/* Where an adapter is a program, both ranks' processors do its copying. On shared memory each
 * rank decides for itself, which was found within 5 % of the best there. */
static bool echoes(const struct peer *peer)
{
    return way_measures() && peer->caps.software && !peer->caps.cpu_moves;
}

uint64_t way_told(struct p2p *p, const struct peer *to, uint64_t bytes)
{
    const enum choice_flow flow = to->caps.cpu_moves ? CHOICE_CROSS : CHOICE_ECHO;
    if (flow == CHOICE_CROSS ? !way_measures() : !echoes(to) || !echo_is(&to->echo, bytes))
        return 0;
    if (!leads(p, to))
        return (uint64_t)to->echo.took << RTS_TOOK_SHIFT;
    return (uint64_t)choice_told(choice_of(p, to), bytes, flow) << RTS_WAY_SHIFT;
}

void way_announced(struct peer *to, uint64_t bytes)
{
    to->echo.took = 0;
    if (echoes(to))
        echo_sent(&to->echo, bytes);
}

/* The ways that are worth measuring. Where a processor moves the bytes, two of them move more than one, unless
 * ranks share processors or the other one has its own bytes to move; an adapter does by itself what it is told to. */
static unsigned open_ways(const struct p2p *p, const struct peer *from, uint64_t bytes, bool write)
{
    unsigned open = WAY_BIT(WAY_READ);
    if (from->caps.cpu_moves)
        open |= WAY_BIT(WAY_PIECES);
    else if (write)
        open |= WAY_BIT(WAY_WRITE);
    if ((from->caps.cpu_moves || from->caps.software) && write && !p->net->oversubscribed &&
        bytes >= SPLIT_MIN && !crosses(from))
        open |= WAY_BIT(WAY_SPLIT);
    return open;
}

static enum choice_flow flow_of(const struct p2p_request *r, struct peer *from)
{
    if (way_measures() && crosses(from))
        return CHOICE_CROSS;
    return echoes(from) && echo_took(&from->echo, (uint64_t)r->base.bytes, from->announced > 0) ? CHOICE_ECHO
                                                                                                : CHOICE_LONE;
}

/* A way that is open, by measuring or as the other rank leads. One that leads echoes may have told no way yet. */
static enum way choose(struct p2p *p, struct p2p_request *r, const struct announcement *a, unsigned open)
{
    struct peer *from = a->from;
    const uint64_t bytes = (uint64_t)r->base.bytes, now = clock_ns();
    enum choice_flow flow = flow_of(r, from);
    if (flow != CHOICE_LONE && !leads(p, from)) {
        const uint64_t told =
            flow == CHOICE_CROSS ? from->told_way : (a->rts->can & RTS_WAY) >> RTS_WAY_SHIFT;
        const bool known = told && open & WAY_BIT(told - 1);
        if (known || flow == CHOICE_CROSS) {
            r->ticket = choice_follow(bytes, known ? (enum way)(told - 1) : WAY_READ, flow, now);
            return r->ticket.way;
        }
        flow = CHOICE_LONE;
    }
    const enum way way = choice_ask(choice_of(p, from), bytes, open, WAY_READ, flow, now, &r->ticket);
    r->ticket.its = flow == CHOICE_ECHO ? (uint32_t)(a->rts->can >> RTS_TOOK_SHIFT) : 0;
    return way;
}

static enum p2p_protocol measured(struct p2p *p, struct p2p_request *r, const struct announcement *a,
                                  unsigned open)
{
    switch (choose(p, r, a, open)) {
    case WAY_PIECES:
        return PROTOCOL_R3;
    case WAY_WRITE:
        return PROTOCOL_RPUT;
    case WAY_SPLIT:
        return PROTOCOL_SPLIT;
    default:
        return a->from->caps.cpu_moves ? PROTOCOL_GETCQE
                                       : reading(p, a->from, (uint64_t)r->base.bytes, a->length);
    }
}

enum p2p_protocol way_choose(struct p2p *p, struct p2p_request *r, const struct announcement *a)
{
    uint64_t bytes = (uint64_t)r->base.bytes;
    bool read = r->block && a->rts->can & RTS_READ && a->from->caps.get;
    bool write = r->block && a->rts->can & RTS_WRITE && bytes > 0;
    if (bytes == 0 && read)
        return PROTOCOL_GETCQE; /* there is nothing to read: it ends at once */
    const bool pipe = bytes > 0 && a->rts->can & RTS_PIPE && pieces_open(r);
    if (pipe && rendezvous.value != RENDEZVOUS_R3 && ((!read && !write) || in_pieces(r, bytes)))
        return PROTOCOL_PIPE;
    if (rendezvous.value == RENDEZVOUS_R3 || (!read && !write))
        return PROTOCOL_R3;
    if (!read || (write && rendezvous.value == RENDEZVOUS_RPUT))
        return PROTOCOL_RPUT;
    if (rendezvous.value == RENDEZVOUS_SPLIT && write && bytes >= 2)
        return measured(p, r, a, WAY_BIT(WAY_SPLIT)); /* for the shares of the two */
    if (rendezvous.value == RENDEZVOUS_AUTO && a->length <= a->from->eager_max) {
        r->ticket.began = clock_ns(); /* the sender measures reading against sending at once (medium.c) */
        return a->from->caps.cpu_moves ? PROTOCOL_GETCQE : reading(p, a->from, bytes, a->length);
    }
    if (rendezvous.value == RENDEZVOUS_AUTO)
        return measured(p, r, a, open_ways(p, a->from, bytes, write));
    return reading(p, a->from, bytes, a->length);
}
