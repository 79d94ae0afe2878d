/* rdma_ring.h: one direction of the RDMA channel [Liu04 6.2]: a ring of equal slots at the receiver
 * and its mirror at the sender. A slot of the mirror is only ever written to the same slot of the ring
 * (persistent buffer association), with one RDMA write. The receiver finds a frame by polling the slot at
 * its head.
 *
 *     slot:  head = size, flag, and both again inverted (8 bytes)     size bytes of frame     tail flag (1
 * byte)
 *
 * The tail flag arrives last if the adapter places the last byte last. It must differ from the previous byte
 * at its address, which the sender knows because mirror and ring hold the same bytes: of two flag values the
 * sender takes the one that changes the byte (6.2.2). After use the receiver clears the head. The sender must
 * not change any byte of the mirror that it does not write to the ring.
 *
 * In addition to the paper, the head is self-checking: while only some of its bytes have arrived, the
 * inverted half does not match. So the receiver never polls a tail flag at a wrong offset, where an old byte
 * may equal the flag, and only the last byte of a write must arrive in order.
 *
 * Only arithmetic and bytes: no verbs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_RDMA_RING_H
#define FP_NET_IB_RDMA_RING_H

#include <stdatomic.h>

#include "base/util.h"

#define RING_FLAG_FIRST  0x5a
#define RING_FLAG_SECOND 0xa5
#define RING_HEAD_BYTES  8
#define RING_TAIL_BYTES  1
#define RING_SIZE_BITS   24 /* a slot is smaller than 16 MiB */

static inline uint64_t ring_make_head(size_t size, unsigned char flag)
{
    uint32_t word = (uint32_t)size | (uint32_t)flag << RING_SIZE_BITS;
    return word | (uint64_t)~word << 32;
}

/* The sender's state. */
struct ring_tx {
    char *mirror;       /* slots * slot_size bytes, aligned to 8; zero, like the ring, when the ring is new */
    uint32_t slots;     /* a power of two */
    uint32_t slot_size; /* a multiple of 8 */
    uint32_t head;      /* number of the next slot to write; head and tail are never reset */
    uint32_t tail;      /* oldest slot that the receiver has not released */
};

/* The receiver's state. */
struct ring_rx {
    char *ring;
    uint32_t slots, slot_size;
    uint32_t head; /* number of the next slot to poll */
    uint32_t owed; /* released slots that were not announced to the sender yet */
};

static inline size_t ring_frame_max(uint32_t slot_size)
{
    return slot_size - RING_HEAD_BYTES - RING_TAIL_BYTES;
}

static inline char *ring_slot_at(char *slots, uint32_t slot, uint32_t slot_size)
{
    return slots + (size_t)slot * slot_size;
}

/* The memory in which the next frame is built, or NULL if the ring is full. */
static inline char *ring_tx_next_slot(const struct ring_tx *t)
{
    if (unlikely(t->head - t->tail >= t->slots))
        return NULL;
    return ring_slot_at(t->mirror, t->head & (t->slots - 1), t->slot_size) + RING_HEAD_BYTES;
}

/* Completes the frame of `size` bytes at ring_tx_next_slot: sets its size and flags, and advances. Returns
 * the bytes to write from the start of the slot; *slot is the index of the slot. */
static inline size_t ring_tx_close(struct ring_tx *t, size_t size, uint32_t *slot)
{
    *slot = t->head++ & (t->slots - 1);
    char *at = ring_slot_at(t->mirror, *slot, t->slot_size);
    unsigned char *tail = (unsigned char *)at + RING_HEAD_BYTES + size;
    unsigned char flag = *tail == RING_FLAG_FIRST ? RING_FLAG_SECOND : RING_FLAG_FIRST;
    *(uint64_t *)(void *)at = ring_make_head(size, flag);
    *tail = flag;
    return RING_HEAD_BYTES + size + RING_TAIL_BYTES;
}

/* Applies an announcement of n free slots. False: fewer slots were in use (a protocol error of the peer). */
static inline bool ring_tx_release_slots(struct ring_tx *t, uint32_t n)
{
    if (unlikely(n > t->head - t->tail))
        return false;
    t->tail += n;
    return true;
}

/* Returns the frame at the head, or NULL while it is incomplete. A size larger than the slot, or an unknown
 * flag, sets *broken, which is never cleared. */
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

/* Releases the slot at the head after its frame was handled: clears its header, and owes one more slot. */
static inline void ring_rx_consume(struct ring_rx *r)
{
    char *at = ring_slot_at(r->ring, r->head++ & (r->slots - 1), r->slot_size);
    atomic_store_explicit((_Atomic uint64_t *)(void *)at, 0, memory_order_relaxed);
    r->owed++;
}

/* Returns the number of free slots that the next message announces; they are no longer owed. */
static inline uint32_t ring_rx_take_owed(struct ring_rx *r, uint32_t limit)
{
    uint32_t n = MIN(r->owed, limit);
    r->owed -= n;
    return n;
}

/* True if half of the slots are owed: a message that announces them is due. */
static inline bool ring_rx_message_is_due(const struct ring_rx *r)
{
    return r->owed * 2 >= r->slots;
}

#endif
