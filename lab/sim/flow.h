/* flow.h: a stream of small messages under flow control [Liu04 5]: windows of messages one way, an answer to each window back. Credits
 * are taken, owed, reported and granted by the library's own arithmetic (src/net/ib/policy/credit.h); the frames cross the
 * simulated network. Without credits (hw) a receiver without a buffer refuses a frame, and the adapter repeats it and what
 * followed it after a while.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_FLOW_H
#define FP_SIM_FLOW_H

#include "machine.h"
#include "net/ib/policy/credit.h"

struct flow_order {
    const struct machine *machine;
    struct credit_rules rules;
    uint32_t window, windows; /* messages of a window; windows in all */
    uint32_t bytes;
    double rnr_ns; /* until a refused frame is repeated */
};

struct flow_report {
    double us;
    uint64_t messages, credit_messages;
    uint64_t waits;   /* times the sender had no credit */
    uint64_t refused; /* frames that found no buffer */
    uint32_t most_posted;
    const char *failed; /* NULL, or why there is no result */
};

void flow_simulate(const struct flow_order *order, struct flow_report *out);

#endif
