/* rails.h: `fishplate-lab rails`: several adapters as one [Liu04 chapter 8]: each figure of the paper, on software
 * adapters of the paper's rates. It runs jobs and prints tables as `fishplate-lab ib` does (../ib/ib.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_RAILS_RAILS_H
#define FP_LAB_RAILS_RAILS_H

#include "lab/ib/ib.h"

/* `draw` writes curves as an SVG; may be NULL. */
int bench_rails_main(void (*draw)(const struct ib_curves *c, FILE *out), int argc, char **argv);

#define RAILS_ONE "1GB/s"
#define RAILS_TWO "2x1GB/s"
#define RAILS_ODD "1GB/s,250MB/s"

/* How messages are divided; the settings of the transport. */
#define STRIPE_ADAPTIVE "FISHPLATE_IB_STRIPE=adaptive"
#define STRIPE_EVEN     "FISHPLATE_IB_STRIPE=even"
#define STRIPE_OFF      "FISHPLATE_IB_STRIPE=off"
#define STRIPE_WEIGHTED "FISHPLATE_IB_STRIPE=weighted FISHPLATE_IB_WEIGHTS="

/* traffic.c: pairs of ranks, the one on the first node with its mirror image on the second. */
void rails_traffic(struct ib_rank *r);

/* Of a job: how much of what was striped went over the second rail, in percent; 0: it was not used. */
double rails_second(const struct ib_figures *f);
/* Adds a line to the table: whether the second rail was used at all. */
void rails_print_used(struct ib_table *t, const struct ib_figures *two);
/* Reports the bytes that each rail carried, at both ranks of a pair. */
void rails_report(struct ib_rank *r);

extern const struct ib_topic rails_pairs, rails_smp, rails_coll, rails_kernels, rails_unequal, rails_shared,
    rails_loss, rails_whole, rails_alloc;

#endif
