/* move.c: a connection whose queue pairs fail goes on over another rail: its port went down, the cable was pulled, an adapter
 * was taken out, here or at the peer. Nothing is lost, nothing comes twice, and the order stays.
 *
 * The side that notices puts its queue pairs into the error state and looks at all that has arrived. What it sent and has
 * not been told of stays: frames in their buffers, in copies of what went inline, and in the mirror of the ring; puts and
 * gets as they were asked for. Then the queue pairs go, and the next generation is asked for (policy/conn.h), over another
 * rail if there is one. The HELLO of the other side says that its queue pairs are gone too, so that nothing of before can
 * arrive any more, and which frame it expects next. What it lacks is sent again, before anything new. Rings and credits
 * begin anew.
 *
 * A put that is repeated may have landed before. Nobody may use its memory by then. Where there are several rails nobody is
 * told of a put before it has completed (transport_caps.put_ordered, last_byte_last). With one rail a frame may have told: it
 * followed the put through one queue pair, so where the frame has arrived the put has too and is not repeated
 * (ib_rdma.seq). And a last byte may have been seen: the layer above knows, or that of the peer, which is asked (net.fate).
 * Of a silent put nobody is told: what it writes (flags, counters) may be written twice while the memory is there. The peer,
 * who has seen it, may have given the memory up meanwhile, and only the peer knows. So the peer repeats it, in memory that is in use
 * and has that key, and says so before anything else is sent (IB_WRITE, IB_WROTE).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"
#include "base/tunable.h"
#include "net/ib/ib.h"

static TUNABLE_INT(
    patience, "IB_RAIL_PATIENCE", 10, 1, 3600,
    "Seconds that a process waits for a port to come up again, or for an answer over another rail, when a "
    "connection has failed. Then the job ends.");

static COUNTER(moves, "ib_connections_moved",
               "Connections that failed and were opened again, over another rail or the same one.");
static COUNTER(resent, "ib_frames_resent", "Frames that were sent again because a connection failed.");
static COUNTER(asks, "ib_fates_asked",
               "Writes whose receiver was asked whether it had seen their end, because a connection failed.");
static COUNTER(redone, "ib_transfers_resent",
               "RDMA writes and reads that were repeated because a connection failed.");

/* A put or get that may not have been done. */
struct ib_kept {
    struct list link;
    struct ib_rdma rdma;
    struct net_op *op;
    uint32_t asked;     /* in this generation the peer was asked for its fate, or to do it */
    uint64_t number;    /* ... by this number */
    enum net_fate told; /* NET_FATE_ASK: not yet */
    char copy[IB_COPY]; /* of a silent put */
};

/* ---- what may not have arrived ---- */

static uint16_t seq_of(const struct ib_buffer *b)
{
    return ((const struct ib_head *)(const void *)b->data)->seq;
}

static void keep(struct ib_endpoint *ep, struct ib_buffer *b)
{
    struct list *after = ep->kept.prev;
    while (after != &ep->kept && (int16_t)(seq_of(list_entry(after, struct ib_buffer, link)) - seq_of(b)) > 0)
        after = after->prev;
    list_prepend(after, &b->link);
}

static struct ib_pool *pool_of(struct ib_endpoint *ep, const struct ib_buffer *b)
{
    return ib_lane_for(ep, b->length - MIN(b->length, sizeof(struct ib_frame)))->pool;
}

/* What is about the connection itself means nothing in the next one; only its place in the order counts. */
static bool outlives(const struct ib_head *h)
{
    return h->type == IB_FRAME || h->type == IB_RAILS || h->type == IB_RESERVE;
}

