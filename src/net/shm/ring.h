/* ring.h: the queue through which the ranks of a node send frames to one of them. Each frame has a slot of
 * one cache line, which the sender writes and the receiver only reads; a sequence number in the slot marks it
 * as full. Payload that does not fit into the slot is in a second ring of cache lines, so that payload bytes
 * can never be mistaken for a sequence number. One compare-and-swap reserves entries of both rings, one store
 * releases them.
 *
 *   - 8 bytes of payload cost one cache line from sender to receiver: the slot.
 *   - The receiver polls one slot, for any number of ranks.
 *   - A sender prefetches the lines of a payload, if they are few, from the receiver's cache before it
 *     writes them; the only sender of a ring prefetches the lines of the next frame after each send.
 *   - The sender reads the receiver's head only if the ring is full according to its own copy.
 *   - All-zero memory is an empty ring, so a rank may send before the receiver has started.
 *   - A sender that dies between the reservation of a slot and its publication leaves a hole, at which the
 *     receiver would wait for ever. Each sender therefore records in a line of its own which slot it is about
 *     to reserve (its intent), before it reserves that slot: the owner of every reserved slot is among the
 *     senders whose intent is that slot. The receiver skips the slot when the launcher has reported the death
 *     of all of them, however long that takes (ring_blocked_reason). A sender that lives, running or stopped,
 *     never loses its slot.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_SHM_RING_H
#define FP_NET_SHM_RING_H

#include <stdatomic.h>

#include "base/copy.h"
#include "base/kill_point.h"
#include "base/cpu.h"
#include "base/err.h"
#include "base/util.h"
#include "net/transport.h"

#define RING_SLOTS        512u
#define RING_INLINE_MAX   32u
#define RING_PREFETCH_MIN 3u    /* lines: fewer lines are fetched by the processor as it writes them */
#define RING_PREFETCH_MAX 96u   /* lines: later lines arrive in time while the first ones are written */
#define RING_SENDERS      4096u /* sender numbers fit into 12 bits, frame lengths into 20 */

struct ring_slot {
    _Atomic uint32_t sequence; /* position of the frame + 1, stored when the frame is complete */
    uint32_t meta;             /* length << 12 | sender */
    struct frame_header header;
    union {
        char bytes[RING_INLINE_MAX];
        struct {
            uint32_t start, end; /* lines in the data ring */
        } lines;
    } u;
};
_Static_assert(sizeof(struct ring_slot) == CACHE_LINE, "a slot is one cache line");

/* Positions are two 32-bit counters in one word: slots << 32 | data lines. They only grow and may wrap. */
struct ring {
    _Alignas(CACHE_LINE) _Atomic uint64_t tail; /* end of the entries that senders have reserved */
    _Alignas(CACHE_LINE) _Atomic uint64_t head; /* end of the entries that the receiver has released */
    _Alignas(CACHE_LINE) struct ring_slot slots[RING_SLOTS];
    /* the data ring and the senders' intents follow: ring_extra_bytes */
};

/* One cache line for each sender. The receiver reads these lines only if a slot stays empty after a death. */
struct ring_intent {
    _Alignas(CACHE_LINE) _Atomic uint64_t slot; /* RING_INTENT | position; 0: none */
};
#define RING_INTENT ((uint64_t)1 << 32)

struct ring_sender {
    struct ring *ring;
    char *data;
    struct ring_intent *intent;
    uint64_t head;       /* value of ring->head when it was last read */
    uint32_t data_lines; /* lines of the data ring, a power of two */
    uint32_t id;
    bool alone; /* no other process sends into this ring: no compare-and-swap is needed */
};

struct ring_receiver {
    struct ring *ring;
    char *data;
    const struct ring_intent *intents; /* by sender */
    uint64_t published;                /* value of ring->head */
    uint32_t slot, line;               /* slots and lines consumed so far */
    uint32_t data_lines;
    bool skipped; /* lines of a skipped slot may not have been released yet */
};

static inline char *ring_data(struct ring *r)
{
    return (char *)(r + 1);
}

static inline struct ring_intent *ring_intents(struct ring *r, uint32_t data_lines)
{
    return (struct ring_intent *)(void *)(ring_data(r) + (size_t)data_lines * CACHE_LINE);
}

/* The number of bytes that follow a struct ring in memory. */
static inline size_t ring_extra_bytes(uint32_t data_lines, uint32_t senders)
{
    return ((size_t)data_lines + senders) * CACHE_LINE;
}

static inline struct ring_receiver ring_receiver(struct ring *r, uint32_t data_lines)
{
    return (struct ring_receiver){
        .ring = r, .data = ring_data(r), .intents = ring_intents(r, data_lines), .data_lines = data_lines};
}

