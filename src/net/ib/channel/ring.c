/* ring.c: the RDMA channel [Liu04 6]. A receiver that often receives from a peer offers the peer a ring and
 * polls that memory; the peer then writes each small frame into the ring with one RDMA write. policy/rdma_ring.h
 * has the arithmetic of slots, policy/pollset.h decides which peers get a ring.
 *
 * An RDMA write wakes no process. Before a process sleeps, it therefore sets a word (its bell) at each peer
 * that may write into its rings. A peer whose bell word is set uses the send/receive channel, or sends a WAKE
 * after its write.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/copy.h"
#include "base/counter.h"
#include "net/ib/channel/channel.h"

static COUNTER(ring_frames, "ib_ring_frames_sent", "Frames written into a peer's ring by RDMA.");
static COUNTER(ring_full, "ib_ring_full",
               "Small frames sent through the send/receive channel because the ring was full.");
static COUNTER(rings_added, "ib_rings_added", "Peers added to the set whose RDMA rings are polled.");
static COUNTER(rings_removed, "ib_rings_removed", "Peers removed from the set whose RDMA rings are polled.");
static COUNTER(wakes, "ib_wakes", "Wake-up messages sent to sleeping peers.");

static inline _Atomic uint32_t *bell_word(const struct ib_endpoint *ep)
{
    return (_Atomic uint32_t *)(void *)ep->bell->data;
}

/* ---- sending ---- */

/* Returns the ring slot for the next frame, or NULL: ring full, receiver asleep, or send queue full. */
char *ib_ring_reserve_slot(struct ib_endpoint *ep, struct ib_lane *lane)
{
    char *room = ring_tx_next_slot(&ep->tx);
    if (unlikely(!room)) {
        counter_add(&ring_full, 1);
        return NULL;
    }
    if (unlikely(atomic_load_explicit(bell_word(ep), memory_order_relaxed) != 0)) {
        if (lane->credit.have > 0 &&
            ib_lane_has_room(lane, 1,
                             false)) { /* otherwise the frame cannot be sent now, and the bell stays set */
            atomic_store(bell_word(ep), 0); /* the frame is sent through the queue pair and wakes the peer */
            counter_add(&wakes, 1);
        }
        return NULL;
    }
    if (unlikely(!ib_lane_has_room(lane, 1, false)))
        return NULL;
    return room;
}

static inline void post_slot_on_lane(struct ib_endpoint *ep, struct ib_lane *lane, struct ibv_send_wr *wr,
                                     size_t size, bool signal)
{
    uint32_t slot;
    size_t bytes = ring_tx_close(&ep->tx, size, &slot);
    size_t offset = (size_t)slot * ep->tx.slot_size;
    ep->tx_piece.addr = (uintptr_t)ep->tx.mirror + offset;
    ep->tx_piece.length = (uint32_t)bytes;
    wr->wr.rdma.remote_addr = ep->tx_address + offset;
    wr->send_flags = bytes <= ep->ib->inline_max ? IBV_SEND_INLINE : 0;
    ib_lane_prepare_work(lane, wr, signal)->frame = true;
    ib_lane_post_send(lane, wr);
    counter_add(&ring_frames, 1);
    if (ep->ib->base.net->oversubscribed)
        atomic_thread_fence(memory_order_seq_cst); /* the peer may have gone to sleep since the check above */
    if (unlikely(atomic_load_explicit(bell_word(ep), memory_order_relaxed) != 0)) {
        atomic_store(bell_word(ep), 0);
        counter_add(&wakes, 1);
        ib_control_send(ep, IB_WAKE);
    }
}

void ib_ring_post_slot(struct ib_endpoint *ep, size_t size)
{
    post_slot_on_lane(ep, &ep->lanes[0], &ep->tx_work, size, false);
}

int ib_ring_send_frame(struct ib_endpoint *ep, uint64_t head, uint64_t from, uint64_t word,
                       const void *payload, size_t len)
{
    struct ib_frame *f = (struct ib_frame *)(void *)ib_ring_reserve_slot(ep, &ep->lanes[0]);
    if (unlikely(!f))
        return ib_lane_send_frame(ib_lane_for_size(ep, len), head, from, word, payload, len, false);
    ib_head_fill(ep, &f->head, IB_FRAME, false);
    frame_write(&f->header, head, from, word);
    copy_bytes(f->payload, payload, len);
    post_slot_on_lane(ep, &ep->lanes[0], &ep->tx_work, sizeof(*f) + len, false);
    return 0;
}