static void keep_message(struct ib_endpoint *ep, const char *data, uint32_t bytes)
{
    const struct ib_head *h = (const struct ib_head *)(const void *)data;
    if (h->type != IB_FRAME && h->type <= IB_LEAVE)
        return;
    bool whole = outlives(h);
    uint32_t length = whole ? bytes : (uint32_t)sizeof(*h);
    struct ib_buffer *b = ib_buffer_get(ib_lane_for(ep, length - MIN(length, sizeof(struct ib_frame)))->pool);
    if (!b)
        ib_fatal(ep->ib, NULL, "%s", err_detail(MPI_ERR_NO_MEM));
    memcpy(b->data, data, length);
    if (!whole)
        ((struct ib_head *)(void *)b->data)->type = IB_NOTHING;
    b->length = length;
    keep(ep, b);
}

static void keep_ring(struct ib_endpoint *ep)
{
    for (uint32_t at = ep->tx.tail; at != ep->tx.head; at++) {
        const char *slot = ring_slot_at(ep->tx.mirror, at & (ep->tx.slots - 1), ep->tx.slot_size);
        uint32_t word;
        memcpy(&word, slot, sizeof(word));
        keep_message(ep, slot + RING_HEAD_BYTES, word & ((1u << RING_SIZE_BITS) - 1));
    }
}

static void keep_rdma(struct ib_lane *lane, const struct ib_work *w, uint32_t place)
{
    struct ib_kept *k = malloc(sizeof(*k));
    if (!k)
        ib_fatal(lane->endpoint->ib, lane->endpoint, "out of memory for a transfer that must be repeated");
    k->rdma = lane->rdma[place];
    k->op = w->op;
    k->asked = 0;
    k->told = NET_FATE_ASK;
    if (!k->op) {
        memcpy(k->copy, lane->copies + (size_t)place * IB_COPY, MIN(k->rdma.len, IB_COPY));
        k->rdma.local = (uintptr_t)k->copy;
    }
    list_append(&lane->endpoint->kept_rdma, &k->link);
}

static void keep_work(struct ib_lane *lane, uint32_t place)
{
    struct ib_endpoint *ep = lane->endpoint;
    struct ib_work *w = &lane->work[place];
    if (w->bytes > 0)
        keep_message(ep, w->buffer ? w->buffer->data : lane->copies + (size_t)place * IB_COPY, w->bytes);
    if (w->rdma)
        keep_rdma(lane, w, place);
    else if (w->op) { /* a stripe: others may take it now. An addition cannot be repeated */
        if (!ib_stripe_is(w->op))
            ib_fatal(
                ep->ib, ep,
                "the connection failed during an atomic operation (the lock of a window, or an accumulate "
                "by the adapter), and whether it was done is unknown");
        struct net_op *op = w->op;
        w->op = NULL;
        ep->ops--;
        op->done(op, MPI_ERR_OTHER);
    }
}

void ib_kept_lane(struct ib_lane *lane)
{
    for (uint32_t at = lane->tail; at != lane->head; at++)
        keep_work(lane, at & (lane->depth - 1));
}

/* It has arrived, and waits for what was sent before it. What it tells of credits and slots ends with the queue pairs; so does
 * the ring that it offers or takes back. */
static void orphan(struct ib_buffer *b)
{
    struct ib_head *h = (struct ib_head *)(void *)b->data;
    if (!outlives(h))
        h->type = IB_NOTHING;
    memset(h->credits, 0, sizeof(h->credits));
    h->ring = 0;
    b->lane = NULL;
}

void ib_kept_collect(struct ib_endpoint *ep)
{
    if (!ep->ways || !ep->lanes[0].qp)
        return;
    if (ep->join) {
        ep->join->up &= ~rail_bit(0);
        ib_stripe_rail(ep, 0, false);
    }
    ib_spread_drop(ep);
    keep_ring(ep);
    for (uint32_t k = 0; k < ep->ib->lanes; k++)
        ib_kept_lane(&ep->lanes[k]);
    list_foreach_safe(pos, after, &ep->held) orphan(list_entry(pos, struct ib_buffer, link));
}

static void kept_done(struct ib_endpoint *ep, struct ib_kept *k)
{
    struct net_op *op = k->op;
    list_remove(&k->link);
    free(k);
    if (!op)
        return;
    ep->ops--;
    op->done(op, 0);
}

