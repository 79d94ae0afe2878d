/* reservation.c: FISHPLATE_LAB=IB_STRIPE=basic, local, dynamic, hybrid or static: rails that are reserved for
 * one transfer at a time, for adapters that cannot send and receive at full speed at the same time [Coll01].
 * A put and a get reserve alike.
 *
 *     sender                                    receiver
 *       RTS on each of its free rails  ------->  grants those of its own that are free
 *       <--------------------------  CTS, NACK
 *       the message, over the rails that were granted
 *       DONE on each of them  ---------------->  they are free
 *       they are free  <--------------------  ACK
 *
 * The state of a port is in memory that all ranks of the node share, so a rail that one rank has reserved is
 * busy for the others too. The sender and the receiver of a frame are ranks: those that act for the two ports.
 *
 * An RDMA write does not notify the receiver, so the sender sends DONE when the write has completed. Requests
 * are answered when the peer makes an MPI call. A transfer to a peer that computes must not wait for it:
 * after ANSWER_TIMEOUT_NS the transfer is sent over one rail without a reservation.
 *
 * A process has one request at a time. Later transfers wait in the queues of their peers.
 *
 * SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"
#include "base/tunable.h"
#include "boot/boot.h"
#include "lab/mechanisms/rails/allotments.h"
#include "lab/mechanisms/rails/request.h"
#include "lab/mechanisms/rails/reserve.h"
#include "net/ib/channel/channel.h"
#include "net/ib/connection/connection.h"
#include "net/lock.h"

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

#define PRIORITY_BOUND    64
#define ANSWER_TIMEOUT_NS (20 * 1000 * 1000ull)

static LABORATORY_INT(
    ratio, "IB_STRIPE_RATIO", 100, 0, 100,
    "Striping ratio of [Coll01] in percent, for FISHPLATE_LAB=IB_STRIPE=local, dynamic, hybrid "
    "and static: 0 one of the rails that are available, 100 all.");

enum { PORTS_MAX = 64 };

/* State of one port of the node; all zeros: a free port. */
struct port_state {
    struct reserve reserve;
    uint32_t transfers; /* in progress, of all ranks of the node */
    uint32_t peers;     /* peers that reported transfers on the port; policy local-dynamic only */
};

/* Shared by the ranks of a node. */
struct node_ports {
    struct shlock lock;
    uint32_t last_number; /* number of the last request of a rank of this node */
    uint64_t reported_ns; /* time of the last report of a peer about its transfers */
    struct port_state port[PORTS_MAX];
};

struct reservation {
    struct alloc alloc;
    struct request request;
    struct node_ports *node;
    bool own_node;              /* no other rank shares `node`, which is freed at the end */
    uint8_t port[IB_RAILS_MAX]; /* index in node->port of each rail's port */
    /* Endpoint whose transfer has requested rails, or was granted rails and has not begun; or NULL */
    struct ib_endpoint *requester;
    uint32_t granted;      /* rails that the requester was granted */
    bool unreserved;       /* the peer did not answer in time: the transfer needs no grant */
    uint64_t requested_ns; /* time of the request */
    uint32_t number;       /* number of the last request of this process */
};

#define QUEUED_FRAMES_MAX 64
struct peer_reservation {
    uint32_t count; /* frames that are queued for the next message to the peer */
    struct frame frame[QUEUED_FRAMES_MAX];
    uint32_t transfers[RAILS_MAX]; /* of this process with the peer, by rail; policy local-dynamic only */
    uint32_t peer_uses;            /* rails that carry transfers of the peer with this process */
    bool in_use_changed;           /* the peer has not been notified of `transfers` yet */
};

_Static_assert(IB_RESERVE_FRAME_BYTES == FRAME_BYTES, "a message carries whole frames");

static struct reservation *reservation_get(const struct ib *ib)
{
    return ib->allot_state;
}

/* Locks the ports of the node and returns the state of a rail's port. Until port_unlock, frames of this
 * port carry the number of this process and of this rail. */
static struct port_state *port_lock(struct ib *ib, unsigned rail)
{
    struct reservation *al = reservation_get(ib);
    struct port_state *port = &al->node->port[al->port[rail]];
    uint32_t dead;
    net_lock(ib->base.net, &al->node->lock, "lock of the rails that ranks of the node reserve", &dead);
    reserve_set_user(&port->reserve, ib->base.net->rank, rail, PRIORITY_BOUND);
    return port;
}

static void port_unlock(struct ib *ib)
{
    shlock_release(&reservation_get(ib)->node->lock);
}