void ib_ring_post_slot_over(struct ib_endpoint *ep, struct ib_lane *lane, uint8_t theirs, size_t size,
                            bool signal)
{
    struct ibv_send_wr wr = ep->tx_work;
    ep->tx_piece.lkey = ep->tx_mirror->lkey[lane->adapter];
    wr.wr.rdma.rkey = ep->tx_rkey[theirs];
    post_slot_on_lane(ep, lane, &wr, size, signal);
    ep->tx_piece.lkey = ep->tx_mirror->lkey[ep->lanes[0].adapter];
}

/* ---- opening and closing rings ---- */

static bool ring_open(struct ib_endpoint *ep)
{
    struct ib *ib = ep->ib;
    ep->rx_memory = ib_buffer_get(&ib->rings);
    if (!ep->rx_memory)
        return false;
    memset(ep->rx_memory->data, 0, ib->rings.size);
    ep->rx = (struct ring_rx){
        .ring = ep->rx_memory->data,
        .slots = ib->ring_slots,
        .slot_size = ib->ring_slot_size,
        .owed = ep->rx.owed}; /* slots of the previous ring are announced before this ring is offered */
    ep->rx_state = IB_RING_USED;
    return true;
}

static void ring_free(struct ib_endpoint *ep)
{
    if (ep->rx_memory)
        ib_buffer_put(&ep->ib->rings, ep->rx_memory);
    ep->rx_memory = NULL;
    ep->rx = (struct ring_rx){.owed = ep->rx.owed};
    ep->rx_state = IB_RING_NONE;
}

/* Counts a frame that was short enough for a ring, but came through a queue pair: the ring was full or does not exist. */
void ib_ring_count_candidate(struct ib_endpoint *ep)
{
    struct ib *ib = ep->ib;
    if (ep->rx_state != IB_RING_NONE) {
        for (uint32_t place = 0; place < ib->pollset.count; place++)
            if (ib->pollset.members[place].id == ep->id) {
                pollset_count_hit(&ib->pollset, place);
                break;
            }
        return;
    }
    struct pollset_change change = pollset_count_frame(&ib->pollset, ep->id, &ep->rx_traffic);
    if (likely(change.add == POLLSET_NONE && change.remove == POLLSET_NONE))
        return;
    if (change.add != POLLSET_NONE) {
        if (!ring_open(
                ib->endpoints[change.add])) { /* no memory: frames of that peer still use the queue pair */
            pollset_remove_member(&ib->pollset, change.add);
            return;
        }
        counter_add(&rings_added, 1);
        ib_control_send(ib->endpoints[change.add], IB_RING_ON);
    }
    if (change.remove != POLLSET_NONE) {
        struct ib_endpoint *out = ib->endpoints[change.remove];
        counter_add(&rings_removed, 1);
        out->rx_state = IB_RING_LEAVING;
        ib_control_send(out, IB_RING_OFF);
    }
}

/* Called when the peer offers a ring: allocates the mirror (local copy) of the ring, and prepares a write
 * request in which only addresses and length are missing. */
static void mirror_open(struct ib_endpoint *ep, const struct ib_ring_on *on)
{
    struct ib *ib = ep->ib;
    if (on->slots != ib->ring_slots || on->slot_size != ib->ring_slot_size)
        ib_fatal(ib, ep,
                 "its ring has a different size: FISHPLATE_LAB=IB_RING_SLOTS and FISHPLATE_LAB=IB_RING_SLOT "
                 "must be the same on all ranks");
    if (!ep->tx_mirror)
        ep->tx_mirror = ib_buffer_get(&ib->rings);
    if (!ep->tx_mirror)
        return; /* no memory: the send/receive channel is used */
    memset(ep->tx_mirror->data, 0, ib->rings.size);
    ep->tx = (struct ring_tx){.mirror = ep->tx_mirror->data, .slots = on->slots, .slot_size = on->slot_size};
    ep->tx_address = on->address;
    memcpy(ep->tx_rkey, on->rkey, sizeof(ep->tx_rkey));
    ep->tx_piece = (struct ibv_sge){.lkey = ep->tx_mirror->lkey[ep->lanes[0].adapter]};
    ep->tx_work = (struct ibv_send_wr){.sg_list = &ep->tx_piece,
                                       .num_sge = 1,
                                       .opcode = IBV_WR_RDMA_WRITE,
                                       .wr.rdma.rkey = on->rkey[ep->peer_adapter]};
    ep->tx_frame_max = ib->ring_frame_max - sizeof(struct ib_frame);
    ep->tx_on = true;
}

