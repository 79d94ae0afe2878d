/* reservation.c: FISHPLATE_LAB=IB_STRIPE=basic, local, dynamic, hybrid or static: rails that are reserved for one transfer at a time, for
 * adapters that cannot send and receive at full speed at once [Coll01]. A process stands for a node of the paper; a put and a get
 * reserve alike.
 *
 *     sender                                    receiver
 *       RTS on each of its free rails  ------->  grants those of its own that are free
 *       <--------------------------  CTS, NACK
 *       the message, over the rails that were granted
 *       DONE on each of them  ---------------->  they are free
 *       they are free  <--------------------  ACK
 *
 * An RDMA write does not notify the receiver, so the sender sends DONE when the write has completed. Requests are answered
 * when the peer makes an MPI call. A peer that computes must not hold up a transfer that needs no help of it: after PATIENCE
 * the transfer goes without a reservation, over one rail.
 *
 * One request of a process is under way at a time. The transfers behind it wait in the queues of their peers.
 *
 * SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"
#include "base/tunable.h"
#include "lab/mechanisms/rails/allotments.h"
#include "lab/mechanisms/rails/request.h"
#include "lab/mechanisms/rails/reserve.h"
#include "net/ib/channel/channel.h"
#include "net/ib/connection/connection.h"

static COUNTER(frames, "ib_reserve_frames", "Control messages of reservations of rails that were sent.");
static COUNTER(granted, "ib_reserve_granted", "Large transfers whose rails were reserved at both ends.");
static COUNTER(refused, "ib_reserve_refused", "Requests for rails of which the peer granted none.");
static COUNTER(
    overdue, "ib_reserve_overdue",
    "Large transfers sent without a reservation of rails because the peer did not answer in time.");
static COUNTER(answers, "ib_reserve_answers", "Answers to requests for rails, grants and refusals.");
static COUNTER(answer_ns, "ib_reserve_answer_ns",
               "Nanoseconds from requests for rails to their answers, summed over ib_reserve_answers. An "
               "answer takes two control messages.");
static COUNTER(waits, "ib_rail_waits", "Attempts to start a large transfer that found no rail free.");
static COUNTER(receive_waits, "ib_rail_receive_waits",
               "Attempts (of ib_rail_waits) that found a rail busy only with transfers of peers.");

#define PRIORITY_BOUND 64
#define PATIENCE       (20 * 1000 * 1000ull) /* ns */

static LABORATORY_INT(
    ratio, "IB_STRIPE_RATIO", 100, 0, 100,
    "Striping ratio of [Coll01] in percent, for FISHPLATE_LAB=IB_STRIPE=local, dynamic, hybrid "
    "and static: 0 one of the rails that are available, 100 all.");

struct reservation {
    struct alloc alloc;
    struct request request;
    struct reserve rail[IB_RAILS_MAX];
    uint32_t under_way[IB_RAILS_MAX]; /* transfers of this process on the rail */
    uint32_t peers[IB_RAILS_MAX];     /* peers with transfers on the rail, as far as known; local only */
    uint64_t peers_since;             /* the last time that it became known, in ns */
    struct ib_endpoint
        *asking;    /* whose transfer has requested rails, or was granted rails and has not begun; or NULL */
    uint32_t given; /* rails that it was granted */
    bool alone;     /* its peer did not answer: it goes without */
    uint64_t requested_ns; /* time of the request */
    uint32_t number;       /* of the last request */
};

/* Frames that wait for a message to the peer. */
#define RESERVE_WAIT 64
struct peer_reservation {
    uint32_t count;
    struct frame frame[RESERVE_WAIT];
    uint32_t transfers[RAILS_MAX]; /* of this process with the peer, by rail; local only */
    uint32_t peer_uses;            /* rails that carry transfers of the peer with this process */
    bool in_use_changed;           /* the peer has not been notified yet */
};

_Static_assert(IB_RESERVE_FRAME_BYTES == FRAME_BYTES, "a message carries whole frames");

static struct reservation *state_of(const struct ib *ib)
{
    return ib->allot_state;
}