/* Wakes the other ranks of the node, which may wait for a rail. */
static void reservation_wake_node(struct ib *ib)
{
    struct net *net = ib->base.net;
    for (uint32_t i = 0; !reservation_get(ib)->own_node && i < net->boot->nlocal; i++)
        if (net->boot->local_ranks[i] != net->rank)
            net_wake_local_rank(net, net->boot->local_ranks[i]);
}

static int reservation_open_node(struct ib *ib, struct reservation *al)
{
    struct net *net = ib->base.net;
    uint64_t offset;
    al->own_node = net->boot->nlocal == 1 || !net->area;
    if (al->own_node)
        al->node = calloc(1, sizeof(*al->node));
    else if (net_area_get_common(net, sizeof(*al->node), &offset) == 0)
        al->node = (struct node_ports *)(void *)(net->area + offset);
    if (!al->node)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the reservation of rails");
    for (uint32_t i = 0; i < ib->nrails; i++) {
        const size_t port = (size_t)(ib->rails[i].device->used - ib->device.survey.ports);
        if (port >= PORTS_MAX)
            return err_set(MPI_ERR_OTHER, "FISHPLATE_LAB=IB_STRIPE: rails can be reserved on %d ports only",
                           PORTS_MAX);
        al->port[i] = (uint8_t)port;
    }
    return 0;
}

static void reservation_close(struct ib *ib)
{
    struct reservation *al = ib->allot_state;
    if (al && al->own_node)
        free(al->node);
    free(al);
    ib->allot_state = NULL;
}

static int reservation_open(struct ib *ib, enum alloc_policy policy)
{
    struct reservation *al = calloc(1, sizeof(*al));
    if (!al)
        return err_set(MPI_ERR_NO_MEM, "out of memory for %u rails", ib->nrails);
    ib->allot_state = al;
    if (policy == ALLOC_STATIC && ib->base.net->size > alloc_static_nodes(ib->nrails)) {
        if (ib->base.net->rank == 0)
            log_warn("With %u rails FISHPLATE_LAB=IB_STRIPE=static connects at most %u processes [Coll01]; "
                     "this job uses basic.",
                     ib->nrails, alloc_static_nodes(ib->nrails));
        policy = ALLOC_BASIC;
    }
    alloc_open(&al->alloc, policy, ib->nrails, (double)ratio.value / 100, 4 * ib->stripe_rules.smallest);
    const int rc = reservation_open_node(ib, al);
    if (rc != 0)
        reservation_close(ib);
    return rc;
}

/* ---- frames out ---- */

static struct peer_reservation *peer_reservation_get(struct ib_endpoint *ep)
{
    struct ib_pairs *j = ep->pairs;
    if (!j->allot_peer)
        j->allot_peer = calloc(1, sizeof(struct peer_reservation));
    if (!j->allot_peer)
        ib_fatal(ep->ib, NULL, "out of memory for the reservation of a rail");
    return j->allot_peer;
}

static void reservation_send_frame(struct ib_endpoint *ep, const struct frame *f)
{
    struct peer_reservation *r = peer_reservation_get(ep);
    if (r->count == QUEUED_FRAMES_MAX)
        ib_fatal(ep->ib, ep, "it requests rails faster than it receives the answers");
    r->frame[r->count++] = *f;
    counter_add(&frames, 1);
    ib_control_send(ep, IB_RESERVE);
}

/* Algorithm 1 uses rails that neither send nor receive. The target of an RDMA write or read does not notice
 * it, so the process that issues the operation reports the set of rails in use; one message covers any number
 * of transfers. */
