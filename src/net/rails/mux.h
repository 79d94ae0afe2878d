/* mux.h: multiplexing: which rail the next whole message takes [Liu04 8.2.4]. For control and small messages, whose cost is
 * per message, so their length does not count but for `room`. A pure state machine.
 *
 *   binding   Always the same rail: process number modulo the number of rails. Least work, and order is kept. Several
 *             processes of a node together use all rails.
 *   turns     Round robin.
 *   weights   Weighted round robin: of every sum(weight) messages a rail takes `weight`, spread evenly over the round.
 *   window    Round robin that changes rails after every `window` messages only. Fewer messages overtake each other where
 *             rails differ in latency.
 *   room      Round robin among rails with fewer than `window` bytes outstanding. No rail has room: the message waits.
 *
 * A rail that is down (not in `up`) is passed over; a process that is bound to it goes to the next one that is up.
 *
 * Any policy may leave short messages on rail 0 while that is up (mux_set_short_limit): they cost the processor more where they change
 * rails, and do not fill a link.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_RAILS_MUX_H
#define FP_NET_RAILS_MUX_H

#include "net/rails/rail.h"

enum mux_policy { MUX_BINDING, MUX_TURNS, MUX_WEIGHTS, MUX_WINDOW, MUX_ROOM };

struct mux {
    enum mux_policy policy;
    uint8_t rails;   /* number of rails */
    uint8_t last;    /* rail of the last message; RAIL_NONE before the first. binding: the rail */
    uint32_t up;     /* bit set of the rails that work */
    uint64_t window; /* window: messages in a row; room: bytes outstanding */
    uint64_t left;   /* window: messages that still go to `last` */
    uint64_t kept;   /* shorter messages stay on rail 0; 0: none do */
    uint32_t weight[RAILS_MAX];
    int64_t due[RAILS_MAX];          /* weights: how much a rail is behind its share */
    uint64_t outstanding[RAILS_MAX]; /* bytes sent and not completed */
};

/* `process` is the number of this process on its node. Weights are 1 and the window is 1 message until set. */
void mux_open(struct mux *m, enum mux_policy policy, unsigned rails, unsigned process);

/* Weights may be of any unit: a rail takes its part of their sum, to a hundredth. `window` as in the structure, at least 1. */
void mux_settings(struct mux *m, const double *weight, uint64_t window);

void mux_set_short_limit(struct mux *m, uint64_t shorter);

/* The rail for a message of `bytes` bytes, which is then outstanding. RAIL_NONE: no rail is up, or none has room. */
unsigned mux_next(struct mux *m, uint64_t bytes);

/* A message on the rail has completed, or will never. */
void mux_done(struct mux *m, unsigned rail, uint64_t bytes);

/* A rail came back or went away. What was outstanding on it is still to be reported by mux_done. */
void mux_set_rail_up(struct mux *m, unsigned rail, bool up);

#endif