static int reservation_open(struct ib *ib, enum alloc_policy policy)
{
    struct reservation *al = calloc(1, sizeof(*al));
    if (!al)
        return err_set(MPI_ERR_NO_MEM, "out of memory for %u rails", ib->nrails);
    if (policy == ALLOC_STATIC && ib->base.net->size > alloc_static_nodes(ib->nrails)) {
        if (ib->base.net->rank == 0)
            log_warn("With %u rails FISHPLATE_LAB=IB_STRIPE=static connects at most %u processes [Coll01]; "
                     "this job uses basic.",
                     ib->nrails, alloc_static_nodes(ib->nrails));
        policy = ALLOC_BASIC;
    }
    alloc_open(&al->alloc, policy, ib->nrails, (double)ratio.value / 100, 4 * ib->stripe_rules.smallest);
    for (uint32_t i = 0; i < ib->nrails; i++)
        reserve_open(&al->rail[i], ib->base.net->rank, i, PRIORITY_BOUND);
    ib->allot_state = al;
    return 0;
}

static void allot_close(struct ib *ib)
{
    free(ib->allot_state);
    ib->allot_state = NULL;
}

/* ---- frames out ---- */

static struct peer_reservation *peer_reservation_of(struct ib_endpoint *ep)
{
    struct ib_pairs *j = ep->pairs;
    if (!j->allot_peer)
        j->allot_peer = calloc(1, sizeof(struct peer_reservation));
    if (!j->allot_peer)
        ib_fatal(ep->ib, NULL, "out of memory for the reservation of a rail");
    return j->allot_peer;
}

static void frame_send(struct ib_endpoint *ep, const struct frame *f)
{
    struct peer_reservation *r = peer_reservation_of(ep);
    if (r->count == RESERVE_WAIT)
        ib_fatal(ep->ib, ep, "it requests rails faster than it receives the answers");
    r->frame[r->count++] = *f;
    counter_add(&frames, 1);
    ib_control_send(ep, IB_RESERVE);
}

/* Algorithm 1 takes rails that neither send nor receive. An RDMA write or read is invisible at its other end, so its process
 * reports which rails it uses there: the state, not the change, so any number of transfers is one message. */
static void allot_count_transfer(struct ib_endpoint *ep, uint32_t set, int change)
{
    struct peer_reservation *r = peer_reservation_of(ep);
    for (unsigned k = 0; k < ep->ib->nrails; k++)
        if (rail_set_contains(set, k)) {
            r->transfers[k] += (uint32_t)change;
            r->in_use_changed = r->in_use_changed || r->transfers[k] == (change > 0 ? 1 : 0);
        }
    if (!r->in_use_changed)
        return;
    counter_add(&frames, 1);
    ib_control_send(ep, IB_RESERVE);
}

static void allot_set_peer_uses(struct ib_endpoint *ep, uint32_t uses)
{
    struct reservation *al = state_of(ep->ib);
    struct peer_reservation *r = peer_reservation_of(ep);
    for (unsigned k = 0; k < al->alloc.rails; k++)
        al->peers[k] += (uint32_t)(rail_set_contains(uses, k) - rail_set_contains(r->peer_uses, k));
    r->peer_uses = uses;
    al->peers_since = clock_ns();
}

static size_t allot_fill_message(struct ib_endpoint *ep, void *body)
{
    struct ib_reserve_message *out = body;
    struct peer_reservation *r = ep->pairs ? ep->pairs->allot_peer : NULL;
    uint32_t n = r ? MIN(r->count, IB_RESERVE_MOST) : 0;
    memset(out, 0, sizeof(*out));
    out->count = n;
    for (unsigned k = 0; r && k < RAILS_MAX; k++)
        out->in_use |= r->transfers[k] > 0 ? rail_bit(k) : 0;
    if (r)
        r->in_use_changed = false;
    for (uint32_t i = 0; i < n; i++)
        frame_encode(&r->frame[i], out->frame[i]);
    if (n > 0) {
        r->count -= n;
        memmove(r->frame, r->frame + n, r->count * sizeof(r->frame[0]));
    }
    return sizeof(*out);
}

