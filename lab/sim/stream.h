/* stream.h: a stream of large messages between two nodes over rails of different speeds, striped evenly, by
 * fixed weights or adaptively [Liu04 8.3.3], with the policies of src/net/rails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_STREAM_H
#define FP_SIM_STREAM_H

#include "net/rails/rail.h"
#include "network.h"

enum { STREAM_SLICES = 64, STREAM_WINDOW_MAX = 64 };

struct stream_order {
    const struct machine *machine; /* `rails` and the bus are used */
    double scale[RAILS_MAX];       /* factor of each rail's link rate */
    double weight[RAILS_MAX];      /* fixed weights; unused if adaptive */
    bool adaptive, bidirectional;
    double alpha; /* adaptive: weight of the newest message */
    uint64_t bytes, smallest;
    int window;         /* messages in flight; 1: latency of consecutive messages */
    double warm_us, us; /* time that is omitted at the beginning, and measured time after it */
    /* Another program uses a part of a rail for some time: the rail gives this stream the fraction
     * `disturbed` of its rate. */
    int disturbed_rail; /* -1: no other program */
    double disturbed, disturbed_from_us, disturbed_to_us;
};

struct stream_report {
    double rate;                    /* GB/s of all directions together, in the measured time */
    double latency_us;              /* latency of a message in the measured time */
    int slices;                     /* number of slices of the measured time */
    double curve[STREAM_SLICES];    /* rate in each slice */
    double share[STREAM_SLICES][2]; /* weights of the first two rails at the end of each slice */
    double weight[RAILS_MAX];       /* weights at the end, of the first direction */
    uint64_t messages, events;
    const char *failed;
};

void stream_simulate(const struct stream_order *order, struct stream_report *out);

/* The nodes of [Liu04 8.3.1]: 4x links of 1 GB/s, and a bus of about 1 GB/s for both directions together. */
extern const struct machine stream_machine;

#endif
