/* spread.c: frames over several rails [Liu04 8.2.4]: the policy IB_MESSAGES distributes small messages and
 * the control messages of protocols. net/rails/mux.h chooses a pair of rails for each frame; see rails.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "net/ib/channel/channel.h"
#include "net/ib/rails/rails.h"

static COUNTER(further, "ib_frames_spread",
               "Frames sent over rails other than that of the connection (FISHPLATE_LAB=IB_MESSAGES).");

/* For IB_MESSAGES=auto. Below about 1 KiB a change of rails costs more processor time than it saves; above,
 * the link is the limit (lab/notes/rails.md). Further rails, which need receive buffers, are connected after
 * FEW messages of KEPT_BELOW bytes or more. */
#define KEPT_BELOW 1024 /* bytes */
#define FEW        16

#define WINDOW_MESSAGES 16
#define WINDOW_BYTES    (64 * 1024)

static struct ib_spread *endpoint_spread(const struct ib_endpoint *ep)
{
    return ep->pairs ? ep->pairs->spread : NULL;
}

static unsigned lane_pair_index(const struct ib_lane *lane)
{
    return lane->index >= IB_LANES ? (unsigned)(lane->index - IB_LANES) : 0;
}

/* ---- which pairs ---- */

/* The weight of a pair. With IB_MESSAGES=auto, the rate of the slower end; else the rail's weight. */
static double pair_weight(const struct ib_endpoint *ep, const struct ib_pair *pair)
{
    const struct ib_rail *mine = &ep->ib->rails[pair->mine];
    if (ib_frames_get_policy() != IB_FRAMES_AUTO)
        return mine->weight;
    return MAX(MIN(mine->device->used->rate, ep->pairs->peer[pair->yours].rate), 1u);
}

void ib_spread_open(struct ib_endpoint *ep)
{
    struct ib_pairs *j = ep->pairs;
    if (!ib_frames_can_spread(ep) || j->count < 2)
        return;
    struct ib_spread *s = calloc(1, sizeof(*s));
    if (!s)
        return; /* frames use the primary rail alone */
    double weight[RAILS_MAX];
    for (unsigned k = 0; k < j->count; k++)
        weight[k] = pair_weight(ep, &j->pair[k]);
    enum mux_policy how = ib_frames_get_policy() == IB_FRAMES_AUTO
                              ? MUX_WEIGHTS
                              : (enum mux_policy)(ib_frames_get_policy() - IB_FRAMES_BINDING + MUX_BINDING);
    mux_open(&s->mux, how, j->count, 0);
    mux_settings(&s->mux, weight, how == MUX_WINDOW ? WINDOW_MESSAGES : WINDOW_BYTES);
    mux_set_short_limit(&s->mux, ib_frames_get_policy() == IB_FRAMES_AUTO
                                     ? KEPT_BELOW + 1
                                     : 0); /* mux counts one byte more than the payload */
    j->spread = s;
}

void ib_spread_close(struct ib_endpoint *ep)
{
    struct ib_spread *s = endpoint_spread(ep);
    for (unsigned k = 0; s && k < RAILS_MAX; k++)
        free(s->bytes[k]);
    free(s);
    if (ep->pairs)
        ep->pairs->spread = NULL;
    ib_spread_update_route(ep);
}

void ib_spread_update_route(struct ib_endpoint *ep)
{
    const struct ib_spread *s = endpoint_spread(ep);
    frame_route_set_pairs(&ep->route, s && ep->pairs->frames > 0 && (ep->pairs->up & ~rail_bit(0)) != 0);
}

/* Resets the state of a rail after its queue pair was created. */
static void reset_rail_state(struct ib_spread *s, const struct ib_lane *lane, unsigned k)
{
    s->seen[k] = 0;
    s->quiet[k] = 0;
    mux_report_completed(&s->mux, k, UINT64_MAX);
    if (s->bytes[k])
        memset(s->bytes[k], 0, lane->depth * sizeof(uint32_t));
}

void ib_spread_reset_pair(struct ib_lane *lane)
{
    struct ib_spread *s = endpoint_spread(lane->endpoint);
    if (s)
        reset_rail_state(s, lane, lane_pair_index(lane));
}

void ib_spread_reset_primary(struct ib_endpoint *ep)
{
    if (endpoint_spread(ep))
        reset_rail_state(endpoint_spread(ep), &ep->lanes[ep->ib->lanes - 1], 0);
    ib_spread_update_route(ep);
}

static struct ib_lane *find_frame_lane(struct ib_endpoint *ep, unsigned pair, size_t len)
{
    return pair == 0 ? ib_lane_for_size(ep, len) : &ep->pairs->pair[pair].lane;
}

/* Reports bytes completed since the last choice to mux. Of two queue pairs of the primary rail, only that of
 * large frames counts. */
