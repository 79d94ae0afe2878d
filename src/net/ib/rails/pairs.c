/* pairs.c: opens and closes the queue pairs of a connection on further rails. net/rails/pair.h pairs the
 * rails, net/rails/joint.h decides on actions for each pair, and this file performs them with verbs. Pairs
 * are created when the first large transfer or a few larger frames need them, so an idle peer needs none.
 *
 * SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/log.h"
#include "base/tunable.h"
#include "net/ib/channel/channel.h"
#include "net/ib/connection/connection.h"
#include "net/ib/rails/rails.h"
#include "net/rails/pair.h"

static LABORATORY_CHOICE(
    policy, "IB_MESSAGES", IB_FRAMES_AUTO, "auto|binding|turns|shares|window|room",
    "How small messages, up to IB_FRAME, and control messages use several rails: those of 1 KiB and more "
    "over all by the rates of the ports and shorter ones over the rail of the process (auto), all over the "
    "rail of the process, and processes of a node over different ones (binding), over all in turns (turns), "
    "by FISHPLATE_IB_WEIGHTS (shares), 16 messages at a time (window), or where fewer than 64 KiB are under "
    "way (room). Should be the same on all ranks: a rank that binds is sent to over its rail alone.");

static COUNTER(joined, "ib_rails_joined", "Connections opened to peers over rails other than the first.");
static COUNTER(failures, "ib_rail_failures",
               "Connections over rails other than the first that were closed after an error or because a "
               "port went down.");

#define STEADINESS 0.5 /* weight of the newest message in the moving average of adaptive striping */

enum ib_frames_policy ib_frames_get_policy(void)
{
    return (enum ib_frames_policy)policy.value;
}

bool ib_frames_can_spread(const struct ib_endpoint *ep)
{
    return ep->has_several_rails && ep->paths && policy.value != IB_FRAMES_BINDING;
}

/* The number of receive buffers of a pair, as announced to the peer. */
static uint16_t pair_buffers(const struct ib_endpoint *ep)
{
    return ib_frames_can_spread(ep) ? (uint16_t)MIN(ep->ib->rules.first, 1000u) : 0;
}

/* True if ring slots may be written over pairs: all adapters are of the type of the primary rail's adapter,
 * which places the last byte last. */
static bool rings_allowed_over_pairs(const struct ib *ib)
{
    const struct ib_device *home = ib->rails[0].device;
    for (uint32_t i = 1; i < ib->nrails; i++) {
        const struct ib_device *d = ib->rails[i].device;
        if (d->attr.vendor_id != home->attr.vendor_id || d->attr.vendor_part_id != home->attr.vendor_part_id)
            return false;
    }
    return ib->device.last_byte_last;
}

