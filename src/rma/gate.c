/* gate.c: the steps of a user that enters and leaves a gate (gate.h). The order of the changes matters: a
 * user announces itself before it gives the turn to the other side, and a reader admits the next one only
 * when it is inside itself.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/gate.h"

enum stage {
    STAGE_NEW,     /* the user's ticket is being taken */
    STAGE_QUEUE,   /* waits for earlier users of the same side */
    STAGE_JOIN,    /* a reader that checks whether another reader of its side is inside */
    STAGE_CONTEND, /* first of its side; waits for users of the other side */
    STAGE_INSIDE,  /* further calls of gate_next_step() add no operations */
};

static uint8_t side_word_index(enum gate_side side, enum gate_word word)
{
    return (uint8_t)(side == GATE_FAR ? word + GATE_SIDE : word);
}

static uint8_t entry_own_word_index(const struct gate_entry *e, enum gate_word word)
{
    return side_word_index(e->side, word);
}

static enum gate_side entry_other_side(const struct gate_entry *e)
{
    return e->side == GATE_NEAR ? GATE_FAR : GATE_NEAR;
}

static void step_add_operation(struct gate_step *step, bool add, uint8_t word, uint64_t value)
{
    step->op[step->count++] = (struct gate_op){.add = add, .word = word, .value = value};
}

static bool step_request_reread(struct gate_step *step)
{
    step->look = true;
    return false;
}

void gate_enter(struct gate_entry *e, enum gate_side side, bool shared, bool one_side, struct gate_step *step)
{
    *e = (struct gate_entry){.side = side, .shared = shared, .one_side = one_side, .stage = STAGE_NEW};
    *step = (struct gate_step){0};
    step_add_operation(step, true, entry_own_word_index(e, GATE_USERS), 1);
    step_request_reread(step);
}

/* The entry succeeds; a reader also lets the next reader of its side try. */
static bool entry_enter(struct gate_entry *e, struct gate_step *step)
{
    e->stage = STAGE_INSIDE;
    if (e->shared)
        step_add_operation(step, true, entry_own_word_index(e, GATE_READ), 1);
    return true;
}

static bool entry_yield_turn(struct gate_entry *e, struct gate_step *step)
{
    step_add_operation(step, false, GATE_TURN, entry_other_side(e));
    e->stage = STAGE_CONTEND;
    return step_request_reread(step);
}

static bool entry_reach_front(struct gate_entry *e, const uint64_t *seen, struct gate_step *step)
{
    if (e->one_side)
        return entry_enter(e, step);
    if (!e->shared) {
        step_add_operation(step, false, entry_own_word_index(e, GATE_WANT), 1);
        return entry_yield_turn(e, step);
    }
    /* A writer of the other side waits: the readers inside leave first. */
    if (seen[side_word_index(entry_other_side(e), GATE_WANT)] && seen[entry_own_word_index(e, GATE_INSIDE)])
        return step_request_reread(step);
    step_add_operation(step, true, entry_own_word_index(e, GATE_INSIDE), 1);
    e->stage = STAGE_JOIN;
    return step_request_reread(step);
}

static bool is_entry_excluded(const struct gate_entry *e, const uint64_t *seen)
{
    const bool writer = seen[side_word_index(entry_other_side(e), GATE_WANT)],
               readers = seen[side_word_index(entry_other_side(e), GATE_INSIDE)];
    return (writer || (readers && !e->shared)) && seen[GATE_TURN] == (uint64_t)entry_other_side(e);
}

bool gate_next_step(struct gate_entry *e, uint64_t old, const uint64_t *seen, struct gate_step *step)
{
    *step = (struct gate_step){0};
    switch ((enum stage)e->stage) {
    case STAGE_NEW:
        e->ticket = old;
        e->stage = STAGE_QUEUE;
        /* fall through */
    case STAGE_QUEUE:
        if (seen[entry_own_word_index(e, e->shared ? GATE_READ : GATE_WRITE)] != e->ticket)
            return step_request_reread(step);
        return entry_reach_front(e, seen, step);
    case STAGE_JOIN:
        return old > 0 ? entry_enter(e, step) : entry_yield_turn(e, step);
    case STAGE_CONTEND:
        return is_entry_excluded(e, seen) ? step_request_reread(step) : entry_enter(e, step);
    case STAGE_INSIDE:
        return true;
    }
    return step_request_reread(step);
}

void gate_leave(const struct gate_entry *e, struct gate_step *step)
{
    *step = (struct gate_step){0};
    if (!e->one_side && e->shared)
        step_add_operation(step, true, entry_own_word_index(e, GATE_INSIDE), UINT64_MAX); /* subtracts 1 */
    else if (!e->one_side)
        step_add_operation(step, false, entry_own_word_index(e, GATE_WANT), 0);
    if (!e->shared)
        step_add_operation(step, true, entry_own_word_index(e, GATE_READ), 1);
    step_add_operation(step, true, entry_own_word_index(e, GATE_WRITE), 1);
}
