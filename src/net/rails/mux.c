/* mux.c: selects the rail of the next whole message.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/rails/mux.h"

void mux_open(struct mux *m, enum mux_policy policy, unsigned rails, unsigned process)
{
    *m = (struct mux){
        .policy = policy, .rails = (uint8_t)rails, .last = RAIL_NONE, .up = rails_all(rails), .window = 1};
    for (unsigned r = 0; r < rails; r++)
        m->weight[r] = 1;
    if (policy == MUX_BINDING)
        m->last = (uint8_t)(process % rails);
}

void mux_settings(struct mux *m, const double *weight, uint64_t window)
{
    double sum = 0;
    for (unsigned r = 0; r < m->rails; r++)
        sum += weight[r];
    for (unsigned r = 0; r < m->rails && sum > 0; r++)
        m->weight[r] = MAX((uint32_t)(weight[r] / sum * 100 + 0.5), 1u);
    m->window = MAX(window, 1u);
}

void mux_set_short_limit(struct mux *m, uint64_t shorter)
{
    m->kept = shorter;
}

void mux_set_rail_up(struct mux *m, unsigned rail, bool up)
{
    m->up = up ? m->up | rail_bit(rail) : m->up & ~rail_bit(rail);
    m->due[rail] = 0; /* a rail that comes up again does not catch up with missed messages */
}

static unsigned mux_choose_bound_rail(const struct mux *m)
{
    return rail_set_contains(m->up, m->last) ? m->last : rail_after(m->up, m->last);
}

/* Returns the rail that is furthest behind its share. Each time every rail gains its weight and the chosen
 * one pays the sum, so the balances add up to 0, and messages are spread evenly. */
static unsigned choose_rail_by_weight(struct mux *m)
{
    unsigned best = RAIL_NONE;
    int64_t sum = 0;
    for (unsigned r = 0; r < m->rails; r++) {
        if (!rail_set_contains(m->up, r) || m->weight[r] == 0)
            continue;
        m->due[r] += m->weight[r];
        sum += m->weight[r];
        if (best == RAIL_NONE || m->due[r] > m->due[best])
            best = r;
    }
    if (best == RAIL_NONE)
        return rail_after(m->up, m->last); /* use rails of weight 0 rather than none */
    m->due[best] -= sum;
    return best;
}

static unsigned choose_rail_with_room(const struct mux *m)
{
    uint32_t room = 0;
    for (unsigned r = 0; r < m->rails; r++)
        if (rail_set_contains(m->up, r) && m->outstanding[r] < m->window)
            room |= rail_bit(r);
    return rail_after(room, m->last);
}

static unsigned choose_rail_by_window(struct mux *m)
{
    if (m->left > 0 && rail_set_contains(m->up, m->last)) {
        m->left--;
        return m->last;
    }
    m->left = m->window - 1;
    return rail_after(m->up, m->last);
}

static unsigned mux_choose(struct mux *m)
{
    switch (m->policy) {
    case MUX_BINDING:
        return mux_choose_bound_rail(m);
    case MUX_WEIGHTS:
        return choose_rail_by_weight(m);
    case MUX_WINDOW:
        return choose_rail_by_window(m);
    case MUX_ROOM:
        return choose_rail_with_room(m);
    default:
        return rail_after(m->up, m->last);
    }
}

unsigned mux_next(struct mux *m, uint64_t bytes)
{
    if (bytes < m->kept && rail_set_contains(m->up, 0)) {
        m->outstanding[0] += bytes;
        return 0;
    }
    unsigned rail = mux_choose(m);
    if (rail == RAIL_NONE)
        return RAIL_NONE;
    if (m->policy != MUX_BINDING) /* a bound process remains bound to its rail while the rail is down */
        m->last = (uint8_t)rail;
    m->outstanding[rail] += bytes;
    return rail;
}

void mux_report_completed(struct mux *m, unsigned rail, uint64_t bytes)
{
    m->outstanding[rail] -= MIN(bytes, m->outstanding[rail]);
}
