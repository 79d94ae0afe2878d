/* striped_transfer.c: large puts and gets, divided into a stripe for each rail and moved directly into their final
 * memory [Liu04 8.2.3]. src/net/rails decides: stripe.h divides, adapt.h measures the speed of the rails,
 * filter.h completes the transfer when every stripe has arrived, and repeats stripes that a rail failed to
 * deliver.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/tunable.h"
#include "net/ib/channel/channel.h"
#include "net/ib/rails/rails.h"
#include "net/ib/rendezvous/transfer.h"
#include "net/rails/filter.h"

enum { ADAPTIVE, EVEN, WEIGHTED, OFF, ALLOTTED /* further values: ALLOTTED + enum ib_allot_policy */ };

static TUNABLE_CHOICE_FEW(
    policy, "IB_STRIPE", ADAPTIVE,
    "adaptive|even|weighted|off|turns|shares|window|room|stages|basic|local|dynamic|hybrid|static", OFF + 1,
    "How large messages use several rails: divided in proportion to the measured speed of each rail "
    "(adaptive), in equal parts (even), by FISHPLATE_IB_WEIGHTS (weighted), or whole over the rail of the "
    "process (off). Must be the same on all ranks. For experiments, by FISHPLATE_LAB, messages go whole: "
    "over all rails in turns (turns), by FISHPLATE_IB_WEIGHTS (shares), 16 at a time (window), where fewer "
    "than 256 KiB are under way (room), over all rails in turns whatever the peer (stages), or by "
    "reservation of rails (basic, local, dynamic, hybrid), or over rails of one direction (static).");
static LABORATORY_SIZE(smallest, "IB_STRIPE_MIN", 3 * 1024, 1, 1 << 30,
                       "Smallest part of a message in bytes that is sent over a rail of its own. A message "
                       "smaller than twice this size uses one rail.");

static COUNTER(messages, "ib_striped",
               "Large transfers (RDMA writes and reads) that were divided among several rails.");
static COUNTER(repeated, "ib_stripes_repeated",
               "Parts of large messages sent again over another rail after their rail failed.");

#define ALIGNMENT 4096
#define ORDERED   256 /* bytes; requests up to this length use one queue pair, in the order of the calls */

/* A stripe is a net_op of its own, with stripe_done as callback. */
struct stripe_op {
    struct net_op op;
    struct ib_striped *message;
    struct ib_rail *rail;
    uint32_t ticket;
};

struct ib_striped {
    struct list link; /* ib_pairs.under_way */
    struct ib_endpoint *ep;
    struct net_op *op;
    struct filter filter;
    enum ibv_wr_opcode opcode;
    uint32_t set, reserved; /* bit sets of pairs: permitted for the transfer; reserved for it */
    uint64_t bytes;
    uint32_t failed[RAILS_MAX]; /* by pair: bit set of failed stripes whose data may still arrive */
    uintptr_t local;
    uint64_t remote;
    struct net_mem memory;
    struct net_key key;
    struct stripe_op ops[RAILS_MAX];
};

int ib_stripe_open(struct ib *ib)
{
    ib->stripe_rules = (struct stripe_rules){
        .smallest = policy.value == OFF ? UINT64_MAX / 4 : (uint64_t)smallest.value, .align = ALIGNMENT};
    ib->stripe_from = MAX(2 * ib->stripe_rules.smallest, ORDERED + 1);
    pool_init(&ib->striped, sizeof(struct ib_striped), 8);
    if (policy.value < ALLOTTED)
        return 0;
    if (!ib_laboratory_allot_open)
        return err_set(MPI_ERR_OTHER,
                       "this value of FISHPLATE_LAB=IB_STRIPE needs a library that was built with "
                       "the laboratory (cmake -DFISHPLATE_LAB=ON)");
    return ib->nrails > 1 ? ib_laboratory_allot_open(ib, (enum ib_allot_policy)(policy.value - ALLOTTED)) : 0;
}

