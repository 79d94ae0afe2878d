/* job.h: a collective operation on a simulated machine: every rank takes the steps that the library's own generators make
 * (src/coll/algo), and the messages cross the simulated network.
 *
 * A rank's processor does one thing after another: starting a send, taking a message, copying, combining. Messages above
 * machine.eager_bytes first ask (a message of 64 bytes each way) and are sent when the receiver has reached its receive.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_JOB_H
#define FP_SIM_JOB_H

#include "coll/sched/algorithm.h"
#include "coll/sched/sched.h"
#include "network.h"

/* A step of given schedules beside those of sched.h: the processor computes for `count` nanoseconds. */
enum { JOB_COMPUTE = STEP_FENCE + 1 };

struct job_order {
    const struct machine *machine;
    const struct coll_algorithm *algorithm;
    int parameter[COLL_PARAMETERS]; /* 0: the algorithm's preset */
    int ranks, per_node, root;
    uint64_t bytes;   /* of the vector for bcast and reductions, of one block for the others */
    uint64_t segment; /* bytes a pipelined algorithm moves at a time; 0: all at once */
    uint64_t most_steps;
    const struct sched *given; /* NULL, or the steps of each rank, in bytes, instead of the algorithm's */
    const uint32_t *place;     /* NULL, or the node of each rank instead of filling one after the other */
};

struct job_report {
    double us;                /* from the start, common to all, to the end of the last rank */
    double first_us;          /* to the end of the first */
    uint64_t steps, messages; /* of all ranks */
    uint64_t events;
    const char *failed; /* NULL, or why there is no result */
};

void job_simulate(const struct job_order *order, struct job_report *out);

#endif
