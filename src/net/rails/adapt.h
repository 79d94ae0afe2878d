/* adapt.h: adaptive striping [Liu04 8.2.5]: weights that follow the speed of the rails. A pure state machine; times come
 * from the completion filter.
 *
 * Weights begin equal and their sum stays. When all stripes of a message are done, each rail i that took b_i bytes in time
 * t_i has shown the path bandwidth BW_i = b_i / t_i (8.1). The rails that took part share their weight anew in proportion
 * to it (8.3), damped by alpha (8.4):
 *
 *     W'_i = (1 - alpha) W_i + alpha W_total BW_i / sum of all BW_k
 *
 * Completions that are all found at the same moment, after the process was busy elsewhere, say nothing of the rails: the
 * weights stay (the paper's case 3). So they do when times differ by less than 1/64: a change would only follow noise.
 *
 * Two things the paper leaves open. A slow rail may end up with a share below the smallest stripe, and then nobody would
 * ever see it get fast again: a rail that was left out ADAPT_PROBE times in a row is to be probed with a smallest stripe.
 * And one late completion may not take all weight from a rail: no weight falls below 1/256 of the sum.
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
    uint64_t messages, kept;     /* messages seen; of these, without a change of weights */
};

/* What a rail did for one message. */
struct adapt_sample {
    uint8_t rail;
    uint64_t bytes;
    uint64_t time; /* from hand-over to completion, in any unit; 0 counts as 1 */
};

void adapt_open(struct adapt *a, unsigned rails, double alpha);

/* All stripes of a message are done. */
void adapt_message(struct adapt *a, const struct adapt_sample *samples, unsigned count);

/* Rails whose next stripe should be there if only to be measured. */
uint32_t adapt_probe(const struct adapt *a);

/* A rail that comes back begins like a new one: with an equal share. */
void adapt_back(struct adapt *a, unsigned rail);

#endif
