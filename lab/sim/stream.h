/* stream.h: a stream of large messages between two nodes over rails of different speeds, striped evenly, by fixed weights
 * or adaptively [Liu04 8.3.3], with the policies of src/net/rails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_STREAM_H
#define FP_SIM_STREAM_H

#include "net/rails/rail.h"
#include "network.h"

enum { STREAM_SLICES = 64, STREAM_WINDOW_MAX = 64 };

struct stream_order {
    const struct machine *machine; /* its `rails` and bus are used */
    double scale[RAILS_MAX];       /* of each rail's link rate */
    double weight[RAILS_MAX];      /* fixed weights; not used when adaptive */
    bool adaptive, bidirectional;
    double alpha; /* adaptive: the weight of the newest message */
    uint64_t bytes, smallest;
    int window;         /* messages under way at a time; 1: the latency of one after the other */
    double warm_us, us; /* what is left out at the beginning, and what is measured after it */
    /* Somebody else has a part of a rail for a while: the rail gives this stream `disturbed` of its rate. */
    int disturbed_rail; /* -1: nobody */
    double disturbed, disturbed_from_us, disturbed_to_us;
};

struct stream_report {
    double rate;                    /* GB/s of all directions together, in the measured time */
    double latency_us;              /* of a message, in the measured time */
    int slices;                     /* of the measured time, */
    double curve[STREAM_SLICES];    /* the rate in each */
    double share[STREAM_SLICES][2]; /* the weights of the first two rails at its end */
    double weight[RAILS_MAX];       /* at the end, of the first direction */
    uint64_t messages, events;
    const char *failed;
};

void stream_simulate(const struct stream_order *order, struct stream_report *out);

/* The nodes of [Liu04 8.3.1]: 4x links of 1 GB/s, on a bus of about 1 GB/s for both directions together. */
extern const struct machine stream_machine;

#endif