/* A frame that was sent behind a put, through the same queue pair, has arrived: so has the put. */
static void kept_arrived(struct ib_endpoint *ep, uint16_t expected)
{
    list_foreach_safe(pos, after, &ep->kept_rdma)
    {
        struct ib_kept *k = list_entry(pos, struct ib_kept, link);
        if (k->rdma.opcode == IBV_WR_RDMA_WRITE && (int16_t)(expected - k->rdma.seq) > 0)
            kept_done(ep, k);
    }
}

/* All before `expected` has arrived; and what is far from it is older than it seems. */
void ib_kept_told(struct ib_endpoint *ep, uint16_t expected)
{
    if (!ep->ways)
        return;
    if (ep->ib->lanes == 1 && !ib_spreads(ep))
        kept_arrived(ep, expected);
    uint16_t missing = (uint16_t)(ep->next_seq - expected);
    list_foreach_safe(pos, after, &ep->kept)
    {
        struct ib_buffer *b = list_entry(pos, struct ib_buffer, link);
        if ((uint16_t)(seq_of(b) - expected) < missing)
            continue;
        list_remove(pos);
        ib_buffer_put(pool_of(ep, b), b);
    }
    if (!ep->join)
        return;
    ep->join->pairs[0].mine = ep->home;
    ep->join->pairs[0].yours = ep->yours;
    ib_stripe_settled(ep, 0);
}

static bool send_frame(struct ib_endpoint *ep, struct ib_buffer *b)
{
    struct ib_head *h = (struct ib_head *)(void *)b->data;
    bool frame = h->type == IB_FRAME, waited = false;
    struct ib_lane *lane = frame ? ib_lane_for(ep, b->length - sizeof(struct ib_frame)) : &ep->lanes[0];
    if (frame ? ib_lane_claim(lane, &waited) != 0 : !ib_lane_room(lane, 1, false))
        return false;
    uint16_t seq = h->seq;
    uint16_t next = ep->next_seq;
    ib_head_fill(ep, h, (enum ib_type)h->type, waited);
    ep->next_seq = next;
    h->seq = seq;
    list_remove(&b->link);
    ib_lane_message(lane, b, b->data, b->length, false);
    counter_add(&resent, 1);
    return true;
}

/* What nobody here knows, the peer does: it is asked before anything else is sent, since the frames that follow could find
 * the receive that the transfer is in. What was written before has landed, or never will: both ends have dropped their queue
 * pairs. So its answer stays true until the transfer is repeated. */
static enum net_fate fate_of(struct ib_endpoint *ep, struct ib_kept *k)
{
    const struct net *net = ep->ib->base.net;
    if (!k->op || !net->fate)
        return NET_FATE_REPEAT;
    if (k->told != NET_FATE_ASK)
        return k->told;
    enum net_fate fate = net->fate(net->deliver_ctx, k->op, &k->number);
    if (fate == NET_FATE_ASK && k->asked != ep->conn.mine) {
        k->asked = ep->conn.mine;
        ep->asks = (struct ib_fate){.number = k->number};
        ep->unsaid |= 1u << IB_ASK; /* ib_flush says it */
        counter_add(&asks, 1);
    }
    return fate;
}

static void answered(struct ib_endpoint *ep, const struct ib_fate *f)
{
    list_foreach_safe(pos, after, &ep->kept_rdma)
    {
        struct ib_kept *k = list_entry(pos, struct ib_kept, link);
        if (k->asked == ep->conn.mine && k->number == f->number)
            k->told = f->seen ? NET_FATE_DONE : NET_FATE_REPEAT;
    }
    ib_flush(ep);
}

void ib_fate(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    const struct net *net = ep->ib->base.net;
    struct ib_fate f;
    if (len != sizeof(*h) + sizeof(f))
        ib_fatal(ep->ib, ep, "it asked about a write in a message of the wrong length");
    memcpy(&f, h + 1, sizeof(f));
    if (h->type == IB_SAW) {
        answered(ep, &f);
        return;
    }
    f.seen = net->asked ? net->asked(net->deliver_ctx, ep->peer, f.number) : 0;
    ep->answers = f;
    ib_say(ep, IB_SAW);
}