static void lane_init(struct ib_endpoint *ep, unsigned k)
{
    struct ib *ib = ep->ib;
    struct ib_lane *lane = &ep->pairs->pair[k].lane;
    struct ib_rail *rail = &ib->rails[ep->pairs->pair[k].mine];
    bool frames = pair_buffers(ep) > 0;
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

static struct ib_pairs *pairs_new(struct ib_endpoint *ep)
{
    struct ib_pairs *j = calloc(1, sizeof(*j));
    if (!j)
        return NULL; /* out of memory: the next large transfer tries again */
    list_init(&j->under_way);
    j->up = rail_bit(0);
    ep->pairs = j;
    return j;
}

void ib_pairs_request(struct ib_endpoint *ep)
{
    if (!ep->pairs && pairs_new(ep))
        ib_control_send(ep, IB_RAILS);
}

size_t ib_pairs_fill_message(struct ib_endpoint *ep, void *body)
{
    struct ib_rails_message *out = body;
    const struct ib *ib = ep->ib;
    const struct ib_pairs *j = ep->pairs;
    memset(out, 0, sizeof(*out));
    out->rails = (uint8_t)ib->nrails;
    out->pairs = (uint8_t)(j ? j->count : 0);
    out->frames = pair_buffers(ep) & 0x7fff;
    out->rings = rings_allowed_over_pairs(ib);
    ib_rails_describe(ib, out->rail);
    /* A port that is down is reported only after its pairs were dropped: the report makes the peer drop its
     * ends, and a frame that was acknowledged but not processed before would be lost. */
    for (uint32_t k = 1; k < out->pairs; k++)
        out->rail[j->pair[k].mine].up |= j->pair[k].joint.state != JOINT_APART;
    for (uint32_t k = 1; k < out->pairs; k++) {
        const struct ib_pair *s = &j->pair[k];
        struct joint_said said = joint_report(&s->joint);
        out->pair[k] = (struct ib_pair_info){.generation = said.generation,
                                             .qpn = s->lane.qp ? s->lane.qp->qp_num & 0xffffff : 0,
                                             .made = said.made,
                                             .joined = said.joined,
                                             .psn = s->lane.psn};
    }
    return sizeof(*out);
}

/* ---- the actions of joint.h ---- */

static void pair_connect_queue(struct ib_endpoint *ep, struct ib_pair *s, const struct ib_pair_info *to)
{
    const struct ib_rail_info *peer = &ep->pairs->peer[s->yours];
    if (s->lane.given_up) /* ib_pairs_drop_failed drops the pair when it has processed the arrived messages */
        return;
    if (ib_lane_connect(&s->lane, &peer->address, to->qpn, to->psn, peer->rd_atomic) != 0 &&
        !ib_adapter_is_gone(s->lane.rail->adapter))
        ib_fatal(ep->ib, ep, "%s", err_detail(MPI_ERR_OTHER));
    if (s->lane.bare)
        return;
    credit_start(&s->lane.credit, &ep->ib->rules, MAX(ep->pairs->frames, 1u));
    ep->pairs->owing &= ~rail_bit(s->lane.index - IB_LANES);
    ep->ib->events->pair_connected(&s->lane);
}

/* Creates the queue pair of an additional rail. If that fails the connection continues without the rail. */
static bool pair_create_queue(struct ib_pair *s)
{
    struct ib *ib = s->lane.endpoint->ib;
    int rc = s->lane.bare ? 0 : ib_shared_open(ib, s->lane.adapter);
    rc = rc ? rc : ib_lane_create(&s->lane);
    if (rc == 0)
        return true;
    log_warn("an additional rail to rank %u cannot be opened and is not used: %s",
             s->lane.endpoint->peer->rank, err_detail(rc));
    err_clear();
    return false;
}

/* Called before a queue pair is destroyed. If frames were in flight on it, the peer cannot deliver later
 * frames; the connection is reopened, which repeats them. */
static void pair_collect_frames(struct ib_lane *lane)
{
    struct ib_endpoint *ep = lane->endpoint;
    bool gap = ib_lane_carries_frames(lane);
    if (lane->bare || !lane->qp)
        return;
    ep->ib->events->pair_dropped(lane);
    if (!gap || ep->pairs->rejoining)
        return;
    if (ep->route.state != FRAME_ROUTE_FAILING &&
        ep->conn.state == CONN_OPEN) /* the path of the connection has not failed */
        ep->paths->next = ep->paths->at;
    ep->ib->events->failed(ep, NULL);
}

/* Detaches held frames of a destroyed queue pair: they return no credits, because the next queue pair starts
 * with new credits. */
static void pair_detach_frames(struct ib_endpoint *ep, const struct ib_lane *lane)
{
    list_foreach(pos, &ep->held)
    {
        struct ib_buffer *b = list_entry(pos, struct ib_buffer, link);
        if (b->lane == lane)
            b->lane = NULL;
    }
}

static void pair_perform_actions(struct ib_endpoint *ep, unsigned k, unsigned actions,
                                 const struct ib_pair_info *said)
{
    struct ib_pairs *j = ep->pairs;
    struct ib_pair *s = &j->pair[k];
    if (actions & JOINT_DO_DROP) {
        counter_add(&failures, 1);
        j->up &= ~rail_bit(k);
        ep->ib->events->pair_changed(ep, k, false);
        pair_collect_frames(&s->lane);
        pair_detach_frames(ep, &s->lane);
        ib_lane_destroy_queue_pair(&s->lane);
    }
    if (actions & JOINT_DO_SETTLE)
        ep->ib->events->pair_settled(ep, k);
    if (actions & JOINT_DO_CREATE && !pair_create_queue(s)) {
        s->resting = true;
        actions = joint_set_wanted(&s->joint, false);
    }
    if (actions & JOINT_DO_CONNECT)
        pair_connect_queue(ep, s, said);
    if (actions & JOINT_DO_USE) {
        counter_add(&joined, 1);
        j->up |= rail_bit(k);
        adapt_restore_rail(&j->adapt, k);
        ep->ib->events->pair_changed(ep, k, true);
        log_debug("rail to rank %u: %s is connected to rail %u of that rank", ep->peer->rank,
                  s->lane.rail->device->name, s->yours);
    }
    if (actions & JOINT_DO_SAY)
        ib_control_send(ep, IB_RAILS);
}

static bool is_pair_wanted(const struct ib_endpoint *ep, const struct ib_pair *s)
{
    return ib_rail_is_up(s->lane.rail) && ep->pairs->peer[s->yours].up && !s->resting;
}

/* Requests that the next poll drops failed pairs, after the messages that arrived through them. */
static void schedule_pair_drop(struct ib *ib)
{
    ib->pair_failures = true;
    atomic_store(&ib->attention, 1);
}

/* Joins or drops the pair if its ports have changed. Arrived frames must be processed before a drop
 * (stop_failed_pairs), unless the peer has dropped its end: then they arrived before the peer's report. */
static void pair_follow_ports(struct ib_endpoint *ep, unsigned k)
{
    struct ib_pair *s = &ep->pairs->pair[k];
    bool wanted = is_pair_wanted(ep, s);
    if (wanted == s->joint.wanted)
        return;
    if (!wanted && ep->pairs->peer[s->yours].up && !s->lane.bare && s->lane.qp)
        schedule_pair_drop(ep->ib);
    else
        pair_perform_actions(ep, k, joint_set_wanted(&s->joint, wanted), NULL);
}

void ib_pair_rejoin(struct ib_endpoint *ep, unsigned pair)
{
    ep->pairs->rejoining = true;
    pair_perform_actions(ep, pair, joint_separate(&ep->pairs->pair[pair].joint), NULL);
    ep->pairs->rejoining = false;
}

void ib_pair_report_failure(struct ib_lane *lane, const char *why)
{
    struct ib_endpoint *ep = lane->endpoint;
    unsigned k = (unsigned)(lane->index - IB_LANES);
    struct ib_pair *s = &ep->pairs->pair[k];
    log_warn("the rail over %s to rank %u failed: %s; messages to that rank now use the other rails",
             lane->rail->device->name, ep->peer->rank, why);
    s->resting = true;
    if (lane->bare) {
        pair_follow_ports(ep, k);
        return;
    }
    schedule_pair_drop(ep->ib);
}

/* ---- reports of the peer ---- */

/* Pairs the rails. Both ends must number the pairs equally, so the first end (ib_endpoint_is_first)
 * determines the order. */
static void match_rail_pairs(struct ib_endpoint *ep, const struct ib_rail_info *mine)
{
    struct ib_pairs *j = ep->pairs;
    struct pair_net own[IB_RAILS_MAX], other[IB_RAILS_MAX];
    struct pair pairs[RAILS_MAX];
    bool first = ib_endpoint_is_first(ep);
    ib_rails_list_networks(mine, ep->ib->nrails, own);
    ib_rails_list_networks(j->peer, j->peer_rails, other);
    j->count = first ? pair_rails(own, ep->ib->nrails, other, j->peer_rails, pairs)
                     : pair_rails(other, j->peer_rails, own, ep->ib->nrails, pairs);
    for (unsigned k = 0; k < j->count; k++) {
        j->pair[k].mine = first ? pairs[k].a : pairs[k].b;
        j->pair[k].yours = first ? pairs[k].b : pairs[k].a;
        lane_init(ep, k);
    }
    j->pair[0].mine = ep->primary; /* the current rails of the connection */
    j->pair[0].yours = ep->peer_rail;
    adapt_open(&j->adapt, j->count, STEADINESS);
    ep->ib->events->pairs_known(ep);
    if (j->count == 1)
        log_info("messages to rank %u use one rail: the two hosts have no other ports on a common network",
                 ep->peer->rank);
}

void ib_pairs_take_message(struct ib_endpoint *ep, const struct ib_rails_message *said)
{
    struct ib_rails_message mine;
    if (said->rails < 1 || said->rails > IB_RAILS_MAX || said->pairs > RAILS_MAX)
        ib_fatal(ep->ib, ep, "it sent an invalid list of rails");
    for (uint32_t i = 0; i < said->rails; i++)
        if (said->rail[i].adapter >= IB_ADAPTERS_MAX)
            ib_fatal(ep->ib, ep, "it sent an invalid list of rails");
    struct ib_pairs *j = ep->pairs ? ep->pairs : pairs_new(ep);
    if (!j)
        return;
    if (j->count > 0 && said->rails != j->peer_rails)
        ib_fatal(ep->ib, ep, "it sent an invalid list of rails");
    bool first = j->count == 0;
    for (unsigned k = 1; k < j->count; k++) /* pairs whose port has come up again */
        if (said->rail[j->pair[k].yours].up && !j->peer[j->pair[k].yours].up)
            j->pair[k].resting = false;
    memcpy(j->peer, said->rail, sizeof(j->peer));
    j->frames = said->frames;
    j->rings = said->rings;
    for (uint32_t i = 0; ep->paths && i < MIN(said->rails, ep->paths->peer_rails); i++)
        ep->paths->peer[i].address =
            said->rail[i].address; /* a port that was down at the start had no address */
    if (first) {
        j->peer_rails = said->rails;
        ib_pairs_fill_message(ep, &mine);
        match_rail_pairs(ep, mine.rail);
        ib_control_send(ep,
                        IB_RAILS); /* also if there is nothing to connect: the peer needs the list of rails */
    }
    for (unsigned k = 1; k < j->count; k++) {
        struct ib_pair *s = &j->pair[k];
        const struct ib_pair_info *p = &said->pair[k];
        pair_follow_ports(ep, k);
        if (said->pairs == 0)
            continue;
        struct joint_said report = {.generation = p->generation, .made = p->made, .joined = p->joined};
        pair_perform_actions(ep, k, joint_receive(&s->joint, &report), p);
    }
}

/* ---- ports, and the end ---- */

/* Stops receiving on failed pairs and processes the frames that have arrived through them, before the pairs
 * are dropped: the sender has acknowledgements for these frames and does not repeat them. */
static void stop_failed_pairs(struct ib *ib)
{
    bool any = false;
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        const struct ib_endpoint *ep = ib->endpoints[i];
        for (unsigned k = 1; ep->peer && ep->pairs && k < ep->pairs->count; k++) {
            struct ib_pair *s = &ep->pairs->pair[k];
            if (s->lane.bare || !s->lane.qp || (is_pair_wanted(ep, s) && !s->lane.failed))
                continue;
            ib_lane_set_error(&s->lane);
            any = true;
        }
    }
    if (any)
        ib_completions_drain(ib);
}

