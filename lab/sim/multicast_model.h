/* multicast_model.h: closed forms of a broadcast's latency and throughput, by a tree of messages and by
 * multicast [Liu04 7.5], from the same machine parameters as the simulator.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_MULTICAST_MODEL_H
#define FP_SIM_MULTICAST_MODEL_H

#include <stdint.h>

#include "machine.h"

/* us from the start of a broadcast of one packet until the last of `nodes` nodes has the bytes; no node is
 * late. */
double model_messages_us(const struct machine *m, uint32_t nodes, double bytes);
double model_multicast_us(const struct machine *m, uint32_t nodes, double bytes);

/* us from one broadcast to the next, determined by the busiest processor: the root, a co-root or a leaf.
 * `collectors`: the root and the co-roots; one acknowledgement for every `aggregate` packets. */
struct model_load {
    uint32_t nodes, collectors, aggregate;
    double bytes;
};
/* Model of the library: co-roots take part in the multicast and acknowledge to the root. */
double model_period_us(const struct machine *m, const struct model_load *l);
/* Model of [Liu04]: in addition the root sends to the co-roots over a tree of reliable messages, which are
 * not acknowledged. */
double model_paper_period_us(const struct machine *m, const struct model_load *l);

#endif
