/* leaf_logic.c: a switch with hosts below another switch [Hoefler05 3.1]: the barrier is performed first
 * among the hosts of one switch and then among the switches. To the upper switch the lower one behaves
 * like a host: it participates while one of its hosts does, has reached the barrier when all of them have,
 * and repeats every packet until it is acknowledged. Joining and leaving are acknowledged to a host after
 * the upper switch has acknowledged them. A pure state machine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "barrier/barrier_logic.h"

SOFTIB_API void softib_leaf_init(struct softib_switch *s, uint32_t ports, uint16_t up_port)
{
    softib_switch_init(s, ports);
    s->below = 1;
    s->up_port = up_port;
}

/* Sends or repeats the packet whose acknowledgement the current state requires. */
static void leaf_send_up(struct softib_switch *s, unsigned id, uint64_t now, softib_emit up, void *arg)
{
    static const uint8_t type[] = {[SOFTIB_UP_JOINING] = SOFTIB_WANT_PARTICIPATE,
                                   [SOFTIB_UP_REACHED] = SOFTIB_BARRIER_REACHED,
                                   [SOFTIB_UP_LEAVING] = SOFTIB_LEAVE};
    const struct softib_packet p = {type[s->up[id]], (uint8_t)id, s->up_port, s->round[id]};
    s->up_at[id] = now + SOFTIB_SWITCH_REPEAT_NS;
    up(arg, &p);
}

static bool leaf_is_waiting(const struct softib_switch *s, unsigned id)
{
    return s->up[id] == SOFTIB_UP_JOINING || s->up[id] == SOFTIB_UP_REACHED || s->up[id] == SOFTIB_UP_LEAVING;
}

static void leaf_set_state(struct softib_switch *s, unsigned id, enum softib_up state, uint64_t now,
                           softib_emit up, void *arg)
{
    if (s->up[id] == state && now < s->up_at[id])
        return;
    s->up[id] = (uint8_t)state;
    leaf_send_up(s, id, now, up, arg);
}

static void leaf_handle_participate(struct softib_switch *s, const struct softib_packet *p, uint64_t now,
                                    softib_emit emit, softib_emit up, void *arg)
{
    const unsigned id = p->id;
    /* The switch has not left an earlier barrier with this number yet; the host repeats its packet. */
    if (s->up[id] == SOFTIB_UP_LEAVING) {
        leaf_set_state(s, id, SOFTIB_UP_LEAVING, now, up, arg);
        return;
    }
    if (!s->used[id])
        switch_begin(s, id);
    line_set_bit(s->line[id + I], p->port, false);
    if (s->up[id] == SOFTIB_UP_OUT || s->up[id] == SOFTIB_UP_JOINING)
        leaf_set_state(s, id, SOFTIB_UP_JOINING, now, up, arg);
    if (s->up[id] != SOFTIB_UP_OUT && s->up[id] != SOFTIB_UP_JOINING)
        switch_answer(p, SOFTIB_WANT_PARTICIPATE_ACK, id, emit, arg);
}

static void leaf_handle_leave(struct softib_switch *s, const struct softib_packet *p, uint64_t now,
                              softib_emit emit, softib_emit up, void *arg)
{
    const unsigned id = p->id;
    uint64_t others = 0;
    line_set_bit(s->line[id + I], p->port, true);
    line_set_bit(s->unacked[id], p->port, false);
    for (unsigned w = 0; s->used[id] && w < WORDS; w++)
        others |= ~s->line[id + I][w];
    s->used[id] = others != 0;
    if (!others && s->up[id] != SOFTIB_UP_OUT)
        leaf_set_state(s, id, SOFTIB_UP_LEAVING, now, up, arg);
    if (others || s->up[id] == SOFTIB_UP_OUT)
        switch_answer(p, SOFTIB_LEAVE_ACK, id, emit, arg);
}

SOFTIB_API void softib_leaf_packet(struct softib_switch *s, const struct softib_packet *p, uint64_t now,
                                   softib_emit emit, softib_emit up, void *arg)
{
    const unsigned id = p->id;
    if (p->port >= s->ports || id >= I)
        return;
    if (p->type == SOFTIB_WANT_PARTICIPATE) {
        leaf_handle_participate(s, p, now, emit, up, arg);
    } else if (p->type == SOFTIB_LEAVE) {
        leaf_handle_leave(s, p, now, emit, up, arg);
    } else if (p->type == SOFTIB_BARRIER_REACHED || p->type == SOFTIB_BARRIER_READY_ACK) {
        softib_switch_packet(s, p, now, emit, arg);
        if (s->used[id] && s->up[id] == SOFTIB_UP_IN && switch_is_barrier_complete(s, id))
            leaf_set_state(s, id, SOFTIB_UP_REACHED, now, up, arg);
    }
}

/* The upper switch reports, possibly again, that the barrier of this round is complete. */
static void leaf_handle_ready(struct softib_switch *s, const struct softib_packet *p, uint64_t now,
                              softib_emit emit, softib_emit up, void *arg)
{
    const struct softib_packet ack = {SOFTIB_BARRIER_READY_ACK, p->id, s->up_port, p->round};
    const bool first = p->round == s->round[p->id];
    if (!first && p->round + 1 != s->round[p->id])
        return;
    if (first)
        s->up[p->id] = SOFTIB_UP_IN;
    up(arg, &ack);
    if (first)
        switch_finish_round(s, p->id, now, emit, arg);
}

SOFTIB_API void softib_leaf_answer(struct softib_switch *s, const struct softib_packet *p, uint64_t now,
                                   softib_emit emit, softib_emit up, void *arg)
{
    const unsigned id = p->id;
    if (id >= I)
        return;
    uint8_t *state = &s->up[id];
    if (p->type == SOFTIB_WANT_PARTICIPATE_ACK && *state == SOFTIB_UP_JOINING)
        *state = SOFTIB_UP_IN;
    else if (p->type == SOFTIB_BARRIER_REACHED_ACK && *state == SOFTIB_UP_REACHED && p->round == s->round[id])
        *state = SOFTIB_UP_ACKED;
    else if (p->type == SOFTIB_LEAVE_ACK && *state == SOFTIB_UP_LEAVING)
        *state = SOFTIB_UP_OUT;
    else if (p->type == SOFTIB_BARRIER_READY && s->used[id])
        leaf_handle_ready(s, p, now, emit, up, arg);
}

SOFTIB_API void softib_leaf_tick(struct softib_switch *s, uint64_t now, softib_emit emit, softib_emit up,
                                 void *arg)
{
    for (unsigned id = 0; id < I; id++)
        if (leaf_is_waiting(s, id) && now >= s->up_at[id])
            leaf_send_up(s, id, now, up, arg);
    softib_switch_tick(s, now, emit, arg);
}
