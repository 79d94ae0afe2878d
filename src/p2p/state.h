/* state.h: the state of a send or a receive. The table is state.def; README.md contains a diagram. Debug
 * builds assert that the table permits every change of state.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_STATE_H
#define FP_P2P_STATE_H

#include <stdbool.h>
#include <stdint.h>

enum p2p_state {
#define STATE(name, what, next) STATE_##name,
#include "p2p/state.def"
#undef STATE
    STATES
};

/* The bit of a state in a set of states. */
#define STATE_BIT(name) (1u << STATE_##name)

const char *state_name(enum p2p_state state);
const char *state_description(enum p2p_state state);
bool state_may_follow(enum p2p_state from, enum p2p_state to);

#endif
