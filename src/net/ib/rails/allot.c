/* allot.c: reserves rails for one transfer at a time; see rails.h.
 *
 *     sender                                    receiver
 *       RTS on each of its free rails  ------->  grants those of its own that are free
 *       <--------------------------  CTS, NACK
 *       the message, over the rails that were granted
 *       DONE on each of them  ---------------->  they are free
 *       they are free  <--------------------  ACK
 *
 * An RDMA write tells the receiver nothing, so the sender says DONE when the write has completed. Requests are answered
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
#include "net/ib/channel/channel.h"
#include "net/ib/connection/connection.h"
#include "net/ib/rails/rails.h"
#include "net/rails/request.h"
#include "net/rails/reserve.h"

static COUNTER(frames, "ib_reserve_frames", "Control messages of reservations of rails that were sent.");
static COUNTER(granted, "ib_reserve_granted", "Large transfers whose rails were reserved at both ends.");
static COUNTER(refused, "ib_reserve_refused", "Requests for rails of which the peer granted none.");
static COUNTER(overdue, "ib_reserve_overdue",
               "Large transfers that went without a reservation because the peer did not answer in time.");
static COUNTER(answers, "ib_reserve_answers", "Answers to requests for rails, grants and refusals.");
static COUNTER(answer_ns, "ib_reserve_answer_ns",
               "Nanoseconds from requests for rails to their answers, summed over ib_reserve_answers. An "
               "answer takes two control messages.");
static COUNTER(waits, "ib_rail_waits", "Attempts to start a large transfer that found no rail free.");

#define PRIORITY_BOUND 64
#define PATIENCE       (20 * 1000 * 1000ull) /* ns */
#define RATIO          1.0                   /* of the rails that are available, all */

struct ib_allot {
    struct alloc alloc;
    struct request request;
    struct reserve rail[IB_RAILS_MAX];
    uint32_t under_way[IB_RAILS_MAX]; /* transfers of this process on the rail */
    struct ib_endpoint *asking; /* whose transfer asks, or has been granted rails and not begun; or NULL */
    uint32_t given;             /* rails that it was granted */
    bool alone;                 /* its peer did not answer: it goes without */
    uint64_t asked;             /* when, in ns */
    uint32_t number;            /* of the last request */
};

int ib_allot_open(struct ib *ib, enum alloc_policy policy)
{
    struct ib_allot *al = calloc(1, sizeof(*al));
    if (!al)
        return err_set(MPI_ERR_NO_MEM, "out of memory for %u rails", ib->nrails);
    alloc_open(&al->alloc, policy, ib->nrails, RATIO, 4 * ib->stripe_rules.smallest);
    for (uint32_t i = 0; i < ib->nrails; i++)
        reserve_open(&al->rail[i], ib->base.net->rank, i, PRIORITY_BOUND);
    ib->allot = al;
    return 0;
}

void ib_allot_close(struct ib *ib)
{
    free(ib->allot);
    ib->allot = NULL;
}

/* ---- frames out ---- */

static void frame_send(struct ib_endpoint *ep, const struct frame *f)
{
    struct ib_pairs *j = ep->pairs;
    if (!j->reserve)
        j->reserve = calloc(1, sizeof(*j->reserve));
    if (!j->reserve)
        ib_fatal(ep->ib, NULL, "out of memory for the reservation of a rail");
    if (j->reserve->count == IB_RESERVE_WAIT)
        ib_fatal(ep->ib, ep, "it requests rails faster than it receives the answers");
    j->reserve->frame[j->reserve->count++] = *f;
    counter_add(&frames, 1);
    ib_control_send(ep, IB_RESERVE);
}

size_t ib_allot_fill_message(struct ib_endpoint *ep, void *body)
{
    struct ib_reserve_message *out = body;
    struct ib_reserve_out *r = ep->pairs ? ep->pairs->reserve : NULL;
    uint32_t n = r ? MIN(r->count, IB_RESERVE_MOST) : 0;
    memset(out, 0, sizeof(*out));
    out->count = n;
    for (uint32_t i = 0; i < n; i++)
        frame_encode(&r->frame[i], out->frame[i]);
    if (n > 0) {
        r->count -= n;
        memmove(r->frame, r->frame + n, r->count * sizeof(r->frame[0]));
    }
    return sizeof(*out);
}

bool ib_allot_has_frames(const struct ib_endpoint *ep)
{
    return ep->pairs && ep->pairs->reserve && ep->pairs->reserve->count > 0;
}

