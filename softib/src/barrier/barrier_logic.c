/* barrier_logic.c: the barrier unit of the switch as a pure state machine [Hoefler05 3.1.1]: see
 * softib/barrier.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "barrier/barrier_logic.h"

/* True if every port has reached barrier i or does not participate (bit (i, N) of the paper's state). */
bool switch_is_barrier_complete(const struct softib_switch *s, unsigned i)
{
    for (unsigned w = 0; w < WORDS; w++)
        if (~(s->line[i][w] | s->line[i + I][w]))
            return false;
    return true;
}

SOFTIB_API void softib_switch_init(struct softib_switch *s, uint32_t ports)
{
    memset(s, 0, sizeof(*s));
    s->ports = ports;
}

void switch_begin(struct softib_switch *s, unsigned id)
{
    s->used[id] = 1;
    s->round[id] = 0;
    memset(s->line[id], 0, sizeof(s->line[id]));
    memset(s->line[id + I], 0xff, sizeof(s->line[id + I]));
    memset(s->unacked[id], 0, sizeof(s->unacked[id]));
}

static unsigned switch_allocate_barrier(struct softib_switch *s, const struct softib_packet *p)
{
    unsigned found = I;
    for (unsigned i = 0; i < I; i++) {
        if (s->used[i] && s->owner[i] == p->port && s->serial[i] == p->round)
            return i; /* repeated request: the answer was lost */
        if (!s->used[i] && found == I)
            found = i;
    }
    if (found == I)
        return I;
    s->owner[found] = p->port;
    s->serial[found] = p->round;
    switch_begin(s, found);
    return found;
}

void switch_answer(const struct softib_packet *p, uint8_t type, unsigned id, softib_emit emit, void *arg)
{
    struct softib_packet a = {.type = type, .id = (uint8_t)id, .port = p->port, .round = p->round};
    emit(arg, &a);
}

static void resend_ready(struct softib_switch *s, unsigned id, uint64_t now, softib_emit emit, void *arg)
{
    for (unsigned n = 0; n < s->ports; n++) {
        struct softib_packet r = {SOFTIB_BARRIER_READY, (uint8_t)id, (uint16_t)n, s->round[id] - 1};
        if (line_test_bit(s->unacked[id], n))
            emit(arg, &r);
    }
    s->repeat_at[id] = now + SOFTIB_SWITCH_REPEAT_NS;
}

void switch_finish_round(struct softib_switch *s, unsigned id, uint64_t now, softib_emit emit, void *arg)
{
    memset(s->line[id], 0, sizeof(s->line[id]));
    s->round[id]++;
    for (unsigned w = 0; w < WORDS; w++)
        s->unacked[id][w] = ~s->line[id + I][w];
    resend_ready(s, id, now, emit, arg);
}

static void switch_handle_reached(struct softib_switch *s, const struct softib_packet *p, uint64_t now,
                                  softib_emit emit, void *arg)
{
    unsigned id = p->id;
    switch_answer(p, SOFTIB_BARRIER_REACHED_ACK, id, emit, arg);
    if (p->round + 1 == s->round[id]) { /* the host lost the barrierReady of its round */
        switch_answer(p, SOFTIB_BARRIER_READY, id, emit, arg);
        return;
    }
    if (p->round != s->round[id])
        return;
    line_set_bit(s->unacked[id], p->port, false); /* the port has received the last barrierReady */
    line_set_bit(s->line[id], p->port, true);
    if (!s->below && switch_is_barrier_complete(s, id))
        switch_finish_round(s, id, now, emit, arg);
}

/* The last port to leave frees the barrier. A repeated packet has no effect: a port that has left does not
 * take part. */
static void switch_leave_barrier(struct softib_switch *s, unsigned id, unsigned port)
{
    uint64_t others = 0;
    if (line_test_bit(s->line[id + I], port))
        return;
    line_set_bit(s->line[id + I], port, true);
    line_set_bit(s->unacked[id], port, false);
    for (unsigned w = 0; w < WORDS; w++)
        others |= ~s->line[id + I][w];
    s->used[id] = others != 0;
}

SOFTIB_API void softib_switch_packet(struct softib_switch *s, const struct softib_packet *p, uint64_t now,
                                     softib_emit emit, void *arg)
{
    unsigned id = p->id;
    if (p->port >= s->ports)
        return;
    if (p->type == SOFTIB_GET_ID) {
        switch_answer(p, SOFTIB_GET_ID_ACK, switch_allocate_barrier(s, p), emit, arg);
        return;
    }
    if (id >= I || (!s->used[id] && p->type != SOFTIB_FREE_BARRIER && p->type != SOFTIB_LEAVE))
        return;
    switch (p->type) {
    case SOFTIB_LEAVE:
        if (s->used[id])
            switch_leave_barrier(s, id, p->port);
        switch_answer(p, SOFTIB_LEAVE_ACK, id, emit, arg);
        break;
    case SOFTIB_WANT_PARTICIPATE:
        line_set_bit(s->line[id + I], p->port, false);
        switch_answer(p, SOFTIB_WANT_PARTICIPATE_ACK, id, emit, arg);
        break;
    case SOFTIB_BARRIER_REACHED:
        if (!line_test_bit(s->line[id + I], p->port))
            switch_handle_reached(s, p, now, emit, arg);
        break;
    case SOFTIB_BARRIER_READY_ACK:
        if (p->round + 1 == s->round[id])
            line_set_bit(s->unacked[id], p->port, false);
        break;
    case SOFTIB_FREE_BARRIER:
        s->used[id] = 0;
        switch_answer(p, SOFTIB_FREE_BARRIER_ACK, id, emit, arg);
        break;
    default:
        break;
    }
}

SOFTIB_API void softib_switch_tick(struct softib_switch *s, uint64_t now, softib_emit emit, void *arg)
{
    for (unsigned id = 0; id < I; id++) {
        uint64_t waiting = 0;
        for (unsigned w = 0; s->used[id] && w < WORDS; w++)
            waiting |= s->unacked[id][w];
        if (waiting && now >= s->repeat_at[id])
            resend_ready(s, id, now, emit, arg);
    }
}
