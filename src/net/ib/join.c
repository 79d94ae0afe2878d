/* join.c: opens and closes the additional queue pairs of a connection; see join.h. net/rails/joint.h decides what to do
 * with each pair of rails, net/rails/pair.h which pairs there are; this file carries it out with verbs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/join.h"

#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/log.h"
#include "net/ib/ib.h"
#include "net/rails/pair.h"

static COUNTER(joined, "ib_rails_joined", "Connections opened to peers over rails other than the first.");
static COUNTER(failures, "ib_rail_failures",
               "Connections over rails other than the first that were closed after an error or because a "
               "port went down.");

#define STEADINESS 0.5 /* what the newest message counts against all before it, in adaptive striping */

static void lane_init(struct ib_endpoint *ep, unsigned k)
{
    struct ib *ib = ep->ib;
    struct ib_lane *lane = &ep->join->pairs[k].lane;
    struct ib_rail *rail = &ib->rails[ep->join->pairs[k].mine];
    bool frames = ib_spread_posted(ep) > 0;
    *lane = (struct ib_lane){.endpoint = ep,
                             .rail = rail,
                             .adapter = rail->adapter->index,
                             .pool = &ib->large,
                             .shared = frames && ib->lanes > 1 ? &ib->shared[rail->adapter->index][1] : NULL,
                             .frame_max = ib->large.size - sizeof(struct ib_frame),
                             .index = (uint8_t)(IB_LANES + k),
                             .bare = !frames};
    list_init(&lane->posted);
}

static struct ib_join *join_make(struct ib_endpoint *ep)
{
    struct ib_join *j = calloc(1, sizeof(*j));
    if (!j)
        return NULL; /* one rail will do; the next large transfer tries again */
    list_init(&j->under_way);
    j->up = rail_bit(0);
    ep->join = j;
    return j;
}

void ib_join_want(struct ib_endpoint *ep)
{
    if (!ep->join && join_make(ep))
        ib_say(ep, IB_RAILS);
}

size_t ib_join_say(const struct ib_endpoint *ep, struct ib_rails_said *out)
{
    const struct ib *ib = ep->ib;
    const struct ib_join *j = ep->join;
    memset(out, 0, sizeof(*out));
    out->rails = (uint8_t)ib->nrails;
    out->pairs = (uint8_t)(j ? j->count : 0);
    out->frames = ib_spread_posted(ep) & 0x7fff;
    out->rings = ib_spread_rings(ib);
    ib_rails_tell(ib, out->rail);
    /* That a port is down is said when its pairs were dropped: the peer drops its ends when it hears that, and a frame that
     * came through one of them later would be lost, though its sender was told that it arrived. */
    for (uint32_t k = 1; k < out->pairs; k++)
        out->rail[j->pairs[k].mine].up |= j->pairs[k].joint.state != JOINT_APART;
    for (uint32_t k = 1; k < out->pairs; k++) {
        const struct ib_subchannel *s = &j->pairs[k];
        struct joint_said said = joint_says(&s->joint);
        out->pair[k] = (struct ib_pair_said){.generation = said.generation,
                                             .qpn = s->lane.qp ? s->lane.qp->qp_num & 0xffffff : 0,
                                             .made = said.made,
                                             .joined = said.joined,
                                             .psn = s->lane.psn};
    }
    return sizeof(*out);
}

/* ---- acting on what joint.h decides ---- */

static void subchannel_connect(struct ib_endpoint *ep, struct ib_subchannel *s, const struct ib_pair_said *to)
{
    const struct ib_rail_said *peer = &ep->join->peer[s->yours];
    if (s->lane
            .given_up) /* heard while all that had arrived was looked at (give_up_pairs): it is dropped after that */
        return;
    if (ib_lane_connect(&s->lane, &peer->address, to->qpn, to->psn, peer->rd_atomic) != 0 &&
        !ib_adapter_gone(s->lane.rail->adapter))
        ib_fatal(ep->ib, ep, "%s", err_detail(MPI_ERR_OTHER));
    if (!s->lane.bare)
        ib_spread_connected(&s->lane, ep->join->frames);
}

/* What cannot be made is not there; the rails that are there go on. */
static bool subchannel_create(struct ib_subchannel *s)
{
    struct ib *ib = s->lane.endpoint->ib;
    int rc = s->lane.bare ? 0 : ib_shared_open(ib, s->lane.adapter);
    if (rc == 0 && ib_lane_create(&s->lane) == 0)
        return true;
    log_warn("an additional rail to rank %u cannot be opened and is not used: %s",
             s->lane.endpoint->peer->rank, err_detail(MPI_ERR_OTHER));
    err_clear();
    return false;
}

/* Frames that were under way leave a gap, behind which the peer delivers nothing: the connection is opened again, and closes
 * it. */
static void drop_frames(struct ib_lane *lane)
{
    struct ib_endpoint *ep = lane->endpoint;
    bool gap = ib_spread_carries(lane);
    if (lane->bare || !lane->qp)
        return;
    ib_kept_lane(lane);
    if (!gap || ep->join->anew)
        return;
    if (!ep->breaking && ep->conn.state == CONN_OPEN) /* its own way has not failed */
        ep->ways->next = ep->ways->at;
    ib_break(ep, NULL);
}

