/* flow.h: a stream of small messages under flow control [Liu04 5]: windows of messages in one direction, an
 * answer to each window in the other. Credits are computed by the library's own code
 * (src/net/ib/policy/credit.h); the frames cross the simulated network. Without credits (hw) a receiver
 * without a buffer refuses a frame, and the adapter repeats that frame and the following ones later.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_FLOW_H
#define FP_SIM_FLOW_H

#include "machine.h"
#include "net/ib/policy/credit.h"

struct flow_order {
    const struct machine *machine;
    struct credit_rules rules;
    uint32_t window, windows; /* messages in a window; number of windows */
    uint32_t bytes;
    double rnr_ns; /* time until a refused frame is repeated */
};

struct flow_report {
    double us;
    uint64_t messages, credit_messages;
    uint64_t waits;   /* attempts of the sender without a credit */
    uint64_t refused; /* frames that arrived when no buffer was posted */
    uint32_t most_posted;
    const char *failed; /* NULL, or the reason why there is no result */
};

void flow_simulate(const struct flow_order *order, struct flow_report *out);

#endif