static bool allot_has_messages(const struct ib_endpoint *ep)
{
    const struct peer_reservation *r = ep->pairs ? ep->pairs->allot_peer : NULL;
    return r && (r->count > 0 || r->in_use_changed);
}

/* ---- a request ---- */

/* Passes the output of a rail's state machine to its peer and to the request. */
static void allot_act(struct ib *ib, unsigned rail, const struct reserve_out *out);

static void give_back(struct ib *ib, uint32_t rails, uint32_t number)
{
    for (unsigned k = 0; k < ib->nrails; k++)
        if (rail_set_contains(rails, k)) {
            struct reserve_out out = reserve_local_abort(&state_of(ib)->rail[k], number);
            allot_act(ib, k, &out);
        }
}

static void allot_send_decision(struct ib *ib, const struct request_out *r, uint32_t number)
{
    struct reservation *al = state_of(ib);
    if (r->verdict != REQUEST_SEND && r->verdict != REQUEST_RETRY)
        return;
    al->given = r->send;
    counter_add(r->verdict == REQUEST_SEND ? &granted : &refused, 1);
    if (r->verdict == REQUEST_RETRY)
        al->asking = NULL; /* the next message sends a new request */
    give_back(ib, r->abort, number);
}

static void allot_act(struct ib *ib, unsigned rail, const struct reserve_out *out)
{
    struct reservation *al = state_of(ib);
    for (unsigned i = 0; i < out->frames; i++) {
        struct peer *peer;
        if (net_peer(ib->base.net, out->frame[i].to, &peer) == 0)
            frame_send(peer->endpoint, &out->frame[i]);
    }
    if (out->answer == RESERVE_NO_ANSWER)
        return;
    struct request_out r =
        request_answer(&al->request, &al->alloc, out->request, rail, out->answer == RESERVE_ANSWER_CTS);
    allot_send_decision(ib, &r, out->request);
}

static void allot_send_request(struct ib_endpoint *ep, uint32_t set)
{
    struct ib *ib = ep->ib;
    struct reservation *al = state_of(ib);
    uint32_t number = ++al->number ? al->number : ++al->number;
    al->asking = ep;
    al->given = 0;
    al->requested_ns = clock_ns();
    request_begin(&al->request, number, set);
    for (unsigned k = 0; k < ib->nrails; k++)
        if (rail_set_contains(set, k)) {
            struct reserve_out out = reserve_local_rts(&al->rail[k], number, ep->peer->rank);
            allot_act(ib, k, &out);
        }
}

static void check_time(struct ib_endpoint *ep)
{
    struct reservation *al = state_of(ep->ib);
    if (al->request.number == 0 || clock_ns() - al->requested_ns < PATIENCE)
        return;
    uint32_t number = al->request.number;
    struct request_out r = request_timeout(&al->request, &al->alloc);
    if (r.verdict == REQUEST_RETRY) {
        counter_add(&overdue, 1);
        al->alone = true;
        r.verdict = REQUEST_IGNORED; /* it stays the requester */
        give_back(ep->ib, r.abort, number);
    }
    allot_send_decision(ep->ib, &r, number);
}

/* ---- a transfer ---- */

/* Whether both ends number the rails alike. */
static bool allot_rails_match(const struct ib_endpoint *ep)
{
    const struct ib_pairs *j = ep->pairs;
    bool same = !ep->peer->card && j->count == ep->ib->nrails && j->peer_rails == ep->ib->nrails;
    for (unsigned k = 0; same && k < j->count; k++)
        same = j->pair[k].mine == k && j->pair[k].yours == k;
    return same;
}

static uint32_t free_rails(const struct reservation *al, uint32_t up)
{
    uint32_t set = 0;
    for (unsigned k = 0; k < al->alloc.rails; k++)
        if (rail_set_contains(up, k) && al->under_way[k] == 0 && reserve_is_free(&al->rail[k]))
            set |= rail_bit(k);
    return set;
}

static int allot_wait(void)
{
    counter_add(&waits, 1);
    return ERR_AGAIN;
}

