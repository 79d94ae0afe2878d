/* switch.c: packets of the switch's barrier unit between machines. The switch is in the registry of node 0
 * and has the first port number of that node, which no process uses. The process of node 0 that receives a
 * packet runs the logic.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/switch.h"
#include "barrier/switch.h"
#include "net/loop.h"
#include "net/udp.h"
#include <stdlib.h>

#define TICKS 64

static unsigned ticks;           /* remaining timer ticks of the switch */
static struct in_addr switch_at; /* address from which the switch answered last */

static void switch_build_frame(const struct softib_packet *p, struct frame *f)
{
    *f = (struct frame){
        .type = FRAME_SWITCH,
        .qp_type = IBV_QPT_UD,
        .opcode = p->type,
        .src_qpn = proc.slot << QP_BITS,
        .slid = fabric_port_lid(&proc.fab, fabric_port_index(&proc.fab, proc.fab.node, 0, 1)),
        .arg = p->id,
        .imm = p->round,
    };
}

/* Returns the next address of node 0, in turn, for packets that were not answered. */
static struct in_addr next_address(void)
{
    static unsigned count, turn; /* under the lock of this wire */
    const struct fab_port *node0 = &proc.fab.port[0];
    if (switch_at.s_addr && ++count % 16)
        return switch_at;
    return node0->addr[turn++ % node0->addrs];
}

void net_to_switch(const struct softib_packet *p)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(proc.fab.base_of[0])};
    struct frame f;
    switch_build_frame(p, &f);
    net_lock();
    to.sin_addr = next_address();
    udp_send_head(&to, &f);
    net_unlock();
}

void net_from_switch(const struct softib_packet *p)
{
    struct frame f;
    switch_build_frame(p, &f);
    udp_send_head(&proc.reg->sw_addr[p->port], &f);
}

/* The switch port of a process, assigned with its first packet; SOFTIB_SWITCH_PORTS if none is left. */
static uint32_t switch_find_port(uint32_t node, uint32_t slot, const struct sockaddr_in *from)
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

static bool switch_is_reply(uint8_t type)
{
    return type == SOFTIB_BARRIER_READY || (type != SOFTIB_BARRIER_READY_ACK && !(type & 1));
}

void switch_handle_frame(const struct frame *f, const struct sockaddr_in *from)
{
    struct softib_packet p = {f->opcode, (uint8_t)f->arg, 0, f->imm};
    struct fab_place at;
    uint32_t slot = f->src_qpn >> QP_BITS;
    if (switch_is_reply(p.type)) {
        switch_at = from->sin_addr;
        switch_store_packet(proc.slot, &p);
        return;
    }
    if (proc.fab.node || !slot || !fabric_find_lid(&proc.fab, f->slid, &at)) {
        port_count(fabric_port_index(&proc.fab, proc.fab.node, 0, 1), CNT_RX_DROPS, 1);
        return;
    }
    shlock_lock(&proc.reg->sw_lock);
    uint32_t port = switch_find_port(at.node, slot, from);
    if (port < SOFTIB_SWITCH_PORTS) {
        p.port = (uint16_t)port;
        switch_handle_packet(&p);
    }
    shlock_unlock(&proc.reg->sw_lock);
    ticks = TICKS;
    net_schedule_tick(now_ns() + SOFTIB_SWITCH_REPEAT_NS);
}

/* Runs the switch's timer: for TICKS ticks after this process has handled a packet for the switch. */
void switch_net_tick(uint64_t now)
{
    if (!ticks)
        return;
    switch_tick();
    if (--ticks)
        net_schedule_tick(now + SOFTIB_SWITCH_REPEAT_NS);
}