static void reservation_count_transfer(struct ib_endpoint *ep, uint32_t set, int change)
{
    struct peer_reservation *r = peer_reservation_get(ep);
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

static void reservation_set_peer_uses(struct ib_endpoint *ep, uint32_t uses)
{
    struct reservation *al = reservation_get(ep->ib);
    struct peer_reservation *r = peer_reservation_get(ep);
    for (unsigned k = 0; k < al->alloc.rails; k++) {
        struct port_state *port = port_lock(ep->ib, k);
        port->peers += (uint32_t)(rail_set_contains(uses, k) - rail_set_contains(r->peer_uses, k));
        al->node->reported_ns = clock_ns();
        port_unlock(ep->ib);
    }
    if (r->peer_uses & ~uses)
        reservation_wake_node(ep->ib);
    r->peer_uses = uses;
}

static size_t reservation_fill_message(struct ib_endpoint *ep, void *body)
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

static bool reservation_has_messages(const struct ib_endpoint *ep)
{
    const struct peer_reservation *r = ep->pairs ? ep->pairs->allot_peer : NULL;
    return r && (r->count > 0 || r->in_use_changed);
}

/* ---- a request ---- */

/* Passes the output of a rail's state machine to its peer and to the request. */
static void reservation_apply_output(struct ib *ib, unsigned rail, const struct reserve_out *out);

static void reservation_abort_rails(struct ib *ib, uint32_t rails, uint32_t number)
{
    for (unsigned k = 0; k < ib->nrails; k++)
        if (rail_set_contains(rails, k)) {
            struct reserve_out out = reserve_local_abort(&port_lock(ib, k)->reserve, number);
            port_unlock(ib);
            reservation_apply_output(ib, k, &out);
        }
}

static void reservation_apply_decision(struct ib *ib, const struct request_out *r, uint32_t number)
{
    struct reservation *al = reservation_get(ib);
    if (r->verdict != REQUEST_SEND && r->verdict != REQUEST_RETRY)
        return;
    al->granted = r->send;
    counter_add(r->verdict == REQUEST_SEND ? &granted : &refused, 1);
    if (r->verdict == REQUEST_RETRY)
        al->requester = NULL; /* the next message sends a new request */
    reservation_abort_rails(ib, r->abort, number);
}

static void reservation_apply_output(struct ib *ib, unsigned rail, const struct reserve_out *out)
{
    struct reservation *al = reservation_get(ib);
    for (unsigned i = 0; i < out->frames; i++) {
        struct peer *peer;
        if (net_peer(ib->base.net, out->frame[i].to, &peer) == 0)
            reservation_send_frame(peer->endpoint, &out->frame[i]);
    }
    if (out->answer == RESERVE_NO_ANSWER)
        return;
    struct request_out r =
        request_answer(&al->request, &al->alloc, out->request, rail, out->answer == RESERVE_ANSWER_CTS);
    reservation_apply_decision(ib, &r, out->request);
}

static void reservation_send_request(struct ib_endpoint *ep, uint32_t set)
{
    struct ib *ib = ep->ib;
    struct reservation *al = reservation_get(ib);
    port_lock(ib, 0);
    const uint32_t number = ++al->node->last_number ? al->node->last_number : ++al->node->last_number;
    port_unlock(ib);
    al->number = number;
    al->requester = ep;
    al->granted = 0;
    al->requested_ns = clock_ns();
    request_begin(&al->request, number, set);
    for (unsigned k = 0; k < ib->nrails; k++)
        if (rail_set_contains(set, k)) {
            struct reserve_out out = reserve_local_rts(&port_lock(ib, k)->reserve, number, ep->peer->rank);
            port_unlock(ib);
            reservation_apply_output(ib, k, &out);
        }
}

static void reservation_check_timeout(struct ib_endpoint *ep)
{
    struct reservation *al = reservation_get(ep->ib);
    if (al->request.number == 0 || clock_ns() - al->requested_ns < ANSWER_TIMEOUT_NS)
        return;
    uint32_t number = al->request.number;
    struct request_out r = request_timeout(&al->request, &al->alloc);
    if (r.verdict == REQUEST_RETRY) {
        counter_add(&overdue, 1);
        al->unreserved = true;
        r.verdict = REQUEST_IGNORED; /* the endpoint remains the requester */
        reservation_abort_rails(ep->ib, r.abort, number);
    }
    reservation_apply_decision(ep->ib, &r, number);
}

/* ---- a transfer ---- */

/* Whether both ends use the same rail numbers. */
static bool endpoint_rails_match(const struct ib_endpoint *ep)
{
    const struct ib_pairs *j = ep->pairs;
    bool same = !ep->peer->card && j->count == ep->ib->nrails && j->peer_rails == ep->ib->nrails;
    for (unsigned k = 0; same && k < j->count; k++)
        same = j->pair[k].mine == k && j->pair[k].yours == k;
    return same;
}

static uint32_t reservation_free_rails(struct ib *ib, uint32_t up)
{
    uint32_t set = 0;
    for (unsigned k = 0; k < ib->nrails; k++) {
        const struct port_state *port = port_lock(ib, k);
        if (rail_set_contains(up, k) && port->transfers == 0 && reserve_is_free(&port->reserve))
            set |= rail_bit(k);
        port_unlock(ib);
    }
    return set;
}

static int reservation_count_wait(void)
{
    counter_add(&waits, 1);
    return ERR_AGAIN;
}

/* Sets the rails that were granted to the request of `ep`; ERR_AGAIN: none yet. */
static int reservation_use_grant(struct ib_endpoint *ep, uint32_t up, uint32_t *set)
{
    struct reservation *al = reservation_get(ep->ib);
    reservation_check_timeout(ep);
    if (al->requester != ep)
        return reservation_count_wait();
    if (al->unreserved)
        *set = rail_bit(rail_after(up, al->alloc.last));
    else
        *set = al->granted & up ? al->granted & up : al->granted ? up : 0;
    return *set ? 0 : ERR_AGAIN;
}

/* The rails of `free` over which no peer transfers anything. A peer that computes may report the end of its
 * transfer late, so rails are not withheld for longer than ANSWER_TIMEOUT_NS after the last report. */
static uint32_t reservation_rails_without_peer_transfers(struct ib *ib, uint32_t free)
{
    const struct reservation *al = reservation_get(ib);
    uint32_t set = free;
    uint64_t reported = 0;
    for (unsigned k = 0; k < ib->nrails; k++) {
        if (port_lock(ib, k)->peers > 0)
            set &= ~rail_bit(k);
        reported = al->node->reported_ns;
        port_unlock(ib);
    }
    return set || clock_ns() - reported < ANSWER_TIMEOUT_NS ? set : free;
}

static void reservation_cancel(struct ib_endpoint *ep)
{
    struct reservation *al = reservation_get(ep->ib);
    if (al->requester != ep)
        return;
    struct request_out r = request_timeout(&al->request, &al->alloc);
    uint32_t rails = al->granted | (r.verdict == REQUEST_IGNORED ? 0 : r.send | r.abort);
    al->requester = NULL;
    al->granted = 0;
    al->unreserved = false;
    reservation_abort_rails(ep->ib, rails, al->number);
}

static int reservation_choose(struct ib_endpoint *ep, uint64_t bytes, uint32_t *set)
{
    struct reservation *al = reservation_get(ep->ib);
    uint32_t up = ep->pairs->up;
    *set = up;
    if (!endpoint_rails_match(ep)) { /* the primary rail may have changed since the request */
        reservation_cancel(ep);
        return 0;
    }
    if (al->requester == ep)
        return reservation_use_grant(ep, up, set);
    if (al->requester)
        return reservation_count_wait();
    uint32_t free = reservation_free_rails(ep->ib, up);
    if (al->alloc.policy == ALLOC_STATIC) {
        const uint32_t one_way = alloc_static_rails(al->alloc.rails, ep->ib->base.net->rank) &
                                 ~alloc_static_rails(al->alloc.rails, (uint32_t)ep->peer->rank);
        free &= one_way & up ? one_way : up; /* all rails of this direction are down: use any rail */
    } else if (al->alloc.policy == ALLOC_LOCAL) {
        const uint32_t quiet = reservation_rails_without_peer_transfers(ep->ib, free);
        counter_add(&receive_waits, free && !quiet);
        free = quiet;
    }
    switch (alloc_message(&al->alloc, bytes, free, set)) {
    case ALLOC_SEND:
        *set = *set & up ? *set & up : rail_bit(rail_after(up, al->alloc.last));
        return 0;
    case ALLOC_RESERVE:
        reservation_send_request(ep, *set);
        return al->requester == ep && al->granted ? reservation_use_grant(ep, up, set) : ERR_AGAIN;
    default:
        return reservation_count_wait();
    }
}

static uint32_t reservation_start(struct ib_endpoint *ep, uint32_t set)
{
    struct reservation *al = reservation_get(ep->ib);
    uint32_t reserved = 0;
    for (unsigned k = 0; k < al->alloc.rails; k++) {
        port_lock(ep->ib, k)->transfers += rail_set_contains(set, k);
        port_unlock(ep->ib);
    }
    if (al->alloc.policy == ALLOC_LOCAL)
        reservation_count_transfer(ep, set, 1);
    if (al->requester == ep) {
        reserved = al->granted;
        al->requester = NULL;
        al->granted = 0;
        al->unreserved = false;
    }
    return reserved;
}

static void reservation_release(struct ib_endpoint *ep, uint32_t set, uint32_t reserved, uint64_t bytes)
{
    struct reservation *al = reservation_get(ep->ib);
    (void)bytes;
    if (al->alloc.policy == ALLOC_LOCAL)
        reservation_count_transfer(ep, set, -1);
    for (unsigned k = 0; k < al->alloc.rails; k++) {
        struct port_state *port = port_lock(ep->ib, k);
        port->transfers -= rail_set_contains(set, k);
        const struct reserve n = port->reserve;
        port_unlock(ep->ib);
        if (!rail_set_contains(reserved, k) || n.state != RESERVE_SENDING || n.requester != n.node ||
            n.requested_from != ep->peer->rank)
            continue;
        struct frame done = {.kind = FRAME_DONE,
                             .rail = (uint8_t)k,
                             .from = n.node,
                             .to = n.requested_from,
                             .request = n.request};
        reservation_send_frame(ep, &done);
    }
    reservation_wake_node(ep->ib);
}

/* ---- frames in ---- */

static void reservation_receive_message(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    struct ib *ib = ep->ib;
    struct ib_reserve_message message;
    if (len != sizeof(*h) + sizeof(message))
        ib_fatal(ib, ep, "it sent reservations in a message of the wrong length");
    memcpy(&message, h + 1, sizeof(message));
    if (reservation_get(ib)->alloc.policy == ALLOC_LOCAL)
        reservation_set_peer_uses(ep, message.in_use & rails_all(ib->nrails));
    for (uint32_t i = 0; i < MIN(message.count, IB_RESERVE_MOST); i++) {
        struct frame f;
        const char *wrong = frame_decode(message.frame[i], FRAME_BYTES, ib->nrails, ib->base.net->rank, &f);
        if (wrong || f.from != ep->peer->rank)
            ib_fatal(ib, ep, "it sent %s", wrong ? wrong : "a reservation frame of another node");
        struct reserve_out out = reserve_frame(&port_lock(ib, f.rail)->reserve, &f);
        port_unlock(ib);
        if (f.kind == FRAME_ACK || f.kind == FRAME_DONE || f.kind == FRAME_ABORT)
            reservation_wake_node(ib);
        if (out.answer != RESERVE_NO_ANSWER && out.request == reservation_get(ib)->request.number) {
            counter_add(&answers, 1);
            counter_add(&answer_ns, clock_ns() - reservation_get(ib)->requested_ns);
        }
        reservation_apply_output(ib, f.rail, &out);
    }
}

/* ---- the end of a connection ---- */

static bool reservation_is_busy(const struct ib_endpoint *ep)
{
    const struct reservation *al = reservation_get(ep->ib);
    bool busy = al->requester == ep || reservation_has_messages(ep);
    for (unsigned k = 0; !busy && k < al->alloc.rails; k++) {
        busy = reserve_involves_peer(&port_lock(ep->ib, k)->reserve, ep->peer->rank);
        port_unlock(ep->ib);
    }
    return busy;
}

static void reservation_close_peer(struct ib_endpoint *ep)
{
    struct peer_reservation *r = ep->pairs->allot_peer;
    if (r)
        reservation_set_peer_uses(ep, 0);
    free(r);
    ep->pairs->allot_peer = NULL;
}

static void reservation_forget_peer(struct ib_endpoint *ep)
{
    struct reservation *al = reservation_get(ep->ib);
    if (al->requester == ep) {
        al->requester = NULL;
        al->granted = 0;
        al->unreserved = false;
        request_timeout(&al->request, &al->alloc); /* the answers are ignored */
    }
    if (ep->pairs && ep->pairs->allot_peer)
        reservation_set_peer_uses(ep, 0);
    for (unsigned k = 0; k < al->alloc.rails; k++) {
        reserve_release_peer(&port_lock(ep->ib, k)->reserve, ep->peer->rank);
        port_unlock(ep->ib);
    }
    reservation_wake_node(ep->ib);
}

/* Granted rails stay reserved until the transfer can be posted. */
static void reservation_decline(struct ib_endpoint *ep, uint32_t set, uint64_t bytes)
{
    (void)ep;
    (void)set;
    (void)bytes;
}

static const struct ib_allotment reservation = {
    .close = reservation_close,
    .choose = reservation_choose,
    .decline = reservation_decline,
    .start = reservation_start,
    .cancel = reservation_cancel,
    .release = reservation_release,
    .fill_message = reservation_fill_message,
    .take_message = reservation_receive_message,
    .has_messages = reservation_has_messages,
    .is_busy = reservation_is_busy,
    .forget_peer = reservation_forget_peer,
    .close_peer = reservation_close_peer,
};

int ib_laboratory_allot_open(struct ib *ib, enum ib_allot_policy policy)
{
    if (policy < IB_ALLOT_BASIC)
        return multiplex_open(ib, policy);
    int rc = reservation_open(ib, (enum alloc_policy)(policy - IB_ALLOT_BASIC + ALLOC_BASIC));
    if (rc == 0)
        ib->allot = &reservation;
    return rc;
}
