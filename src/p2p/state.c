/* state.c: the table of states, for assertions and tests. See state.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/state.h"

_Static_assert(STATES <= 32, "a set of states is a 32-bit word");

static const struct {
    const char *name, *meaning;
    uint32_t next;
} states[STATES] = {
#define TO(name)                   STATE_BIT(name)
#define STATE(name, meaning, next) [STATE_##name] = {#name, meaning, next},
#include "p2p/state.def"
#undef STATE
#undef TO
};

const char *state_name(enum p2p_state state)
{
    return states[state].name;
}

const char *state_description(enum p2p_state state)
{
    return states[state].meaning;
}

bool state_may_follow(enum p2p_state from, enum p2p_state to)
{
    return states[from].next >> to & 1;
}
