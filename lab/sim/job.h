/* job.h: a collective operation on a simulated machine: every rank executes the steps that the library's own
 * generators make (src/coll/algo), and the messages cross the simulated network. A rank's processor does one
 * thing after another: starting a send, receiving a message, copying, combining. Messages above
 * machine.eager_bytes use rendezvous: a request and an answer of 64 bytes, then the data once the receiver
 * has reached its receive.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_JOB_H
#define FP_SIM_JOB_H

#include "coll/sched/algorithm.h"
#include "coll/sched/sched.h"
#include "network.h"

/* A kind of step that only given schedules (job_order.given) contain: the processor computes for `count`
 * nanoseconds. */
enum { JOB_COMPUTE = STEP_FENCE + 1 };

/* Use of a node's rails by the messages of a collective operation [Liu04 11.2]. */
enum job_rails {
    /* A rendezvous message is striped over all rails; other messages use the rails in turn. */
    JOB_RAILS_STRIPE,
    /* A stage of the schedule (the steps up to a fence) uses one rail, the next stage the next rail. */
    JOB_RAILS_STAGES,
    /* A rank of a node uses one rail, the next rank of the node the next rail. */
    JOB_RAILS_RANKS,
    JOB_RAILS
};

struct job_order {
    const struct machine *machine;
    const struct coll_algorithm *algorithm;
    int parameter[COLL_PARAMETERS]; /* 0: the algorithm's preset */
    int ranks, per_node, root;
    uint64_t bytes;   /* bytes of the vector for bcast and reductions, of one block for other collectives */
    uint64_t segment; /* bytes that a pipelined algorithm moves at a time; 0: the whole message */
    uint64_t most_steps;
    enum job_rails rails;
    const struct sched *given; /* NULL, or the steps of each rank, in bytes, which replace the algorithm's */
    const uint32_t *place; /* NULL, or the node of each rank; ranks otherwise fill one node after the other */
};

struct job_report {
    double us;                /* from the common start to the end of the last rank */
    double first_us;          /* from the start to the end of the first rank */
    uint64_t steps, messages; /* sums over all ranks */
    uint64_t events;
    const char *failed; /* NULL, or the reason why there is no result */
};

void job_simulate(const struct job_order *order, struct job_report *out);

#endif