void ib_stripe_close(struct ib *ib)
{
    if (ib->allot)
        ib->allot->close(ib);
    pool_destroy(&ib->striped);
}

static struct ib_lane *find_stripe_lane(struct ib_endpoint *ep, unsigned pair)
{
    return pair == 0 ? &ep->lanes[ep->ib->lanes - 1] : &ep->pairs->pair[pair].lane;
}

static void stripe_count_transfer(struct ib *ib, const struct ib_rail *rail, int n)
{
    ib_adapter_count_users(rail->adapter, ib, n);
}

/* ---- issuing ---- */

static void stripe_done(struct net_op *op, int status);

static void stripe_post(struct ib_striped *m, unsigned i, uint32_t ticket)
{
    struct ib_endpoint *ep = m->ep;
    const struct stripe *s = &m->filter.stripes[i].stripe;
    struct ib_lane *lane = find_stripe_lane(ep, s->rail);
    uint8_t theirs = ep->pairs->peer[ep->pairs->pair[s->rail].yours].adapter;
    struct stripe_op *o = &m->ops[i];
    struct ib_transfer t = {.opcode = m->opcode,
                            .local = m->local + s->offset,
                            .remote = m->remote + s->offset,
                            .lkey = ib_lkey(&m->memory, lane->rail->adapter->index),
                            .rkey = ib_rkey(&m->key, theirs)};
    *o = (struct stripe_op){.op = {.done = stripe_done}, .message = m, .rail = lane->rail, .ticket = ticket};
    if (ib_rdma_post(lane, &t, s->bytes, &o->op) != 0) {
        filter_undo_issue(&m->filter, i);
        ep->ib->stripes_blocked = true;
        atomic_store(&ep->ib->attention, 1);
        return;
    }
    stripe_count_transfer(ep->ib, lane->rail, 1);
    counter_add(lane->rail->bytes, s->bytes);
    counter_add(lane->rail->stripes, 1);
}

/* Posts all stripes that were not posted yet. If a send queue has no room, ib_stripes_retry tries again. */
static void stripes_issue_waiting(struct ib_striped *m)
{
    uint32_t ticket;
    uint64_t now = clock_ns();
    for (unsigned n = 0; n < m->filter.count; n++) {
        int i = filter_next(&m->filter, now, &ticket);
        if (i < 0)
            return;
        if (m->filter.stripes[i].attempt > 1)
            counter_add(&repeated, 1);
        stripe_post(m, (unsigned)i, ticket);
    }
}

static bool lanes_have_room(struct ib_endpoint *ep, const struct stripe *cut, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!ib_lane_has_room(find_stripe_lane(ep, cut[i].rail), (uint32_t)(cut[i].bytes >> 30) + 1, false))
            return false;
    return true;
}

static unsigned stripes_divide(struct ib_endpoint *ep, size_t len, uint32_t set, struct stripe *cut)
{
    struct ib_pairs *j = ep->pairs;
    const bool adaptive = policy.value == ADAPTIVE;
    return stripe_cut(&ep->ib->stripe_rules, adaptive ? j->adapt.weight : j->weight, set,
                      adaptive ? adapt_rails_to_probe(&j->adapt) & set : 0, len, cut);
}

static int stripes_decline_rails(struct ib_endpoint *ep, uint32_t set, size_t len)
{
    if (unlikely(ep->ib->allot != NULL))
        ep->ib->allot->decline(ep, set, len);
    return ERR_AGAIN;
}

