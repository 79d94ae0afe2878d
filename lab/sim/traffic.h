/* traffic.h: the load study of [Coll01 4, 5]: nodes with several rails whose processes send messages of
 * random sizes to random processes, by one of the allocation policies of lab/mechanisms/rails. An adapter's
 * bus moves data in one direction at a time.
 *
 * A process makes messages at random times (exponential gaps), independent of their delivery, and sends one
 * after the other: the next one when every stripe of the last is in the receiver's memory. An adapter has a
 * processor of its own, which handles one control frame after the other; control frames precede packets of
 * data. Loads are fractions of the rate of a node's links in one direction.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_TRAFFIC_H
#define FP_SIM_TRAFFIC_H

#include "lab/mechanisms/rails/alloc.h"
#include "network.h"

struct traffic_order {
    const struct machine *machine; /* `rails` and the bus are used */
    int nodes, per_node;
    enum alloc_policy policy;
    double ratio;      /* striping ratio */
    uint64_t shortest; /* hybrid: longer messages reserve */
    double mean_bytes, load;
    double control_ns;  /* processor time of an adapter for one control frame or command */
    double warm_us, us; /* time that is omitted at the beginning, and measured time after it */
    uint64_t seed;
};

struct traffic_report {
    /* data that was created (offered) and that arrived (accepted) in the measured time, as fractions of the
     * links' rate */
    double offered, accepted;
    double latency_us;        /* from creation to arrival, of messages that arrived in the measured time */
    double waited_us;         /* part of latency_us until the first stripe was given to an adapter */
    double stripes;           /* mean number of stripes of a message */
    uint64_t messages;        /* messages that arrived in the measured time */
    uint64_t frames, refused; /* control frames; requests that no rail granted */
    uint64_t strays;          /* frames and answers that belong to no request: 0 unless there is an error */
    uint64_t events;
    const char *failed; /* NULL, or the reason why there is no result */
};

void traffic_simulate(const struct traffic_order *order, struct traffic_report *out);

/* The machine of [Coll01 4.1], a nanosecond for a clock cycle: 2 bytes a cycle, 6 cycles in a switch with
 * four links up and four down, worms on two virtual channels, a bus as fast as the link. Some numbers are
 * ours, chosen with the paper's figures known (lab/docs/simulator.md). Switches send a worm up the way that
 * is least busy. A bus that changes its direction with every packet carries 80 % of its rate, which the paper
 * reports of the buses of its time [Coll01 1]. A channel's buffer has 1 KiB, not 256 bytes: whole packets are
 * moved here, not flits, and smaller packets take longer to simulate. */
extern const struct machine traffic_machine;

#endif