static void mirror_close(struct ib_endpoint *ep)
{
    /* The mirror is not freed: an unsignalled write may still read it, frames that the peer has not read may
     * have to be repeated, and the next ring reuses it. */
    ep->tx_on = false;
    ep->tx_frame_max = 0;
}

size_t ib_ring_fill_offer(struct ib_endpoint *ep, void *body)
{
    struct ib_ring_on on = {
        .address = (uintptr_t)ep->rx.ring, .slots = ep->rx.slots, .slot_size = ep->rx.slot_size};
    memcpy(on.rkey, ep->rx_memory->rkey, sizeof(on.rkey));
    memcpy(body, &on, sizeof(on));
    return sizeof(on);
}

void ib_ring_take_control(struct ib_endpoint *ep, const struct ib_head *h, size_t len)
{
    struct ib_ring_on on;
    switch (h->type) {
    case IB_RING_ON:
        if (len != sizeof(*h) + sizeof(on))
            ib_fatal(ep->ib, ep, "it offered a ring in a message of the wrong length");
        memcpy(&on, h + 1, sizeof(on));
        mirror_open(ep, &on);
        break;
    case IB_RING_OFF:
        mirror_close(ep);
        ib_control_send(ep, IB_RING_STOPPED);
        break;
    default: /* IB_RING_STOPPED is an ordered message: all frames in the ring were delivered before */
        pollset_remove_member(&ep->ib->pollset, ep->id);
        ring_free(ep);
        break;
    }
}

void ib_ring_reset(struct ib_endpoint *ep)
{
    if (ep->rx_state != IB_RING_NONE)
        pollset_remove_member(&ep->ib->pollset, ep->id);
    ring_free(ep);
    ep->rx.owed = 0;
    mirror_close(ep);
    ep->tx = (struct ring_tx){0};
    if (ep->tx_mirror)
        ib_buffer_put(&ep->ib->rings, ep->tx_mirror);
    ep->tx_mirror = NULL;
    ep->rx_traffic = 0;
}

/* ---- going to sleep ---- */

/* Sets the peer's bell word by a signalled write, whose completion causes one more poll of the rings. A frame
 * that the peer wrote before it could see the word precedes the acknowledgement, so that poll finds it. */
static bool write_sleep_bell(struct ib_endpoint *ep)
{
    static const uint32_t asleep = 1;
    struct ib_lane *lane = &ep->lanes[0];
    if (ep->conn.state != CONN_OPEN || ep->peer_bell_set)
        return true; /* the peer has no connection for writes, or its bell is set already */
    if (!ib_lane_has_room(lane, 1, true))
        return false;
    bool inlined = ep->ib->inline_max >= sizeof(asleep);
    struct ib_buffer *b = inlined ? NULL : ib_buffer_get(lane->pool);
    if (!inlined && !b)
        return false;
    if (b)
        memcpy(b->data, &asleep, sizeof(asleep));
    struct ibv_sge piece = {.addr = b ? (uintptr_t)b->data : (uintptr_t)&asleep,
                            .length = sizeof(asleep),
                            .lkey = b ? b->lkey[lane->adapter] : 0};
    struct ibv_send_wr wr = {.sg_list = &piece,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = b ? 0 : IBV_SEND_INLINE,
                             .wr.rdma = {.remote_addr = ep->peer_bell, .rkey = ep->peer_bell_key}};
    ib_lane_prepare_work(lane, &wr, true)->buffer = b;
    ib_lane_post_send(lane, &wr);
    ep->peer_bell_set = true;
    return true;
}

bool ib_rings_set_bells(struct ib *ib)
{
    for (uint32_t i = 0; i < ib->pollset.count; i++)
        if (!write_sleep_bell(ib->endpoints[ib->pollset.members[i].id]))
            return false;
    return true;
}

bool ib_rings_are_empty(const struct ib *ib)
{
    for (uint32_t i = 0; i < ib->pollset.count; i++) {
        const struct ib_endpoint *ep = ib->endpoints[ib->pollset.members[i].id];
        size_t size;
        bool broken;
        if (ring_rx_peek(&ep->rx, &size, &broken))
            return false;
    }
    return true;
}