static void drop_failed_pair(struct ib_endpoint *ep, unsigned k)
{
    struct ib_pair *s = &ep->pairs->pair[k];
    bool dropped = !s->lane.bare && s->lane.qp && s->lane.given_up;
    if (dropped)
        pair_perform_actions(ep, k, joint_separate(&s->joint), NULL);
    if (dropped || s->resting)
        pair_follow_ports(ep, k);
}

void ib_pairs_drop_failed(struct ib *ib)
{
    ib->pair_failures = false;
    stop_failed_pairs(ib);
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        struct ib_endpoint *ep = ib->endpoints[i];
        for (unsigned k = 1; ep->peer && ep->pairs && k < ep->pairs->count; k++)
            drop_failed_pair(ep, k);
        if (ep->peer &&
            ep->conn.state == CONN_AGREED) /* the connection may have waited only for the marker of a pair */
            ib_endpoint_perform_actions(ep, 0);
    }
}

void ib_pairs_check_ports(struct ib *ib, bool rested)
{
    ib_pairs_drop_failed(ib);
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        struct ib_endpoint *ep = ib->endpoints[i];
        if (!ep->pairs || !ep->peer || ep->conn.state != CONN_OPEN)
            continue;
        for (unsigned k = 1; k < ep->pairs->count; k++) {
            if (rested || ib_rail_is_up(ep->pairs->pair[k].lane.rail)) /* the port may just have come up */
                ep->pairs->pair[k].resting = false;
            pair_follow_ports(ep, k);
        }
        if (!rested) /* the peer joins a rail only when it knows that both ports are up */
            ib_control_send(ep, IB_RAILS);
    }
}

void ib_pairs_free(struct ib_endpoint *ep)
{
    struct ib_pairs *j = ep->pairs;
    if (!j)
        return;
    ep->ib->events->pairs_freed(ep);
    for (unsigned k = 1; k < j->count; k++) {
        pair_detach_frames(ep, &j->pair[k].lane);
        if (j->pair[k].lane.qp)
            ib_lane_destroy(&j->pair[k].lane);
        free(j->pair[k].lane.work);
        free(j->pair[k].lane.copies);
        free(j->pair[k].lane.rdma);
    }
    if (ep->ib->allot)
        ep->ib->allot->close_peer(ep);
    free(j);
    ep->pairs = NULL;
}