/* A word of a window's lock, which others may have changed since it landed. */
static bool is_only_once(const struct ib_kept *k)
{
    return k->op && k->op->once && k->rdma.opcode == IBV_WR_RDMA_WRITE;
}

/* ---- silent writes ---- */

/* One at a time: the first of those that are kept. */
static bool send_silent(struct ib_endpoint *ep, struct ib_kept *k)
{
    if (k->asked != ep->conn.mine) {
        k->asked = ep->conn.mine;
        ep->unsaid |= 1u << IB_WRITE; /* ib_flush says it */
        counter_add(&redone, 1);
    }
    return false;
}

static struct ib_kept *first_kept(const struct ib_endpoint *ep)
{
    return list_entry(ep->kept_rdma.next, struct ib_kept, link);
}

size_t ib_kept_tell(const struct ib_endpoint *ep, struct ib_written *out)
{
    const struct ib_kept *k = first_kept(ep);
    *out = (struct ib_written){
        .address = k->rdma.remote, .key = k->rdma.key, .length = (uint32_t)MIN(k->rdma.len, IB_COPY)};
    memcpy(out->bytes, k->copy, out->length);
    return sizeof(*out);
}

/* Words as the adapter would write them: whoever looks at one finds it whole. */
static void write_words(char *to, const char *from, uint32_t length)
{
    const bool words = ((uintptr_t)to | length) % sizeof(uint64_t) == 0;
    for (uint32_t i = 0; words && i < length; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, from + i, sizeof(word));
        atomic_store_explicit((_Atomic uint64_t *)(void *)(to + i), word, memory_order_release);
    }
    for (uint32_t i = 0; !words && i < length; i++)
        atomic_store_explicit((_Atomic char *)(to + i), from[i], memory_order_release);
}

void ib_written(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    struct ib_written w;
    if (h->type == IB_WROTE) {
        if (list_empty(&ep->kept_rdma) || first_kept(ep)->op || first_kept(ep)->asked != ep->conn.mine)
            ib_fatal(ep->ib, ep, "it has repeated a write that nobody asked for");
        kept_done(ep, first_kept(ep));
        ib_flush(ep);
        return;
    }
    if (len != sizeof(*h) + sizeof(w))
        ib_fatal(ep->ib, ep, "it asked for a write in a message of the wrong length");
    memcpy(&w, h + 1, sizeof(w));
    if (w.length > IB_COPY)
        ib_fatal(ep->ib, ep, "it asked for a write that is too long");
    if (ib_memory_in_use(ep->ib, w.address, w.length, &w.key))
        write_words((char *)(uintptr_t)w.address, w.bytes, w.length);
    ib_say(ep, IB_WROTE);
}

static bool send_rdma(struct ib_endpoint *ep, struct ib_kept *k)
{
    uint32_t ops = ep->ops;
    if (!k->op)
        return send_silent(ep, k);
    if (is_only_once(k))
        ib_fatal(
            ep->ib, ep,
            "the connection failed while the lock of a window was written, and whether it was written is "
            "unknown");
    enum net_fate fate = fate_of(ep, k);
    if (fate == NET_FATE_ASK)
        return false;
    if (fate == NET_FATE_DONE) {
        kept_done(ep, k);
        return true;
    }
    if (ib_home_rdma(ep, &k->rdma, k->op) != 0)
        return false;
    ep->ops = ops; /* it was counted when it was asked for */
    list_remove(&k->link);
    free(k);
    counter_add(&redone, 1);
    return true;
}

