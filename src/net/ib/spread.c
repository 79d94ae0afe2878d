/* spread.c: frames over several rails; see spread.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/spread.h"

#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/tunable.h"
#include "net/ib/ib.h"

enum { AUTO, BINDING }; /* then as enum mux_policy */

static TUNABLE_CHOICE(
    policy, "IB_MESSAGES", AUTO, "auto|binding|turns|shares|window|room",
    "How small messages, up to FISHPLATE_IB_FRAME, and control messages use several rails: those of 1 KiB "
    "and "
    "more over all by the rates of the ports and shorter ones over the rail of the process (auto), all over "
    "the rail of the process, and processes of a node over different ones (binding), over all in turns "
    "(turns), by FISHPLATE_IB_WEIGHTS (shares), 16 messages at a time (window), or where fewer than 64 KiB "
    "are under way (room). Should be the same on all ranks: a rank that binds is sent to over its rail "
    "alone.");

static COUNTER(further, "ib_frames_spread",
               "Frames sent over rails other than that of the connection (FISHPLATE_IB_MESSAGES).");

/* Of auto. The shortest messages cost the processor more where they change rails; from about 1 KiB on the link is the limit
 * (bench/notes/rails.md). Receive buffers on further rails are for peers that are sent more than a few such messages. */
#define KEPT_BELOW 1024
#define FEW        16

#define WINDOW_MESSAGES 16
#define WINDOW_BYTES    (64 * 1024)

bool ib_spreads(const struct ib_endpoint *ep)
{
    return ep->several && ep->ways && policy.value != BINDING;
}

static struct ib_spread *of(const struct ib_endpoint *ep)
{
    return ep->join ? ep->join->spread : NULL;
}

static unsigned pair_of(const struct ib_lane *lane)
{
    return lane->index >= IB_LANES ? (unsigned)(lane->index - IB_LANES) : 0;
}

uint16_t ib_spread_posted(const struct ib_endpoint *ep)
{
    return ib_spreads(ep) ? (uint16_t)MIN(ep->ib->rules.first, 1000u) : 0;
}

/* The end of a frame in a ring can be polled for when every adapter writes as that of the home does. */
bool ib_spread_rings(const struct ib *ib)
{
    const struct ib_device *home = ib->rails[0].device;
    for (uint32_t i = 1; i < ib->nrails; i++) {
        const struct ib_device *d = ib->rails[i].device;
        if (d->attr.vendor_id != home->attr.vendor_id || d->attr.vendor_part_id != home->attr.vendor_part_id)
            return false;
    }
    return ib->device.last_byte_last;
}

/* ---- which pairs ---- */

/* Of auto, the rates: a slow end makes a slow pair. */
static double weight_of(const struct ib_endpoint *ep, const struct ib_subchannel *pair)
{
    const struct ib_rail *mine = &ep->ib->rails[pair->mine];
    if (policy.value != AUTO)
        return mine->weight;
    return MAX(MIN(mine->device->used->rate, ep->join->peer[pair->yours].rate), 1u);
}

void ib_spread_open(struct ib_endpoint *ep)
{
    struct ib_join *j = ep->join;
    if (!ib_spreads(ep) || j->count < 2)
        return;
    struct ib_spread *s = calloc(1, sizeof(*s));
    if (!s)
        return; /* the home alone will do */
    double weight[RAILS_MAX];
    for (unsigned k = 0; k < j->count; k++)
        weight[k] = weight_of(ep, &j->pairs[k]);
    enum mux_policy how =
        policy.value == AUTO ? MUX_WEIGHTS : (enum mux_policy)(policy.value - BINDING + MUX_BINDING);
    mux_open(&s->mux, how, j->count, 0);
    mux_settings(&s->mux, weight, how == MUX_WINDOW ? WINDOW_MESSAGES : WINDOW_BYTES);
    mux_keep(&s->mux, policy.value == AUTO ? KEPT_BELOW + 1 : 0); /* it counts one byte more for each frame */
    j->spread = s;
}

void ib_spread_close(struct ib_endpoint *ep)
{
    struct ib_spread *s = of(ep);
    for (unsigned k = 0; s && k < RAILS_MAX; k++)
        free(s->bytes[k]);
    free(s);
    if (ep->join)
        ep->join->spread = NULL;
    ib_spread_look(ep);
}