int ib_stripe_transfer(struct ib_endpoint *ep, enum ibv_wr_opcode opcode, uintptr_t local,
                       const struct net_mem *mem, uint64_t remote, const struct net_key *key, size_t len,
                       struct net_op *op)
{
    struct ib *ib = ep->ib;
    struct stripe cut[RAILS_MAX];
    if (!ep->pairs)
        ib_pairs_request(ep);
    if (!ep->pairs || ep->pairs->up == rail_bit(0)) { /* not connected yet, or all further rails are down */
        if (unlikely(ib->allot != NULL))
            ib->allot->cancel(ep);
        return ib_rdma_post_primary(
            ep, &(struct ib_rdma){opcode, local, remote, len, *mem, *key, ep->next_seq}, op);
    }
    uint32_t set = ep->pairs->up;
    int rc = unlikely(ib->allot != NULL) ? ib->allot->choose(ep, len, &set) : 0;
    if (rc != 0)
        return rc;
    unsigned n = stripes_divide(ep, len, set, cut);
    if (n == 0 || !lanes_have_room(ep, cut, n))
        return stripes_decline_rails(ep, set, len);
    struct ib_striped *m = pool_get(&ib->striped);
    if (!m) {
        stripes_decline_rails(ep, set, len);
        return err_set(MPI_ERR_NO_MEM, "out of memory for a message of %zu bytes", len);
    }
    m->ep = ep;
    m->op = op;
    m->opcode = opcode;
    m->local = local;
    m->remote = remote;
    m->memory = *mem;
    m->key = *key;
    m->set = set;
    m->reserved = unlikely(ib->allot != NULL) ? ib->allot->start(ep, set) : 0;
    m->bytes = len;
    memset(m->failed, 0, sizeof(m->failed));
    list_append(&ep->pairs->under_way, &m->link);
    filter_open(&m->filter, cut, n, ep->pairs->up);
    counter_add(&messages, n > 1);
    ep->ops++; /* counts the whole transfer: none of its stripes may be posted yet */
    stripes_issue_waiting(m);
    return 0;
}

/* ---- the end of stripes ---- */

/* Releases the rails of a completed transfer (allotment policies). */
static void release_rails(struct ib_striped *m)
{
    struct ib_endpoint *ep = m->ep;
    if (unlikely(ep->ib->allot != NULL))
        ep->ib->allot->release(ep, m->set, m->reserved, m->bytes);
}

static void stripes_apply_verdict(struct ib_striped *m, enum filter_verdict v)
{
    struct ib_endpoint *ep = m->ep;
    if (v == FILTER_AGAIN)
        stripes_issue_waiting(m);
    if (v != FILTER_DONE)
        return;
    struct net_op *op = m->op;
    list_remove(&m->link);
    release_rails(m);
    pool_put(&ep->ib->striped, m);
    ep->ops--;
    op->done(op, 0);
}

/* Handles a failed stripe. A failed read can be repeated at once: no data arrives after the local queue pair
 * is destroyed. Data of a failed write may arrive until the peer has destroyed its end, so the write is
 * repeated by ib_stripes_repeat. */
static void stripe_failed(struct ib_striped *m, uint32_t ticket)
{
    unsigned i = ticket >> 8;
    unsigned pair = m->filter.stripes[i].stripe.rail;
    if (m->opcode == IBV_WR_RDMA_READ)
        stripes_apply_verdict(m, filter_failed(&m->filter, ticket));
    else
        m->failed[pair] |= rail_bit(i);
}

static void stripe_done(struct net_op *op, int status)
{
    struct stripe_op *o = (struct stripe_op *)op;
    struct ib_striped *m = o->message;
    struct ib_endpoint *ep = m->ep;
    struct ib *ib = ep->ib;
    stripe_count_transfer(ib, o->rail, -1);
    if (status != 0) {
        stripe_failed(m, o->ticket);
        return;
    }
    if (ib->completions_ns == 0)
        ib->completions_ns = clock_ns();
    stripes_apply_verdict(m, filter_completed(&m->filter, o->ticket, ib->completions_ns,
                                              policy.value == ADAPTIVE ? &ep->pairs->adapt : NULL));
}

bool ib_is_stripe(const struct net_op *op)
{
    return op->done == stripe_done;
}