/* What came through it and waits for its turn owes nothing: the next queue pair begins with new credits. */
static void orphan(struct ib_endpoint *ep, const struct ib_lane *lane)
{
    list_foreach(pos, &ep->held)
    {
        struct ib_buffer *b = list_entry(pos, struct ib_buffer, link);
        if (b->lane == lane)
            b->lane = NULL;
    }
}

static void act(struct ib_endpoint *ep, unsigned k, unsigned actions, const struct ib_pair_said *said)
{
    struct ib_join *j = ep->join;
    struct ib_subchannel *s = &j->pairs[k];
    if (actions & JOINT_DO_DROP) {
        counter_add(&failures, 1);
        j->up &= ~rail_bit(k);
        ib_stripe_rail(ep, k, false);
        drop_frames(&s->lane);
        orphan(ep, &s->lane);
        ib_lane_abandon(&s->lane);
        ib_spread_look(ep);
    }
    if (actions & JOINT_DO_SETTLE)
        ib_stripe_settled(ep, k);
    if (actions & JOINT_DO_CREATE && !subchannel_create(s)) {
        s->tired = true;
        actions = joint_want(&s->joint, false);
    }
    if (actions & JOINT_DO_CONNECT)
        subchannel_connect(ep, s, said);
    if (actions & JOINT_DO_USE) {
        counter_add(&joined, 1);
        j->up |= rail_bit(k);
        adapt_back(&j->adapt, k);
        ib_stripe_rail(ep, k, true);
        ib_spread_look(ep);
        log_debug("rail to rank %u: %s is connected to rail %u of that rank", ep->peer->rank,
                  s->lane.rail->device->name, s->yours);
    }
    if (actions & JOINT_DO_SAY)
        ib_say(ep, IB_RAILS);
}

static bool is_wanted(const struct ib_endpoint *ep, const struct ib_subchannel *s)
{
    return ib_rail_up(s->lane.rail) && ep->join->peer[s->yours].up && !s->tired;
}

/* When all that has arrived through them was looked at. */
static void drop_soon(struct ib *ib)
{
    ib->drops = true;
    atomic_store(&ib->attention, 1);
}

/* Frames that have come through a pair and were not looked at would go with it (give_up_pairs). Those of a peer that has dropped its
 * end came before it said so. */
static void want(struct ib_endpoint *ep, unsigned k)
{
    struct ib_subchannel *s = &ep->join->pairs[k];
    bool wanted = is_wanted(ep, s);
    if (wanted == s->joint.wanted)
        return;
    if (!wanted && ep->join->peer[s->yours].up && !s->lane.bare && s->lane.qp)
        drop_soon(ep->ib);
    else
        act(ep, k, joint_want(&s->joint, wanted), NULL);
}

void ib_join_again(struct ib_endpoint *ep, unsigned pair)
{
    ep->join->anew = true;
    act(ep, pair, joint_failed(&ep->join->pairs[pair].joint), NULL);
    ep->join->anew = false;
}

void ib_join_failed(struct ib_lane *lane, const char *why)
{
    struct ib_endpoint *ep = lane->endpoint;
    unsigned k = (unsigned)(lane->index - IB_LANES);
    struct ib_subchannel *s = &ep->join->pairs[k];
    log_warn("the rail over %s to rank %u failed: %s; messages to that rank now use the other rails",
             lane->rail->device->name, ep->peer->rank, why);
    s->tired = true;
    if (lane->bare) {
        want(ep, k);
        return;
    }
    drop_soon(ep->ib);
}

/* ---- what the peer says ---- */

static void networks(const struct ib_rail_said *rails, uint32_t n, struct pair_net *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (struct pair_net){rails[i].network, rails[i].address.ethernet};
}

/* Both ends must number the pairs alike: the process with the smaller name is the first. */
static void make_pairs(struct ib_endpoint *ep, const struct ib_rail_said *mine)
{
    struct ib_join *j = ep->join;
    struct pair_net own[IB_RAILS_MAX], other[IB_RAILS_MAX];
    struct pair pairs[RAILS_MAX];
    bool first = ib_first(ep);
    networks(mine, ep->ib->nrails, own);
    networks(j->peer, j->theirs, other);
    j->count = first ? pair_rails(own, ep->ib->nrails, other, j->theirs, pairs)
                     : pair_rails(other, j->theirs, own, ep->ib->nrails, pairs);
    for (unsigned k = 0; k < j->count; k++) {
        j->pairs[k].mine = first ? pairs[k].a : pairs[k].b;
        j->pairs[k].yours = first ? pairs[k].b : pairs[k].a;
        lane_init(ep, k);
    }
    j->pairs[0].mine = ep->home; /* wherever the connection is */
    j->pairs[0].yours = ep->yours;
    adapt_open(&j->adapt, j->count, STEADINESS);
    ib_stripe_weights(ep);
    ib_spread_open(ep);
    if (j->count == 1)
        log_info("messages to rank %u use one rail: the two hosts have no other ports on a common network",
                 ep->peer->rank);
}

