/*
 * The hosts' end of the switch's barriers. The switch is a state in the registry: on wire (a) whoever sends
 * it a packet runs its logic under its lock, and its answers wait in the mailboxes of the ports. On wire (b)
 * the switch is in node 0's registry, packets come and go by UDP, and each process keeps its own mailbox.
 * Packets get lost on both ways, by the network or when the fabric says so; then the repetition of the
 * protocol does its work. SPDX-License-Identifier: Apache-2.0
 */
#include "frame.h"
#include "wire.h"
#include <stdlib.h>

#define ACKS   0
#define READY  1
#define ID_ROW SOFTIB_SWITCH_BARRIERS
#define SLOW   8 /* an acknowledged packet is repeated this many times more rarely */
#define TICKS  64

static unsigned ticks; /* wire (b): how often the switch still looks whether it has to repeat something */

struct softib_barrier {
    uint32_t id, round, silent;
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

/* A packet from the switch is in the mailbox of its port. */
static void post(uint32_t port, const struct softib_packet *p)
{
    uint32_t row = p->type == SOFTIB_GET_ID_ACK ? ID_ROW : p->id;
    atomic_store(&proc.reg->sw_mail[port][row][p->type == SOFTIB_BARRIER_READY ? READY : ACKS], pack(p));
}

static void frame_of(const struct softib_packet *p, struct frame *f)
{
    *f = (struct frame){
        .type = FRAME_SWITCH,
        .qp_type = IBV_QPT_UD,
        .opcode = p->type,
        .src_qpn = proc.slot << QP_BITS,
        .slid = fabric_lid(&proc.fab, fabric_linear(&proc.fab, proc.fab.node, 0, 1)),
        .arg = p->id,
        .imm = p->round,
    };
}

/* Under the switch's lock. */
static void deliver(void *arg, const struct softib_packet *p)
{
    struct frame f;
    (void)arg;
    if (lost() || p->port >= SOFTIB_SWITCH_PORTS)
        return;
    if (proc.fab.wire == WIRE_SHM) {
        post(p->port, p);
        return;
    }
    frame_of(p, &f);
    wire_udp_switch(&f, &proc.reg->sw_addr[p->port]);
}

/* The switch takes a packet. */
static void switch_run(const struct softib_packet *p)
{
    struct registry *r = proc.reg;
    if (!r->sw_rng)
        r->sw_rng = proc.fab.seed * 0x9E3779B97F4A7C15ull | 1;
    if (!lost())
        softib_switch_packet(&r->sw, p, now_ns(), deliver, NULL);
}

static void to_switch(uint8_t type, uint32_t id, uint32_t round)
{
    struct softib_packet p = {type, (uint8_t)id, (uint16_t)proc.slot, round};
    struct frame f;
    if (proc.fab.wire == WIRE_TCP) {
        frame_of(&p, &f);
        wire_lock();
        wire_udp_switch(&f, NULL);
        wire_unlock();
        return;
    }
    shlock_take(&proc.reg->sw_lock);
    switch_run(&p);
    shlock_drop(&proc.reg->sw_lock);
}

/* The switch's port of a process, given to it with its first packet; SOFTIB_SWITCH_PORTS: none is left. */
static uint32_t port_of(uint32_t node, uint32_t slot, const struct sockaddr_in *from)
{
    uint32_t host = node << 16 | slot, i = 0;
    while (i < SOFTIB_SWITCH_PORTS && proc.reg->sw_host[i] && proc.reg->sw_host[i] != host)
        i++;
    if (i < SOFTIB_SWITCH_PORTS) {
        proc.reg->sw_host[i] = host; /* never 0: there is no slot 0 */
        proc.reg->sw_addr[i] = *from;
    }
    return i;
}

static bool from_switch(uint8_t type)
{
    return type == SOFTIB_BARRIER_READY || (type != SOFTIB_BARRIER_READY_ACK && !(type & 1));
}

void barrier_frame(const struct frame *f, const struct sockaddr_in *from)
{
    struct softib_packet p = {f->opcode, (uint8_t)f->arg, 0, f->imm};
    struct fab_place at;
    uint32_t slot = f->src_qpn >> QP_BITS;
    if (from_switch(p.type)) {
        wire_udp_switch_at(from);
        post(proc.slot, &p);
        return;
    }
    if (proc.fab.node || !slot || !fabric_locate(&proc.fab, f->slid, &at)) {
        port_count(fabric_linear(&proc.fab, proc.fab.node, 0, 1), CNT_RX_DROPS, 1);
        return;
    }
    shlock_take(&proc.reg->sw_lock);
    uint32_t port = port_of(at.node, slot, from);
    if (port < SOFTIB_SWITCH_PORTS) {
        p.port = (uint16_t)port;
        switch_run(&p);
    }
    shlock_drop(&proc.reg->sw_lock);
    ticks = TICKS;
    engine_tick_at(now_ns() + SOFTIB_SWITCH_REPEAT_NS);
}

/* On wire (a) the switch has no clock of its own: those who wait for it lend it theirs. */
static void tick(void)
{
    struct registry *r = proc.reg;
    shlock_take(&r->sw_lock);
    softib_switch_tick(&r->sw, now_ns(), deliver, NULL);
    shlock_drop(&r->sw_lock);
}

/* On wire (b) it has that of the process that took a packet for it last. */
void barrier_tick(uint64_t now)
{
    if (!ticks)
        return;
    tick();
    if (--ticks)
        engine_tick_at(now + SOFTIB_SWITCH_REPEAT_NS);
}

static uint64_t mail(uint32_t row, int box)
{
    return atomic_load_explicit(&proc.reg->sw_mail[proc.slot][row][box], memory_order_acquire);
}

static bool usable(void)
{
    if (proc_joined())
        return true;
    errno = ENODEV; /* open a device first */
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
        engine_poll();
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
    engine_poll(); /* wire (b): the packet may be in the socket */
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
    if (b->acked && proc.fab.wire == WIRE_SHM)
        tick();                                    /* the switch repeats its barrierReady */
    else if (!b->acked || ++b->silent % SLOW == 0) /* its clock may have died with a process of node 0 */
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