static void spread_count_completed(struct ib_endpoint *ep, struct ib_spread *s)
{
    for (unsigned k = 0; k < s->mux.rails; k++) {
        const struct ib_lane *lane = find_frame_lane(ep, k, SIZE_MAX);
        for (; s->bytes[k] && s->seen[k] != lane->tail; s->seen[k]++) {
            uint32_t *bytes = &s->bytes[k][s->seen[k] & (lane->depth - 1)];
            if (*bytes)
                mux_report_completed(&s->mux, k, *bytes);
            *bytes = 0;
        }
    }
}

/* Counts a frame that is about to be posted. True if the request must be signalled to advance the window. */
static bool spread_count_sent(struct ib_spread *s, const struct ib_lane *lane, unsigned k, size_t bytes)
{
    if (s->mux.policy != MUX_ROOM || (k == 0 && lane->index != lane->endpoint->ib->lanes - 1)) {
        mux_report_completed(&s->mux, k, bytes);
        return false;
    }
    if (!s->bytes[k]) {
        s->bytes[k] = calloc(lane->depth, sizeof(uint32_t));
        s->seen[k] = lane->tail;
    }
    if (!s->bytes[k])
        return false;
    s->bytes[k][lane->head & (lane->depth - 1)] = (uint32_t)bytes;
    s->quiet[k] += bytes;
    if (s->quiet[k] < WINDOW_BYTES / 4)
        return false;
    s->quiet[k] = 0;
    return true;
}

static unsigned spread_choose_pair(struct ib_endpoint *ep, struct ib_spread *s, size_t bytes)
{
    uint32_t changed = s->mux.up ^ ep->pairs->up;
    for (unsigned k = 0; unlikely(changed != 0) && k < s->mux.rails; k++)
        if (rail_set_contains(changed, k))
            mux_set_rail_up(&s->mux, k, rail_set_contains(ep->pairs->up, k));
    if (s->mux.policy == MUX_ROOM)
        spread_count_completed(ep, s);
    return mux_next(&s->mux, bytes);
}

/* ---- sending ---- */

void ib_spread_start(struct ib_endpoint *ep)
{
    if (!ib_frames_can_spread(ep))
        return;
    bool counts = ib_frames_get_policy() == IB_FRAMES_AUTO;
    frame_route_set_counted(&ep->route, counts ? FEW : 0);
    if (!counts)
        ib_pairs_request(ep);
}

static void spread_count_bytes(struct ib_endpoint *ep, size_t len)
{
    if (len >= KEPT_BELOW && frame_route_count_frame(&ep->route))
        ib_pairs_request(ep);
}

static void spread_record_sent(struct ib_endpoint *ep, unsigned k, size_t bytes)
{
    const struct ib_rail *rail = find_frame_lane(ep, k, 0)->rail;
    counter_add(&further, k > 0);
    counter_add(rail->frames, 1);
    counter_add(rail->bytes, bytes);
}

static bool is_sent_by_ring(const struct ib_endpoint *ep, unsigned k, size_t len)
{
    return ep->tx_on && len <= ep->tx_frame_max && (k == 0 || ep->pairs->rings);
}

static int send_over_pair(struct ib_endpoint *ep, unsigned k, uint64_t head, uint64_t from, uint64_t word,
                          const void *payload, size_t len)
{
    struct ib_spread *s = endpoint_spread(ep);
    struct ib_lane *lane = find_frame_lane(ep, k, len), *ring = k == 0 ? &ep->lanes[0] : lane;
    char *room = is_sent_by_ring(ep, k, len) ? ib_ring_reserve_slot(ep, ring) : NULL;
    if (!room) {
        uint32_t place = lane->head;
        bool signal = spread_count_sent(s, lane, k, len + 1);
        int rc = ib_lane_send_frame(lane, head, from, word, payload, len, signal);
        if (rc != 0 && s->bytes[k])
            s->bytes[k][place & (lane->depth - 1)] = 0;
        if (rc != 0)
            mux_report_completed(&s->mux, k, len + 1);
        return rc;
    }
    struct ib_frame *f = (struct ib_frame *)(void *)room;
    bool signal = spread_count_sent(s, ring, k, len + 1);
    ib_head_fill(ep, &f->head, IB_FRAME, false);
    frame_write(&f->header, head, from, word);
    if (len > 0)
        memcpy(f->payload, payload, len);
    ib_ring_post_slot_over(ep, ring,
                           k == 0 ? ep->peer_adapter : ep->pairs->peer[ep->pairs->pair[k].yours].adapter,
                           sizeof(*f) + len, signal);
    return 0;
}