/* ---- a request ---- */

/* What the machine of one rail says goes to the peer that it is about, and to the request. */
static void allot_act(struct ib *ib, unsigned rail, const struct reserve_out *out);

static void give_back(struct ib *ib, uint32_t rails, uint32_t number)
{
    for (unsigned k = 0; k < ib->nrails; k++)
        if (rail_in(rails, k)) {
            struct reserve_out out = reserve_local_abort(&ib->allot->rail[k], number);
            allot_act(ib, k, &out);
        }
}

static void allot_send_decision(struct ib *ib, const struct request_out *r, uint32_t number)
{
    struct ib_allot *al = ib->allot;
    if (r->verdict != REQUEST_SEND && r->verdict != REQUEST_RETRY)
        return;
    al->given = r->send;
    counter_add(r->verdict == REQUEST_SEND ? &granted : &refused, 1);
    if (r->verdict == REQUEST_RETRY)
        al->asking = NULL; /* whoever comes next asks again */
    give_back(ib, r->abort, number);
}

static void allot_act(struct ib *ib, unsigned rail, const struct reserve_out *out)
{
    struct ib_allot *al = ib->allot;
    for (unsigned i = 0; i < out->frames; i++) {
        struct peer *peer;
        if (net_peer(ib->base.net, out->frame[i].to, &peer) == 0)
            frame_send(peer->endpoint, &out->frame[i]);
    }
    if (out->says == RESERVE_SAYS_NOTHING)
        return;
    struct request_out r =
        request_answer(&al->request, &al->alloc, out->request, rail, out->says == RESERVE_SAYS_CTS);
    allot_send_decision(ib, &r, out->request);
}

static void allot_send_request(struct ib_endpoint *ep, uint32_t set)
{
    struct ib *ib = ep->ib;
    struct ib_allot *al = ib->allot;
    uint32_t number = ++al->number ? al->number : ++al->number;
    al->asking = ep;
    al->given = 0;
    al->asked = clock_ns();
    request_begin(&al->request, number, set);
    for (unsigned k = 0; k < ib->nrails; k++)
        if (rail_in(set, k)) {
            struct reserve_out out = reserve_local_rts(&al->rail[k], number, ep->peer->rank);
            allot_act(ib, k, &out);
        }
}

static void check_time(struct ib_endpoint *ep)
{
    struct ib_allot *al = ep->ib->allot;
    if (al->request.number == 0 || clock_ns() - al->asked < PATIENCE)
        return;
    uint32_t number = al->request.number;
    struct request_out r = request_timeout(&al->request, &al->alloc);
    if (r.verdict == REQUEST_RETRY) {
        counter_add(&overdue, 1);
        al->alone = true;
        r.verdict = REQUEST_STRAY; /* it stays the one that asks */
        give_back(ep->ib, r.abort, number);
    }
    allot_send_decision(ep->ib, &r, number);
}

/* ---- a transfer ---- */

/* Both ends must mean the same by the number of a rail. */
static bool allot_rails_match(const struct ib_endpoint *ep)
{
    const struct ib_pairs *j = ep->pairs;
    bool same = !ep->peer->card && j->count == ep->ib->nrails && j->peer_rails == ep->ib->nrails;
    for (unsigned k = 0; same && k < j->count; k++)
        same = j->pair[k].mine == k && j->pair[k].yours == k;
    return same;
}

static uint32_t free_rails(const struct ib_allot *al, uint32_t up)
{
    uint32_t set = 0;
    for (unsigned k = 0; k < al->alloc.rails; k++)
        if (rail_in(up, k) && al->under_way[k] == 0 && reserve_is_free(&al->rail[k]))
            set |= rail_bit(k);
    return set;
}

static int allot_wait(void)
{
    counter_add(&waits, 1);
    return ERR_AGAIN;
}

/* It has asked: has it got any? */
static int allot_take_answer(struct ib_endpoint *ep, uint32_t up, uint32_t *set)
{
    struct ib_allot *al = ep->ib->allot;
    check_time(ep);
    if (al->asking != ep)
        return allot_wait();
    if (al->alone)
        *set = rail_bit(rail_after(up, al->alloc.last));
    else
        *set = al->given & up ? al->given & up : al->given ? up : 0;
    return *set ? 0 : ERR_AGAIN;
}