/* The rails that were granted to the request of `ep`. */
static int allot_take_answer(struct ib_endpoint *ep, uint32_t up, uint32_t *set)
{
    struct reservation *al = state_of(ep->ib);
    check_time(ep);
    if (al->asking != ep)
        return allot_wait();
    if (al->alone)
        *set = rail_bit(rail_after(up, al->alloc.last));
    else
        *set = al->given & up ? al->given & up : al->given ? up : 0;
    return *set ? 0 : ERR_AGAIN;
}

/* Those of `free` over which no peer transfers anything. A peer that computes may report the end of its transfer late, so its
 * report holds up nothing for longer than PATIENCE. */
static uint32_t quiet_rails(const struct reservation *al, uint32_t free)
{
    uint32_t set = free;
    for (unsigned k = 0; k < al->alloc.rails; k++)
        if (al->peers[k] > 0)
            set &= ~rail_bit(k);
    return set || clock_ns() - al->peers_since < PATIENCE ? set : free;
}

static void allot_cancel(struct ib_endpoint *ep)
{
    struct reservation *al = state_of(ep->ib);
    if (al->asking != ep)
        return;
    struct request_out r = request_timeout(&al->request, &al->alloc);
    uint32_t rails = al->given | (r.verdict == REQUEST_IGNORED ? 0 : r.send | r.abort);
    al->asking = NULL;
    al->given = 0;
    al->alone = false;
    give_back(ep->ib, rails, al->number);
}

static int allot_choose(struct ib_endpoint *ep, uint64_t bytes, uint32_t *set)
{
    struct reservation *al = state_of(ep->ib);
    uint32_t up = ep->pairs->up;
    *set = up;
    if (!allot_rails_match(ep)) { /* its primary rail may have changed since the request */
        allot_cancel(ep);
        return 0;
    }
    if (al->asking == ep)
        return allot_take_answer(ep, up, set);
    if (al->asking)
        return allot_wait();
    uint32_t free = free_rails(al, up);
    if (al->alloc.policy == ALLOC_STATIC) {
        const uint32_t one_way = alloc_static_rails(al->alloc.rails, ep->ib->base.net->rank) &
                                 ~alloc_static_rails(al->alloc.rails, (uint32_t)ep->peer->rank);
        free &= one_way & up ? one_way : up; /* they are down: any */
    } else if (al->alloc.policy == ALLOC_LOCAL) {
        const uint32_t quiet = quiet_rails(al, free);
        counter_add(&receive_waits, free && !quiet);
        free = quiet;
    }
    switch (alloc_message(&al->alloc, bytes, free, set)) {
    case ALLOC_SEND:
        *set = *set & up ? *set & up : rail_bit(rail_after(up, al->alloc.last));
        return 0;
    case ALLOC_RESERVE:
        allot_send_request(ep, *set);
        return al->asking == ep && al->given ? allot_take_answer(ep, up, set) : ERR_AGAIN;
    default:
        return allot_wait();
    }
}

static uint32_t allot_start(struct ib_endpoint *ep, uint32_t set)
{
    struct reservation *al = state_of(ep->ib);
    uint32_t reserved = 0;
    for (unsigned k = 0; k < al->alloc.rails; k++)
        al->under_way[k] += rail_set_contains(set, k);
    if (al->alloc.policy == ALLOC_LOCAL)
        allot_count_transfer(ep, set, 1);
    if (al->asking == ep) {
        reserved = al->given;
        al->asking = NULL;
        al->given = 0;
        al->alone = false;
    }
    return reserved;
}

static void allot_release(struct ib_endpoint *ep, uint32_t set, uint32_t reserved, uint64_t bytes)
{
    struct reservation *al = state_of(ep->ib);
    (void)bytes;
    if (al->alloc.policy == ALLOC_LOCAL)
        allot_count_transfer(ep, set, -1);
    for (unsigned k = 0; k < al->alloc.rails; k++) {
        al->under_way[k] -= rail_set_contains(set, k);
        const struct reserve *n = &al->rail[k];
        if (!rail_set_contains(reserved, k) || n->state != RESERVE_SENDING ||
            n->requested_from != ep->peer->rank)
            continue;
        struct frame done = {.kind = FRAME_DONE,
                             .rail = (uint8_t)k,
                             .from = n->node,
                             .to = n->requested_from,
                             .request = n->request};
        frame_send(ep, &done);
    }
}

