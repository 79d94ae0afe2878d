/* mux.h: multiplexing: which rail the next whole message takes [Liu04 8.2.4]. For control and small messages, whose cost is
 * per message: their length counts only for `room`. A pure state machine.
 *
 *   binding   Always the same rail: process number modulo the number of rails. Least work, and order is kept. Several
 *             processes of a node together use all rails.
 *   turns     Round robin.
 *   weights   Weighted round robin: of every sum(weight) messages a rail takes `weight`, spread evenly over the round.
 *   window    Round robin that changes rails after every `window` messages only. Fewer messages overtake each other where
 *             rails differ in latency.
 *   room      Round robin among rails with fewer than `window` bytes outstanding. No rail has room: the message waits.
 *
 * A rail that is down (not in `up`) is skipped; a process that is bound to it uses the next rail that is up.
 *
 * With mux_set_short_limit short messages use rail 0 while it is up, with any policy: changing rails costs
 * processor time, and short messages do not fill a link.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_RAILS_MUX_H
#define FP_NET_RAILS_MUX_H

#include "net/rails/rail.h"

enum mux_policy { MUX_BINDING, MUX_TURNS, MUX_WEIGHTS, MUX_WINDOW, MUX_ROOM };

struct mux {
    enum mux_policy policy;
    uint8_t rails;   /* number of rails */
    uint8_t last;    /* rail of the last message, RAIL_NONE before the first; binding: the bound rail */
    uint32_t up;     /* bit set of the rails that are up */
    uint64_t window; /* window: messages per turn; room: limit of outstanding bytes */
    uint64_t left;   /* window: messages that `last` still gets in this turn */
    uint64_t kept;   /* bytes; shorter messages use rail 0; 0: no such limit */
    uint32_t weight[RAILS_MAX];
    int64_t due[RAILS_MAX];          /* weights: by how much a rail is behind its share */
    uint64_t outstanding[RAILS_MAX]; /* bytes sent and not completed */
};

/* `process` is the local rank. All weights and the window are 1 until mux_settings. */
void mux_open(struct mux *m, enum mux_policy policy, unsigned rails, unsigned process);

/* Weights may have any unit: a rail gets its fraction of their sum, rounded to a hundredth. `window` as in
 * struct mux, at least 1. */
void mux_settings(struct mux *m, const double *weight, uint64_t window);

void mux_set_short_limit(struct mux *m, uint64_t shorter);

/* Returns the rail for a message of `bytes` bytes, which then counts as outstanding. RAIL_NONE: no rail is
 * up, or none has room. */
unsigned mux_next(struct mux *m, uint64_t bytes);

/* Must be called when a message on the rail has completed, or cannot complete any more. */
void mux_report_completed(struct mux *m, unsigned rail, uint64_t bytes);

/* Must be called when a rail came up or went down. Its outstanding messages still need mux_report_completed. */
void mux_set_rail_up(struct mux *m, unsigned rail, bool up);

#endif