int ib_allot_rails(struct ib_endpoint *ep, uint64_t bytes, uint32_t *set)
{
    struct ib_allot *al = ep->ib->allot;
    uint32_t up = ep->pairs->up;
    *set = up;
    if (!allot_rails_match(ep)) { /* its home may have moved since it asked */
        ib_allot_cancel(ep);
        return 0;
    }
    if (al->asking == ep)
        return allot_take_answer(ep, up, set);
    if (al->asking)
        return allot_wait();
    switch (alloc_message(&al->alloc, bytes, free_rails(al, up), set)) {
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

void ib_allot_cancel(struct ib_endpoint *ep)
{
    struct ib_allot *al = ep->ib->allot;
    if (al->asking != ep)
        return;
    struct request_out r = request_timeout(&al->request, &al->alloc);
    uint32_t rails = al->given | (r.verdict == REQUEST_STRAY ? 0 : r.send | r.abort);
    al->asking = NULL;
    al->given = 0;
    al->alone = false;
    give_back(ep->ib, rails, al->number);
}

uint32_t ib_allot_start(struct ib_endpoint *ep, uint32_t set)
{
    struct ib_allot *al = ep->ib->allot;
    uint32_t reserved = 0;
    for (unsigned k = 0; k < al->alloc.rails; k++)
        al->under_way[k] += rail_in(set, k);
    if (al->asking == ep) {
        reserved = al->given;
        al->asking = NULL;
        al->given = 0;
        al->alone = false;
    }
    return reserved;
}

void ib_allot_release(struct ib_endpoint *ep, uint32_t set, uint32_t reserved)
{
    struct ib_allot *al = ep->ib->allot;
    for (unsigned k = 0; k < al->alloc.rails; k++) {
        al->under_way[k] -= rail_in(set, k);
        const struct reserve *n = &al->rail[k];
        if (!rail_in(reserved, k) || n->state != RESERVE_SENDING || n->asked != ep->peer->rank)
            continue;
        struct frame done = {
            .kind = FRAME_DONE, .rail = (uint8_t)k, .from = n->node, .to = n->asked, .request = n->request};
        frame_send(ep, &done);
    }
}

/* ---- frames in ---- */

void ib_allot_take_message(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    struct ib *ib = ep->ib;
    struct ib_reserve_message said;
    if (!ib->allot || !ep->pairs)
        ib_fatal(ib, ep, "it reserves rails: FISHPLATE_IB_STRIPE must be the same on all ranks");
    if (len != sizeof(*h) + sizeof(said))
        ib_fatal(ib, ep, "it sent reservations in a message of the wrong length");
    memcpy(&said, h + 1, sizeof(said));
    for (uint32_t i = 0; i < MIN(said.count, IB_RESERVE_MOST); i++) {
        struct frame f;
        const char *wrong = frame_decode(said.frame[i], FRAME_BYTES, ib->nrails, ib->base.net->rank, &f);
        if (wrong || f.from != ep->peer->rank)
            ib_fatal(ib, ep, "it sent %s", wrong ? wrong : "a reservation frame of another node");
        struct reserve_out out = reserve_frame(&ib->allot->rail[f.rail], &f);
        if (out.says != RESERVE_SAYS_NOTHING && out.request == ib->allot->request.number) {
            counter_add(&answers, 1);
            counter_add(&answer_ns, clock_ns() - ib->allot->asked);
        }
        allot_act(ib, f.rail, &out);
    }
}

/* ---- the end of a connection ---- */

bool ib_allot_is_busy(const struct ib_endpoint *ep)
{
    const struct ib_allot *al = ep->ib->allot;
    bool busy = al && (al->asking == ep || ib_allot_has_frames(ep));
    for (unsigned k = 0; al && !busy && k < al->alloc.rails; k++)
        busy = !reserve_is_free(&al->rail[k]) &&
               (al->rail[k].asked == ep->peer->rank || al->rail[k].granted_to == ep->peer->rank);
    return busy;
}

void ib_allot_forget_peer(struct ib_endpoint *ep)
{
    struct ib_allot *al = ep->ib->allot;
    if (!al)
        return;
    if (al->asking == ep) {
        al->asking = NULL;
        al->given = 0;
        al->alone = false;
        request_timeout(&al->request, &al->alloc); /* nobody waits for the answers */
    }
    for (unsigned k = 0; k < al->alloc.rails; k++)
        reserve_gone(&al->rail[k], ep->peer->rank);
}