bool ib_kept_send(struct ib_endpoint *ep)
{
    if (ep->conn.state != CONN_OPEN || ep->breaking)
        return list_empty(&ep->kept) && list_empty(&ep->kept_rdma);
    while (!list_empty(&ep->kept_rdma))
        if (!send_rdma(ep, list_entry(ep->kept_rdma.next, struct ib_kept, link)))
            return false;
    while (!list_empty(&ep->kept))
        if (!send_frame(ep, list_entry(ep->kept.next, struct ib_buffer, link)))
            return false;
    ib_set_ready(ep, true);
    return true;
}

void ib_kept_free(struct ib_endpoint *ep, int status)
{
    if (!ep->ways)
        return;
    list_foreach_safe(pos, after, &ep->kept)
    {
        struct ib_buffer *b = list_entry(pos, struct ib_buffer, link);
        list_remove(pos);
        ib_buffer_put(pool_of(ep, b), b);
    }
    list_foreach_safe(pos, after, &ep->kept_rdma)
    {
        struct ib_kept *k = list_entry(pos, struct ib_kept, link);
        struct net_op *op = k->op;
        list_remove(pos);
        free(k);
        if (op && status)
            op->done(op, status);
    }
}

/* ---- breaking and moving ---- */

#define VAIN_MOST 16

/* What makes connections fail at once, again and again, is not the way: another attempt mends nothing. */
static void count_vain(struct ib_endpoint *ep, const char *why)
{
    bool sent = false;
    for (uint32_t k = 0; k < ep->ib->lanes; k++)
        sent |= ep->lanes[k].tail != 0;
    ep->vain = sent || ep->fled ? 0 : ep->vain + 1;
    if (ep->vain > VAIN_MOST)
        ib_fatal(ep->ib, ep, "%s; it was opened again %d times, and nothing could be sent", why, VAIN_MOST);
}

bool ib_break(struct ib_endpoint *ep, const char *why)
{
    struct ib *ib = ep->ib;
    if (!ep->ways || ib->closing)
        return false;
    if (ep->breaking || ep->conn.state == CONN_IDLE || ep->conn.state == CONN_FAILED)
        return true;
    if (ep->broken == 0 && conn_settled(&ep->conn)) {
        ep->broken = clock_ns();
        if (why)
            log_warn("the connection to rank %u over %s failed: %s; it is opened again", ep->peer->rank,
                     ib->rails[ep->home].device->name, why);
    }
    ep->fled = !ib_rail_up(&ib->rails[ep->home]);
    if (why)
        count_vain(ep, why);
    ep->breaking = true;
    ib->breaks = true;
    atomic_store(&ib->attention, 1);
    return true;
}

void ib_look_at_all(struct ib *ib)
{
    int most = 0;
    for (uint32_t i = 0; i < ib->nadapters; i++)
        most = MAX(most, ib->adapters[i].cq_size);
    while (ib_poll_completions(ib) > 0 && most-- > 0) /* what is found after so many came later */
        ;
}

/* Nothing arrives any more, and all that has is looked at. */
static void look_at_all(struct ib_endpoint *ep)
{
    for (uint32_t k = 0; k < ep->ib->lanes; k++)
        ib_lane_fail(&ep->lanes[k]);
    ib_spread_fail(ep);
    ib_look_at_all(ep->ib);
    if (ep->conn.state == CONN_OPEN || ep->conn.state == CONN_CLOSING)
        ib_drain(ep);
}

static void move(struct ib_endpoint *ep)
{
    look_at_all(ep);
    ep->breaking = false;
    if (!ep->peer || ep->conn.state == CONN_IDLE || ep->conn.state == CONN_FAILED) {
        ep->broken = 0; /* what had arrived was the end of it */
        return;
    }
    if (ep->broken == 0 && conn_settled(&ep->conn)) /* a frame that had arrived opened it */
        ep->broken = clock_ns();
    ib_endpoint_again(ep);
}

void ib_moves(struct ib *ib)
{
    ib->breaks = false;
    for (uint32_t i = 0; i < ib->nendpoints; i++)
        if (ib->endpoints[i]->peer && ib->endpoints[i]->breaking)
            move(ib->endpoints[i]);
}