void ib_spread_look(struct ib_endpoint *ep)
{
    const struct ib_spread *s = of(ep);
    ep->spread = s && ep->join->frames > 0 && (ep->join->up & ~rail_bit(0)) != 0;
    ib_set_ready(ep, ep->ready);
}

/* The queue pair is new, and nothing is under way on it. */
static void begin_anew(struct ib_spread *s, const struct ib_lane *lane, unsigned k)
{
    s->seen[k] = 0;
    s->quiet[k] = 0;
    mux_done(&s->mux, k, UINT64_MAX);
    if (s->bytes[k])
        memset(s->bytes[k], 0, lane->depth * sizeof(uint32_t));
}

void ib_spread_connected(struct ib_lane *lane, uint16_t posted)
{
    struct ib_spread *s = of(lane->endpoint);
    unsigned k = pair_of(lane);
    credit_start(&lane->credit, &lane->endpoint->ib->rules, MAX(posted, 1u));
    if (!s)
        return;
    s->owing &= ~rail_bit(k);
    begin_anew(s, lane, k);
}

void ib_spread_home(struct ib_endpoint *ep)
{
    if (of(ep))
        begin_anew(of(ep), &ep->lanes[ep->ib->lanes - 1], 0);
    ib_spread_look(ep);
}

static struct ib_lane *lane_of(struct ib_endpoint *ep, unsigned pair, size_t len)
{
    return pair == 0 ? ib_lane_for(ep, len) : &ep->join->pairs[pair].lane;
}

/* Tells mux what has arrived since it was last asked. Where the home has two queue pairs, that of large frames counts. */
static void count_arrived(struct ib_endpoint *ep, struct ib_spread *s)
{
    for (unsigned k = 0; k < s->mux.rails; k++) {
        const struct ib_lane *lane = lane_of(ep, k, SIZE_MAX);
        for (; s->bytes[k] && s->seen[k] != lane->tail; s->seen[k]++) {
            uint32_t *bytes = &s->bytes[k][s->seen[k] & (lane->depth - 1)];
            if (*bytes)
                mux_done(&s->mux, k, *bytes);
            *bytes = 0;
        }
    }
}