static int spread_send(struct ib_endpoint *ep, uint64_t head, uint64_t from, uint64_t word,
                       const void *payload, size_t len)
{
    if (!frame_route_is_ready(&ep->route))
        return ib_frame_open_connection(ep);
    if (ep->route.state != FRAME_ROUTE_SPREAD) {
        spread_count_bytes(ep, len);
        return ib_primary_send_inline(ep, head, from, word, payload, len);
    }
    struct ib_spread *s = endpoint_spread(ep);
    unsigned k = spread_choose_pair(ep, s, len + 1);
    if (k == RAIL_NONE) /* all windows are full; completions of frames in flight will open them */
        return ERR_AGAIN;
    int rc = send_over_pair(ep, k, head, from, word, payload, len);
    if (rc != 0 && k > 0) /* the primary rail may have room */
        rc = send_over_pair(ep, k = 0, head, from, word, payload, len);
    if (rc == 0)
        spread_record_sent(ep, k, len);
    return rc;
}

/* Reserves a buffer for the frame: on an additional rail one of the send/receive channel. */
static int spread_reserve(struct ib_endpoint *ep, size_t len, void **payload)
{
    if (!frame_route_is_ready(&ep->route))
        return ib_frame_open_connection(ep);
    if (ep->route.state != FRAME_ROUTE_SPREAD) {
        spread_count_bytes(ep, len);
        return ib_primary_reserve_frame(ep, len, payload);
    }
    struct ib_spread *s = endpoint_spread(ep);
    unsigned k = spread_choose_pair(ep, s, len + 1);
    if (k == RAIL_NONE)
        return ERR_AGAIN;
    mux_report_completed(&s->mux, k, len + 1); /* counted when the frame is committed */
    if (k > 0 && ib_lane_reserve_frame(find_frame_lane(ep, k, len), payload) == 0)
        return 0;
    return ib_primary_reserve_frame(ep, len, payload);
}

/* ---- frames ---- */

int ib_send(struct peer *peer, uint64_t head, uint64_t from, uint64_t word, const void *payload, size_t len)
{
    struct ib_endpoint *ep = peer->endpoint;
    if (unlikely(ep->route.state != FRAME_ROUTE_PRIMARY))
        return spread_send(ep, head, from, word, payload, len);
    return ib_primary_send_inline(ep, head, from, word, payload, len);
}

int ib_reserve(struct peer *peer, size_t len, void **payload)
{
    struct ib_endpoint *ep = peer->endpoint;
    return likely(ep->route.state == FRAME_ROUTE_PRIMARY) ? ib_primary_reserve_frame(ep, len, payload)
                                                          : spread_reserve(ep, len, payload);
}

void ib_commit(struct peer *peer, const struct frame_header *header, size_t len)
{
    struct ib_endpoint *ep = peer->endpoint;
    const struct ib_lane *lane = ep->reserved_lane;
    if (likely(lane->index < IB_LANES)) {
        ib_primary_commit_frame(ep, header, len);
        return;
    }
    ib_lane_commit_frame(ep, header, len);
    spread_record_sent(ep, lane_pair_index(lane), len);
}

/* ---- the end of pairs ---- */

void ib_spread_fail_pairs(struct ib_endpoint *ep)
{
    for (unsigned k = 1; endpoint_spread(ep) && k < ep->pairs->count; k++) {
        enum joint_state state = ep->pairs->pair[k].joint.state;
        if (state == JOINT_READY || state == JOINT_USED) /* in other states the queue pair is not connected */
            ib_lane_set_error(&ep->pairs->pair[k].lane);
    }
}

void ib_spread_rejoin_pairs(struct ib_endpoint *ep)
{
    for (unsigned k = 1; endpoint_spread(ep) && k < ep->pairs->count; k++)
        ib_pair_rejoin(ep, k);
}

bool ib_spread_all_sends_done(struct ib_endpoint *ep)
{
    bool quiet = true;
    for (unsigned k = 1; endpoint_spread(ep) && k < ep->pairs->count; k++) {
        struct ib_lane *lane = &ep->pairs->pair[k].lane;
        if (!ib_lane_carries_frames(lane))
            continue;
        quiet = false;
        ib_lane_request_completion(lane);
    }
    return quiet;
}

bool ib_spread_has_room(const struct ib_endpoint *ep)
{
    for (unsigned k = 1; endpoint_spread(ep) && k < ep->pairs->count; k++)
        if (ep->pairs->pair[k].lane.qp && !ib_lane_has_room(&ep->pairs->pair[k].lane, 2, true))
            return false;
    return true;
}

void ib_spread_post_markers(struct ib_endpoint *ep)
{
    for (unsigned k = 1; endpoint_spread(ep) && k < ep->pairs->count; k++) {
        struct ib_lane *lane = &ep->pairs->pair[k].lane;
        if (!lane->qp || lane->head == lane->tail)
            continue;
        ep->final_markers++;
        ib_lane_post_marker(lane, true);
    }
}
