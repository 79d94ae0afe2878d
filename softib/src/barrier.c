/*
 * The hosts' end of the switch's barriers. The switch is a state in the registry: whoever sends it a
 * packet runs its logic under its lock, and its answers wait in the mailboxes of the ports. Packets
 * get lost on both ways when the fabric says so; then the repetition of the protocol does its work.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "proc.h"
#include <sched.h>
#include <stdlib.h>

#define ACKS   0
#define READY  1
#define ID_ROW SOFTIB_SWITCH_BARRIERS

struct softib_barrier {
    uint32_t id, round;
    bool entered, acked;
    uint64_t repeat_at;
};

/* Never 0: an empty mailbox is 0. */
static uint64_t pack(const struct softib_packet *p)
{
    return (uint64_t)p->type << 48 | (uint64_t)p->id << 32 | p->round;
}

static bool lost(void)
{
    return proc.fab.sw_loss && (uint32_t)(rng_next(&proc.reg->sw_rng) >> 32) < proc.fab.sw_loss;
}

/* Under the switch's lock. */
static void deliver(void *arg, const struct softib_packet *p)
{
    (void)arg;
    if (lost() || p->port >= SOFTIB_SWITCH_PORTS)
        return;
    uint32_t row = p->type == SOFTIB_GET_ID_ACK ? ID_ROW : p->id;
    atomic_store(&proc.reg->sw_mail[p->port][row][p->type == SOFTIB_BARRIER_READY ? READY : ACKS], pack(p));
}

static void to_switch(uint8_t type, uint32_t id, uint32_t round)
{
    struct softib_packet p = {type, (uint8_t)id, (uint16_t)proc.slot, round};
    struct registry *r = proc.reg;
    shlock_take(&r->sw_lock);
    if (!r->sw_rng)
        r->sw_rng = proc.fab.seed * 0x9E3779B97F4A7C15ull | 1;
    if (!lost())
        softib_switch_packet(&r->sw, &p, now_ns(), deliver, NULL);
    shlock_drop(&r->sw_lock);
}

/* The switch has no clock of its own: those who wait for it lend it theirs. */
static void tick(void)
{
    struct registry *r = proc.reg;
    shlock_take(&r->sw_lock);
    softib_switch_tick(&r->sw, now_ns(), deliver, NULL);
    shlock_drop(&r->sw_lock);
}

static uint64_t mail(uint32_t row, int box)
{
    return atomic_load_explicit(&proc.reg->sw_mail[proc.slot][row][box], memory_order_acquire);
}

static bool usable(void)
{
    if (proc_joined() && proc.fab.wire == WIRE_SHM)
        return true;
    errno = proc_joined() ? EOPNOTSUPP : ENODEV; /* open a device first */
    return false;
}

/* Repeats a request until its acknowledgement is in the mailbox. Returns what came. */
static uint64_t ask(uint8_t type, uint32_t id, uint32_t round, uint32_t row, uint8_t want)
{
    uint64_t repeat_at = 0, m;
    unsigned turn = 0;
    for (;;) {
        m = mail(row, ACKS);
        if (m >> 48 == want && (uint32_t)m == round)
            return m;
        uint64_t now = now_ns();
        if (now >= repeat_at) {
            to_switch(type, id, round);
            repeat_at = now + SOFTIB_SWITCH_REPEAT_NS;
        }
        spin_wait(&turn);
    }
}

SOFTIB_API int softib_barrier_get_id(uint32_t *id)
{
    static atomic_uint count;
    if (!usable())
        return -1;
    uint32_t serial = (uint32_t)now_ns() ^ atomic_fetch_add(&count, 1) << 24;
    uint64_t m = ask(SOFTIB_GET_ID, 0, serial, ID_ROW, SOFTIB_GET_ID_ACK);
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
    if (!usable() || id >= SOFTIB_SWITCH_BARRIERS) {
        errno = EINVAL;
        return NULL;
    }
    struct softib_barrier *b = calloc(1, sizeof(*b));
    if (!b)
        return NULL;
    b->id = id;
    /* What an earlier barrier of the same number left must not be taken for ours. */
    atomic_store(&proc.reg->sw_mail[proc.slot][id][ACKS], 0);
    atomic_store(&proc.reg->sw_mail[proc.slot][id][READY], 0);
    ask(SOFTIB_WANT_PARTICIPATE, id, 0, id, SOFTIB_WANT_PARTICIPATE_ACK);
    return b;
}

SOFTIB_API int softib_barrier_enter(struct softib_barrier *b)
{
    if (b->entered)
        return EBUSY;
    b->entered = true;
    b->acked = false;
    b->repeat_at = now_ns() + SOFTIB_SWITCH_REPEAT_NS;
    to_switch(SOFTIB_BARRIER_REACHED, b->id, b->round);
    return 0;
}

SOFTIB_API int softib_barrier_test(struct softib_barrier *b)
{
    if (!b->entered)
        return 0;
    uint64_t ready = mail(b->id, READY);
    if (ready >> 48 == SOFTIB_BARRIER_READY && (uint32_t)ready == b->round) {
        to_switch(SOFTIB_BARRIER_READY_ACK, b->id, b->round);
        b->round++;
        b->entered = false;
        return 1;
    }
    uint64_t ack = mail(b->id, ACKS), now = now_ns();
    b->acked |= ack >> 48 == SOFTIB_BARRIER_REACHED_ACK && (uint32_t)ack == b->round;
    if (now < b->repeat_at)
        return 0;
    b->repeat_at = now + SOFTIB_SWITCH_REPEAT_NS;
    if (b->acked)
        tick(); /* the switch repeats its barrierReady */
    else
        to_switch(SOFTIB_BARRIER_REACHED, b->id, b->round);
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
    free(b);
}

SOFTIB_API int softib_barrier_free(uint32_t id)
{
    if (!usable() || id >= SOFTIB_SWITCH_BARRIERS)
        return EINVAL;
    ask(SOFTIB_FREE_BARRIER, id, 0xffffffff, id, SOFTIB_FREE_BARRIER_ACK);
    return 0;
}