/* Initialises sender `id`. An intent that an earlier sender with this id left is void. */
static inline struct ring_sender ring_sender(struct ring *r, uint32_t data_lines, uint32_t id, bool alone)
{
    return (struct ring_sender){.ring = r,
                                .data = ring_data(r),
                                .intent = &ring_intents(r, data_lines)[id],
                                .head = atomic_load(&r->head),
                                .data_lines = data_lines,
                                .id = id,
                                .alone = alone};
}

static inline uint64_t ring_position(uint32_t slots, uint32_t lines)
{
    return (uint64_t)slots << 32 | lines;
}

static inline bool ring_has_space(uint64_t head, uint32_t slot, uint32_t end, uint32_t data_lines)
{
    return slot - (uint32_t)(head >> 32) < RING_SLOTS && end - (uint32_t)head <= data_lines;
}

static inline uint32_t ring_count_lines(size_t len)
{
    return (uint32_t)((len + CACHE_LINE - 1) / CACHE_LINE);
}

static inline bool ring_is_prefetched(uint32_t lines)
{
    return lines >= RING_PREFETCH_MIN && lines <= RING_PREFETCH_MAX;
}

/* Prefetches the lines of a payload before it is written: stores would wait for each line in turn. */
static inline void ring_prefetch(const char *room, uint32_t lines)
{
    for (uint32_t i = 0; i < lines; i++)
        cpu_prefetch_write(room + (size_t)i * CACHE_LINE);
}

/* After a send, prefetches the lines for a next frame of equal length, unless the receiver still needs
 * them. */
static inline void ring_prefetch_next(const struct ring_sender *s, uint32_t position, uint32_t end,
                                      uint32_t lines)
{
    const uint32_t start = end & (s->data_lines - 1);
    if (s->alone && ring_is_prefetched(lines) && start + lines <= s->data_lines &&
        ring_has_space(s->head, position + 1, end + lines, s->data_lines))
        ring_prefetch(s->data + (size_t)start * CACHE_LINE, lines);
}

/* Reserves one slot, and room for len bytes. Returns the slot, its position and the address of the payload,
 * or NULL if the ring is full. */
static inline struct ring_slot *ring_reserve(struct ring_sender *s, size_t len, uint32_t *position,
                                             char **payload)
{
    uint64_t tail = atomic_load_explicit(&s->ring->tail, memory_order_relaxed);
    uint32_t slot, start, end;
    for (;;) {
        slot = (uint32_t)(tail >> 32);
        start = end = (uint32_t)tail;
        if (len > RING_INLINE_MAX) {
            uint32_t need = ring_count_lines(len);
            uint32_t to_edge = s->data_lines - (start & (s->data_lines - 1));
            if (need > to_edge)
                start += to_edge;
            end = start + need;
        }
        if (unlikely(!ring_has_space(s->head, slot, end, s->data_lines))) {
            s->head = atomic_load_explicit(&s->ring->head, memory_order_acquire);
            if (!ring_has_space(s->head, slot, end, s->data_lines)) {
                atomic_store_explicit(&s->intent->slot, 0, memory_order_release);
                return NULL;
            }
        }
        uint64_t next = ring_position(slot + 1, end);
        /* Release: a reader that finds an intent other than the previous slot finds that slot published (ring_blocked_reason). */
        atomic_store_explicit(&s->intent->slot, RING_INTENT | slot, memory_order_release);
        KILL_POINT(ring_slot_wanted);
        /* Release: a reader that sees the slot reserved (acquire in ring_is_reserved) sees its owner's intent. */
        if (s->alone) {
            atomic_store_explicit(&s->ring->tail, next, memory_order_release);
            break;
        }
        if (atomic_compare_exchange_weak_explicit(&s->ring->tail, &tail, next, memory_order_release,
                                                  memory_order_relaxed))
            break;
    }
    KILL_POINT(ring_slot_reserved);
    struct ring_slot *rs = &s->ring->slots[slot % RING_SLOTS];
    rs->meta = (uint32_t)len << 12 | s->id;
    *position = slot;
    if (len > RING_INLINE_MAX) {
        rs->u.lines.start = start;
        rs->u.lines.end = end;
        *payload = s->data + (size_t)(start & (s->data_lines - 1)) * CACHE_LINE;
        if (ring_is_prefetched(end - start))
            ring_prefetch(*payload, end - start);
    } else {
        *payload = rs->u.bytes;
    }
    return rs;
}

/* Publishes the reserved slot: all earlier stores to the frame become visible to the receiver. `len` may be
 * less than reserved if both are on the same side of RING_INLINE_MAX. */
static inline void ring_publish(struct ring_sender *s, struct ring_slot *slot, uint32_t position,
                                const struct frame_header *header, size_t len)
{
    slot->meta = (uint32_t)len << 12 | s->id;
    slot->header = *header;
    atomic_store_explicit(&slot->sequence, position + 1, memory_order_release);
}

