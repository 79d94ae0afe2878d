/* barrier_model.h: predicted time of a barrier: LogP [Hoefler05 2.1.4.4, 2.2] and LoP, whose overhead and
 * latency depend on the number of messages that a node has in flight [Hoefler05 2.3, 2.3.7]. Pure arithmetic,
 * in microseconds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_LOGP_BARRIER_MODEL_H
#define FP_LAB_LOGP_BARRIER_MODEL_H

#include "coll/sched/algorithm.h"

struct model_logp {
    double send, receive; /* o_s, o_r: processor time of one message */
    double gap;           /* g: time between two messages of one node */
    double latency;       /* L: time from adapter to adapter */
};

/* Send overhead o_s(p) = a + b / (c + p): the cost of a message falls as p messages fill the pipeline
 * [Hoefler05 2.3.6.1.2]. */
struct model_overhead {
    double a, b, c;
};
/* Round-trip time of one of p messages: l1 / (l2 + p) + l3 + l4 * (1 - exp(l5 * (p - l6))). [Hoefler05
 * 2.3.6.1.1] */
struct model_trip {
    double l1, l2, l3, l4, l5, l6;
};
struct model_lop {
    struct model_overhead send; /* o_s(p) */
    struct model_trip trip;     /* RTT(p) */
    bool list; /* requests are posted as one list; the adapter begins when the whole list is posted */
    double max_in_flight; /* largest measured p; the model uses its value for larger p */
};

/* Measurement of the paper: RDMA write with inline data on 64 nodes. */
extern const struct model_lop model_paper_inline;

double model_overhead_at(const struct model_overhead *o, double p);
double model_trip_at(const struct model_trip *t, double p);
double model_latency_at(const struct model_lop *m, double p); /* L(p), at least 0 */

/* Time of one barrier among `size` ranks; a parameter of 0 is the algorithm's preset. Negative: the model has
 * no equation for the algorithm. times: number of consecutive barriers of which one is predicted (the paper's
 * cnt). */
double model_barrier_logp(const struct model_logp *m, const struct coll_algorithm *a, const int *parameter,
                          int size);
double model_barrier_lop(const struct model_lop *m, const struct coll_algorithm *a, const int *parameter,
                         int size, int times);

/* Smallest k with base^k >= size, and largest k with base^k <= size. */
int model_log_up(int base, int size);
int model_log_down(int base, int size);

#endif