/* Does the adapter move the connection by itself (migrate.c)? */
static bool migrates(const struct ib_endpoint *ep)
{
    const struct ib_rail *other = ep->ib->alternate;
    const struct ib_lane *lane = &ep->lanes[0];
    return ep->home == 0 && other && ib_rail_up(other) &&
           (lane->path.armed || lane->path.moving || lane->path.moved);
}

/* A port went down: connections there need not wait until the adapter gives up. One that is up again gets its connections
 * back, when it has been for a while. */
void ib_moves_ports(struct ib *ib, bool rested)
{
    uint32_t up = ib_rails_up(ib);
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        struct ib_endpoint *ep = ib->endpoints[i];
        if (!ep->peer || !ep->ways || ep->left)
            continue;
        if (!rail_in(up, ep->home) && up != 0 && !migrates(ep))
            ib_break(ep, "the port went down");
        else if (rested && ep->fled && ep->ready && ep->ways->at != 0 && rail_in(up, ep->ways->way[0].a) &&
                 rail_in(ep->ways->theirs_up, ep->ways->way[0].b)) {
            log_info("the connection to rank %u goes back to %s", ep->peer->rank, ib->device.name);
            ib_break(ep, NULL);
            ep->ways->next = 0;
            ep->fled = false;
        }
    }
}

void ib_moved(struct ib_endpoint *ep)
{
    if (ep->broken == 0 || ep->breaking) /* it opens only to be dropped */
        return;
    counter_add(&moves, 1);
    log_info("the connection to rank %u is open again, over %s, after %.0f ms", ep->peer->rank,
             ep->ib->rails[ep->home].device->name, (double)(clock_ns() - ep->broken) / 1e6);
    ep->broken = 0;
}

/* Without a port a process reaches nobody, and nobody reaches it. */
static void require_ports(struct ib *ib, uint64_t now)
{
    uint64_t since = 0;
    for (uint32_t i = 0; i < ib->nrails; i++) {
        uint64_t down = atomic_load(&ib->rails[i].down);
        if (down == 0)
            return;
        since = MAX(since, down);
    }
    if (now - since >= (uint64_t)patience.value * 1000000000u)
        ib_fatal(ib, NULL, "%s has been down for %d seconds%s; check the cable and the switch",
                 ib->device.name, (int)patience.value, ib->nrails > 1 ? ", and so have all other ports" : "");
}

/* Time in which this process was stopped does not count: it could not have seen the port come back. */
static void forgive(struct ib *ib, uint64_t now)
{
    uint64_t gap = now - ib->pulsed, most = 2 * IB_PULSE * UINT64_C(1000000);
    bool stopped = gap > most;
    ib->pulsed = now;
    if (!stopped)
        return;
    for (uint32_t i = 0; i < ib->nrails; i++) {
        uint64_t down = atomic_load(&ib->rails[i].down);
        if (down != 0) /* an event that comes just now says it better */
            atomic_compare_exchange_strong(&ib->rails[i].down, &down, MIN(down + gap, now));
    }
    for (uint32_t i = 0; i < ib->nendpoints; i++)
        if (ib->endpoints[i]->broken != 0)
            ib->endpoints[i]->broken = MIN(ib->endpoints[i]->broken + gap, now);
}

void ib_moves_patience(struct ib *ib)
{
    uint64_t now = clock_ns();
    forgive(ib, now);
    require_ports(ib, now);
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        struct ib_endpoint *ep = ib->endpoints[i];
        if (!ep->peer || ep->broken == 0 || now - ep->broken < (uint64_t)patience.value * 1000000000u ||
            ib_accuse(ep))
            continue;
        ib_fatal(ib, ep, "%s (verbs status %d), and %s in %d seconds",
                 ib->device.verbs.wc_status_str(ep->why), ep->why,
                 ep->ways->count > 1 ? "no other way was found" : "it did not come back",
                 (int)patience.value);
    }
}