void ib_join_heard(struct ib_endpoint *ep, const struct ib_rails_said *said)
{
    struct ib_rails_said mine;
    if (said->rails < 1 || said->rails > IB_RAILS_MAX || said->pairs > RAILS_MAX)
        ib_fatal(ep->ib, ep, "it sent an invalid list of rails");
    for (uint32_t i = 0; i < said->rails; i++)
        if (said->rail[i].adapter >= IB_ADAPTERS_MAX)
            ib_fatal(ep->ib, ep, "it sent an invalid list of rails");
    struct ib_join *j = ep->join ? ep->join : join_make(ep);
    if (!j)
        return;
    if (j->count > 0 && said->rails != j->theirs)
        ib_fatal(ep->ib, ep, "it sent an invalid list of rails");
    bool first = j->count == 0;
    for (unsigned k = 1; k < j->count; k++) /* its port is up again */
        if (said->rail[j->pairs[k].yours].up && !j->peer[j->pairs[k].yours].up)
            j->pairs[k].tired = false;
    memcpy(j->peer, said->rail, sizeof(j->peer));
    j->frames = said->frames;
    j->rings = said->rings;
    for (uint32_t i = 0; ep->ways && i < MIN(said->rails, ep->ways->theirs); i++)
        ep->ways->peer[i].address = said->rail[i].address; /* a port that was down at first had none */
    if (first) {
        j->theirs = said->rails;
        ib_join_say(ep, &mine);
        make_pairs(ep, mine.rail);
        ib_say(ep, IB_RAILS); /* if only to tell which rails there are */
    }
    for (unsigned k = 1; k < j->count; k++) {
        struct ib_subchannel *s = &j->pairs[k];
        const struct ib_pair_said *p = &said->pair[k];
        want(ep, k);
        if (said->pairs == 0)
            continue;
        struct joint_said heard = {.generation = p->generation, .made = p->made, .joined = p->joined};
        act(ep, k, joint_heard(&s->joint, &heard), p);
    }
}

/* ---- ports, and the end ---- */

/* Frames that have come through a pair and were not looked at would go with it, and their sender has forgotten them: it was told
 * that they arrived. So nothing arrives any more, and all that has is looked at; then it can be dropped. */
static void give_up_pairs(struct ib *ib)
{
    bool any = false;
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        const struct ib_endpoint *ep = ib->endpoints[i];
        for (unsigned k = 1; ep->peer && ep->join && k < ep->join->count; k++) {
            struct ib_subchannel *s = &ep->join->pairs[k];
            if (s->lane.bare || !s->lane.qp || (is_wanted(ep, s) && !s->lane.failed))
                continue;
            ib_lane_fail(&s->lane);
            any = true;
        }
    }
    if (any)
        ib_look_at_all(ib);
}

static void drop_given_up(struct ib_endpoint *ep, unsigned k)
{
    struct ib_subchannel *s = &ep->join->pairs[k];
    bool dropped = !s->lane.bare && s->lane.qp && s->lane.given_up;
    if (dropped)
        act(ep, k, joint_failed(&s->joint), NULL);
    if (dropped || s->tired)
        want(ep, k);
}

void ib_join_drops(struct ib *ib)
{
    ib->drops = false;
    give_up_pairs(ib);
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        struct ib_endpoint *ep = ib->endpoints[i];
        for (unsigned k = 1; ep->peer && ep->join && k < ep->join->count; k++)
            drop_given_up(ep, k);
        if (ep->peer && ep->conn.state == CONN_AGREED) /* the end of a pair may be all that it waited for */
            ib_endpoint_do(ep, 0);
    }
}

void ib_join_ports(struct ib *ib, bool rested)
{
    ib_join_drops(ib);
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        struct ib_endpoint *ep = ib->endpoints[i];
        if (!ep->join || !ep->peer || ep->conn.state != CONN_OPEN)
            continue;
        for (unsigned k = 1; k < ep->join->count; k++) {
            if (rested || ib_rail_up(ep->join->pairs[k].lane.rail)) /* the port may just have come back */
                ep->join->pairs[k].tired = false;
            want(ep, k);
        }
        if (!rested) /* the peer joins a rail only when it knows that both ports are up */
            ib_say(ep, IB_RAILS);
    }
}

void ib_join_free(struct ib_endpoint *ep)
{
    struct ib_join *j = ep->join;
    if (!j)
        return;
    ib_stripe_forget(ep);
    for (unsigned k = 1; k < j->count; k++) {
        orphan(ep, &j->pairs[k].lane);
        if (j->pairs[k].lane.qp)
            ib_lane_destroy(&j->pairs[k].lane);
        free(j->pairs[k].lane.work);
        free(j->pairs[k].lane.copies);
        free(j->pairs[k].lane.rdma);
    }
    ib_spread_close(ep);
    free(j->reserve);
    free(j);
    ep->join = NULL;
}