/* ---- frames in ---- */

static void allot_take_message(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    struct ib *ib = ep->ib;
    struct ib_reserve_message message;
    if (len != sizeof(*h) + sizeof(message))
        ib_fatal(ib, ep, "it sent reservations in a message of the wrong length");
    memcpy(&message, h + 1, sizeof(message));
    if (state_of(ib)->alloc.policy == ALLOC_LOCAL)
        allot_set_peer_uses(ep, message.in_use & rails_all(ib->nrails));
    for (uint32_t i = 0; i < MIN(message.count, IB_RESERVE_MOST); i++) {
        struct frame f;
        const char *wrong = frame_decode(message.frame[i], FRAME_BYTES, ib->nrails, ib->base.net->rank, &f);
        if (wrong || f.from != ep->peer->rank)
            ib_fatal(ib, ep, "it sent %s", wrong ? wrong : "a reservation frame of another node");
        struct reserve_out out = reserve_frame(&state_of(ib)->rail[f.rail], &f);
        if (out.answer != RESERVE_NO_ANSWER && out.request == state_of(ib)->request.number) {
            counter_add(&answers, 1);
            counter_add(&answer_ns, clock_ns() - state_of(ib)->requested_ns);
        }
        allot_act(ib, f.rail, &out);
    }
}

/* ---- the end of a connection ---- */

static bool allot_is_busy(const struct ib_endpoint *ep)
{
    const struct reservation *al = state_of(ep->ib);
    bool busy = al->asking == ep || allot_has_messages(ep);
    for (unsigned k = 0; !busy && k < al->alloc.rails; k++)
        busy = !reserve_is_free(&al->rail[k]) &&
               (al->rail[k].requested_from == ep->peer->rank || al->rail[k].granted_to == ep->peer->rank);
    return busy;
}

static void allot_close_peer(struct ib_endpoint *ep)
{
    struct peer_reservation *r = ep->pairs->allot_peer;
    if (r)
        allot_set_peer_uses(ep, 0);
    free(r);
    ep->pairs->allot_peer = NULL;
}

static void allot_forget_peer(struct ib_endpoint *ep)
{
    struct reservation *al = state_of(ep->ib);
    if (al->asking == ep) {
        al->asking = NULL;
        al->given = 0;
        al->alone = false;
        request_timeout(&al->request, &al->alloc); /* nobody waits for the answers */
    }
    if (ep->pairs && ep->pairs->allot_peer)
        allot_set_peer_uses(ep, 0);
    for (unsigned k = 0; k < al->alloc.rails; k++)
        reserve_peer_gone(&al->rail[k], ep->peer->rank);
}

/* Granted rails stay reserved until the transfer can be posted. */
static void allot_decline(struct ib_endpoint *ep, uint32_t set, uint64_t bytes)
{
    (void)ep;
    (void)set;
    (void)bytes;
}

static const struct ib_allotment reservation = {
    .close = allot_close,
    .choose = allot_choose,
    .decline = allot_decline,
    .start = allot_start,
    .cancel = allot_cancel,
    .release = allot_release,
    .fill_message = allot_fill_message,
    .take_message = allot_take_message,
    .has_messages = allot_has_messages,
    .is_busy = allot_is_busy,
    .forget_peer = allot_forget_peer,
    .close_peer = allot_close_peer,
};

int ib_laboratory_allot_open(struct ib *ib, enum ib_allot_policy policy)
{
    if (policy < IB_ALLOT_BASIC) {
        multiplex_open(ib, policy);
        return 0;
    }
    int rc = reservation_open(ib, (enum alloc_policy)(policy - IB_ALLOT_BASIC + ALLOC_BASIC));
    if (rc == 0)
        ib->allot = &reservation;
    return rc;
}