/* Sends a frame whose payload is copied from memory. 0 or ERR_AGAIN. */
static inline int ring_send(struct ring_sender *s, uint64_t head, uint64_t from, uint64_t word,
                            const void *payload, size_t len)
{
    uint32_t position;
    char *room;
    struct ring_slot *slot = ring_reserve(s, len, &position, &room);
    if (unlikely(!slot))
        return ERR_AGAIN;
    KILL_POINT(shm_send_reserved);
    copy_bytes(room, payload, len);
    frame_write(&slot->header, head, from, word);
    atomic_store_explicit(&slot->sequence, position + 1, memory_order_release);
    if (len > RING_INLINE_MAX)
        ring_prefetch_next(s, position, slot->u.lines.end, ring_count_lines(len));
    return 0;
}

/* Returns the next frame, which stays valid until ring_consume, or NULL. */
static inline const struct ring_slot *ring_peek(struct ring_receiver *r, const char **payload, size_t *len,
                                                uint32_t *sender)
{
    const struct ring_slot *slot = &r->ring->slots[r->slot % RING_SLOTS];
    if (atomic_load_explicit(&slot->sequence, memory_order_acquire) != r->slot + 1)
        return NULL;
    *len = slot->meta >> 12;
    *sender = slot->meta & (RING_SENDERS - 1);
    *payload = slot->u.bytes;
    if (*len > RING_INLINE_MAX)
        *payload = r->data + (size_t)(slot->u.lines.start & (r->data_lines - 1)) * CACHE_LINE;
    return slot;
}

static inline bool ring_empty(const struct ring_receiver *r)
{
    const struct ring_slot *slot = &r->ring->slots[r->slot % RING_SLOTS];
    return atomic_load_explicit(&slot->sequence, memory_order_acquire) != r->slot + 1;
}

static inline void ring_publish_consumed(struct ring_receiver *r)
{
    r->published = ring_position(r->slot, r->line);
    atomic_store_explicit(&r->ring->head, r->published, memory_order_release);
}

/* True if the next slot is reserved. If the ring is empty too, the owner has not published the slot yet. */
static inline bool ring_is_reserved(const struct ring_receiver *r)
{
    return (uint32_t)(atomic_load_explicit(&r->ring->tail, memory_order_acquire) >> 32) != r->slot;
}

enum ring_block {
    RING_NOT_BLOCKED, /* the next slot is free, or published, or its living owner will publish it */
    RING_OWNER_DEAD,  /* the next slot must be skipped */
    RING_OWNER_UNSURE /* a dead and a living sender had the same intent: wait for the living one to proceed */
};

/* Returns why the next slot is not published. A living sender with this slot as its intent may own the slot;
 * or a dead sender may own it, and the living one was stopped before it tried to reserve. */
static inline enum ring_block ring_blocked_reason(const struct ring_receiver *r, uint32_t senders,
                                                  bool (*is_dead)(void *arg, uint32_t sender), void *arg)
{
    bool dead = false, alive = false;
    if (!ring_empty(r) || !ring_is_reserved(r))
        return RING_NOT_BLOCKED;
    for (uint32_t i = 0; i < senders; i++) {
        /* Acquire: pairs with the release of the owner's next intent. */
        if (atomic_load_explicit(&r->intents[i].slot, memory_order_acquire) != (RING_INTENT | r->slot))
            continue;
        if (is_dead(arg, i))
            dead = true;
        else
            alive = true;
    }
    if (!dead || !ring_empty(r))
        return RING_NOT_BLOCKED;
    return alive ? RING_OWNER_UNSURE : RING_OWNER_DEAD;
}

/* Skips the slot of a dead sender. Its lines in the data ring are released with those of the next frame that
 * has lines, or when the ring is empty. */
static inline void ring_skip(struct ring_receiver *r)
{
    r->slot++;
    r->skipped = true;
}

static inline void ring_consume(struct ring_receiver *r, const struct ring_slot *slot, size_t len)
{
    if (len > RING_INLINE_MAX)
        r->line = slot->u.lines.end;
    r->slot++;
    /* Publishing `head` costs each sender a cache miss, so it is done once per quarter of the ring. */
    if (r->slot - (uint32_t)(r->published >> 32) >= RING_SLOTS / 4 ||
        r->line - (uint32_t)r->published >= r->data_lines / 4)
        ring_publish_consumed(r);
}

/* Called when the ring is empty: releases all consumed slots and lines, which a sender may wait for. */
static inline void ring_return_when_idle(struct ring_receiver *r)
{
    if (unlikely(r->skipped)) {
        const uint64_t tail = atomic_load_explicit(&r->ring->tail, memory_order_relaxed);
        r->skipped = (uint32_t)(tail >> 32) != r->slot;
        r->line = r->skipped ? r->line : (uint32_t)tail;
    }
    if (r->published != ring_position(r->slot, r->line))
        ring_publish_consumed(r);
}

#endif
