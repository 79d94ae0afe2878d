/* rails.h: `fishplate-lab rails`: several adapters as one [Liu04 chapter 8]: each figure of the paper, on
 * software adapters of the paper's rates. It runs jobs and prints tables as `fishplate-lab ib` does
 * (../ib/ib.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_RAILS_RAILS_H
#define FP_LAB_RAILS_RAILS_H

#include "lab/ib/ib.h"

/* `draw` writes curves as SVG; may be NULL. */
int bench_rails_main(void (*draw)(const struct ib_curves *c, FILE *out), int argc, char **argv);

#define RAILS_ONE "1GB/s"
#define RAILS_TWO "2x1GB/s"
#define RAILS_ODD "1GB/s,250MB/s"

/* Values of FISHPLATE_IB_STRIPE, which divides messages among rails. */
#define STRIPE_ADAPTIVE "FISHPLATE_IB_STRIPE=adaptive"
#define STRIPE_EVEN     "FISHPLATE_IB_STRIPE=even"
#define STRIPE_OFF      "FISHPLATE_IB_STRIPE=off"
#define STRIPE_WEIGHTED "FISHPLATE_IB_STRIPE=weighted FISHPLATE_IB_WEIGHTS="

/* traffic.c: pairs of ranks: rank i on the first node with its counterpart on the second node. */
void rails_run_traffic(struct ib_rank *r);

/* Share in percent of the striped bytes of a job that used the second rail; 0: unused. */
double rails_second_share(const struct ib_figures *f);
/* Adds a remark to the table: whether the second rail was used. */
void rails_print_second_share(struct ib_table *t, const struct ib_figures *two);
/* Reports the bytes on each rail at both ranks of a pair. */
void rails_report_bytes(struct ib_rank *r);

extern const struct ib_topic rails_pairs, rails_smp, rails_coll, rails_stages, rails_kernels, rails_unequal,
    rails_shared, rails_loss, rails_whole, rails_alloc;

#endif