/* The frame is about to be posted on the lane: true when its end must be reported, so that the window moves. */
static bool count_sent(struct ib_spread *s, const struct ib_lane *lane, unsigned k, size_t bytes)
{
    if (s->mux.policy != MUX_ROOM || (k == 0 && lane->index != lane->endpoint->ib->lanes - 1)) {
        mux_done(&s->mux, k, bytes);
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

static unsigned choose(struct ib_endpoint *ep, struct ib_spread *s, size_t bytes)
{
    uint32_t changed = s->mux.up ^ ep->join->up;
    for (unsigned k = 0; unlikely(changed != 0) && k < s->mux.rails; k++)
        if (rail_in(changed, k))
            mux_up(&s->mux, k, rail_in(ep->join->up, k));
    if (s->mux.policy == MUX_ROOM)
        count_arrived(ep, s);
    return mux_next(&s->mux, bytes);
}

/* ---- sending ---- */

void ib_spread_begin(struct ib_endpoint *ep)
{
    if (!ib_spreads(ep))
        return;
    ep->watched = policy.value == AUTO ? FEW : 0;
    if (!ep->watched)
        ib_join_want(ep);
    ib_set_ready(ep, ep->ready);
}

static void watch(struct ib_endpoint *ep, size_t len)
{
    if (len < KEPT_BELOW || ep->watched == 0 || --ep->watched > 0)
        return;
    ib_join_want(ep);
    ib_set_ready(ep, ep->ready);
}

void ib_spread_head(struct ib_lane *lane, struct ib_head *h, enum ib_type type, bool waited)
{
    struct ib_endpoint *ep = lane->endpoint;
    *h = (struct ib_head){.seq = type == IB_FRAME ? ep->next_seq++ : 0,
                          .type = (uint8_t)type,
                          .flags = (uint8_t)(IB_PAIRED | (waited ? IB_WAITED : 0)),
                          .credits = {(uint8_t)credit_tell(&lane->credit, UINT8_MAX)},
                          /* What is lost with the pair is sent again, but credits are not. */
                          .ring = type == IB_FRAME ? (uint16_t)ring_rx_tell(&ep->rx, UINT16_MAX) : 0};
    ep->used = ep->ib->tick;
}

static void sent(struct ib_endpoint *ep, unsigned k, size_t bytes)
{
    const struct ib_rail *rail = lane_of(ep, k, 0)->rail;
    counter_add(&further, k > 0);
    counter_add(rail->frames, 1);
    counter_add(rail->bytes, bytes);
}

static bool by_ring(const struct ib_endpoint *ep, unsigned k, size_t len)
{
    return ep->tx_on && len <= ep->tx_frame_max && (k == 0 || (ep->join->rings && !ep->tx_by_imm));
}

static int send_over(struct ib_endpoint *ep, unsigned k, uint64_t head, uint64_t from, uint64_t word,
                     const void *payload, size_t len)
{
    struct ib_spread *s = of(ep);
    struct ib_lane *lane = lane_of(ep, k, len), *ring = k == 0 ? &ep->lanes[0] : lane;
    char *room = by_ring(ep, k, len) ? ib_rdma_room_on(ep, ring) : NULL;
    if (!room) {
        uint32_t place = lane->head;
        bool signal = count_sent(s, lane, k, len + 1);
        int rc = ib_lane_frame(lane, head, from, word, payload, len, signal);
        if (rc != 0 && s->bytes[k])
            s->bytes[k][place & (lane->depth - 1)] = 0;
        if (rc != 0)
            mux_done(&s->mux, k, len + 1);
        return rc;
    }
    struct ib_frame *f = (struct ib_frame *)(void *)room;
    bool signal = count_sent(s, ring, k, len + 1);
    ib_head_fill(ep, &f->head, IB_FRAME, false);
    frame_write(&f->header, head, from, word);
    if (len > 0)
        memcpy(f->payload, payload, len);
    ib_rdma_post_on(ep, ring, k == 0 ? ep->their_adapter : ep->join->peer[ep->join->pairs[k].yours].adapter,
                    sizeof(*f) + len, signal);
    return 0;
}

int ib_spread_send(struct ib_endpoint *ep, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                   size_t len)
{
    if (!ep->ready)
        return ib_not_open(ep);
    if (!ep->spread) {
        watch(ep, len);
        return ib_home_send(ep, head, from, word, payload, len);
    }
    struct ib_spread *s = of(ep);
    unsigned k = choose(ep, s, len + 1);
    if (k == RAIL_NONE) /* all windows are full; the ends of what is under way are reported */
        return ERR_AGAIN;
    int rc = send_over(ep, k, head, from, word, payload, len);
    if (rc != 0 && k > 0) /* the home may have room */
        rc = send_over(ep, k = 0, head, from, word, payload, len);
    if (rc == 0)
        sent(ep, k, len);
    return rc;
}

/* Built in place: on a further rail, a buffer of the send/receive channel, which all of them have. */
int ib_spread_reserve(struct ib_endpoint *ep, size_t len, void **payload)
{
    if (!ep->ready)
        return ib_not_open(ep);
    if (!ep->spread) {
        watch(ep, len);
        return ib_home_reserve(ep, len, payload);
    }
    struct ib_spread *s = of(ep);
    unsigned k = choose(ep, s, len + 1);
    if (k == RAIL_NONE)
        return ERR_AGAIN;
    mux_done(&s->mux, k, len + 1); /* counted when it goes */
    struct ib_lane *lane = lane_of(ep, k, len);
    if (k == 0 || ib_lane_claim(lane, &ep->reserved_waited) != 0)
        return ib_home_reserve(ep, len, payload);
    ep->reserved_room = NULL;
    ep->reserved_lane = lane;
    ep->reserved = ib_buffer_get(lane->pool);
    if (!ep->reserved) {
        credit_untake(&lane->credit, ep->reserved_waited);
        return ib_no_buffer(lane);
    }
    *payload = ((struct ib_frame *)(void *)ep->reserved->data)->payload;
    return 0;
}

/* The home's are committed as if there were no other rail. */
void ib_spread_commit(struct ib_endpoint *ep, const struct frame_header *header, size_t len)
{
    struct ib_lane *lane = ep->reserved_lane;
    struct ib_frame *f = (struct ib_frame *)(void *)ep->reserved->data;
    ib_spread_head(lane, &f->head, IB_FRAME, ep->reserved_waited);
    f->header = *header;
    ib_lane_message(lane, ep->reserved, f, sizeof(*f) + len, false);
    ep->reserved = NULL;
    sent(ep, pair_of(lane), len);
}

/* ---- credits ---- */

void ib_spread_credits(struct ib_lane *lane, struct ib_head *h)
{
    if (h->flags & IB_PAIRED && h->credits[0]) {
        credit_granted(&lane->credit, h->credits[0]);
        h->credits[0] = 0;
    }
}

static void tell(struct ib_lane *lane)
{
    struct ib_head h;
    struct ib_spread *s = of(lane->endpoint);
    unsigned k = pair_of(lane);
    if (!ib_lane_room(lane, 1, true)) {
        s->owing |= rail_bit(k);
        return;
    }
    s->owing &= ~rail_bit(k);
    ib_spread_head(lane, &h, IB_CREDIT, false);
    ib_lane_control(lane, &h, sizeof(h), false);
}

void ib_spread_owe(struct ib_lane *lane)
{
    struct ib_endpoint *ep = lane->endpoint;
    if (!of(ep) || !lane->qp || ep->breaking || !credit_due(&lane->credit))
        return;
    tell(lane);
    if (of(ep)->owing && list_empty(&ep->unsaid_link))
        list_append(&ep->ib->unsaid, &ep->unsaid_link);
}

void ib_spread_flush(struct ib_endpoint *ep)
{
    struct ib_spread *s = of(ep);
    for (unsigned k = 1; s->owing && k < s->mux.rails; k++)
        if (rail_in(s->owing, k) && ep->join->pairs[k].lane.qp && !ep->breaking)
            tell(&ep->join->pairs[k].lane);
        else
            s->owing &= ~rail_bit(k);
}

/* ---- the end of pairs ---- */

static bool carries(const struct ib_lane *lane)
{
    for (uint32_t at = lane->tail; at != lane->head; at++) {
        const struct ib_work *w = &lane->work[at & (lane->depth - 1)];
        if (w->frame && !w->op)
            return true;
    }
    return false;
}

bool ib_spread_carries(const struct ib_lane *lane)
{
    return !lane->bare && lane->qp && carries(lane);
}

void ib_spread_fail(struct ib_endpoint *ep)
{
    for (unsigned k = 1; of(ep) && k < ep->join->count; k++) {
        enum joint_state state = ep->join->pairs[k].joint.state;
        if (state == JOINT_READY || state == JOINT_USED) /* else it is not connected */
            ib_lane_fail(&ep->join->pairs[k].lane);
    }
}

void ib_spread_drop(struct ib_endpoint *ep)
{
    for (unsigned k = 1; of(ep) && k < ep->join->count; k++)
        ib_join_again(ep, k);
}

bool ib_spread_quiet(struct ib_endpoint *ep)
{
    bool quiet = true;
    for (unsigned k = 1; of(ep) && k < ep->join->count; k++) {
        struct ib_lane *lane = &ep->join->pairs[k].lane;
        if (!ib_spread_carries(lane))
            continue;
        quiet = false;
        ib_lane_ask(lane);
    }
    return quiet;
}

bool ib_spread_may_end(const struct ib_endpoint *ep)
{
    for (unsigned k = 1; of(ep) && k < ep->join->count; k++)
        if (ep->join->pairs[k].lane.qp && !ib_lane_room(&ep->join->pairs[k].lane, 2, true))
            return false;
    return true;
}

void ib_spread_last(struct ib_endpoint *ep)
{
    for (unsigned k = 1; of(ep) && k < ep->join->count; k++) {
        struct ib_lane *lane = &ep->join->pairs[k].lane;
        if (!lane->qp || lane->head == lane->tail)
            continue;
        ep->last_words++;
        ib_lane_end(lane, true);
    }
}
