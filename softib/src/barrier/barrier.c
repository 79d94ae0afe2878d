/* barrier.c: the host end of barriers in the switch: the calls of softib/barrier.h. Packets can be lost, so
 * each is repeated until its acknowledgement is in the mailbox.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "barrier/switch.h"
#include "hca/wire.h"
#include <stdlib.h>

#define LEAVE_ROUND 0xfffffffe
#define SLOW        8 /* factor for the repeat interval of an acknowledged barrierReached */

struct softib_barrier {
    uint32_t id, round, silent;
    bool entered, acked;
    uint64_t repeat_at;
};

static void send_to_switch(uint8_t type, uint32_t id, uint32_t round)
{
    struct softib_packet p = {type, (uint8_t)id, (uint16_t)proc.slot, round};
    wire_to_switch()->to_switch(&p);
}

static bool barrier_is_usable(void)
{
    if (proc_has_joined())
        return true;
    errno = ENODEV; /* the process has not opened a device */
    return false;
}

/* Repeats a request until its acknowledgement is in the mailbox. Returns the contents of the mailbox. */
static uint64_t barrier_request_and_wait(uint8_t type, uint32_t id, uint32_t round, uint32_t row,
                                         uint8_t want)
{
    uint64_t repeat_at = 0, m;
    unsigned turn = 0;
    for (;;) {
        m = switch_read_mailbox(row, SWITCH_ACKS);
        if (m >> 48 == want && (uint32_t)m == round)
            return m;
        uint64_t now = now_ns();
        if (now >= repeat_at) {
            send_to_switch(type, id, round);
            repeat_at = now + SOFTIB_SWITCH_REPEAT_NS;
        }
        engine_poll();
        spin_wait(&turn);
    }
}

SOFTIB_API int softib_barrier_get_id(uint32_t *id)
{
    static atomic_uint count;
    if (!barrier_is_usable())
        return -1;
    uint32_t serial = (uint32_t)now_ns() ^ atomic_fetch_add(&count, 1) << 24;
    uint64_t m = barrier_request_and_wait(SOFTIB_GET_ID, 0, serial, SWITCH_ID_ROW, SOFTIB_GET_ID_ACK);
    uint32_t got = (uint32_t)(m >> 32) & 0xff;
    if (got == SOFTIB_SWITCH_BARRIERS) {
        errno = EAGAIN;
        return -1;
    }
    *id = got;
    return 0;
}

SOFTIB_API struct softib_barrier *softib_barrier_join(uint32_t id)
{
    if (!barrier_is_usable() || id >= SOFTIB_SWITCH_BARRIERS) {
        errno = EINVAL;
        return NULL;
    }
    struct softib_barrier *b = calloc(1, sizeof(*b));
    if (!b)
        return NULL;
    b->id = id;
    /* Packets of an earlier barrier with the same number may be in the mailbox. */
    atomic_store(&proc.reg->sw_mail[proc.slot][id][SWITCH_ACKS], 0);
    atomic_store(&proc.reg->sw_mail[proc.slot][id][SWITCH_READY], 0);
    barrier_request_and_wait(SOFTIB_WANT_PARTICIPATE, id, 0, id, SOFTIB_WANT_PARTICIPATE_ACK);
    return b;
}

SOFTIB_API int softib_barrier_enter(struct softib_barrier *b)
{
    if (b->entered)
        return EBUSY;
    b->entered = true;
    b->acked = false;
    b->repeat_at = now_ns() + SOFTIB_SWITCH_REPEAT_NS;
    send_to_switch(SOFTIB_BARRIER_REACHED, b->id, b->round);
    return 0;
}

SOFTIB_API int softib_barrier_test(struct softib_barrier *b)
{
    if (!b->entered)
        return 0;
    engine_poll(); /* reads sockets, which may contain the packet */
    uint64_t ready = switch_read_mailbox(b->id, SWITCH_READY);
    if (ready >> 48 == SOFTIB_BARRIER_READY && (uint32_t)ready == b->round) {
        send_to_switch(SOFTIB_BARRIER_READY_ACK, b->id, b->round);
        b->round++;
        b->entered = false;
        return 1;
    }
    uint64_t ack = switch_read_mailbox(b->id, SWITCH_ACKS), now = now_ns();
    b->acked |= ack >> 48 == SOFTIB_BARRIER_REACHED_ACK && (uint32_t)ack == b->round;
    if (now < b->repeat_at)
        return 0;
    b->repeat_at = now + SOFTIB_SWITCH_REPEAT_NS;
    if (b->acked && !wire_far)
        switch_tick(); /* the switch has no thread: waiting hosts run its timer */
    else if (!b->acked ||
             ++b->silent % SLOW == 0) /* repeat: the process of node 0 that ran the timer may have ended */
        send_to_switch(SOFTIB_BARRIER_REACHED, b->id, b->round);
    return 0;
}

SOFTIB_API int softib_barrier_wait(struct softib_barrier *b)
{
    unsigned turn = 0;
    int r = softib_barrier_enter(b);
    while (!r && !softib_barrier_test(b))
        spin_wait(&turn);
    return r;
}

SOFTIB_API void softib_barrier_leave(struct softib_barrier *b)
{
    barrier_request_and_wait(SOFTIB_LEAVE, b->id, LEAVE_ROUND, b->id, SOFTIB_LEAVE_ACK);
    free(b);
}

SOFTIB_API int softib_barrier_free(uint32_t id)
{
    if (!barrier_is_usable() || id >= SOFTIB_SWITCH_BARRIERS)
        return EINVAL;
    barrier_request_and_wait(SOFTIB_FREE_BARRIER, id, 0xffffffff, id, SOFTIB_FREE_BARRIER_ACK);
    return 0;
}
