/* switch.c: the switch's part of the barrier protocol. Packets can be lost in both directions, by the network or because of
 * `switch_loss=` in SOFTIB_FABRIC. The protocol repeats them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "barrier/switch.h"
#include "hca/wire.h"

/* Encodes a packet as one word, which is not 0: 0 is an empty mailbox. */
static uint64_t switch_pack_packet(const struct softib_packet *p)
{
    return (uint64_t)p->type << 48 | (uint64_t)p->id << 32 | p->round;
}

static bool switch_drop_packet(void)
{
    return proc.fab.sw_loss && (uint32_t)(rng_next(&proc.reg->sw_rng) >> 32) < proc.fab.sw_loss;
}

void switch_store_packet(uint32_t port, const struct softib_packet *p)
{
    uint32_t row = p->type == SOFTIB_GET_ID_ACK ? SWITCH_ID_ROW : p->id;
    int box = p->type == SOFTIB_BARRIER_READY ? SWITCH_READY : SWITCH_ACKS;
    atomic_store(&proc.reg->sw_mail[port][row][box], switch_pack_packet(p));
}

uint64_t switch_read_mailbox(uint32_t row, int box)
{
    return atomic_load_explicit(&proc.reg->sw_mail[proc.slot][row][box], memory_order_acquire);
}

/* Returns the lower switch of a host: nodes are divided among the lower switches in order. */
static struct softib_switch *switch_find_leaf(uint32_t port)
{
    const uint32_t node = wire_far ? proc.reg->sw_host[port] >> 16 : proc.reg->member[port].node;
    return &proc.reg->leaf[(uint64_t)node * proc.fab.switches / proc.fab.nodes];
}

static void switch_deliver(void *arg, const struct softib_packet *p)
{
    (void)arg;
    if (!switch_drop_packet() && p->port < SOFTIB_SWITCH_PORTS)
        wire_to_switch()->from_switch(p);
}

static void switch_send_down(void *arg, const struct softib_packet *p);

static void switch_send_up(void *arg, const struct softib_packet *p)
{
    if (!switch_drop_packet())
        softib_switch_packet(&proc.reg->sw, p, now_ns(), switch_send_down, arg);
}

static void switch_send_down(void *arg, const struct softib_packet *p)
{
    if (!switch_drop_packet() && p->port < proc.fab.switches)
        softib_leaf_answer(&proc.reg->leaf[p->port], p, now_ns(), switch_deliver, switch_send_up, arg);
}

/* True for packets that the upper switch must answer: it assigns the numbers of barriers. */
static bool is_for_upper_switch(const struct softib_packet *p)
{
    return proc.fab.switches == 1 || p->type == SOFTIB_GET_ID || p->type == SOFTIB_FREE_BARRIER;
}

void switch_handle_packet(const struct softib_packet *p)
{
    struct registry *r = proc.reg;
    if (!r->sw_rng)
        r->sw_rng = proc.fab.seed * 0x9E3779B97F4A7C15ull | 1;
    if (switch_drop_packet())
        return;
    if (is_for_upper_switch(p))
        softib_switch_packet(&r->sw, p, now_ns(), switch_deliver, NULL);
    else
        softib_leaf_packet(switch_find_leaf(p->port), p, now_ns(), switch_deliver, switch_send_up, NULL);
}

void switch_tick(void)
{
    struct registry *r = proc.reg;
    shlock_lock(&r->sw_lock);
    softib_switch_tick(&r->sw, now_ns(), proc.fab.switches == 1 ? switch_deliver : switch_send_down, NULL);
    for (uint32_t i = 0; proc.fab.switches > 1 && i < proc.fab.switches; i++)
        softib_leaf_tick(&r->leaf[i], now_ns(), switch_deliver, switch_send_up, NULL);
    shlock_unlock(&r->sw_lock);
}
