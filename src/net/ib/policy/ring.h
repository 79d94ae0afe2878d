/* ring.h: one direction of the RDMA channel [Liu04 6.2]: a ring of equal slots at the receiver
 * and its mirror at the sender. A slot of the mirror is only ever written to the same slot of the ring
 * (persistent buffer association), with one RDMA write. The receiver finds a frame by looking at the slot at
 * its head.
 *
 *     slot:  head = size, flag, and both again inverted (8 bytes)     size bytes of frame     tail flag (1
 * byte)
 *
 * The tail flag arrives last, where the adapter places the last byte last. It must differ from what stood at
 * that place before, which the sender knows because mirror and ring hold the same bytes: so there are two
 * flag values, and the sender takes the one that changes the byte (6.2.2). After use the receiver clears the
 * head. Nothing else may be written to the mirror: not one byte behind the frame that is sent.
 *
 * Beyond the paper, the head proves itself: while only some of its bytes have arrived, the inverted half does
 * not fit. So the receiver never reads a tail flag at a wrong place, where an old byte may equal one, and only
 * the last byte of a write must arrive in order.
 *
 * Only arithmetic and bytes: no verbs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_RING_H
#define FP_NET_IB_RING_H

#include <stdatomic.h>

#include "base/util.h"

#define RING_FLAG_FIRST  0x5a
#define RING_FLAG_SECOND 0xa5
#define RING_HEAD_BYTES  8
#define RING_TAIL_BYTES  1
#define RING_SIZE_BITS   24 /* so a slot is smaller than 16 MiB */

static inline uint64_t ring_head(size_t size, unsigned char flag)
{
    uint32_t word = (uint32_t)size | (uint32_t)flag << RING_SIZE_BITS;
    return word | (uint64_t)~word << 32;
}

/* The sender's end. */
struct ring_tx {
    char *mirror;       /* slots * slot_size bytes, aligned to 8; zero when the ring is new, as the ring is */
    uint32_t slots;     /* a power of two */
    uint32_t slot_size; /* a multiple of 8 */
    uint32_t head;      /* next to write; both count up for ever */
    uint32_t tail;      /* first whose contents the receiver may still need */
};

/* The receiver's end. */
struct ring_rx {
    char *ring;
    uint32_t slots, slot_size;
    uint32_t head; /* next to look at */
    uint32_t owed; /* slots free again and not announced */
};

static inline size_t ring_frame_max(uint32_t slot_size)
{
    return slot_size - RING_HEAD_BYTES - RING_TAIL_BYTES;
}

static inline char *ring_slot_at(char *slots, uint32_t slot, uint32_t slot_size)
{
    return slots + (size_t)slot * slot_size;
}

/* The slot in which the next frame is built, or NULL if the ring is full. */
static inline char *ring_tx_next_slot(const struct ring_tx *t)
{
    if (unlikely(t->head - t->tail >= t->slots))
        return NULL;
    return ring_slot_at(t->mirror, t->head & (t->slots - 1), t->slot_size) + RING_HEAD_BYTES;
}

/* The frame of `size` bytes at ring_tx_next_slot is complete: sets size and flags. Returns the bytes to write from
 * the start of the slot, and moves on; *slot is the index of the slot. */
static inline size_t ring_tx_close(struct ring_tx *t, size_t size, uint32_t *slot)
{
    *slot = t->head++ & (t->slots - 1);
    char *at = ring_slot_at(t->mirror, *slot, t->slot_size);
    unsigned char *tail = (unsigned char *)at + RING_HEAD_BYTES + size;
    unsigned char flag = *tail == RING_FLAG_FIRST ? RING_FLAG_SECOND : RING_FLAG_FIRST;
    *(uint64_t *)(void *)at = ring_head(size, flag);
    *tail = flag;
    return RING_HEAD_BYTES + size + RING_TAIL_BYTES;
}

/* The receiver announced n free slots. False: more than were in use (a broken peer). */
static inline bool ring_tx_release_slots(struct ring_tx *t, uint32_t n)
{
    if (unlikely(n > t->head - t->tail))
        return false;
    t->tail += n;
    return true;
}

/* The frame at the head, or NULL while it is incomplete. A size that does not fit the slot, or an unknown flag, sets
 * *broken, which is never cleared. */
static inline const char *ring_rx_peek(const struct ring_rx *r, size_t *size, bool *broken)
{
    char *at = ring_slot_at(r->ring, r->head & (r->slots - 1), r->slot_size);
    uint64_t head = atomic_load_explicit((_Atomic uint64_t *)(void *)at, memory_order_acquire);
    if ((uint32_t)(head ^ head >> 32) != UINT32_MAX) /* empty, or some of its bytes are missing */
        return NULL;
    uint32_t word = (uint32_t)head;
    size_t len = word & ((1u << RING_SIZE_BITS) - 1);
    unsigned char flag = (unsigned char)(word >> RING_SIZE_BITS);
    if (unlikely(len > ring_frame_max(r->slot_size) ||
                 (flag != RING_FLAG_FIRST && flag != RING_FLAG_SECOND))) {
        *broken = true;
        return NULL;
    }
    char *frame = at + RING_HEAD_BYTES;
    if (atomic_load_explicit((_Atomic unsigned char *)(void *)(frame + len), memory_order_acquire) != flag)
        return NULL;
    *size = len;
    return frame;
}

/* The frame at the head has been handled: clears its header, advances, and owes one more slot. */
static inline void ring_rx_consume(struct ring_rx *r)
{
    char *at = ring_slot_at(r->ring, r->head++ & (r->slots - 1), r->slot_size);
    atomic_store_explicit((_Atomic uint64_t *)(void *)at, 0, memory_order_relaxed);
    r->owed++;
}

/* The number of free slots that the next frame announces; they are no longer owed. */
static inline uint32_t ring_rx_take_owed(struct ring_rx *r, uint32_t limit)
{
    uint32_t n = MIN(r->owed, limit);
    r->owed -= n;
    return n;
}

/* True if half of the slots are owed: a message of its own is due. */
static inline bool ring_rx_message_is_due(const struct ring_rx *r)
{
    return r->owed * 2 >= r->slots;
}

#endif
