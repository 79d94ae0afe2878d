/* adapt.h: adaptive striping [Liu04 8.2.5]: weights that follow the speed of the rails. A pure state machine; the
 * completion filter reports stripes and messages to it.
 *
 * Weights begin equal and their sum stays. A rail i that took b_i bytes in time t_i has shown the path bandwidth BW_i = b_i
 * / t_i (8.1). When a message is done, the rails that took part share their weight anew in proportion to it (8.3), damped
 * by alpha (8.4):
 *
 *     W'_i = (1 - alpha) W_i + alpha W_total BW_i / sum of all BW_k
 *
 * Completions that are all found at the same moment, after the process was busy elsewhere, say nothing of the rails: the
 * weights stay (the paper's case 3). So they do when speeds and weights agree within 1/64: a change would only follow
 * noise.
 *
 * The paper leaves three things open.
 * - The time of a stripe begins when the stripe is issued, or at the previous completion on its rail if that is later. With several
 *   messages under way a stripe waits for those before it. A time that includes the wait depends on weights that were chosen long ago,
 *   and weights would swing: in the simulator eight messages under way on rails of 1 and 0.25 GB/s reached 0.88 GB/s, and reach
 *   1.22 GB/s now. With one message at a time this is the paper's time.
 * - A slow rail may end up with a share below the smallest stripe, and then nobody would ever see it get fast again: a rail
 *   that was left out ADAPT_PROBE times in a row is to be probed with a smallest stripe.
 * - One late completion may not take all weight from a rail: no weight falls below 1/256 of the sum.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_RAILS_ADAPT_H
#define FP_NET_RAILS_ADAPT_H

#include "net/rails/rail.h"

enum { ADAPT_PROBE = 16 };

struct adapt {
    uint8_t rails;
    double alpha;                /* 0 < alpha <= 1; the weight of the newest message */
    double weight[RAILS_MAX];    /* sum: 1 */
    uint8_t left_out[RAILS_MAX]; /* messages in a row without a stripe */
    uint64_t done_at[RAILS_MAX]; /* when the last stripe of the rail was found done */
    /* Since the weights were last checked: */
    uint64_t bytes[RAILS_MAX], busy[RAILS_MAX]; /* bytes that the rail moved, and the time that took */
    uint64_t first_found, last_found;           /* times of the first and last completion */
    uint64_t messages, kept; /* number of messages, and of those without a change of weights */
};

void adapt_open(struct adapt *a, unsigned rails, double alpha);

/* A stripe is complete. Times are of one clock, in any unit. */
void adapt_stripe(struct adapt *a, unsigned rail, uint64_t bytes, uint64_t started, uint64_t found);

/* All stripes of a message are complete; `rails` carried them. */
void adapt_count_message(struct adapt *a, uint32_t rails);

/* The rails that should get a stripe of the next message to be measured, even with a weight of zero. */
uint32_t adapt_rails_to_probe(const struct adapt *a);

/* Called when a rail works again: it starts with an equal share, like a new one. */
void adapt_restore_rail(struct adapt *a, unsigned rail);

#endif
