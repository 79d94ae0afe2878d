/* adapt.h: adaptive striping [Liu04 8.2.5]: weights that follow the speed of the rails. A pure state machine; the
 * completion filter reports stripes and messages to it.
 *
 * Weights are equal at first, and their sum is constant. A rail i that moved b_i bytes in time t_i has the
 * path bandwidth BW_i = b_i / t_i (8.1). After each message the weight of the rails that it used is
 * redistributed among them in proportion to their bandwidth (8.3), damped by alpha (8.4):
 *
 *     W'_i = (1 - alpha) W_i + alpha W_total BW_i / sum of all BW_k
 *
 * If all completions are polled at the same moment, after the process was busy, they contain no information
 * about the rails, and the weights do not change (the paper's case 3). Nor do they change if speeds and
 * weights agree within 1/64: that is noise.
 *
 * The paper leaves three questions open.
 * - The time of a stripe begins when the stripe is issued, or at the previous completion on its rail if
 *   that is later. With several messages in flight a stripe waits for earlier stripes. A time that includes
 *   this wait would depend on old weights, and weights would oscillate: in the simulator eight messages in
 *   flight on rails of 1 and 0.25 GB/s then reach 0.88 GB/s instead of 1.22 GB/s. With one message at a time
 *   this is the paper's time.
 * - A slow rail may get a share below the smallest stripe, so that it is not measured any more: a rail that
 *   was left out ADAPT_PROBE times in a row is probed with a stripe of the smallest size.
 * - One late completion may not take all weight from a rail: no weight falls below 1/256 of the sum.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_RAILS_ADAPT_H
#define FP_NET_RAILS_ADAPT_H

#include "net/rails/rail.h"

enum { ADAPT_PROBE = 16 };

struct adapt {
    uint8_t rails;
    double alpha;                /* 0 < alpha <= 1: the weight of the newest message */
    double weight[RAILS_MAX];    /* sum: 1 */
    uint8_t left_out[RAILS_MAX]; /* consecutive messages without a stripe on the rail */
    uint64_t done_at[RAILS_MAX]; /* when a stripe of the rail was last found complete */
    /* Measured since the weights were last checked: */
    uint64_t bytes[RAILS_MAX], busy[RAILS_MAX]; /* bytes that the rail moved, and the time for them */
    uint64_t first_found, last_found;           /* times at which the first and last completion were polled */
    uint64_t messages, kept;                    /* number of messages, and of those that changed no weights */
};

void adapt_open(struct adapt *a, unsigned rails, double alpha);

/* Records a complete stripe. Times are of one clock, in any unit. */
void adapt_stripe(struct adapt *a, unsigned rail, uint64_t bytes, uint64_t started, uint64_t found);

/* Must be called when all stripes of a message are complete; `rails` carried them. */
void adapt_count_message(struct adapt *a, uint32_t rails);

/* Returns the rails that the next message should probe with a stripe, because they were left out so long. */
uint32_t adapt_rails_to_probe(const struct adapt *a);

/* Called when a rail works again: gives it an equal share, like a new rail. */
void adapt_restore_rail(struct adapt *a, unsigned rail);

#endif
