/* sched.c: builds a list of steps. A failed allocation sets s->failed, so that generators need not check
 * every call.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/sched/sched.h"

#include <stdlib.h>
#include <string.h>

void sched_init(struct sched *s)
{
    memset(s, 0, sizeof(*s));
}

void sched_free(struct sched *s)
{
    free(s->steps);
    sched_init(s);
}

static struct step *sched_add_step(struct sched *s, enum step_kind kind, int peer, int64_t count)
{
    static struct step sink;
    if (s->count == s->capacity) {
        uint32_t capacity = s->capacity ? 2 * s->capacity : 16;
        struct step *steps = realloc(s->steps, capacity * sizeof(*steps));
        if (!steps) {
            s->failed = true;
            return &sink;
        }
        s->steps = steps;
        s->capacity = capacity;
    }
    struct step *step = &s->steps[s->count++];
    *step = (struct step){.kind = (uint8_t)kind, .peer = peer, .count = count};
    return step;
}

static void step_set_operand(struct step *step, int i, struct loc l)
{
    step->buf[i] = (uint8_t)l.buf;
    step->at[i] = l.at;
}

void sched_send(struct sched *s, int peer, struct loc from, int64_t count)
{
    if (count > 0)
        step_set_operand(sched_add_step(s, STEP_SEND, peer, count), 0, from);
}

void sched_recv(struct sched *s, int peer, struct loc to, int64_t count)
{
    if (count > 0)
        step_set_operand(sched_add_step(s, STEP_RECV, peer, count), 0, to);
}

void sched_copy(struct sched *s, struct loc from, struct loc to, int64_t count)
{
    if (count <= 0 || loc_same(from, to))
        return;
    struct step *step = sched_add_step(s, STEP_COPY, 0, count);
    step_set_operand(step, 0, from);
    step_set_operand(step, 1, to);
}

void sched_reduce(struct sched *s, struct loc left, struct loc right, struct loc out, int64_t count)
{
    if (count <= 0)
        return;
    struct step *step = sched_add_step(s, STEP_REDUCE, 0, count);
    step_set_operand(step, 0, left);
    step_set_operand(step, 1, right);
    step_set_operand(step, 2, out);
}

/* Adds a fence if a message was started since the last fence; local steps may be in between. */
void sched_fence(struct sched *s)
{
    for (uint32_t i = s->count; i-- > 0;) {
        if (s->steps[i].kind == STEP_FENCE)
            return;
        if (s->steps[i].kind == STEP_SEND || s->steps[i].kind == STEP_RECV) {
            sched_add_step(s, STEP_FENCE, 0, 0);
            return;
        }
    }
}

void sched_signal(struct sched *s, int peer)
{
    sched_add_step(s, STEP_SEND, peer, 0);
}

void sched_await(struct sched *s, int peer)
{
    sched_add_step(s, STEP_RECV, peer, 0);
}

struct loc sched_temp(struct sched *s, int64_t items)
{
    struct loc l = loc_make(BUF_TEMP, s->temp);
    s->temp += items;
    return l;
}