void ib_stripes_repeat(struct ib_endpoint *ep, unsigned pair)
{
    list_foreach_safe(pos, after, &ep->pairs->under_way)
    {
        struct ib_striped *m = list_entry(pos, struct ib_striped, link);
        uint32_t set = m->failed[pair];
        m->failed[pair] = 0;
        enum filter_verdict v = FILTER_NOTHING;
        for (unsigned i = 0; i < m->filter.count; i++)
            if (rail_set_contains(set, i))
                v = filter_failed(&m->filter, m->ops[i].ticket);
        if (set)
            stripes_apply_verdict(m, v);
    }
}

void ib_stripes_set_pair(struct ib_endpoint *ep, unsigned pair, bool up)
{
    list_foreach_safe(pos, after, &ep->pairs->under_way)
    {
        struct ib_striped *m = list_entry(pos, struct ib_striped, link);
        stripes_apply_verdict(m, filter_set_rail_up(&m->filter, pair, up));
    }
}

void ib_stripes_retry(struct ib *ib)
{
    ib->stripes_blocked = false;
    for (uint32_t i = 0; i < ib->nendpoints; i++)
        if (ib->endpoints[i]->pairs)
            list_foreach_safe(pos, after, &ib->endpoints[i]->pairs->under_way)
                stripes_issue_waiting(list_entry(pos, struct ib_striped, link));
}

/* Sets the weights of the rails for even and weighted striping. */
void ib_stripes_set_weights(struct ib_endpoint *ep)
{
    struct ib_pairs *j = ep->pairs;
    for (unsigned k = 0; k < j->count; k++)
        j->weight[k] = policy.value == EVEN ? 1 : ep->ib->rails[j->pair[k].mine].weight;
}

static void remove_from_counts(struct ib_striped *m)
{
    for (unsigned i = 0; i < m->filter.count; i++) {
        const struct filter_stripe *s = &m->filter.stripes[i];
        if (s->state == FILTER_UNDER_WAY && !rail_set_contains(m->failed[s->stripe.rail], i))
            stripe_count_transfer(m->ep->ib, m->ops[i].rail, -1);
    }
}

/* Frees the striped transfers of a closed connection; their callers do not wait any more. */
void ib_stripes_forget(struct ib_endpoint *ep)
{
    list_foreach_safe(pos, after, &ep->pairs->under_way)
    {
        struct ib_striped *m = list_entry(pos, struct ib_striped, link);
        remove_from_counts(m);
        release_rails(m);
        list_remove(pos);
        pool_put(&ep->ib->striped, m);
    }
}

/* Detaches striped transfers from the requests of a primary queue pair, because that queue pair is destroyed
 * after the transfers are freed. */
static void lane_detach_stripes(struct ib_lane *lane)
{
    for (uint32_t at = lane->tail; at != lane->head; at++) {
        struct ib_work *w = &lane->work[at & (lane->depth - 1)];
        if (w->op && w->op->done == stripe_done)
            w->op = NULL;
    }
}

void ib_stripes_fail(struct ib_endpoint *ep)
{
    struct ib_pairs *j = ep->pairs;
    if (!j)
        return;
    for (uint32_t k = 0; k < ep->ib->lanes; k++)
        lane_detach_stripes(&ep->lanes[k]);
    struct list lost;
    list_init(&lost);
    list_foreach_safe(pos, after, &j->under_way)
    {
        struct ib_striped *m = list_entry(pos, struct ib_striped, link);
        remove_from_counts(m);
        release_rails(m);
        list_remove(pos);
        list_append(&lost, pos);
    }
    ib_pairs_free(ep);
    list_foreach_safe(pos, after, &lost)
    {
        struct ib_striped *m = list_entry(pos, struct ib_striped, link);
        struct net_op *op = m->op;
        list_remove(pos);
        pool_put(&ep->ib->striped, m);
        op->done(op, err_set(MPIX_ERR_PROC_FAILED, "the peer process has died"));
    }
}
